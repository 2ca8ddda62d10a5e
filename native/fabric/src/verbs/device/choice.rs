//! Chooses the device, port and GID.
//!
//! RDMA over Ethernet is routed by the GID, which stands for an IP address. The port that has the
//! endpoint's own address is right for sure: as a GID, or at its network interface, which is how an
//! InfiniBand port has one (IPoIB). Another port with a routable address is a guess that is right
//! where storage and management networks are apart. InfiniBand needs no address.
//! The same index stands for other addresses on other ports, so a wished index does not replace
//! the search for the port.
//!
//! Files tell only a part: in a container sysfs lists devices that the process cannot open, and a
//! device may refuse reliable connections. So the choice is a list, and the first that works is
//! taken.

use super::addresses::HostAddresses;
use super::error::VerbsError;
use super::process_place::ProcessPlace;
use super::selection::{DevicePattern, DeviceSelection, Subnet};
use super::survey::{DevicePort, Gid, PartitionKey, PortKind};
use std::net::IpAddr;

/// A queue pair's address vector has a byte for the index; software devices have longer tables.
const MAX_GID_INDEX: u32 = u8::MAX as u32;
/// Bytes of a GID that are the same in a subnet of InfiniBand.
const SUBNET_BYTES: usize = 8;

/// Values by which the user overrides the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerbsOptions {
    /// The only devices that are tried, best first.
    pub device: Option<DeviceSelection>,
    /// Index in the port's GID table.
    pub gid_index: Option<u32>,
    /// Traffic class of packets (DSCP in its upper six bits).
    pub traffic_class: u8,
    /// InfiniBand's service level of packets, 0 to 15.
    pub service_level: u8,
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
            service_level: 0,
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
            ("service level", self.service_level, 0, 15, "0 to 15"),
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

/// What carries a port's packets, by the numbers of verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkLayer {
    InfiniBand = 1,
    Ethernet = 2,
}

impl LinkLayer {
    /// Returns the layer of that number; a peer of another version may say none.
    pub(crate) fn of(number: u8) -> Option<Self> {
        let is = |layer: &Self| *layer as u8 == number;
        [Self::InfiniBand, Self::Ethernet].into_iter().find(is)
    }

    fn name(self) -> &'static str {
        match self {
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
        }
    }
}

/// Address at which peers reach a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortAddress {
    /// `None`: a peer did not say.
    pub(crate) link: Option<LinkLayer>,
    pub(crate) gid: [u8; 16],
    pub(crate) lid: u16,
    /// `enum ibv_mtu`: 1 to 5 for 256 to 4,096 bytes.
    pub(crate) mtu: u8,
    /// The partition; 0: it has none, or did not say.
    pub(crate) partition: u16,
    /// InfiniBand's packets need a global header (GRH) there, and may have one only if both sides
    /// expect it.
    pub(crate) needs_grh: bool,
}

impl PortAddress {
    /// Returns the bytes of payload in a packet.
    pub(crate) fn mtu_bytes(&self) -> u32 {
        128 << self.mtu.min(5)
    }

    /// Checks that packets can pass between two ports. Without this check, a connection would end
    /// only after all retries.
    ///
    /// # Errors
    /// `OtherLink`, `OtherPartition`.
    pub(crate) fn check_peer(&self, peer: &Self) -> Result<(), VerbsError> {
        if let (Some(own), Some(peer)) = (self.link, peer.link) {
            if own != peer {
                let (own, peer) = (own.name(), peer.name());
                return Err(VerbsError::OtherLink { own, peer });
            }
        }
        // The highest bit says who is a full member.
        let number = |address: &Self| address.partition & 0x7fff;
        let known = self.partition != 0 && peer.partition != 0;
        if known && number(self) != number(peer) {
            let (own, peer) = (self.partition, peer.partition);
            return Err(VerbsError::OtherPartition { own, peer });
        }
        Ok(())
    }

    /// Returns whether packets between two ports have a global header: always over Ethernet, in
    /// InfiniBand between subnets and where a port needs it.
    pub(crate) fn is_global(&self, peer: &Self) -> bool {
        self.link == Some(LinkLayer::Ethernet)
            || self.needs_grh
            || peer.needs_grh
            || self.gid[..SUBNET_BYTES] != peer.gid[..SUBNET_BYTES]
    }
}

/// The chosen device, port and GID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceChoice {
    pub(crate) device: String,
    pub(crate) port: u8,
    pub(crate) link: LinkLayer,
    pub(crate) gid: Gid,
    pub(crate) partition: PartitionKey,
    /// For the log.
    pub(crate) why: String,
}

impl DeviceChoice {
    /// Returns the name that log lines and options use.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.device, self.port)
    }

    /// Returns what stands for the port in packets.
    pub(crate) fn address(&self) -> String {
        let gid = format!("GID {} {}", self.gid.index, self.gid.ip());
        match self.link {
            LinkLayer::Ethernet => gid,
            LinkLayer::InfiniBand => format!("{gid}, P_Key {:#06x}", self.partition.value),
        }
    }
}

fn list<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    match all {
        [] => "none".to_owned(),
        all => all.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

/// An endpoint's own address, among those of its host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnAddress<'a> {
    pub(crate) ip: IpAddr,
    pub(crate) host: &'a HostAddresses,
    pub(crate) process: ProcessPlace,
}

/// Returns the ports that can be used as far as files tell, best first.
///
/// # Errors
/// What is missing, with what there is.
pub(crate) fn candidates(
    ports: &[DevicePort],
    options: &VerbsOptions,
    own: OwnAddress<'_>,
) -> Result<Vec<DeviceChoice>, VerbsError> {
    options.check()?;
    if let Some(got) = options.gid_index.filter(|index| *index > MAX_GID_INDEX) {
        return Err(VerbsError::BadOption {
            what: "GID index",
            got,
            allowed: "0 to 255",
        });
    }
    let own = OwnAddress {
        ip: own.ip.to_canonical(),
        ..own
    };
    let active = active(ports, options.device.as_ref(), own.host)?;
    let mut found: Vec<Candidate> = active
        .iter()
        .filter_map(|wanted| candidate(wanted, options.gid_index, own))
        .collect();
    let Some(index) = options.gid_index.filter(|_| found.is_empty()) else {
        if found.is_empty() {
            let ports = list(&active, |wanted| {
                format!("{} has {}", wanted.port.name(), gids_of(wanted.port))
            });
            return Err(VerbsError::NoAddress { ports });
        }
        // Stable: of equals, the first in the order of names.
        found.sort_by_key(|candidate| candidate.rank);
        spread(&mut found, own);
        return Ok(found
            .into_iter()
            .map(|candidate| candidate.choice)
            .collect());
    };
    Err(VerbsError::NoSuchGid {
        port: list(&active, |wanted| wanted.port.name()),
        got: index,
        have: list(&active, |wanted| gids_of(wanted.port)),
    })
}

/// Returns what `open` makes of the first candidate for which it succeeds, and notes in its choice
/// why the ones before were passed over.
///
/// # Errors
/// The first candidate's, with those of the others.
pub(crate) fn first_usable<T>(
    choices: Vec<DeviceChoice>,
    mut open: impl FnMut(DeviceChoice) -> Result<T, VerbsError>,
) -> Result<T, VerbsError> {
    let mut failed: Vec<(String, VerbsError)> = Vec::new();
    for mut choice in choices {
        let name = choice.name();
        if !failed.is_empty() {
            let passed_over = list(&failed, |(name, error)| format!("{name} ({error})"));
            choice.why = format!("{}; passed over: {passed_over}", choice.why);
        }
        match open(choice) {
            Ok(opened) => return Ok(opened),
            Err(error) => failed.push((name, error)),
        }
    }
    let mut failed = failed.into_iter();
    let Some((_, first)) = failed.next() else {
        let detail = "no device is left".to_owned();
        return Err(VerbsError::NoDevice { detail });
    };
    let others: Vec<String> = failed.map(|(_, error)| error.to_string()).collect();
    if others.is_empty() {
        return Err(first);
    }
    Err(VerbsError::NoneUsable {
        first: Box::new(first),
        others: others.join("; "),
    })
}

/// A port that the user wants, or any if the user does not say.
struct WantedPort<'p> {
    port: &'p DevicePort,
    /// Number of the pattern that names it.
    place: usize,
    /// That pattern.
    pattern: Option<&'p DevicePattern>,
}

impl WantedPort<'_> {
    /// Returns whether the user wants this address of the port.
    fn wants(&self, ip: IpAddr) -> bool {
        match self.pattern {
            Some(DevicePattern::Subnet(subnet)) => subnet.contains(ip),
            _ => true,
        }
    }
}

/// Returns the ports that are wanted, active and of a kind that Faro can use.
fn active<'p>(
    ports: &'p [DevicePort],
    selection: Option<&'p DeviceSelection>,
    host: &HostAddresses,
) -> Result<Vec<WantedPort<'p>>, VerbsError> {
    if ports.is_empty() {
        let detail = "/sys/class/infiniband is empty".to_owned();
        return Err(VerbsError::NoDevice { detail });
    }
    let wanted: Vec<WantedPort<'p>> = ports
        .iter()
        .filter_map(|port| wanted(port, selection, host))
        .collect();
    if let (Some(got), []) = (selection, &wanted[..]) {
        return Err(VerbsError::NoSuchDevice {
            got: got.to_string(),
            have: list(ports, DevicePort::name),
        });
    }
    let (reliable, unreliable): (Vec<WantedPort<'p>>, Vec<WantedPort<'p>>) = wanted
        .into_iter()
        .partition(|wanted| matches!(wanted.port.kind, PortKind::Ethernet | PortKind::InfiniBand));
    if reliable.is_empty() {
        return Err(VerbsError::NoReliableDevice {
            ports: list(&unreliable, |wanted| {
                format!("{} is {}", wanted.port.name(), wanted.port.kind)
            }),
            iwarp: unreliable
                .iter()
                .any(|wanted| wanted.port.kind == PortKind::Iwarp),
        });
    }
    let (active, inactive): (Vec<WantedPort<'p>>, Vec<WantedPort<'p>>) =
        reliable.into_iter().partition(|wanted| wanted.port.active);
    if active.is_empty() {
        // InfiniBand's ports stay in INIT until a subnet manager has given them an address.
        let waits = |wanted: &WantedPort<'_>| {
            wanted.port.kind == PortKind::InfiniBand && wanted.port.state == "INIT"
        };
        return Err(VerbsError::InactivePorts {
            ports: list(&inactive, |wanted| {
                format!("{} is {}", wanted.port.name(), wanted.port.state)
            }),
            without_manager: inactive.iter().all(waits),
        });
    }
    let (full, limited): (Vec<WantedPort<'p>>, Vec<WantedPort<'p>>) = active
        .into_iter()
        .partition(|wanted| wanted.port.partition.is_some());
    if full.is_empty() {
        return Err(VerbsError::LimitedMember {
            ports: list(&limited, |wanted| wanted.port.name()),
        });
    }
    Ok(full)
}

/// Returns a port with the first pattern that names it.
fn wanted<'p>(
    port: &'p DevicePort,
    selection: Option<&'p DeviceSelection>,
    host: &HostAddresses,
) -> Option<WantedPort<'p>> {
    let Some(selection) = selection else {
        return Some(WantedPort {
            port,
            place: 0,
            pattern: None,
        });
    };
    let names = |pattern: &DevicePattern| match pattern {
        DevicePattern::Device(name) => port.device == *name,
        DevicePattern::Port { device, number } => port.device == *device && port.number == *number,
        DevicePattern::Subnet(subnet) => {
            let at_interface =
                |name: &String| host.of_interface(name).any(|ip| subnet.contains(ip));
            port.gids.iter().any(|gid| subnet.contains(gid.ip()))
                || port.interfaces.iter().any(at_interface)
        }
    };
    let patterns = selection.patterns();
    let place = patterns.iter().position(names)?;
    Some(WantedPort {
        port,
        place,
        pattern: patterns.get(place),
    })
}

/// A port with its best GID.
struct Candidate {
    rank: Rank,
    /// Ports of one network reach each other's peers; `None`: not known.
    network: Option<PortNetwork>,
    node: Option<u32>,
    choice: DeviceChoice,
}

/// The network of a port's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PortNetwork {
    Ip(Subnet),
    /// The subnet's part of a GID.
    InfiniBand([u8; SUBNET_BYTES]),
}

/// The order of candidates, smallest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Place in the user's list.
    place: usize,
    /// The port has not the endpoint's own address.
    elsewhere: bool,
    /// Its address reaches this link only.
    link_only: bool,
    /// Its network interface is in another network namespace, as that of a node's NIC in a pod.
    other_namespace: bool,
    /// A host that has InfiniBand has it for its data.
    ethernet: bool,
}

/// Returns the port with its best GID, unless it has none.
fn candidate(
    wanted: &WantedPort<'_>,
    gid_index: Option<u32>,
    own: OwnAddress<'_>,
) -> Option<Candidate> {
    let port = wanted.port;
    let ethernet = port.kind == PortKind::Ethernet;
    let partition = port.partition?;
    let usable = |gid: &&Gid| match gid_index {
        Some(index) => gid.index == index,
        None => gid.index <= MAX_GID_INDEX && (!ethernet || gid.is_roce_v2()),
    };
    let interface = own.host.interface_of(own.ip);
    let interface = interface.filter(|name| port.interfaces.iter().any(|has| has == name));
    // The best of all usable ones; of equals the first.
    let gid = port.gids.iter().filter(usable).min_by_key(|gid| {
        let ip = gid.ip();
        let beside = interface == Some(gid.interface.as_str());
        (!wanted.wants(ip), ip != own.ip, !is_routable(ip), !beside)
    })?;
    // A wished index may stand for another address of the right port.
    let has_gid = match gid_index {
        Some(_) => port.gids.iter().any(|gid| gid.ip() == own.ip),
        None => gid.ip() == own.ip,
    };
    let link_only = ethernet && !is_routable(gid.ip());
    let why = match (gid_index, &wanted.pattern) {
        (Some(index), _) => format!("GID {index} was asked for"),
        _ if has_gid => format!("it has the address {}", own.ip),
        _ if interface.is_some() => {
            format!(
                "its interface {} has the address {}",
                interface.unwrap_or_default(),
                own.ip
            )
        }
        (None, Some(pattern)) => format!("{pattern} was asked for"),
        _ if link_only => "no active port has an address that can be routed".to_owned(),
        _ if ethernet => {
            format!(
                "no active port has {}, and this one's address can be routed",
                own.ip
            )
        }
        _ => format!(
            "no active port has {}, and InfiniBand needs no address",
            own.ip
        ),
    };
    let rank = Rank {
        place: wanted.place,
        elsewhere: !has_gid && interface.is_none(),
        link_only,
        other_namespace: ethernet && port.interfaces.is_empty(),
        ethernet,
    };
    let choice = DeviceChoice {
        device: port.device.clone(),
        port: port.number,
        link: match ethernet {
            true => LinkLayer::Ethernet,
            false => LinkLayer::InfiniBand,
        },
        gid: gid.clone(),
        partition,
        why,
    };
    let subnet = || gid.value.octets().first_chunk().copied();
    let network = match ethernet {
        true => own.host.network_of(gid.ip()).map(PortNetwork::Ip),
        false => subnet().map(PortNetwork::InfiniBand),
    };
    Some(Candidate {
        rank,
        network,
        node: port.node,
        choice,
    })
}

/// Puts another one of equally good ports first for each process: one of the process's NUMA node, if
/// there is one. Equally good are only ports of the first one's network, because the peers' ports may
/// not be reached from another network.
fn spread(found: &mut Vec<Candidate>, own: OwnAddress<'_>) {
    let Some(first) = found.first() else { return };
    let (rank, network) = (first.rank, first.network);
    let is_equal =
        |one: &Candidate| one.rank == rank && one.network == network && network.is_some();
    let (mut equal, others): (Vec<Candidate>, Vec<Candidate>) = found.drain(..).partition(is_equal);
    let is_near = |one: &Candidate| one.node.is_some() && one.node == own.process.node;
    equal.sort_by_key(|one| !is_near(one));
    let near = match equal.iter().filter(|one| is_near(one)).count() {
        0 => equal.len(),
        near => near,
    };
    if equal.len() > 1 {
        equal[..near].rotate_left(own.process.share(own.ip, near));
        let count = equal.len();
        for one in &mut equal {
            let beside = match own.process.node.filter(|_| is_near(one)) {
                Some(node) => format!(", on NUMA node {node} as this process"),
                None => String::new(),
            };
            let why = &mut one.choice.why;
            *why = format!("{why}; one of {count} equal ports of its network{beside}");
        }
    }
    *found = equal;
    found.extend(others);
}

/// Lists the addresses of a port for a message.
fn gids_of(port: &DevicePort) -> String {
    list(&port.gids, |gid| {
        format!("{} {} ({})", gid.index, gid.value, gid.kind)
    })
}

/// Returns whether an address is neither local to the link nor to the host.
fn is_routable(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_link_local() && !ip.is_loopback() && !ip.is_unspecified(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local() && !ip.is_loopback(),
    }
}
