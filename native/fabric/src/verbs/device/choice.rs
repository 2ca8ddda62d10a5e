//! Chooses the device, port and GID.
//!
//! RDMA over Ethernet is routed by the GID, which stands for an IP address. The port that has the
//! endpoint's own address is right for sure; another port with a routable address is a guess
//! that is right where storage and management networks are apart. InfiniBand needs no GID.
//! The same index stands for other addresses on other ports, so a wished index does not replace
//! the search for the port.

use super::error::VerbsError;
use super::survey::{DevicePort, Gid};
use std::net::IpAddr;

/// A queue pair's address vector has a byte for the index; software devices have longer tables.
const MAX_GID_INDEX: u32 = u8::MAX as u32;

/// Values by which the user overrides the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerbsOptions {
    /// `mlx5_0`, or with a port `mlx5_0:1`.
    pub device: Option<String>,
    /// Index in the port's GID table.
    pub gid_index: Option<u32>,
    /// Traffic class of packets (DSCP in its upper six bits).
    pub traffic_class: u8,
    /// Time before a packet is sent again: 4.096 µs x 2^timeout, 1 to 31.
    pub timeout: u8,
    /// Times that a packet is sent again, 0 to 7.
    pub retry_count: u8,
    /// Number of times that a packet is sent again to a receiver that is not ready, 0 to 7; 7 is
    /// without end.
    pub rnr_retry: u8,
}

impl Default for VerbsOptions {
    fn default() -> Self {
        Self {
            device: None,
            gid_index: None,
            traffic_class: 0,
            // 67 ms, with 7 retries at least half a second: a link that flaps may come back.
            timeout: 14,
            retry_count: 7,
            rnr_retry: 7,
        }
    }
}

impl VerbsOptions {
    /// # Errors
    /// `BadOption`.
    pub(super) fn check(&self) -> Result<(), VerbsError> {
        let bounds = [
            ("timeout", self.timeout, 1, 31, "1 to 31"),
            ("retry count", self.retry_count, 0, 7, "0 to 7"),
            ("RNR retry count", self.rnr_retry, 0, 7, "0 to 7"),
        ];
        for (what, got, min, max, allowed) in bounds {
            if got < min || got > max {
                let got = u32::from(got);
                return Err(VerbsError::BadOption { what, got, allowed });
            }
        }
        Ok(())
    }
}

/// Address at which peers reach a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortAddress {
    pub(crate) gid: [u8; 16],
    pub(crate) lid: u16,
    /// `enum ibv_mtu`: 1 to 5 for 256 to 4,096 bytes.
    pub(crate) mtu: u8,
}

/// The chosen device, port and GID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceChoice {
    pub(crate) device: String,
    pub(crate) port: u8,
    pub(crate) ethernet: bool,
    pub(crate) gid: Gid,
    /// For the log.
    pub(crate) why: String,
}

fn list<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    match all {
        [] => "none".to_owned(),
        all => all.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

/// Chooses among the host's ports, for an endpoint whose own address is `near`.
///
/// # Errors
/// What is missing, with what there is.
pub(crate) fn choose(
    ports: &[DevicePort],
    options: &VerbsOptions,
    near: IpAddr,
) -> Result<DeviceChoice, VerbsError> {
    options.check()?;
    let active = candidates(ports, options.device.as_deref())?;
    let near = near.to_canonical();
    match options.gid_index {
        Some(index) => by_index(&active, index, near),
        None => by_address(&active, near),
    }
}

fn candidates<'p>(
    ports: &'p [DevicePort],
    wanted_name: Option<&str>,
) -> Result<Vec<&'p DevicePort>, VerbsError> {
    if ports.is_empty() {
        let detail = "/sys/class/infiniband is empty".to_owned();
        return Err(VerbsError::NoDevice { detail });
    }
    let named =
        |port: &&DevicePort| wanted_name.is_none_or(|got| port.device == got || port.name() == got);
    let wanted: Vec<&DevicePort> = ports.iter().filter(named).collect();
    if let (Some(got), []) = (wanted_name, &wanted[..]) {
        let have = list(ports, DevicePort::name);
        let got = got.to_owned();
        return Err(VerbsError::NoSuchDevice { got, have });
    }
    let (iwarp, wanted): (Vec<&DevicePort>, Vec<&DevicePort>) =
        wanted.iter().partition(|port| port.iwarp);
    if wanted.is_empty() {
        let names = list(&iwarp, |port| port.name());
        let detail = format!("iWARP: {names}; a RoCE v2 or InfiniBand device is needed");
        return Err(VerbsError::NoPort { detail });
    }
    let active: Vec<&DevicePort> = wanted.iter().copied().filter(|port| port.active).collect();
    if active.is_empty() {
        let states = list(&wanted, |port| format!("{} is {}", port.name(), port.state));
        let detail = format!("{states}; check the cable, or `ip link set dev ... up`");
        return Err(VerbsError::NoPort { detail });
    }
    Ok(active)
}

/// Returns the port with this host's own address, or else the best of the others.
fn by_address(active: &[&DevicePort], near: IpAddr) -> Result<DeviceChoice, VerbsError> {
    let usable = |port: &DevicePort, gid: &Gid| !port.ethernet || gid.is_roce_v2();
    let pairs: Vec<(&DevicePort, &Gid)> = active
        .iter()
        .flat_map(|port| port.gids.iter().map(move |gid| (*port, gid)))
        .filter(|(port, gid)| usable(port, gid) && gid.index <= MAX_GID_INDEX)
        .collect();
    let own = pairs.iter().find(|(_, gid)| gid.ip() == near);
    let routable = || pairs.iter().find(|(_, gid)| is_routable(gid.ip()));
    if let Some((port, gid)) = own {
        Ok(chosen(port, gid, format!("it has the address {near}")))
    } else if let Some((port, gid)) = routable() {
        let why = format!("no active port has {near}, and this one's address can be routed");
        Ok(chosen(port, gid, why))
    } else if let Some((port, gid)) = pairs.first() {
        let why = "no active port has an address that can be routed".to_owned();
        Ok(chosen(port, gid, why))
    } else {
        let detail = format!(
            "none has a RoCE v2 address: {}; give its network interface an IP address",
            list(active, |port| format!(
                "{} has {}",
                port.name(),
                gids_of(port)
            ))
        );
        Err(VerbsError::NoPort { detail })
    }
}

/// Lists the addresses of a port for a message.
fn gids_of(port: &DevicePort) -> String {
    list(&port.gids, |gid| {
        format!("{} {} ({})", gid.index, gid.value, gid.kind)
    })
}

/// Chooses by GID index; of several ports that have it, the one with the endpoint's address.
fn by_index(active: &[&DevicePort], index: u32, near: IpAddr) -> Result<DeviceChoice, VerbsError> {
    if index > MAX_GID_INDEX {
        return Err(VerbsError::BadOption {
            what: "GID index",
            got: index,
            allowed: "0 to 255",
        });
    }
    let of = |port: &&DevicePort| {
        let gid = port.gids.iter().find(|gid| gid.index == index);
        gid.map(|gid| chosen(port, gid, format!("GID {index} was asked for")))
    };
    let nearby = |port: &&&DevicePort| port.gids.iter().any(|gid| gid.ip() == near);
    let missing = || VerbsError::NoSuchGid {
        port: list(active, |port| port.name()),
        got: index,
        have: list(active, |port| gids_of(port)),
    };
    let near_first = active.iter().filter(nearby).chain(active);
    near_first.into_iter().find_map(of).ok_or_else(missing)
}

/// Returns whether an address is neither local to the link nor to the host.
fn is_routable(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_link_local() && !ip.is_loopback() && !ip.is_unspecified(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local() && !ip.is_loopback(),
    }
}

fn chosen(port: &DevicePort, gid: &Gid, why: String) -> DeviceChoice {
    DeviceChoice {
        device: port.device.clone(),
        port: port.number,
        ethernet: port.ethernet,
        gid: gid.clone(),
        why,
    }
}
