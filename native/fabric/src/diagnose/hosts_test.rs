//! Twelve kinds of hosts, as trees that look like their `/sys`, `/dev` and `/proc`: which device is
//! chosen, or why none is. `docs/user/doctor.md` has the same hosts as a table.

use super::{Finding, Host, SettingNames, Severity};
use crate::verbs::VerbsOptions;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

const TABLE: &str = include_str!("../../../../docs/user/doctor.md");

/// A host that is removed with the value.
struct HostTree(PathBuf);

impl Drop for HostTree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A port as sysfs has it.
struct Port<'a> {
    device: &'a str,
    node: &'a str,
    layer: &'a str,
    state: &'a str,
    /// Value, type and network interface.
    gids: Vec<(String, &'a str, &'a str)>,
}

impl<'a> Port<'a> {
    /// RoCE at an interface with an address of IPv4 or IPv6: two versions of the link's address, two
    /// of this one.
    fn roce(device: &'a str, interface: &'a str, address: &str) -> Self {
        let address: IpAddr = address.parse().unwrap();
        let gid = match address {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().to_string(),
            IpAddr::V6(ip) => ip.to_string(),
        };
        let both = |gid: String| {
            [
                (gid.clone(), "IB/RoCE v1", interface),
                (gid, "RoCE v2", interface),
            ]
        };
        Self {
            device,
            node: "1: CA",
            layer: "Ethernet",
            state: "4: ACTIVE",
            gids: [both("fe80::200:ff:fe00:1".to_owned()), both(gid)].concat(),
        }
    }

    fn infiniband(device: &'a str, state: &'a str) -> Self {
        Self {
            device,
            node: "1: CA",
            layer: "InfiniBand",
            state,
            gids: vec![("fe80::b859:9f03:22:1".to_owned(), "IB/RoCE v1", "")],
        }
    }
}

impl HostTree {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("faro-kind-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let tree = Self(path);
        tree.put(
            "proc/self/limits",
            "Max locked memory unlimited unlimited bytes",
        );
        tree
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    /// Adds a port and the file of its device.
    fn add(&self, number: u32, port: &Port<'_>) {
        self.without_file(number, port);
        self.put(&format!("dev/infiniband/uverbs{number}"), "");
    }

    fn without_file(&self, number: u32, port: &Port<'_>) {
        let device = format!("sys/class/infiniband/{}", port.device);
        let at = format!("{device}/ports/1");
        self.put(&format!("{device}/node_type"), port.node);
        self.put(&format!("{at}/state"), port.state);
        self.put(&format!("{at}/link_layer"), port.layer);
        for (index, (value, kind, interface)) in port.gids.iter().enumerate() {
            self.put(&format!("{at}/gids/{index}"), value);
            if !kind.is_empty() {
                self.put(&format!("{at}/gid_attrs/types/{index}"), kind);
            }
            if !interface.is_empty() {
                self.put(&format!("{at}/gid_attrs/ndevs/{index}"), interface);
            }
        }
        self.put(
            &format!("sys/class/infiniband_verbs/uverbs{number}/ibdev"),
            port.device,
        );
    }

    /// Gives the container a network interface.
    fn interface(&self, name: &str, address: &str) {
        self.put(&format!("sys/class/net/{name}/operstate"), "up");
        let file = self.0.join("addresses");
        let before = fs::read_to_string(&file).unwrap_or_default();
        fs::write(
            &file,
            format!("{before}2: {name}    inet {address}/16 scope global {name}\n"),
        )
        .unwrap();
    }

    /// Gives it an IPoIB interface of a device's first port.
    fn ipoib(&self, device: &str, name: &str, address: &str) {
        self.interface(name, address);
        self.put(
            &format!("sys/class/infiniband/{device}/device/net/{name}/dev_port"),
            "0",
        );
    }

    fn rdma(&self, near: &str, device: Option<&str>) -> Vec<Finding> {
        let options = VerbsOptions {
            device: device.map(|list| list.parse().unwrap()),
            ..VerbsOptions::default()
        };
        let host = Host {
            root: &self.0,
            options: &options,
            near: near.parse().unwrap(),
            memory_limit: 256 << 20,
            names: SettingNames::default(),
        };
        host.rdma()
    }
}

/// Checks the chosen device and the reason.
fn uses(findings: &[Finding], device: &str, why: &str) {
    let choice = findings
        .iter()
        .rfind(|finding| finding.check == "choice")
        .unwrap();
    assert!(
        choice.message.starts_with(&format!("{device}, GID ")),
        "{choice:?}"
    );
    assert!(choice.message.contains(why), "{choice:?}");
    assert!(
        findings.iter().all(|one| one.level == Severity::Good),
        "{findings:?}"
    );
}

/// Checks why there is no RDMA, and the fix.
fn refuses(findings: &[Finding], level: Severity, message: &str, fix: &str) {
    let bad = findings.iter().find(|finding| finding.level == level);
    let bad = bad.unwrap_or_else(|| panic!("{findings:?}"));
    assert!(bad.message.contains(message), "{bad:?}");
    assert!(
        bad.fix.as_deref().unwrap_or_default().contains(fix),
        "{bad:?}"
    );
}

/// Checks that the table has a row.
fn row(host: &str, faro: &str) {
    let row = format!("| {host} | {faro} |");
    assert!(
        TABLE.contains(&row),
        "docs/user/doctor.md has no row\n{row}"
    );
}

#[test]
fn a_pod_with_the_file_of_one_device_of_four() {
    row(
        "pod of a shared device plug-in: sysfs shows four NICs, `/dev/infiniband` has the file of one",
        "uses that one, and names the others as passed over",
    );
    let tree = HostTree::new("pod");
    for number in 0..4 {
        let (device, interface) = (format!("mlx5_{number}"), format!("ens{number}"));
        let port = Port::roce(&device, &interface, &format!("10.1.{number}.5"));
        match number {
            2 => tree.add(number, &port),
            _ => tree.without_file(number, &port),
        }
    }
    tree.interface("eth0", "10.244.3.7");
    let findings = tree.rdma("10.244.3.7", None);
    uses(&findings, "mlx5_2:1", "passed over: mlx5_0:1 (");
    refuses(
        &tree.rdma("10.244.3.7", Some("mlx5_0")),
        Severity::NoRdma,
        "uverbs0 of RDMA device mlx5_0 is not there",
        "docker run --device=",
    );
}

#[test]
fn a_pod_with_an_interface_of_its_own() {
    row(
        "pod with an SR-IOV function in its network namespace, beside the node's NICs",
        "uses the NIC whose network interface is in the pod",
    );
    let tree = HostTree::new("sriov");
    tree.add(0, &Port::roce("mlx5_0", "ens1", "10.1.0.5"));
    tree.add(1, &Port::roce("mlx5_7", "net1", "10.2.0.9"));
    tree.interface("eth0", "10.244.3.7");
    tree.interface("net1", "10.2.0.9");
    uses(&tree.rdma("10.244.3.7", None), "mlx5_7:1", "can be routed");
}

#[test]
fn infiniband_beside_ethernet() {
    row(
        "InfiniBand for data, a RoCE-capable Ethernet NIC for management",
        "uses the NIC that has the executor's address, also if it is an IPoIB address; with an address of neither, InfiniBand",
    );
    let tree = HostTree::new("ib-and-ethernet");
    tree.add(0, &Port::roce("mlx5_0", "eno1", "10.0.0.5"));
    tree.add(1, &Port::infiniband("mlx5_1", "4: ACTIVE"));
    tree.interface("eno1", "10.0.0.5");
    tree.ipoib("mlx5_1", "ib0", "192.168.7.5");
    let why = "its interface ib0 has the address 192.168.7.5";
    uses(&tree.rdma("192.168.7.5", None), "mlx5_1:1", why);
    uses(
        &tree.rdma("10.0.0.5", None),
        "mlx5_0:1",
        "it has the address",
    );
    uses(
        &tree.rdma("172.16.0.5", None),
        "mlx5_1:1",
        "InfiniBand needs no address",
    );
    uses(
        &tree.rdma("10.0.0.5", Some("192.168.0.0/16")),
        "mlx5_1:1",
        "192.168.0.0/16 was asked for",
    );
}

#[test]
fn two_infiniband_fabrics() {
    row(
        "two InfiniBand NICs on two fabrics",
        "uses the one whose IPoIB interface has the executor's address",
    );
    let tree = HostTree::new("ib-two-rails");
    for (number, device) in ["mlx5_0", "mlx5_1"].iter().enumerate() {
        tree.add(number as u32, &Port::infiniband(device, "4: ACTIVE"));
        tree.ipoib(
            device,
            &format!("ib{number}"),
            &format!("192.168.{number}.5"),
        );
    }
    uses(&tree.rdma("192.168.0.5", None), "mlx5_0:1", "ib0");
    uses(&tree.rdma("192.168.1.5", None), "mlx5_1:1", "ib1");
}

#[test]
fn infiniband_without_a_subnet_manager() {
    row(
        "InfiniBand without a subnet manager (port in INIT)",
        "TCP; names the missing subnet manager",
    );
    let tree = HostTree::new("ib-no-sm");
    tree.add(0, &Port::infiniband("mlx5_0", "2: INIT"));
    let findings = tree.rdma("10.0.0.5", None);
    refuses(&findings, Severity::NoRdma, "mlx5_0:1 is INIT", "opensm");
}

#[test]
fn infiniband_of_a_limited_member() {
    row(
        "InfiniBand port that is a limited member of all its partitions (P_Keys below 0x8000)",
        "TCP; names the partition table. Of several P_Keys the first of a full member is used",
    );
    let tree = HostTree::new("ib-limited");
    tree.add(0, &Port::infiniband("mlx5_0", "4: ACTIVE"));
    let key = |index: u32, key: &str| {
        let table = "sys/class/infiniband/mlx5_0/ports/1/pkeys";
        tree.put(&format!("{table}/{index}"), key);
    };
    key(0, "0x7fff");
    key(1, "0x0000");
    let findings = tree.rdma("10.0.0.5", None);
    let why = "full member of a partition (P_Key 0x8000 and above): mlx5_0:1";
    refuses(&findings, Severity::NoRdma, why, "partitions.conf");
    key(1, "0x8005");
    let findings = tree.rdma("10.0.0.5", None);
    uses(&findings, "mlx5_0:1", "P_Key 0x8005, because");
}

#[test]
fn efa() {
    row(
        "AWS with EFA, which has no reliable connections",
        "TCP, and counts as a host without a device",
    );
    let tree = HostTree::new("efa");
    let port = Port {
        device: "efa_0",
        node: "7: unspecified",
        layer: "Unspecified",
        state: "4: ACTIVE",
        gids: vec![("fe80::8c3:f7ff:fe11:2233".to_owned(), "", "")],
    };
    tree.add(0, &port);
    let why = "efa_0:1 is of node type \"unspecified\"";
    refuses(
        &tree.rdma("172.31.5.5", None),
        Severity::NoDevice,
        why,
        "spark.faro.fabric=tcp",
    );
}

#[test]
fn iwarp() {
    row("Intel E810 as iWARP", "TCP; names the command for RoCE");
    let tree = HostTree::new("iwarp");
    let port = Port {
        node: "4: RNIC",
        ..Port::roce("irdma0", "ens1", "10.0.0.5")
    };
    tree.add(0, &port);
    let findings = tree.rdma("10.0.0.5", None);
    refuses(
        &findings,
        Severity::NoRdma,
        "irdma0:1 is iWARP",
        "enable_roce",
    );
}

#[test]
fn omni_path() {
    row("Omni-Path", "uses it as InfiniBand (not tried)");
    let tree = HostTree::new("opa");
    tree.add(0, &Port::infiniband("hfi1_0", "4: ACTIVE"));
    uses(
        &tree.rdma("10.0.0.5", None),
        "hfi1_0:1",
        "InfiniBand needs no address",
    );
}

#[test]
fn eight_rails() {
    row(
        "eight RoCE NICs of eight networks, Spark on the management network",
        "uses the first in the order of numbers (mlx5_2 before mlx5_10); `spark.faro.verbs.device` takes a list or a subnet",
    );
    let tree = HostTree::new("eight-rails");
    for number in 3..11 {
        let (device, interface) = (format!("mlx5_{number}"), format!("rdma{number}"));
        let address = format!("10.{number}.0.5");
        tree.add(number, &Port::roce(&device, &interface, &address));
        tree.interface(&interface, &address);
    }
    uses(&tree.rdma("172.16.0.5", None), "mlx5_3:1", "can be routed");
    uses(
        &tree.rdma("172.16.0.5", Some("mlx5_9,mlx5_4")),
        "mlx5_9:1",
        "mlx5_9 was asked for",
    );
    uses(
        &tree.rdma("172.16.0.5", Some("10.10.0.0/16")),
        "mlx5_10:1",
        "GID 3 10.10.0.5",
    );
}

#[test]
fn rails_of_one_network() {
    row(
        "four RoCE NICs of one network, none with the executor's address",
        "each executor takes another one; of the NICs on its NUMA node, if it may run on one node only",
    );
    let tree = HostTree::new("rails");
    for number in 0..4 {
        let (device, interface) = (format!("mlx5_{number}"), format!("rdma{number}"));
        let address = format!("10.1.{number}.5");
        tree.add(number, &Port::roce(&device, &interface, &address));
        tree.interface(&interface, &address);
        let node = (number / 2).to_string();
        tree.put(
            &format!("sys/class/infiniband/{device}/device/numa_node"),
            &node,
        );
    }
    // One of another network, which the others' peers may not reach.
    tree.add(4, &Port::roce("mlx5_4", "rdma4", "10.2.0.5"));
    tree.interface("rdma4", "10.2.0.5");
    for (node, list) in [(0, "0-3"), (1, "4-7")] {
        tree.put(&format!("sys/devices/system/node/node{node}/cpulist"), list);
    }
    let process = |number: u32, processors: &str| {
        tree.put("proc/self/stat", &format!("{number} (java) S 1"));
        let status = format!("Name:\tjava\nCpus_allowed_list:\t{processors}");
        tree.put("proc/self/status", &status);
        tree.rdma("172.16.0.4", None)
    };
    let equal = "one of 4 equal ports of its network";
    for (number, device) in [
        (0, "mlx5_0:1"),
        (1, "mlx5_1:1"),
        (6, "mlx5_2:1"),
        (7, "mlx5_3:1"),
    ] {
        uses(&process(number, "0-7"), device, equal);
    }
    let near = "one of 4 equal ports of its network, on NUMA node 1 as this process";
    for (number, device) in [(0, "mlx5_2:1"), (1, "mlx5_3:1"), (2, "mlx5_2:1")] {
        uses(&process(number, "4-5"), device, near);
    }
    // A choice is a choice.
    let findings = tree.rdma("10.1.3.5", None);
    uses(&findings, "mlx5_3:1", "it has the address 10.1.3.5");
    let findings = tree.rdma("172.16.0.4", Some("mlx5_1,mlx5_2"));
    uses(&findings, "mlx5_1:1", "mlx5_1 was asked for");
}

#[test]
fn ipv6_only() {
    row("IPv6 only", "uses the NIC that has the executor's address");
    let tree = HostTree::new("ipv6");
    tree.add(0, &Port::roce("mlx5_0", "ens1", "fd00:0:0:1::5"));
    uses(
        &tree.rdma("fd00:0:0:1::5", None),
        "mlx5_0:1",
        "GID 3 fd00:0:0:1::5",
    );
}

#[test]
fn a_bond_with_a_vlan() {
    row(
        "bond of two ports with a VLAN",
        "uses the bond's device with the GID of the executor's address",
    );
    let tree = HostTree::new("bond");
    let mut port = Port::roce("mlx5_bond_0", "bond0", "10.0.0.5");
    port.gids.extend(
        Port::roce("mlx5_bond_0", "bond0.9", "10.9.0.5")
            .gids
            .split_off(2),
    );
    tree.add(0, &port);
    uses(
        &tree.rdma("10.9.0.5", None),
        "mlx5_bond_0:1",
        "GID 5 10.9.0.5",
    );
}

#[test]
fn an_accelerated_virtual_machine() {
    row(
        "Azure HB: Ethernet with accelerated networking has the executor's address, InfiniBand the fast network",
        "uses Ethernet's device; name InfiniBand's with `spark.faro.verbs.device` (not tried)",
    );
    let tree = HostTree::new("azure");
    tree.add(0, &Port::roce("mlx5_an0", "eth0", "10.4.0.5"));
    tree.add(1, &Port::infiniband("mlx5_ib0", "4: ACTIVE"));
    tree.interface("eth0", "10.4.0.5");
    uses(
        &tree.rdma("10.4.0.5", None),
        "mlx5_an0:1",
        "it has the address",
    );
    uses(
        &tree.rdma("10.4.0.5", Some("mlx5_ib0")),
        "mlx5_ib0:1",
        "mlx5_ib0 was asked for",
    );
}

#[test]
fn a_nic_without_an_address() {
    row(
        "RoCE NIC whose interface has no IP address, or has it only for RoCE v1",
        "TCP if there is no RoCE v2 address; names the interface",
    );
    let tree = HostTree::new("no-address");
    let mut port = Port::roce("mlx5_0", "ens1", "10.0.0.5");
    port.gids.retain(|(_, kind, _)| *kind != "RoCE v2");
    tree.add(0, &port);
    let findings = tree.rdma("10.0.0.5", None);
    refuses(
        &findings,
        Severity::NoRdma,
        "RoCE v2",
        "ip address add IP/PREFIX dev ens1",
    );
}

/// Each driver has its own names.
#[test]
fn packets_that_were_sent_again() {
    let counted: [(&[(&str, &str)], &str); 4] = [
        (
            &[
                ("local_ack_timeout_err", "3"),
                ("out_of_sequence", "4"),
                ("packet_seq_err", "1"),
                ("rnr_nak_retry_err", "2"),
            ],
            "3 sent again, 5 out of sequence, 2 to a receiver",
        ),
        (
            &[("to_retransmits", "7"), ("rnr_naks_rcvd", "0")],
            "7 sent again, 0 out of sequence, 0 to a receiver",
        ),
        (
            &[("completer_retry_err", "1"), ("rcvd_rnr_err", "9")],
            "1 sent again, 0 out of sequence, 9 to a receiver",
        ),
        (&[("sent_pkts", "1000"), ("RetransSegs", "x")], ""),
    ];
    for (at, (files, words)) in counted.iter().enumerate() {
        let tree = HostTree::new(&format!("packets-{at}"));
        tree.add(0, &Port::roce("mlx5_0", "ens1", "10.0.0.5"));
        for (name, value) in *files {
            let port = "sys/class/infiniband/mlx5_0/ports/1/hw_counters";
            tree.put(&format!("{port}/{name}"), value);
        }
        let findings = tree.rdma("10.0.0.5", None);
        let found = findings.iter().find(|finding| finding.check == "packets");
        match (words.is_empty(), found) {
            (true, found) => assert!(found.is_none(), "{found:?}"),
            (false, Some(found)) => {
                assert_eq!(found.level, Severity::Note);
                assert!(found.message.contains(words), "{found:?}");
                let fix = found.fix.as_deref().unwrap_or_default();
                assert!(fix.contains("PFC"), "{fix}");
            }
            (false, None) => panic!("{findings:?}"),
        }
    }
}
