//! What a port counts of packets that had to be sent again, from sysfs.
//!
//! Each driver has names of its own. Faro adds those of one meaning: a packet without an
//! acknowledgement, a packet out of its order, and a receiver that was not ready. The last counts what
//! Faro's flow control prevents.
//!
//! Sources: NVIDIA, "Understanding mlx5 Linux Counters"; the kernel's bnxt_re/hw_counters.c,
//! irdma/verbs.c and rxe_hw_counters.c.

use faro_sync::lock;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

/// Names of one meaning at mlx5, bnxt_re, irdma and rxe.
const RETRANSMITS: [&str; 4] = [
    "local_ack_timeout_err",
    "to_retransmits",
    "RetransSegs",
    "completer_retry_err",
];
const OUT_OF_SEQUENCE: [&str; 5] = [
    "out_of_sequence",
    "packet_seq_err",
    "seq_err_naks_rcvd",
    "out_of_seq_request",
    "rcvd_seq_err",
];
const NOT_READY: [&str; 3] = ["rnr_nak_retry_err", "rnr_naks_rcvd", "rcvd_rnr_err"];

/// The packets of a port, of all processes, since the device was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HardwareCounters {
    /// Sent again, because no acknowledgement came in time.
    pub(crate) retransmits: u64,
    /// Received in another order, because one was lost or overtaken.
    pub(crate) out_of_sequence: u64,
    /// Sent to a receiver that was not ready (RNR).
    pub(crate) not_ready: u64,
}

impl HardwareCounters {
    fn read(self) -> [u64; 3] {
        [self.retransmits, self.out_of_sequence, self.not_ready]
    }

    fn figures(&mut self) -> [&mut u64; 3] {
        [
            &mut self.retransmits,
            &mut self.out_of_sequence,
            &mut self.not_ready,
        ]
    }

    /// Returns the counters of a port on the host below `root`; `None` if its driver has none of them.
    pub(crate) fn of(root: &Path, device: &str, port: u8) -> Option<Self> {
        let at = format!("sys/class/infiniband/{device}/ports/{port}/hw_counters");
        let directory = root.join(at);
        let read = |name: &&str| -> Option<u64> {
            let text = fs::read_to_string(directory.join(name)).ok()?;
            text.trim().parse().ok()
        };
        let sum = |names: &[&str]| {
            let found: Vec<u64> = names.iter().filter_map(read).collect();
            (!found.is_empty()).then(|| found.iter().sum::<u64>())
        };
        let [retransmits, out_of_sequence, not_ready] =
            [&RETRANSMITS[..], &OUT_OF_SEQUENCE, &NOT_READY].map(sum);
        retransmits.or(out_of_sequence).or(not_ready)?;
        Some(Self {
            retransmits: retransmits.unwrap_or(0),
            out_of_sequence: out_of_sequence.unwrap_or(0),
            not_ready: not_ready.unwrap_or(0),
        })
    }
}

/// A port that this process uses.
struct CountedPort {
    device: String,
    port: u8,
    /// What it had counted when it was last read.
    before: HardwareCounters,
    /// What it has counted since this process opened it.
    since: HardwareCounters,
}

/// The ports that this process has opened; no more than the host has.
static PORTS: Mutex<Vec<CountedPort>> = Mutex::new(Vec::new());

impl CountedPort {
    /// Adds what came since the last time. Of two threads that read at once, the one with the older
    /// figures adds nothing.
    fn add(&mut self, now: HardwareCounters) {
        let (before, since) = (self.before.figures(), self.since.figures());
        for ((before, since), now) in before.into_iter().zip(since).zip(now.read()) {
            *since += now.saturating_sub(*before);
            *before = now.max(*before);
        }
    }

    /// The port was opened again. If the device was made anew, it counts from 0.
    fn opened_again(&mut self, now: HardwareCounters) {
        for (before, now) in self.before.figures().into_iter().zip(now.read()) {
            *before = now.min(*before);
        }
    }
}

/// Has a port counted from now on, if it is not yet.
pub(super) fn count_port(device: &str, port: u8) {
    let Some(now) = HardwareCounters::of(Path::new("/"), device, port) else {
        return;
    };
    let is_this = |one: &&mut CountedPort| one.device == device && one.port == port;
    let mut ports = lock(&PORTS);
    match ports.iter_mut().find(is_this) {
        Some(known) => known.opened_again(now),
        None => ports.push(CountedPort {
            device: device.to_owned(),
            port,
            before: now,
            since: HardwareCounters::default(),
        }),
    }
}

/// Returns what the RDMA ports that this process uses have counted since it opened them, of all
/// processes: packets sent again, received out of sequence, and sent to a receiver that was not
/// ready. Reads files that the driver may ask the device for, so it is not for progress threads.
#[must_use]
pub fn port_counters() -> [u64; 3] {
    let known: Vec<(String, u8)> = {
        let ports = lock(&PORTS);
        ports
            .iter()
            .map(|one| (one.device.clone(), one.port))
            .collect()
    };
    let mut sum = [0; 3];
    for (device, port) in known {
        let now = HardwareCounters::of(Path::new("/"), &device, port);
        let mut ports = lock(&PORTS);
        let is_this = |one: &&mut CountedPort| one.device == device && one.port == port;
        let Some(counted) = ports.iter_mut().find(is_this) else {
            continue;
        };
        if let Some(now) = now {
            counted.add(now);
        }
        for (sum, value) in sum.iter_mut().zip(counted.since.read()) {
            *sum += value;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(retransmits: u64) -> HardwareCounters {
        HardwareCounters {
            retransmits,
            out_of_sequence: 2 * retransmits,
            not_ready: 5,
        }
    }

    #[test]
    fn figures_only_grow() {
        let mut port = CountedPort {
            device: "mlx5_0".to_owned(),
            port: 1,
            before: counted(100),
            since: HardwareCounters::default(),
        };
        for (now, retransmits) in [(100, 0), (103, 3), (102, 3), (104, 4)] {
            port.add(counted(now));
            assert_eq!(port.since.read(), [retransmits, 2 * retransmits, 0]);
        }
        port.opened_again(counted(104));
        port.add(counted(104));
        assert_eq!(port.since.retransmits, 4);
        // Its driver was loaded anew.
        port.opened_again(counted(1));
        port.add(counted(2));
        assert_eq!(port.since.retransmits, 5);
    }
}
