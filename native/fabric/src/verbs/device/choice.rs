//! Which device, port and GID to use.
//!
//! RDMA over Ethernet is routed by the GID, which stands for an IP address. The port that has the
//! endpoint's own address is right for sure; another port with a routable address is a guess
//! that is right where storage and management networks are apart. InfiniBand needs no GID.

use super::error::VerbsError;
use super::survey::{Gid, Port};
use std::net::IpAddr;

/// What the user may want otherwise than chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wishes {
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
    /// Times that a packet is sent again to a receiver that is not ready, 0 to 7; 7: without end.
    pub rnr_retry: u8,
}

impl Default for Wishes {
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

impl Wishes {
    /// # Errors
    /// `BadWish`.
    pub(super) fn check(&self) -> Result<(), VerbsError> {
        let bounds = [
            ("timeout", self.timeout, 1, 31, "1 to 31"),
            ("retry count", self.retry_count, 0, 7, "0 to 7"),
            ("RNR retry count", self.rnr_retry, 0, 7, "0 to 7"),
        ];
        for (what, got, least, most, allowed) in bounds {
            if got < least || got > most {
                let got = u32::from(got);
                return Err(VerbsError::BadWish { what, got, allowed });
            }
        }
        Ok(())
    }
}

/// How peers reach a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortAddress {
    pub(crate) gid: [u8; 16],
    pub(crate) lid: u16,
    /// `enum ibv_mtu`: 1 to 5 for 256 to 4,096 bytes.
    pub(crate) mtu: u8,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
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
pub(crate) fn choose(ports: &[Port], wishes: &Wishes, near: IpAddr) -> Result<Choice, VerbsError> {
    wishes.check()?;
    if ports.is_empty() {
        let detail = "/sys/class/infiniband is empty".to_owned();
        return Err(VerbsError::NoDevice { detail });
    }
    let wanted: Vec<&Port> = match &wishes.device {
        None => ports.iter().collect(),
        Some(got) => {
            let named = |port: &&Port| port.device == *got || port.name() == *got;
            let found: Vec<&Port> = ports.iter().filter(named).collect();
            if found.is_empty() {
                let have = list(ports, Port::name);
                let got = got.clone();
                return Err(VerbsError::NoSuchDevice { got, have });
            }
            found
        }
    };
    let active: Vec<&&Port> = wanted.iter().filter(|port| port.active).collect();
    if active.is_empty() {
        let states = list(&wanted, |port| format!("{} is {}", port.name(), port.state));
        let detail = format!("{states}; check the cable, or `ip link set dev ... up`");
        return Err(VerbsError::NoPort { detail });
    }
    if let Some(index) = wishes.gid_index {
        return by_index(&active, index);
    }
    let usable = |port: &Port, gid: &Gid| !port.ethernet || gid.is_roce_v2();
    let pairs = || {
        active
            .iter()
            .flat_map(|port| port.gids.iter().map(move |gid| (**port, gid)))
            .filter(|(port, gid)| usable(port, gid))
    };
    let near = near.to_canonical();
    let own = pairs().find(|(_, gid)| gid.ip() == near);
    let routable = || pairs().find(|(_, gid)| is_routable(gid.ip()));
    let any = || pairs().next();
    let (found, why) = if let Some(found) = own {
        (found, format!("it has the address {near}"))
    } else if let Some(found) = routable() {
        let why = format!("no port has {near}, and this one's address can be routed");
        (found, why)
    } else if let Some(found) = any() {
        (found, "it is the only kind of address there is".to_owned())
    } else {
        let have = |port: &&&Port| {
            let gids = list(&port.gids, |gid| format!("{} ({})", gid.value, gid.kind));
            format!("{} has {gids}", port.name())
        };
        let detail = format!(
            "none has a RoCE v2 address: {}; give its network interface an IP address",
            list(&active, have)
        );
        return Err(VerbsError::NoPort { detail });
    };
    Ok(chosen(found.0, found.1, why))
}

fn by_index(active: &[&&Port], index: u32) -> Result<Choice, VerbsError> {
    let find = |port: &&&&Port| port.gids.iter().any(|gid| gid.index == index);
    let port = active.iter().find(find);
    let gid = port.and_then(|port| port.gids.iter().find(|gid| gid.index == index));
    match (port, gid) {
        (Some(port), Some(gid)) => {
            let why = format!("GID {index} was asked for");
            Ok(chosen(port, gid, why))
        }
        _ => Err(VerbsError::NoSuchGid {
            port: list(active, |port| port.name()),
            got: index,
            have: list(active, |port| {
                list(&port.gids, |gid| {
                    format!("{} {} ({})", gid.index, gid.value, gid.kind)
                })
            }),
        }),
    }
}

/// Neither of this link nor of this host only.
fn is_routable(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_link_local() && !ip.is_loopback() && !ip.is_unspecified(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local() && !ip.is_loopback(),
    }
}

fn chosen(port: &Port, gid: &Gid, why: String) -> Choice {
    Choice {
        device: port.device.clone(),
        port: port.number,
        ethernet: port.ethernet,
        gid: gid.clone(),
        why,
    }
}
