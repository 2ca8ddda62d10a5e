//! Lists the host's RDMA ports from sysfs; needs neither the library nor permission.

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

/// One port of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DevicePort {
    pub(crate) device: String,
    pub(crate) number: u8,
    pub(crate) active: bool,
    /// The state's name, for people.
    pub(crate) state: String,
    pub(crate) ethernet: bool,
    /// True if it has another protocol (RDMA over TCP), which has no GIDs and connects in another
    /// way.
    pub(crate) iwarp: bool,
    /// The GIDs that are not empty, in order.
    pub(crate) gids: Vec<Gid>,
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

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort_by_key(|name| (name.parse::<u32>().unwrap_or(u32::MAX), name.clone()));
    names
}

/// Returns all ports under a root such as `/sys/class/infiniband`. Unreadable entries count as
/// missing.
pub(crate) fn survey(root: &Path) -> Vec<DevicePort> {
    let mut ports = Vec::new();
    for device in names(root) {
        // "1: CA" of RoCE and InfiniBand, "4: RNIC" of iWARP.
        let node = read(&root.join(&device).join("node_type")).unwrap_or_default();
        let iwarp = node.ends_with("RNIC");
        let path = root.join(&device).join("ports");
        for number in names(&path) {
            let Ok(index) = number.parse() else { continue };
            ports.push(port(&path.join(&number), &device, index, iwarp));
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

fn port(path: &Path, device: &str, number: u8, iwarp: bool) -> DevicePort {
    // "4: ACTIVE"
    let state = read(&path.join("state")).unwrap_or_default();
    let state = state.split(": ").last().unwrap_or_default().to_owned();
    DevicePort {
        device: device.to_owned(),
        number,
        active: state == "ACTIVE",
        state,
        ethernet: read(&path.join("link_layer")).is_some_and(|layer| layer == "Ethernet"),
        iwarp,
        gids: names(&path.join("gids"))
            .iter()
            .filter_map(|index| gid(path, index))
            .collect(),
    }
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
