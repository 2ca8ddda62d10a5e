//! Ports, choice, permission, locked memory, library, device.

use super::fix::fix;
use super::memory::bytes;
use super::{Finding, Host, Severity};
use crate::verbs::device::{
    choose, device_file, library_file, locked, survey, try_device, DeviceChoice, DevicePort,
    ProbedDevice,
};
use crate::verbs::VerbsError;
use std::fs::File;
use std::io::ErrorKind;

/// RoCE's largest packet, and what the network needs to carry it with its headers.
const FULL_MTU: u32 = 4096;
const FULL_LINK_MTU: u32 = 4200;
/// GIDs of a port that are shown; some have hundreds.
const SHOWN: usize = 4;

pub(super) fn seen(host: &Host<'_>) -> Vec<Finding> {
    let ports = survey(&host.root.join("sys/class/infiniband"));
    let mut findings: Vec<Finding> = ports.iter().map(port).collect();
    match choose(&ports, host.options, host.near) {
        Ok(chosen) => {
            findings.push(choice(&chosen));
            findings.push(permission(host, &chosen));
        }
        Err(error) => findings.push(no_rdma(host, name(&error), &error, interface(&ports))),
    }
    // Without a device nothing is going to be locked.
    if !ports.is_empty() {
        findings.push(memlock(host));
    }
    findings
}

pub(super) fn tried(host: &Host<'_>) -> Vec<Finding> {
    let ports = survey(&host.root.join("sys/class/infiniband"));
    let file = match library_file() {
        Ok(file) => file,
        Err(error) if ports.is_empty() => {
            // Without a device the library is not needed.
            return vec![Finding::good("library", error.to_string())];
        }
        Err(error) => return vec![no_rdma(host, "library", &error, "")],
    };
    let mut findings = vec![Finding::good("library", file)];
    if ports.is_empty() {
        return findings;
    }
    match try_device(host.options, host.near) {
        Ok(tried) => {
            findings.push(mtu(&tried, &tried.interface));
            findings.push(on_demand(&tried));
        }
        Err(error) => findings.push(no_rdma(host, "opening", &error, interface(&ports))),
    }
    findings
}

/// Returns the network interface of the first port that has one, for the suggested commands.
fn interface(ports: &[DevicePort]) -> &str {
    let gids = ports.iter().flat_map(|port| &port.gids);
    gids.map(|gid| gid.interface.as_str())
        .find(|name| !name.is_empty())
        .unwrap_or_default()
}

fn name(error: &VerbsError) -> &'static str {
    match error {
        VerbsError::NoDevice { .. } | VerbsError::NoSuchDevice { .. } => "device",
        _ => "choice",
    }
}

fn no_rdma(host: &Host<'_>, check: &'static str, error: &VerbsError, interface: &str) -> Finding {
    let fix = fix(error, interface, &host.names);
    let level = match error {
        VerbsError::NoDevice { .. } => Severity::NoDevice,
        _ => Severity::NoRdma,
    };
    Finding::bad(check, level, error.to_string(), fix)
}

fn port(port: &DevicePort) -> Finding {
    let kind = match (port.iwarp, port.ethernet) {
        (true, _) => "iWARP",
        (_, true) => "Ethernet",
        (_, false) => "InfiniBand",
    };
    let mut gids: Vec<String> = port
        .gids
        .iter()
        .take(SHOWN)
        .map(|gid| {
            format!(
                "{} {} ({} {})",
                gid.index,
                gid.ip(),
                gid.kind,
                gid.interface
            )
        })
        .collect();
    if port.gids.len() > SHOWN {
        gids.push(format!("{} more", port.gids.len() - SHOWN));
    }
    let gids = if gids.is_empty() {
        "none".to_owned()
    } else {
        gids.join(", ")
    };
    let message = format!("{} is {}, {kind}; GIDs: {gids}", port.name(), port.state);
    Finding::good("device", message)
}

fn choice(chosen: &DeviceChoice) -> Finding {
    let DeviceChoice {
        device,
        port,
        gid,
        why,
        ..
    } = chosen;
    let message = format!(
        "{device}:{port}, GID {} {}, because {why}",
        gid.index,
        gid.ip()
    );
    Finding::good("choice", message)
}

fn permission(host: &Host<'_>, chosen: &DeviceChoice) -> Finding {
    let verbs = host.root.join("sys/class/infiniband_verbs");
    let device = chosen.device.clone();
    let file = device_file(&verbs, &device).unwrap_or_else(|| "uverbs*".to_owned());
    let path = host.root.join("dev/infiniband").join(file);
    let opened = File::options().read(true).write(true).open(&path);
    let shown = path.display().to_string();
    let path = shown.clone();
    let interface = &chosen.gid.interface;
    match opened.map_err(|error| error.kind()) {
        Err(ErrorKind::NotFound) => no_rdma(
            host,
            "permission",
            &VerbsError::NoFile { device, path },
            interface,
        ),
        Err(ErrorKind::PermissionDenied) => no_rdma(
            host,
            "permission",
            &VerbsError::Permission { device, path },
            interface,
        ),
        // Other errors come from the driver, which `tried` opens.
        _ => Finding::good("permission", format!("{shown} can be read and written")),
    }
}

fn memlock(host: &Host<'_>) -> Finding {
    let needed = host.memory_limit;
    let locked = locked(host.root);
    if let Err(error) = locked.judge(needed) {
        return no_rdma(host, "memlock", &error, "");
    }
    let may = match locked.limit {
        Some(limit) if !locked.privileged => bytes(limit),
        Some(_) => "any amount (CAP_IPC_LOCK)".to_owned(),
        None => "any amount".to_owned(),
    };
    let message = format!(
        "{may} may be locked, the arena takes {} at most",
        bytes(needed)
    );
    Finding::good("memlock", message)
}

fn mtu(tried: &ProbedDevice, interface: &str) -> Finding {
    let message = format!("{} bytes in a packet, of {FULL_MTU}", tried.mtu);
    if tried.mtu >= FULL_MTU || interface.is_empty() {
        return Finding::good("MTU", message);
    }
    let fix = format!(
        "ip link set dev {interface} mtu {FULL_LINK_MTU}, on every host and switch between them"
    );
    Finding::bad("MTU", Severity::Note, message, fix)
}

fn on_demand(tried: &ProbedDevice) -> Finding {
    let message = match tried.on_demand {
        true => "the device pages on demand (ODP)",
        // Not a fault: `odp` is one of three modes, and not the default.
        false => "the device does not page on demand (ODP); Faro's default mode needs none",
    };
    Finding::good("ODP", message.to_owned())
}
