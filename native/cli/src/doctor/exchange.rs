//! Tests of a fabric with real bytes: within this host, or with another host.

use super::args::{DoctorArgs, FabricSetting};
use crate::perf::args::{ClientArgs, FabricArgs, FabricName, PerfMode, PerfOperation};
use crate::perf::client::PerfClient;
use crate::perf::protocol::{PerfJob, SERVER};
use crate::perf::site::PerfSite;
use crate::perf::{report, server, PerfError};
use faro_fabric::diagnose::{Finding, Severity};
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

/// Bytes of a block: one operation on every fabric.
const BLOCK: usize = 64 << 10;
/// Duration of a test; it is a check, not a measurement.
const LENGTH: Duration = Duration::from_millis(50);

/// The executors' device and memory for a fabric.
pub(super) fn fabric_args(args: &DoctorArgs, fabric: FabricName) -> FabricArgs {
    FabricArgs {
        fabric,
        device: args.device.clone(),
        gid_index: args.gid_index,
        memory: args.memory_limit,
        spin: false,
    }
}

/// Tests a fabric between two endpoints of this process.
pub(super) fn alone(args: &DoctorArgs, fabric: FabricName, address: IpAddr) -> Finding {
    let result = PerfSite::open(
        &fabric_args(args, fabric),
        SocketAddr::new(address, 0),
        SERVER,
    )
    .and_then(|site| {
        let location = site.fabric.location();
        let server = thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || server::serve(site, true, &|_, _| ()))
            .map_err(PerfError::Thread)?;
        let result = exchange(args, fabric, location);
        // A server without a client waits for ever; it ends with this process.
        if result.is_ok() {
            let _ = server.join();
        }
        result
    });
    match result {
        Ok(took) => Finding::good(
            check(fabric),
            format!("blocks pass within this host, {took}"),
        ),
        Err(error) => {
            let message = format!("{} does not work within this host: {error}", check(fabric));
            Finding::bad(
                check(fabric),
                level(fabric),
                message,
                local_fix(fabric, address),
            )
        }
    }
}

/// Tests a fabric with a server on another host.
pub(super) fn with_peer(args: &DoctorArgs, fabric: FabricName, location: SocketAddr) -> Finding {
    let name = match fabric {
        FabricName::Verbs => "peer verbs",
        _ => "peer tcp",
    };
    match exchange(args, fabric, location.to_string()) {
        Ok(took) => Finding::good(name, format!("blocks pass to {location} and back, {took}")),
        Err(error) => {
            let message = format!(
                "no blocks pass to {location} over {}: {error}",
                check(fabric)
            );
            let fix = format!(
                "run `faro doctor --serve` on {host} and open TCP port {port} there{more}; `faro doctor` \
                 on {host} names what is missing",
                host = location.ip(),
                port = location.port(),
                more = match fabric {
                    FabricName::Verbs => " (RoCE v2 also needs UDP port 4791)",
                    _ => "",
                }
            );
            // A host that TCP cannot reach cannot be reached at all.
            Finding::bad(name, level_of_peer(args, fabric), message, fix)
        }
    }
}

fn exchange(args: &DoctorArgs, fabric: FabricName, location: String) -> Result<String, PerfError> {
    let client = ClientArgs {
        location,
        fabric: fabric_args(args, fabric),
        operation: vec![PerfOperation::Write, PerfOperation::Read],
        mode: vec![PerfMode::Latency],
        size: vec![BLOCK],
        depth: 1,
        clients: 1,
        seconds: LENGTH,
        rounds: 1,
        timeout: args.timeout,
        json: false,
    };
    let mut connected = PerfClient::connect(&client, 0)?;
    let mut latencies = report::latencies()?;
    for &operation in &client.operation {
        let job = PerfJob {
            operation,
            mode: PerfMode::Latency,
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

/// The severity of a fabric that does not work within this host.
fn level(fabric: FabricName) -> Severity {
    match fabric {
        FabricName::Verbs => Severity::NoRdma,
        FabricName::Tcp => Severity::Broken,
        // Executors on one host use TCP instead.
        FabricName::Shm => Severity::Note,
    }
}

fn level_of_peer(args: &DoctorArgs, fabric: FabricName) -> Severity {
    match (fabric, args.fabric) {
        (FabricName::Tcp, FabricSetting::Verbs) => Severity::NoRdma,
        (fabric, _) => level(fabric),
    }
}

fn local_fix(fabric: FabricName, address: IpAddr) -> String {
    match fabric {
        FabricName::Verbs => {
            "see `ibv_devinfo -v` and `dmesg | tail`; try ibv_rc_pingpong on this host".into()
        }
        FabricName::Tcp => format!(
            "`ip address show to {address}` must list an interface; otherwise set --address, and \
             spark.faro.bindAddress for executors"
        ),
        FabricName::Shm => "raise `ulimit -n`; allow memfd_create (seccomp)".into(),
    }
}
