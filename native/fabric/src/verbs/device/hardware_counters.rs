//! What a port counts of packets that had to be sent again, from sysfs.
//!
//! Each driver has names of its own. Faro adds those of one meaning: a packet without an
//! acknowledgement, a packet out of its order, and a receiver that was not ready. The last counts what
//! Faro's flow control prevents.
//!
//! Sources: NVIDIA, "Understanding mlx5 Linux Counters"; the kernel's bnxt_re/hw_counters.c,
//! irdma/verbs.c and rxe_hw_counters.c.

use std::fs;
use std::path::Path;

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
