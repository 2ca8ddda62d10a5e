//! Huge pages, and the memory limit of a container.

use super::{Finding, Host, Severity};
use std::fs;
use std::path::{Path, PathBuf};

/// The arena's huge pages have this size; see the pool's slabs.
const HUGE: u64 = 2 << 20;

/// A limit of the control group that the process is in, or of one around it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    /// Maximum memory in bytes.
    bytes: u64,
    /// The file with the limit.
    file: PathBuf,
}

pub(super) fn checks(host: &Host<'_>) -> Vec<Finding> {
    vec![huge_pages(host), container(host)]
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Formats bytes: `268435456` as `256 MiB`, but in bytes if that is not exact.
#[must_use]
pub fn bytes(number: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if number >> shift > 0 && number.trailing_zeros() >= shift {
            return format!("{} {unit}", number >> shift);
        }
    }
    format!("{number} bytes")
}

fn field(meminfo: &str, name: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.split_whitespace().next());
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn huge_pages(host: &Host<'_>) -> Finding {
    let meminfo = read(&host.root.join("proc/meminfo"));
    let free = field(&meminfo, "HugePages_Free:");
    let size = field(&meminfo, "Hugepagesize:") << 10;
    let wanted = host.memory_limit.div_ceil(HUGE);
    if size == HUGE && free >= wanted {
        let message = format!("{free} of 2 MiB are free, the arena takes {wanted} at most");
        return Finding::good("huge pages", message);
    }
    let message = format!(
        "{} of 2 MiB are free, a full arena takes {wanted}; the rest of it is on ordinary pages",
        if size == HUGE { free } else { 0 }
    );
    let fix = format!("sysctl -w vm.nr_hugepages={wanted}, for each executor of the host");
    Finding::bad("huge pages", Severity::Note, message, fix)
}

fn container(host: &Host<'_>) -> Finding {
    let place = match kind(host.root) {
        Some(kind) => format!("in a container ({kind})"),
        None => "not in a container".to_owned(),
    };
    let needed = host.memory_limit;
    match bound(host.root) {
        Some(Bound { bytes: max, file }) if max <= needed => {
            let message = format!(
                "{place}; {} allows {}, and the arena alone may take {}",
                file.display(),
                bytes(max),
                bytes(needed)
            );
            let fix = format!(
                "give the container more memory (docker --memory, Kubernetes \
                 resources.limits.memory, {}), or lower {}",
                host.names.memory_overhead, host.names.memory_limit
            );
            Finding::bad("memory limit", Severity::Broken, message, fix)
        }
        Some(Bound { bytes: max, .. }) => {
            let message = format!("{place}; its memory is limited to {}", bytes(max));
            Finding::good("memory limit", message)
        }
        None => Finding::good("memory limit", format!("{place}; no limit of memory")),
    }
}

/// Returns the container runtime, if this process runs in a container.
fn kind(root: &Path) -> Option<&'static str> {
    if root.join(".dockerenv").exists() {
        return Some("Docker");
    }
    if root.join("run/.containerenv").exists() {
        return Some("Podman");
    }
    if root.join("run/secrets/kubernetes.io").exists() {
        return Some("Kubernetes");
    }
    let group = read(&root.join("proc/self/cgroup"));
    let names = [
        ("kubepods", "Kubernetes"),
        ("docker", "Docker"),
        ("libpod", "Podman"),
    ];
    let named = names.iter().find(|(part, _)| group.contains(part));
    named.map(|(_, kind)| *kind)
}

/// Returns the smallest memory limit from the process's own group up to the root.
fn bound(root: &Path) -> Option<Bound> {
    let groups = read(&root.join("proc/self/cgroup"));
    let mut min: Option<Bound> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        // Version 2 has one tree for all and names no controller; version 1 one for each.
        let (tree, name) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            "memory" => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        // Inside a container the tree is its own, and the path may be that of the host.
        let group = Path::new(path.trim_start_matches('/'));
        for group in group.ancestors() {
            let file = root.join(tree).join(group).join(name);
            let Ok(bytes) = read(&file).trim().parse::<u64>() else {
                continue;
            };
            // Version 1 writes "no limit" as the largest number of whole pages.
            if bytes < i64::MAX as u64 / 2 && min.as_ref().is_none_or(|b| bytes < b.bytes) {
                min = Some(Bound { bytes, file });
            }
        }
    }
    min
}
