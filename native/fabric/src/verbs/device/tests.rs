//! Choice and survey on trees that look like a host's `/sys`.
//!
//! `diagnose/hosts_test.rs` has whole hosts.

use super::addresses::HostAddresses;
use super::choice::{
    candidates, first_usable, DeviceChoice, LinkLayer, OwnAddress, PortAddress, VerbsOptions,
};
use super::error::VerbsError;
use super::process_place::ProcessPlace;
use super::survey::{device_file, has_gid, has_partition, survey, DevicePort, PartitionKey};
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

/// A tree that is removed with the value.
struct DeviceTree(PathBuf);

impl DeviceTree {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("faro-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn port(&self, device: &str, port: u8, state: &str, layer: &str, gids: &[(&str, &str)]) {
        let at = format!("{INFINIBAND}/{device}/ports/{port}");
        self.put(&format!("{at}/state"), state);
        self.put(&format!("{at}/link_layer"), layer);
        for (index, (gid, kind)) in gids.iter().enumerate() {
            self.put(&format!("{at}/gids/{index}"), gid);
            if !kind.is_empty() {
                self.put(&format!("{at}/gid_attrs/types/{index}"), kind);
                self.put(&format!("{at}/gid_attrs/ndevs/{index}"), "eth0");
            }
        }
    }

    fn ports(&self) -> Vec<DevicePort> {
        survey(&self.0)
    }
}

impl Drop for DeviceTree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Where RDMA devices are in a tree.
const INFINIBAND: &str = "sys/class/infiniband";

/// Chooses on a host without network interfaces.
fn choose(
    ports: &[DevicePort],
    options: &VerbsOptions,
    ip: IpAddr,
) -> Result<DeviceChoice, VerbsError> {
    first(ports, options, ip, &HostAddresses::default())
}

fn first(
    ports: &[DevicePort],
    options: &VerbsOptions,
    ip: IpAddr,
    host: &HostAddresses,
) -> Result<DeviceChoice, VerbsError> {
    let all = candidates(ports, options, own(ip, host))?;
    Ok(all.into_iter().next().unwrap())
}

fn own(ip: IpAddr, host: &HostAddresses) -> OwnAddress<'_> {
    let process = ProcessPlace::default();
    OwnAddress { ip, host, process }
}

const EMPTY: (&str, &str) = ("0000:0000:0000:0000:0000:0000:0000:0000", "");
const LOCAL: (&str, &str) = ("fe80:0000:0000:0000:0200:00ff:fe00:0001", "RoCE v2");
const V1: (&str, &str) = ("0000:0000:0000:0000:0000:ffff:0a00:0001", "IB/RoCE v1");
const V2: (&str, &str) = ("0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2");
const OTHER: (&str, &str) = ("0000:0000:0000:0000:0000:ffff:0a01:0002", "RoCE v2");

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn wishing(device: &str) -> VerbsOptions {
    VerbsOptions {
        device: Some(device.parse().unwrap()),
        ..VerbsOptions::default()
    }
}

#[test]
fn the_port_with_our_own_address_wins() {
    let tree = DeviceTree::new("own");
    tree.port("mlx5_0", 1, "4: ACTIVE", "Ethernet", &[LOCAL, V1, OTHER]);
    tree.port(
        "mlx5_1",
        1,
        "4: ACTIVE",
        "Ethernet",
        &[LOCAL, EMPTY, V1, V2],
    );
    let choice = choose(&tree.ports(), &VerbsOptions::default(), ip("10.0.0.1")).unwrap();
    assert_eq!((choice.device.as_str(), choice.gid.index), ("mlx5_1", 3));
    assert!(choice.why.contains("10.0.0.1"), "{}", choice.why);
    let mapped = choose(
        &tree.ports(),
        &VerbsOptions::default(),
        ip("::ffff:10.0.0.1"),
    )
    .unwrap();
    assert_eq!(mapped.gid, choice.gid);
}

#[test]
fn elsewhere_an_address_that_can_be_routed_is_taken() {
    let tree = DeviceTree::new("routable");
    tree.port("a", 1, "1: DOWN", "Ethernet", &[V2]);
    tree.port("b", 1, "4: ACTIVE", "Ethernet", &[LOCAL, V1, OTHER]);
    let choice = choose(&tree.ports(), &VerbsOptions::default(), ip("192.168.1.1")).unwrap();
    assert_eq!((choice.device.as_str(), choice.gid.index), ("b", 2));
}

#[test]
fn infiniband_needs_no_roce_address() {
    let tree = DeviceTree::new("ib");
    let gid = [("fe80:0000:0000:0000:0200:00ff:fe00:0001", "IB/RoCE v1")];
    tree.port("mlx4_0", 2, "4: ACTIVE", "InfiniBand", &gid);
    let choice = choose(&tree.ports(), &VerbsOptions::default(), ip("10.0.0.1")).unwrap();
    assert_eq!((choice.port, choice.link), (2, LinkLayer::InfiniBand));
}

#[test]
fn wishes_are_met_or_named() {
    let tree = DeviceTree::new("options");
    tree.port("a", 1, "4: ACTIVE", "Ethernet", &[V2]);
    tree.port("b", 1, "1: DOWN", "Ethernet", &[V2]);
    tree.port("b", 2, "4: ACTIVE", "Ethernet", &[V1, OTHER]);
    let ports = tree.ports();
    let near = ip("10.0.0.1");
    assert_eq!(choose(&ports, &wishing("b"), near).unwrap().port, 2);
    assert_eq!(choose(&ports, &wishing("b:2"), near).unwrap().port, 2);
    let text = |options: &VerbsOptions| choose(&ports, options, near).unwrap_err().to_string();
    let down = text(&wishing("b:1"));
    assert!(down.contains("b:1 is DOWN"), "{down}");
    let missing = text(&wishing("c"));
    assert!(
        missing.contains("\"c\"") && missing.contains("a:1, b:1, b:2"),
        "{missing}"
    );
    let index = |index| VerbsOptions {
        gid_index: Some(index),
        ..wishing("b")
    };
    assert_eq!(choose(&ports, &index(0), near).unwrap().gid.index, 0);
    let missing = text(&index(7));
    assert!(
        missing.contains('7') && missing.contains("10.1.0.2"),
        "{missing}"
    );
    let bad = VerbsOptions {
        retry_count: 8,
        ..VerbsOptions::default()
    };
    assert!(text(&bad).contains("8 is not possible, 0 to 7 is"));
}

#[test]
fn what_is_missing_is_said() {
    let tree = DeviceTree::new("missing");
    let near = ip("10.0.0.1");
    let none = choose(&tree.ports(), &VerbsOptions::default(), near);
    assert!(matches!(none, Err(VerbsError::NoDevice { .. })), "{none:?}");
    tree.port("a", 1, "4: ACTIVE", "Ethernet", &[V1, EMPTY]);
    let old = choose(&tree.ports(), &VerbsOptions::default(), near).unwrap_err();
    let text = old.to_string();
    assert!(
        text.contains("RoCE v2") && text.contains("10.0.0.1"),
        "{text}"
    );
}

#[test]
fn a_wished_index_is_taken_on_the_port_with_our_address() {
    let tree = DeviceTree::new("index");
    tree.port("a", 1, "4: ACTIVE", "Ethernet", &[LOCAL, OTHER]);
    tree.port("b", 1, "4: ACTIVE", "Ethernet", &[LOCAL, V1, V2]);
    let index = |index| VerbsOptions {
        gid_index: Some(index),
        ..VerbsOptions::default()
    };
    let chosen = |wanted_name| choose(&tree.ports(), &index(wanted_name), ip("10.0.0.1"));
    assert_eq!(chosen(0).unwrap().device, "b");
    assert_eq!(chosen(2).unwrap().device, "b");
    let elsewhere = choose(&tree.ports(), &index(1), ip("10.9.9.9")).unwrap();
    assert_eq!((elsewhere.device.as_str(), elsewhere.gid.index), ("a", 1));
    let text = chosen(256).unwrap_err().to_string();
    assert!(text.contains("256 is not possible, 0 to 255 is"), "{text}");
}

#[test]
fn an_index_that_no_address_vector_can_name_is_passed_over() {
    let tree = DeviceTree::new("long");
    let mut gids = vec![EMPTY; 300];
    (gids[299], gids[7]) = (V2, OTHER);
    tree.port("rxe1", 1, "4: ACTIVE", "Ethernet", &gids);
    let choice = choose(&tree.ports(), &VerbsOptions::default(), ip("10.0.0.1")).unwrap();
    assert_eq!(choice.gid.index, 7);
}

#[test]
fn iwarp_is_not_roce() {
    let tree = DeviceTree::new("iwarp");
    tree.port("siw0", 1, "4: ACTIVE", "Ethernet", &[V2]);
    tree.put(&format!("{INFINIBAND}/siw0/node_type"), "4: RNIC");
    let near = ip("10.0.0.1");
    let text = choose(&tree.ports(), &VerbsOptions::default(), near)
        .unwrap_err()
        .to_string();
    assert!(text.contains("siw0:1 is iWARP"), "{text}");
    tree.port("rxe1", 1, "4: ACTIVE", "Ethernet", &[OTHER]);
    tree.put(&format!("{INFINIBAND}/rxe1/node_type"), "1: CA");
    let choice = choose(&tree.ports(), &VerbsOptions::default(), near).unwrap();
    assert_eq!(choice.device, "rxe1");
}

#[test]
fn an_address_is_looked_for_at_its_index() {
    let tree = DeviceTree::new("gid");
    tree.port("a", 1, "4: ACTIVE", "Ethernet", &[LOCAL, V2]);
    let gid = tree.ports()[0].gids[1].clone();
    let root = tree.0.join(INFINIBAND);
    assert!(has_gid(&root, "a", 1, &gid));
    assert!(!has_gid(&root, "a", 2, &gid));
    tree.port("a", 1, "4: ACTIVE", "Ethernet", &[LOCAL, V1]);
    assert!(!has_gid(&root, "a", 1, &gid), "another kind");
    tree.port("a", 1, "4: ACTIVE", "Ethernet", &[V2, EMPTY]);
    assert!(!has_gid(&root, "a", 1, &gid), "another index");
}

#[test]
fn a_device_s_file_is_found() {
    let tree = DeviceTree::new("file");
    tree.put("abi_version", "6");
    tree.put("uverbs0/ibdev", "mlx5_0");
    tree.put("uverbs12/ibdev", "mlx5_1");
    let found = device_file(&tree.0, "mlx5_1").unwrap();
    assert_eq!(found, "uverbs12");
    assert_eq!(device_file(&tree.0, "mlx5_2"), None);
}

#[test]
fn what_mends_an_error_stands_in_it() {
    let (device, path) = ("rxe1".to_owned(), "/dev/infiniband/uverbs3".to_owned());
    let errors = [
        VerbsError::NoFile {
            device: device.clone(),
            path: path.clone(),
        },
        VerbsError::Permission { device, path },
    ];
    for error in errors {
        let text = error.to_string();
        assert!(
            text.contains("rxe1") && text.contains("--device=/dev/infiniband/uverbs3"),
            "{text}"
        );
    }
    let source = std::io::Error::from_raw_os_error(12);
    let text = VerbsError::Register { bytes: 42, source }.to_string();
    assert!(text.contains("42") && text.contains("ulimit -l"), "{text}");
}

#[test]
fn numbers_in_names_are_in_their_order() {
    let tree = DeviceTree::new("order");
    for device in ["mlx5_10", "mlx5_2", "mlx5_bond_0", "mlx5_02", "mlx4_3"] {
        tree.port(device, 1, "4: ACTIVE", "Ethernet", &[OTHER]);
    }
    let devices: Vec<String> = tree.ports().into_iter().map(|port| port.device).collect();
    assert_eq!(
        devices,
        ["mlx4_3", "mlx5_02", "mlx5_2", "mlx5_10", "mlx5_bond_0"]
    );
}

#[test]
fn a_list_is_an_order_and_a_subnet_names_ports() {
    let tree = DeviceTree::new("list");
    tree.port("a", 1, "4: ACTIVE", "Ethernet", &[LOCAL, V2]);
    tree.port("b", 1, "4: ACTIVE", "Ethernet", &[LOCAL, OTHER]);
    tree.port("c", 1, "1: DOWN", "Ethernet", &[LOCAL, OTHER]);
    let ports = tree.ports();
    let order = |text: &str| -> Vec<String> {
        let host = HostAddresses::default();
        let all = candidates(&ports, &wishing(text), own(ip("10.0.0.1"), &host)).unwrap();
        all.iter().map(DeviceChoice::name).collect()
    };
    assert_eq!(order("a,b"), ["a:1", "b:1"]);
    assert_eq!(order("c,b:1,a"), ["b:1", "a:1"]);
    assert_eq!(order("b,no_such_device"), ["b:1"]);
    assert_eq!(order("10.1.0.0/16"), ["b:1"]);
    assert_eq!(order("10.1.0.0/16,10.0.0.0/8"), ["b:1", "a:1"]);
    let choice = choose(&ports, &wishing("10.1.0.0/16"), ip("10.0.0.1")).unwrap();
    assert_eq!(choice.gid.index, 1);
    assert_eq!(choice.why, "10.1.0.0/16 was asked for");
    let text = choose(&ports, &wishing("10.9.0.0/16"), ip("10.0.0.1"))
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("\"10.9.0.0/16\"") && text.contains("a:1, b:1, c:1"),
        "{text}"
    );
}

#[test]
fn the_first_device_that_opens_is_used() {
    let tree = DeviceTree::new("first");
    for device in ["a", "b", "c"] {
        tree.port(device, 1, "4: ACTIVE", "Ethernet", &[OTHER]);
    }
    let host = HostAddresses::default();
    let own = own(ip("10.0.0.1"), &host);
    let all = || candidates(&tree.ports(), &VerbsOptions::default(), own).unwrap();
    let refused = |device: &str| VerbsError::NoProvider {
        device: device.to_owned(),
    };
    let opened = first_usable(all(), |choice| match choice.device.as_str() {
        "b" => Ok(choice),
        other => Err(refused(other)),
    });
    let opened = opened.unwrap();
    assert_eq!(opened.device, "b");
    assert!(
        opened
            .why
            .contains("; passed over: a:1 (libibverbs has no driver"),
        "{}",
        opened.why
    );
    let mut tried = Vec::new();
    let failed = first_usable(all(), |choice| -> Result<(), VerbsError> {
        tried.push(choice.device.clone());
        Err(refused(&choice.device))
    });
    assert_eq!(tried, ["a", "b", "c"]);
    let text = failed.unwrap_err().to_string();
    assert!(
        text.starts_with("libibverbs has no driver for RDMA device a"),
        "{text}"
    );
    assert!(
        text.contains("device b;") && text.contains("device c;"),
        "{text}"
    );
    let one = first_usable(all()[..1].to_vec(), |_| -> Result<(), VerbsError> {
        Err(refused("a"))
    });
    assert!(matches!(one, Err(VerbsError::NoProvider { .. })), "{one:?}");
}

#[test]
fn the_first_partition_of_a_full_member_is_taken() {
    let tree = DeviceTree::new("partition");
    tree.port("mlx5_0", 1, "4: ACTIVE", "InfiniBand", &[LOCAL]);
    let pkeys = format!("{INFINIBAND}/mlx5_0/ports/1/pkeys");
    let put = |index: usize, key: &str| tree.put(&format!("{pkeys}/{index}"), key);
    // Numbers in their order: 2 comes before 10.
    for index in 0..16 {
        put(index, "0x0000");
    }
    put(0, "0x7fff");
    put(10, "0xffff");
    put(2, "0x8005");
    let near = ip("10.0.0.1");
    let chosen = || choose(&tree.ports(), &VerbsOptions::default(), near);
    let key = PartitionKey {
        index: 2,
        value: 0x8005,
    };
    assert_eq!(chosen().unwrap().partition, key);
    let root = tree.0.join(INFINIBAND);
    assert!(has_partition(&root, "mlx5_0", 1, key));
    put(2, "0x0005");
    assert!(!has_partition(&root, "mlx5_0", 1, key), "a limited member");
    assert_eq!(chosen().unwrap().partition.index, 10);
    put(10, "0x7fff");
    let text = chosen().unwrap_err().to_string();
    assert!(
        text.contains("mlx5_0:1") && text.contains("full member"),
        "{text}"
    );
    // RoCE has one partition.
    tree.port("mlx5_1", 1, "4: ACTIVE", "Ethernet", &[V2]);
    let other = chosen().unwrap();
    assert_eq!(
        (other.device.as_str(), other.partition),
        ("mlx5_1", PartitionKey::UNKNOWN)
    );
    assert!(has_partition(&root, "mlx5_1", 1, other.partition));
}

const PORT: PortAddress = PortAddress {
    link: Some(LinkLayer::InfiniBand),
    gid: [0xfe; 16],
    lid: 7,
    mtu: 5,
    partition: 0x8001,
    needs_grh: false,
};

#[test]
fn a_global_header_is_used_where_it_is_needed() {
    let mut elsewhere = PORT;
    elsewhere.gid[7] = 0;
    let mut neighbour = PORT;
    neighbour.gid[8] = 0;
    let needs_grh = PortAddress {
        needs_grh: true,
        ..PORT
    };
    let ethernet = PortAddress {
        link: Some(LinkLayer::Ethernet),
        ..PORT
    };
    // Both sides must find the same.
    for (a, b, global) in [
        (PORT, PORT, false),
        (PORT, neighbour, false),
        (PORT, elsewhere, true),
        (PORT, needs_grh, true),
        (ethernet, ethernet, true),
    ] {
        assert_eq!(
            [a.is_global(&b), b.is_global(&a)],
            [global; 2],
            "{a:?} {b:?}"
        );
    }
}

#[test]
fn ports_that_reach_no_peer_are_refused() {
    let told = |peer: &PortAddress| PORT.check_peer(peer).map_err(|error| error.to_string());
    let partition = |partition| PortAddress { partition, ..PORT };
    let ethernet = Some(LinkLayer::Ethernet);
    let link = |link| PortAddress {
        link,
        partition: 0,
        ..PORT
    };
    // The last are peers that do not say.
    for fits in [PORT, partition(0x0001), partition(0), link(None)] {
        assert_eq!(told(&fits), Ok(()));
    }
    let text = told(&partition(0xffff)).unwrap_err();
    assert!(text.contains("0xffff") && text.contains("0x8001"), "{text}");
    let text = told(&link(ethernet)).unwrap_err();
    assert!(
        text.contains("of Ethernet, this host's of InfiniBand"),
        "{text}"
    );
    assert_eq!(LinkLayer::of(2), ethernet);
    assert_eq!([0, 3].map(LinkLayer::of), [None; 2]);
}
