//! Lists the host's RDMA ports from sysfs; needs neither the library nor permission.
//!
//! In a container sysfs shows every RDMA device of the host, also those whose file or network
//! interface the container does not have.

use std::cmp::Ordering;
use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

/// One GID of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gid {
    pub(crate) index: u32,
    pub(crate) value: Ipv6Addr,
    /// `RoCE v2`, `IB/RoCE v1`; empty on kernels that do not tell.
    pub(crate) kind: String,
    /// Network interface, if there is one.
    pub(crate) interface: String,
}

impl Gid {
    pub(crate) fn ip(&self) -> IpAddr {
        IpAddr::V6(self.value).to_canonical()
    }

    pub(crate) fn is_roce_v2(&self) -> bool {
        self.kind == "RoCE v2"
    }
}

/// What a port speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PortKind {
    /// RoCE, if the port has an address of its second version.
    Ethernet,
    InfiniBand,
    /// RDMA over TCP, which has no GIDs and connects in another way.
    Iwarp,
    /// A node type without reliable connected queue pairs, such as that of AWS's EFA.
    Other {
        node: String,
    },
}

impl PortKind {
    /// `node` is `1: CA` for RoCE and InfiniBand, `4: RNIC` for iWARP, `7: unspecified` for EFA.
    fn of(node: &str, layer: &str) -> Self {
        match node.split(": ").last().unwrap_or_default() {
            "" | "CA" if layer == "Ethernet" => Self::Ethernet,
            "" | "CA" => Self::InfiniBand,
            "RNIC" => Self::Iwarp,
            other => Self::Other {
                node: other.to_owned(),
            },
        }
    }
}

impl std::fmt::Display for PortKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ethernet => f.write_str("Ethernet"),
            Self::InfiniBand => f.write_str("InfiniBand"),
            Self::Iwarp => f.write_str("iWARP"),
            Self::Other { node } => write!(f, "of node type {node:?}"),
        }
    }
}

/// A place in an InfiniBand port's table of partitions (P_Keys).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartitionKey {
    pub(crate) index: u16,
    /// 0: not known, and of ports without partitions.
    pub(crate) value: u16,
}

impl PartitionKey {
    /// Of full members. Two members without it do not reach each other.
    const FULL: u16 = 0x8000;
    /// Of ports without a table, whose first entry is as good as any.
    pub(crate) const UNKNOWN: Self = Self { index: 0, value: 0 };

    fn is_full(self) -> bool {
        self.value & Self::FULL != 0
    }
}

/// One port of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DevicePort {
    pub(crate) device: String,
    pub(crate) number: u8,
    pub(crate) active: bool,
    /// The state's name, for people.
    pub(crate) state: String,
    pub(crate) kind: PortKind,
    /// The GIDs that are not empty, in order.
    pub(crate) gids: Vec<Gid>,
    /// The port's network interfaces in this network namespace.
    pub(crate) interfaces: Vec<String>,
    /// Of InfiniBand the first partition of which it is a full member; `None`: of none.
    pub(crate) partition: Option<PartitionKey>,
    /// The device's NUMA node, if it is known.
    pub(crate) node: Option<u32>,
}

impl DevicePort {
    /// Returns the name that log lines and options use.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.device, self.number)
    }
}

fn read(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Returns the names in a directory, with the numbers in them in their order: mlx5_2, mlx5_10.
fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort_by(|a, b| in_natural_order(a, b));
    names
}

/// Compares runs of digits as numbers and all else as text.
fn in_natural_order(a: &str, b: &str) -> Ordering {
    let (mut rest_a, mut rest_b) = (a, b);
    while !rest_a.is_empty() && !rest_b.is_empty() {
        let ((run_a, after_a), (run_b, after_b)) = (first_run(rest_a), first_run(rest_b));
        let order = match (run_a.parse::<u64>(), run_b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            _ => run_a.cmp(run_b),
        };
        if order != Ordering::Equal {
            return order;
        }
        (rest_a, rest_b) = (after_a, after_b);
    }
    // Equal numbers may be written differently.
    rest_a.len().cmp(&rest_b.len()).then_with(|| a.cmp(b))
}

/// Splits after the digits, or after the other characters, that a text begins with.
fn first_run(text: &str) -> (&str, &str) {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != digits);
    text.split_at(end.unwrap_or(text.len()))
}

/// Returns all ports of the host below `root`, which is `/` for this one. Unreadable entries count
/// as missing.
pub(crate) fn survey(root: &Path) -> Vec<DevicePort> {
    let class = root.join("sys/class");
    let mut ports = Vec::new();
    for device in names(&class.join("infiniband")) {
        for number in names(&class.join("infiniband").join(&device).join("ports")) {
            let Ok(index) = number.parse() else { continue };
            ports.push(port(&class, &device, index));
        }
    }
    ports
}

/// Returns whether a port has that GID at that index; one file instead of a survey.
pub(super) fn has_gid(root: &Path, device: &str, number: u8, wanted: &Gid) -> bool {
    let path = root.join(device).join("ports").join(number.to_string());
    gid(&path, &wanted.index.to_string()).is_some_and(|gid| gid == *wanted)
}

/// Returns the kernel's name of the file by which a device is opened (`uverbs0`), for as long as it
/// can be. `verbs` is a root such as `/sys/class/infiniband_verbs`.
pub(crate) fn device_file(verbs: &Path, device: &str) -> Option<String> {
    let of = |name: &String| read(&verbs.join(name).join("ibdev")).as_deref() == Some(device);
    names(verbs).into_iter().find(of)
}

fn port(class: &Path, device: &str, number: u8) -> DevicePort {
    let entry = class.join("infiniband").join(device);
    let path = entry.join("ports").join(number.to_string());
    // "4: ACTIVE"
    let state = read(&path.join("state")).unwrap_or_default();
    let state = state.split(": ").last().unwrap_or_default().to_owned();
    let of = |file: &Path| read(file).unwrap_or_default();
    let gids: Vec<Gid> = names(&path.join("gids"))
        .iter()
        .filter_map(|index| gid(&path, index))
        .collect();
    let kind = PortKind::of(&of(&entry.join("node_type")), &of(&path.join("link_layer")));
    let partition = match kind {
        PortKind::InfiniBand => partition(&path.join("pkeys")),
        _ => Some(PartitionKey::UNKNOWN),
    };
    DevicePort {
        device: device.to_owned(),
        number,
        active: state == "ACTIVE",
        state,
        kind,
        interfaces: interfaces(class, &entry, number, &gids),
        gids,
        partition,
        // -1: the machine does not tell.
        node: read(&entry.join("device/numa_node")).and_then(|node| node.parse().ok()),
    }
}

/// Returns the first partition of which the port is a full member.
fn partition(table: &Path) -> Option<PartitionKey> {
    let indices = names(table);
    if indices.is_empty() {
        return Some(PartitionKey::UNKNOWN);
    }
    let mut keys = indices
        .iter()
        .filter_map(|index| partition_key(table, index));
    keys.find(|key| key.is_full())
}

fn partition_key(table: &Path, index: &str) -> Option<PartitionKey> {
    let text = read(&table.join(index))?;
    let value = u16::from_str_radix(text.trim_start_matches("0x"), 16).ok()?;
    let index = index.parse().ok()?;
    Some(PartitionKey { index, value })
}

/// Returns whether a port has that key at its place.
pub(super) fn has_partition(root: &Path, device: &str, number: u8, wanted: PartitionKey) -> bool {
    if wanted == PartitionKey::UNKNOWN {
        return true;
    }
    let table = root
        .join(device)
        .join("ports")
        .join(number.to_string())
        .join("pkeys");
    partition_key(&table, &wanted.index.to_string()) == Some(wanted)
}

/// Returns the network interfaces of a port. Those of its GIDs may be of another network namespace,
/// which has other entries in `net`; those beside the device (IPoIB has no others) are of this one.
fn interfaces(class: &Path, entry: &Path, number: u8, gids: &[Gid]) -> Vec<String> {
    let beside = entry.join("device/net");
    let of_port = |name: &String| {
        let port: Option<u32> =
            read(&beside.join(name).join("dev_port")).and_then(|n| n.parse().ok());
        port == Some(u32::from(number) - 1)
    };
    let mut found: Vec<String> = names(&beside).into_iter().filter(of_port).collect();
    for gid in gids {
        let (name, here) = (&gid.interface, class.join("net").join(&gid.interface));
        if !name.is_empty() && !found.contains(name) && here.exists() {
            found.push(name.clone());
        }
    }
    found
}

fn gid(port: &Path, index: &str) -> Option<Gid> {
    let value: Ipv6Addr = read(&port.join("gids").join(index))?.parse().ok()?;
    if value.is_unspecified() {
        return None;
    }
    let attribute = |name: &str| read(&port.join("gid_attrs").join(name).join(index));
    Some(Gid {
        index: index.parse().ok()?,
        value,
        kind: attribute("types").unwrap_or_default(),
        interface: attribute("ndevs").unwrap_or_default(),
    })
}
