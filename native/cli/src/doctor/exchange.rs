//! Real bytes over a fabric: to itself, or to another host.

use super::args::{Args, Choice};
use crate::perf::args::{ClientArgs, FabricArgs, FabricName, Mode, Operation};
use crate::perf::client::Client;
use crate::perf::protocol::{Job, SERVER};
use crate::perf::site::Site;
use crate::perf::{report, server, PerfError};
use faro_fabric::diagnose::{Finding, Level};
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

/// Bytes of a block: one operation of every fabric.
const BLOCK: usize = 64 << 10;
/// How long blocks go to and fro; a check, and no measurement.
const LENGTH: Duration = Duration::from_millis(50);

/// Memory, device and port as the executors have them.
pub(super) fn fabric_args(args: &Args, fabric: FabricName) -> FabricArgs {
    FabricArgs {
        fabric,
        device: args.device.clone(),
        gid_index: args.gid_index,
        memory: args.memory_limit,
        spin: false,
    }
}

/// Between two endpoints of this process.
pub(super) fn alone(args: &Args, fabric: FabricName, near: IpAddr) -> Finding {
    let result =
        Site::open(&fabric_args(args, fabric), SocketAddr::new(near, 0), SERVER).and_then(|site| {
            let location = site.fabric.location();
            let server = thread::Builder::new()
                .name("server".to_owned())
                .spawn(move || server::serve(site, true, &|_, _| ()))
                .map_err(PerfError::Thread)?;
            let result = exchange(args, fabric, location);
            // A server that nobody reached waits for ever; it ends with this process.
            if result.is_ok() {
                let _ = server.join();
            }
            result
        });
    match result {
        Ok(says) => Finding::good(
            check(fabric),
            format!("blocks pass within this host, {says}"),
        ),
        Err(error) => {
            let says = format!("{} moves nothing on this host: {error}", check(fabric));
            Finding::bad(check(fabric), level(fabric), says, own_mend(fabric, near))
        }
    }
}

/// With a server on another host.
pub(super) fn with_peer(args: &Args, fabric: FabricName, location: SocketAddr) -> Finding {
    let name = match fabric {
        FabricName::Verbs => "peer verbs",
        _ => "peer tcp",
    };
    match exchange(args, fabric, location.to_string()) {
        Ok(says) => Finding::good(name, format!("blocks pass to {location} and back, {says}")),
        Err(error) => {
            let says = format!(
                "nothing passes to {location} over {}: {error}",
                check(fabric)
            );
            let mend = format!(
                "`faro doctor --serve` on {host}; open TCP port {port} there; `faro doctor` there \
                 tells what it lacks{more}",
                host = location.ip(),
                port = location.port(),
                more = match fabric {
                    FabricName::Verbs => ", RoCE v2 also needs UDP port 4791",
                    _ => "",
                }
            );
            // A host that is not reached over TCP is not reached at all.
            Finding::bad(name, level_of_peer(args, fabric), says, mend)
        }
    }
}

fn exchange(args: &Args, fabric: FabricName, location: String) -> Result<String, PerfError> {
    let client = ClientArgs {
        location,
        fabric: fabric_args(args, fabric),
        operation: vec![Operation::Write, Operation::Read],
        mode: vec![Mode::Latency],
        size: vec![BLOCK],
        depth: 1,
        clients: 1,
        seconds: LENGTH,
        rounds: 1,
        timeout: args.timeout,
        json: false,
    };
    let mut connected = Client::connect(&client, 0)?;
    let mut latencies = report::latencies()?;
    for &operation in &client.operation {
        let job = Job {
            operation,
            mode: Mode::Latency,
            size: BLOCK,
        };
        connected.round(job, LENGTH, &mut latencies, &mut |_| {})?;
    }
    let median = latencies.value_at_quantile(0.5) as f64 / 1e3;
    Ok(format!("{median:.0} us for 64 KiB"))
}

fn check(fabric: FabricName) -> &'static str {
    match fabric {
        FabricName::Verbs => "verbs",
        FabricName::Tcp => "tcp",
        FabricName::Shm => "shm",
    }
}

/// What it means that a fabric does not work here.
fn level(fabric: FabricName) -> Level {
    match fabric {
        FabricName::Verbs => Level::NoRdma,
        FabricName::Tcp => Level::Broken,
        // Executors of one host use TCP then.
        FabricName::Shm => Level::Note,
    }
}

fn level_of_peer(args: &Args, fabric: FabricName) -> Level {
    match (fabric, args.fabric) {
        (FabricName::Tcp, Choice::Verbs) => Level::NoRdma,
        (fabric, _) => level(fabric),
    }
}

fn own_mend(fabric: FabricName, near: IpAddr) -> String {
    match fabric {
        FabricName::Verbs => "ibv_rc_pingpong against itself, ibv_devinfo -v; dmesg | tail".into(),
        FabricName::Tcp => format!("ip address show to {near}; spark.faro.bindAddress, --address"),
        FabricName::Shm => "ulimit -n; memfd_create must be allowed (seccomp)".into(),
    }
}
