//! `faro doctor`: whether Faro works on this host, over which fabric, and how to fix what does not.
//!
//! The checks are those of [`faro_fabric::diagnose`], which an executor runs as well if it starts
//! without RDMA. In addition every fabric moves bytes, within this process and, with `--peer`, to
//! another host.

pub(crate) mod args;
mod bundle;
mod channel;
mod exchange;
mod report;
mod serve;
mod service;
mod verdict;

pub use args::DoctorArgs;
pub use verdict::DoctorVerdict;

use crate::perf::args::FabricName;
use crate::CliError;
use args::FabricSetting;
use faro_fabric::diagnose::{Finding, Host, SettingNames, Severity};
use faro_fabric::verbs::VerbsOptions;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// Settings by which a Spark user follows a command's advice.
const SPARK: SettingNames = SettingNames {
    memory_limit: "spark.faro.memory.limit",
    memory_overhead: "spark.executor.memoryOverhead",
    device: "spark.faro.verbs.device",
    gid_index: "spark.faro.verbs.gidIndex",
};

/// Runs the checks, or serves another host's. Returns the process's exit code.
///
/// # Errors
/// The output cannot be written; an address or a port cannot be used.
pub fn run(args: &DoctorArgs, out: &mut impl Write) -> Result<u8, CliError> {
    let local = address(args);
    if let Some(port) = args.serve {
        serve::run(args, SocketAddr::new(local, port), out)?;
        return Ok(0);
    }
    let findings = examine(args, local);
    let verdict = DoctorVerdict::of(&findings, args.fabric);
    if let Some(path) = &args.bundle {
        let mut screen = Vec::new();
        report::screen(&mut screen, local, &verdict, &findings)?;
        let settings = match args.settings.is_empty() {
            true => bundle::settings_of_environment().into_iter().collect(),
            false => args.settings.clone(),
        };
        let logs = &args.log;
        bundle::write(path, &screen, &bundle::BundleSources { settings, logs })?;
        writeln!(
            out,
            "{}: look through it before you pass it on",
            path.display()
        )?;
        return Ok(verdict.code());
    }
    if args.json {
        report::json(out, args, local, &verdict, &findings)?;
    } else {
        report::screen(out, local, &verdict, &findings)?;
    }
    Ok(verdict.code())
}

fn examine(args: &DoctorArgs, local: IpAddr) -> Vec<Finding> {
    let options = verbs_options(args);
    let host = Host {
        root: &args.root,
        options: &options,
        near: local,
        memory_limit: args.memory_limit,
        names: SPARK,
    };
    let mut findings = host.rdma();
    // Devices can be opened only if the checked host is this one.
    let is_this_host = args.root == Path::new("/");
    let complete = findings
        .iter()
        .all(|finding| finding.level < Severity::NoDevice);
    if is_this_host {
        findings.extend(host.tried().into_iter().filter(|finding| {
            // If a check has failed already, opening fails for the same reason.
            complete || finding.check != "opening"
        }));
    }
    findings.extend(host.memory());
    if is_this_host {
        findings.push(channel::check());
        let usable = findings.iter().all(|finding| !lacks_rdma(finding));
        for fabric in [FabricName::Shm, FabricName::Tcp, FabricName::Verbs] {
            if fabric != FabricName::Verbs || usable {
                findings.push(exchange::alone(args, fabric, local));
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
    if let Some(directory) = &args.socket_dir {
        findings.push(service::check(directory, args.timeout));
    }
    if args.fabric == FabricSetting::Tcp {
        // TCP does not need RDMA.
        for finding in &mut findings {
            if lacks_rdma(finding) {
                finding.level = Severity::Note;
            }
        }
    }
    findings
}

fn lacks_rdma(finding: &Finding) -> bool {
    matches!(finding.level, Severity::NoDevice | Severity::NoRdma)
}

fn verbs_options(args: &DoctorArgs) -> VerbsOptions {
    VerbsOptions {
        device: args.device.clone(),
        gid_index: args.gid_index,
        ..VerbsOptions::default()
    }
}

/// The address that an executor on this host announces.
fn address(args: &DoctorArgs) -> IpAddr {
    let targets = args
        .peer
        .first()
        .map(args::ExchangePeer::targets)
        .unwrap_or_default();
    let peer = targets.into_iter().next().map(|(_, target)| target);
    crate::host::address(args.address, peer)
}
