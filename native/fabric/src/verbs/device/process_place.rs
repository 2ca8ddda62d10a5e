//! Where a process runs: its number, and the NUMA node that its processors are of.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// What lets the processes of a host choose different ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessPlace {
    /// The process's number in its namespace.
    pub(crate) number: u32,
    /// The only node on which it may run.
    pub(crate) node: Option<u32>,
}

impl ProcessPlace {
    /// Returns the place of the process whose `/proc/self` is below `root`.
    pub(crate) fn of(root: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let number = read("proc/self/stat");
        let number = number.split(' ').next().and_then(|word| word.parse().ok());
        Self {
            number: number.unwrap_or(0),
            node: node(root, &processors(&read("proc/self/status"))),
        }
    }

    /// Returns a number below `count`: another one for each process of a host. In containers many
    /// processes have the same number, so the address counts too.
    pub(crate) fn share(self, ip: IpAddr, count: usize) -> usize {
        let address = match ip {
            IpAddr::V4(ip) => u32::from(ip),
            IpAddr::V6(ip) => u128::from(ip) as u32,
        };
        self.number.wrapping_add(address) as usize % count.max(1)
    }
}

/// Returns the line of the processors on which a process may run, such as `0-7,16-23`.
fn processors(status: &str) -> String {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_default().trim().to_owned()
}

/// Returns the node that has all of these processors.
fn node(root: &Path, processors: &str) -> Option<u32> {
    let wanted = ranges(processors)?;
    let nodes = fs::read_dir(root.join("sys/devices/system/node")).ok()?;
    for entry in nodes.flatten() {
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.strip_prefix("node")) else {
            continue;
        };
        let list = fs::read_to_string(entry.path().join("cpulist")).unwrap_or_default();
        let of_node = ranges(list.trim()).unwrap_or_default();
        let has = |(first, last): &(u32, u32)| {
            let within = |(low, high): &(u32, u32)| low <= first && last <= high;
            of_node.iter().any(within)
        };
        if wanted.iter().all(has) {
            return number.parse().ok();
        }
    }
    None
}

/// Reads `0-7,16` as pairs of a first and a last number.
fn ranges(list: &str) -> Option<Vec<(u32, u32)>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    list.split(',').map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_its_number() {
        let place = ProcessPlace::of(Path::new("/"));
        assert_eq!(place.number, std::process::id());
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(
            ranges("0-7,16,18-19"),
            Some(vec![(0, 7), (16, 16), (18, 19)])
        );
        assert_eq!(ranges(""), None);
        assert_eq!(processors("Name:\tjava\nCpus_allowed_list:\t0-3\n"), "0-3");
    }

    #[test]
    fn processes_have_different_shares() {
        let share = |number, ip: &str| {
            let node = None;
            ProcessPlace { number, node }.share(ip.parse().unwrap(), 4)
        };
        assert_eq!(
            [4, 5, 6, 7].map(|number| share(number, "10.0.0.0")),
            [0, 1, 2, 3]
        );
        // As in pods, where the executor has the same number each time.
        assert_eq!([share(7, "10.0.0.1"), share(7, "10.0.0.2")], [0, 1]);
        assert_eq!(ProcessPlace::default().share("::1".parse().unwrap(), 1), 0);
    }
}
