//! The checks on trees that look like a host's `/proc`, `/sys` and `/dev`.

use super::{bytes, Finding, Host, SettingNames, Severity};
use crate::verbs::VerbsOptions;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A host that is removed with the value.
struct HostTree(PathBuf);

impl HostTree {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("faro-host-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    /// Returns a host with one software device at the address 10.0.0.1, and all that the device
    /// needs.
    fn with_device(name: &str) -> Self {
        let tree = Self::new(name);
        let port = "sys/class/infiniband/rxe0/ports/1";
        tree.put("sys/class/infiniband/rxe0/node_type", "1: CA");
        tree.put(&format!("{port}/state"), "4: ACTIVE");
        tree.put(&format!("{port}/link_layer"), "Ethernet");
        for (index, gid) in ["fe80::1", "::ffff:10.0.0.1"].iter().enumerate() {
            tree.put(&format!("{port}/gids/{index}"), gid);
            tree.put(&format!("{port}/gid_attrs/types/{index}"), "RoCE v2");
            tree.put(&format!("{port}/gid_attrs/ndevs/{index}"), "eth0");
        }
        tree.put("sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0");
        tree.put("dev/infiniband/uverbs0", "");
        tree.limits("unlimited");
        tree
    }

    fn limits(&self, locked: &str) {
        self.put(
            "proc/self/limits",
            &format!("Max locked memory {locked} {locked} bytes"),
        );
    }

    fn rdma(&self) -> Vec<Finding> {
        self.ask(|host| host.rdma())
    }

    fn memory(&self) -> Vec<Finding> {
        self.ask(|host| host.memory())
    }

    fn ask<T>(&self, ask: impl Fn(&Host<'_>) -> T) -> T {
        ask(&Host {
            root: &self.0,
            options: &VerbsOptions::default(),
            near: Ipv4Addr::new(10, 0, 0, 1).into(),
            memory_limit: 256 << 20,
            names: SettingNames {
                memory_limit: "arena.limit",
                ..SettingNames::default()
            },
        })
    }
}

impl Drop for HostTree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn of<'f>(findings: &'f [Finding], check: &str) -> &'f Finding {
    let found = findings.iter().rfind(|finding| finding.check == check);
    found.unwrap_or_else(|| panic!("no {check} in {findings:?}"))
}

/// Checks a finding's level, and words of its message and of its fix.
fn message(finding: &Finding, level: Severity, words: &str, fix: &str) {
    assert_eq!(finding.level, level, "{finding:?}");
    assert!(finding.message.contains(words), "{finding:?}");
    let how = finding.fix.clone().unwrap_or_default();
    assert!(how.contains(fix), "{finding:?}");
}

#[test]
fn a_host_that_has_everything() {
    let tree = HostTree::with_device("good");
    let findings = tree.rdma();
    assert!(
        findings.iter().all(|f| f.level == Severity::Good),
        "{findings:?}"
    );
    let device = of(&findings, "device");
    message(
        device,
        Severity::Good,
        "rxe0:1 is ACTIVE, Ethernet; GIDs: 0 fe80::1 (RoCE v2 eth0)",
        "",
    );
    let choice = "rxe0:1, GID 1 10.0.0.1, because it has the address 10.0.0.1";
    message(of(&findings, "choice"), Severity::Good, choice, "");
    message(
        of(&findings, "permission"),
        Severity::Good,
        "dev/infiniband/uverbs0",
        "",
    );
    assert_eq!(tree.ask(|host| host.also("anything")), "");
}

#[test]
fn a_host_without_rdma() {
    let findings = HostTree::new("none").rdma();
    assert_eq!(findings.len(), 1, "{findings:?}");
    message(
        &findings[0],
        Severity::NoDevice,
        "no RDMA device on this host",
        "rdma link add rxe0",
    );
}

#[test]
fn what_is_missing_is_found_together() {
    let tree = HostTree::with_device("missing");
    tree.limits("65536");
    fs::remove_file(tree.0.join("dev/infiniband/uverbs0")).unwrap();
    let findings = tree.rdma();
    let memlock = of(&findings, "memlock");
    message(
        memlock,
        Severity::NoRdma,
        "may lock 65536 bytes",
        "ulimit -l 262144",
    );
    message(
        of(&findings, "permission"),
        Severity::NoRdma,
        "uverbs0",
        "--device=",
    );
    let fix = memlock.fix.as_deref().unwrap_or_default();
    assert!(fix.ends_with("set arena.limit below that limit"), "{fix}");
    // The log has each reason once.
    let error = format!("verbs is not available: {}", memlock.message);
    let also = tree.ask(|host| host.also(&error));
    assert!(
        also.starts_with("; also: ") && also.contains("uverbs0"),
        "{also}"
    );
    assert!(!also.contains("65536"), "{also}");
}

#[test]
fn locked_memory_for_the_arena_alone_is_noted() {
    let tree = HostTree::with_device("tight");
    tree.limits("268435456");
    let memlock = of(&tree.rdma(), "memlock").clone();
    message(
        &memlock,
        Severity::Note,
        "queues need some too: 16 MiB",
        "ulimit -l 278528",
    );
    tree.limits("285212672");
    message(
        of(&tree.rdma(), "memlock"),
        Severity::Good,
        "272 MiB may be locked",
        "",
    );
}

#[test]
fn a_port_that_is_down() {
    let tree = HostTree::with_device("down");
    tree.put("sys/class/infiniband/rxe0/ports/1/state", "1: DOWN");
    let findings = tree.rdma();
    let fix = "ip link set dev eth0 up";
    message(
        of(&findings, "choice"),
        Severity::NoRdma,
        "rxe0:1 is DOWN",
        fix,
    );
}

#[test]
fn huge_pages_are_counted() {
    let tree = HostTree::new("huge");
    let meminfo = |free| format!("HugePages_Free:  {free}\nHugepagesize:    2048 kB");
    tree.put("proc/meminfo", &meminfo(127));
    let few = of(&tree.memory(), "huge pages").clone();
    message(
        &few,
        Severity::Note,
        "127 of 2 MiB are free",
        "vm.nr_hugepages=128",
    );
    tree.put("proc/meminfo", &meminfo(128));
    message(of(&tree.memory(), "huge pages"), Severity::Good, "128", "");
}

#[test]
fn the_smallest_limit_of_all_groups_counts() {
    let tree = HostTree::new("cgroup2");
    tree.put("proc/self/cgroup", "0::/pods/one");
    tree.put("sys/fs/cgroup/pods/one/memory.max", "max");
    let free = of(&tree.memory(), "memory limit").clone();
    message(&free, Severity::Good, "not in a container; no limit", "");
    tree.put("sys/fs/cgroup/pods/memory.max", "268435456");
    tree.put(".dockerenv", "");
    let small = of(&tree.memory(), "memory limit").clone();
    message(
        &small,
        Severity::Broken,
        "in a container (Docker)",
        "--memory",
    );
    message(&small, Severity::Broken, "Docker", "or lower arena.limit");
    assert!(
        small.message.contains("pods/memory.max allows 256 MiB"),
        "{small:?}"
    );
    tree.put("sys/fs/cgroup/pods/one/memory.max", "1073741824");
    tree.put("sys/fs/cgroup/pods/memory.max", "2147483648");
    let enough = of(&tree.memory(), "memory limit").clone();
    message(&enough, Severity::Good, "limited to 1 GiB", "");
}

#[test]
fn version_1_of_control_groups() {
    let tree = HostTree::new("cgroup1");
    tree.put("proc/self/cgroup", "5:cpu:/\n4:memory:/docker/ab\n0::/");
    // No limit, as version 1 says it.
    tree.put(
        "sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes",
        "9223372036854771712",
    );
    let free = of(&tree.memory(), "memory limit").clone();
    message(
        &free,
        Severity::Good,
        "in a container (Docker); no limit",
        "",
    );
    tree.put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000");
    let small = of(&tree.memory(), "memory limit").clone();
    message(&small, Severity::Broken, "allows 1000000 bytes", "");
}

#[test]
fn sizes_are_written_as_people_do() {
    assert_eq!(bytes(256 << 20), "256 MiB");
    assert_eq!(bytes(3 << 30), "3 GiB");
    assert_eq!(bytes(65_536), "64 KiB");
    assert_eq!(bytes(65_537), "65537 bytes");
    assert_eq!(bytes(0), "0 bytes");
}
