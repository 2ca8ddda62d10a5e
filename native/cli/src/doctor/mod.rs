//! `faro doctor`: would Faro work on this host, how fast a way has it, and what mends the rest.
//!
//! The checks are those of [`faro_fabric::diagnose`], which an executor makes as well when it starts
//! without RDMA. What they cannot tell is tried: every fabric moves bytes, within this process and,
//! with `--peer`, to another host.

mod args;
mod exchange;
mod report;
mod serve;
mod verdict;

pub use args::Args;
pub use verdict::Verdict;

use crate::perf::args::FabricName;
use crate::CliError;
use args::Choice;
use faro_fabric::diagnose::{Finding, Host, Level, SettingNames};
use faro_fabric::verbs::VerbsOptions;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;

/// What a Spark user sets to follow a command's advice.
const SPARK: SettingNames = SettingNames {
    memory_limit: "spark.faro.memory.limit",
    memory_overhead: "spark.executor.memoryOverhead",
    device: "spark.faro.verbs.device",
    gid_index: "spark.faro.verbs.gidIndex",
};

/// The checks, or the other side of them; the process's exit code.
///
/// # Errors
/// Output that cannot be written; an address or a port that cannot be used.
pub fn run(args: &Args, out: &mut impl Write) -> Result<u8, CliError> {
    let near = address(args);
    if let Some(port) = args.serve {
        serve::run(args, SocketAddr::new(near, port), out)?;
        return Ok(0);
    }
    let findings = examine(args, near);
    let verdict = Verdict::of(&findings, args.fabric);
    if args.json {
        report::json(out, args, near, &verdict, &findings)?;
    } else {
        report::screen(out, near, &verdict, &findings)?;
    }
    Ok(verdict.code())
}

fn examine(args: &Args, near: IpAddr) -> Vec<Finding> {
    let wishes = wishes(args);
    let host = Host {
        root: &args.root,
        wishes: &wishes,
        near,
        memory_limit: args.memory_limit,
        names: SPARK,
    };
    let mut findings = host.rdma();
    // A device can be tried only where it is.
    let here = args.root == Path::new("/");
    let seen = findings.iter().all(|finding| finding.level < Level::NoRdma);
    if here {
        findings.extend(host.tried().into_iter().filter(|finding| {
            // Opening ends with what was just seen.
            seen || finding.check != "opening"
        }));
    }
    findings.extend(host.memory());
    if here {
        let usable = findings
            .iter()
            .all(|finding| finding.level != Level::NoRdma);
        for fabric in [FabricName::Shm, FabricName::Tcp, FabricName::Verbs] {
            if fabric != FabricName::Verbs || usable {
                findings.push(exchange::alone(args, fabric, near));
            }
        }
        for peer in &args.peer {
            for (fabric, location) in peer.targets() {
                if fabric != FabricName::Verbs || usable {
                    findings.push(exchange::with_peer(args, fabric, location));
                }
            }
        }
    }
    if args.fabric == Choice::Tcp {
        // What TCP does not need is no trouble.
        for finding in &mut findings {
            if finding.level == Level::NoRdma {
                finding.level = Level::Note;
            }
        }
    }
    findings
}

fn wishes(args: &Args) -> VerbsOptions {
    VerbsOptions {
        device: args.device.clone(),
        gid_index: args.gid_index,
        ..VerbsOptions::default()
    }
}

/// The address that an executor here would tell its peers, as Spark finds it: what is set, else the
/// way to a peer, else what the host's name stands for.
fn address(args: &Args) -> IpAddr {
    let set = || std::env::var("SPARK_LOCAL_IP").ok()?.parse().ok();
    let to_peer = || {
        let peer = args.peer.first()?;
        let (_, target) = peer.targets().into_iter().next()?;
        source(target)
    };
    // Nothing is sent; TEST-NET-1 (RFC 5737) has the way that all other addresses have.
    let outward = || source(SocketAddr::from(([192, 0, 2, 1], 9)));
    args.address
        .or_else(set)
        .or_else(to_peer)
        .or_else(by_name)
        .or_else(outward)
        .unwrap_or(Ipv4Addr::LOCALHOST.into())
}

fn by_name() -> Option<IpAddr> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let addresses: Vec<SocketAddr> = (name.trim(), 0).to_socket_addrs().ok()?.collect();
    let mut others = addresses
        .iter()
        .map(SocketAddr::ip)
        .filter(|ip| !ip.is_loopback());
    others.next()
}

/// Our address on the way to `target`.
fn source(target: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match target {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(target).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
