//! Ports, choice, permission, locked memory, library, device.

use super::fix::fix;
use super::memory::bytes;
use super::{Finding, Host, Severity};
use crate::verbs::device::{
    candidates, check_file, first_usable, library_file, locked, survey, try_device, DeviceChoice,
    DevicePort, HardwareCounters, HostAddresses, Limits, OwnAddress, ProbedDevice, ProcessPlace,
    QUEUE_BYTES,
};
use crate::verbs::VerbsError;

/// RoCE's largest packet, and what the network needs to carry it with its headers.
const FULL_MTU: u32 = 4096;
const FULL_LINK_MTU: u32 = 4200;
/// Queue pairs that a large host may use: 16 executors with a connection to each of 256 others.
const ENOUGH_QUEUE_PAIRS: u32 = 4096;
/// GIDs of a port that are shown; some have hundreds.
const SHOWN: usize = 4;

pub(super) fn seen(host: &Host<'_>) -> Vec<Finding> {
    let ports = ports(host);
    let mut findings: Vec<Finding> = ports.iter().map(port).collect();
    match choices(host, &ports) {
        Ok(choices) => {
            let best = choices.first().map(choice);
            match openable(host, choices) {
                Ok((chosen, file)) => {
                    findings.push(choice(&chosen));
                    let message = format!("{file} can be read and written");
                    findings.push(Finding::good("permission", message));
                    findings.extend(counters(host, &chosen));
                }
                Err(error) => {
                    findings.extend(best);
                    findings.push(no_rdma(host, "permission", &error, interface(&ports)));
                }
            }
        }
        Err(error) => findings.push(no_rdma(host, name(&error), &error, interface(&ports))),
    }
    // Without a device nothing is going to be locked.
    if !ports.is_empty() {
        findings.push(memlock(host));
    }
    findings
}

fn ports(host: &Host<'_>) -> Vec<DevicePort> {
    survey(host.root)
}

fn choices(host: &Host<'_>, ports: &[DevicePort]) -> Result<Vec<DeviceChoice>, VerbsError> {
    let own = OwnAddress {
        ip: host.near,
        host: &HostAddresses::of(host.root),
        process: ProcessPlace::of(host.root),
    };
    candidates(ports, host.options, own)
}

/// Returns the first device whose file can be opened, and the file.
fn openable(
    host: &Host<'_>,
    choices: Vec<DeviceChoice>,
) -> Result<(DeviceChoice, String), VerbsError> {
    first_usable(choices, |choice| {
        let file = check_file(host.root, &choice.device)?;
        Ok((choice, file))
    })
}

pub(super) fn tried(host: &Host<'_>) -> Vec<Finding> {
    let ports = ports(host);
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
            let seen = choices(host, &ports).and_then(|choices| openable(host, choices));
            // A device that was passed over when it was opened.
            if seen.is_ok_and(|(seen, _)| seen.name() != tried.choice.name()) {
                findings.push(choice(&tried.choice));
            }
            findings.push(limits(&tried.limits));
            findings.push(mtu(&tried, &tried.choice.gid.interface));
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
        // Nothing mends a device of another kind.
        VerbsError::NoDevice { .. } | VerbsError::NoReliableDevice { iwarp: false, .. } => {
            Severity::NoDevice
        }
        _ => Severity::NoRdma,
    };
    Finding::bad(check, level, error.to_string(), fix)
}

fn port(port: &DevicePort) -> Finding {
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
    let message = format!(
        "{} is {}, {}; GIDs: {gids}",
        port.name(),
        port.state,
        port.kind
    );
    Finding::good("device", message)
}

fn choice(chosen: &DeviceChoice) -> Finding {
    let message = format!(
        "{}, {}, because {}",
        chosen.name(),
        chosen.address(),
        chosen.why
    );
    Finding::good("choice", message)
}

/// Returns what the port has counted of packets that were sent again, if its driver counts them.
fn counters(host: &Host<'_>, chosen: &DeviceChoice) -> Option<Finding> {
    let counted = HardwareCounters::of(host.root, &chosen.device, chosen.port)?;
    let HardwareCounters {
        retransmits,
        out_of_sequence,
        not_ready,
    } = counted;
    let message = format!(
        "packets of {} since it was made: {retransmits} sent again, {out_of_sequence} out of \
         sequence, {not_ready} to a receiver that was not ready",
        chosen.name()
    );
    if counted == HardwareCounters::default() {
        return Some(Finding::good("packets", message));
    }
    let fix =
        "if they grow while a job runs, packets are lost on the way: flow control (PFC) or ECN \
               of RoCE's class on every switch, with spark.faro.verbs.trafficClass; cables";
    Some(Finding::bad(
        "packets",
        Severity::Note,
        message,
        fix.to_owned(),
    ))
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
    if !locked.is_tight(needed) {
        return Finding::good("memlock", message);
    }
    let message = format!(
        "{message}; the device's queues need some too: {} for 256 connections",
        bytes(QUEUE_BYTES)
    );
    let fix = format!(
        "ulimit -l {}; connections that get no queue use TCP",
        (needed + QUEUE_BYTES) / 1024
    );
    Finding::bad("memlock", Severity::Note, message, fix)
}

fn limits(limits: &Limits) -> Finding {
    let message = format!(
        "{} queue pairs on this host, one for each connection of an executor; {} reads of one in flight",
        limits.queue_pairs,
        limits.reads_in.min(limits.reads_out)
    );
    if limits.queue_pairs >= ENOUGH_QUEUE_PAIRS {
        return Finding::good("limits", message);
    }
    let fix =
        "fewer and larger executors; an executor reaches peers over TCP when no queue pair is \
               left; some drivers take a larger number (irdma: the parameter limits_sel)";
    Finding::bad("limits", Severity::Note, message, fix.to_owned())
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
