//! Measured savings: the only table of constants of the model.
//!
//! From docs/benchmarks.md: "Scale factor 10" (Spark 4.3.0, Faro fbd4388, 2026-11-25; and Faro f2e82702,
//! 2026-11-26, with the event logs of both sides) for the rows of Spark SQL; "Spark workloads" (Faro 64526d9,
//! 2026-11-25), side "Faro" against "stock Spark"; "Transport ladder" (Faro 9c2a235, 2026-11-21), 8 clients,
//! Faro tcp against Netty; and "TPC-DS queries" (Faro 435d1c7, 2026-11-23) for the least saving that counts.
//!
//! How well they fit: between two runs, what Faro saved of a query at scale factor 10 differed by 12 points of the job's
//! time (root mean square of twelve queries). Fitted to the stages of the other queries alone, the estimate was within
//! 5 points of the mean of those runs for 6 of 12 queries (root mean square 5 points), fitted to either half for 4 of
//! the other 6. That is too favourable: the form of the model, one of six that were tried, and `NARROW_ROW` were chosen
//! with all twelve queries in sight. No expected value is fitted to the workloads (saved and expected: A1 42 and 30 %,
//! B2 49 and 57, S 25 and 26, J 28 and 15, B1 24 and 11).

/// Seconds of tasks for one unit: the lower end, the expected value and the upper end.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct CostRange {
    pub low: f64,
    pub expected: f64,
    pub high: f64,
}

const fn range(low: f64, expected: f64, high: f64) -> CostRange {
    CostRange {
        low,
        expected,
        high,
    }
}

pub const MEASURED: &str =
    "docs/benchmarks.md: scale factor 10 at fbd4388 and f2e82702, Spark workloads at 64526d9, ladder at 9c2a235, \
     TPC-DS at 435d1c7";

/// A block that a task of Spark SQL reads, local ones too. A1: the stage that reads took 2.25 s less on
/// 2 cores for 160,000 blocks; M600x200 and R3000 of "Many tiny tasks" have the ends.
pub const ROW_BLOCK_READ: CostRange = range(15e-6, 28e-6, 45e-6);
/// A block that a task of Spark SQL writes. A1: the other stage took 0.77 s less on 2 cores.
pub const ROW_BLOCK_WRITTEN: CostRange = range(5e-6, 10e-6, 40e-6);
/// A remote block of other shuffles, for which only the transport changes. Ladder, A1 and 1 KB: 21 µs of
/// CPU at both ends; "Faro, Spark's reader" saves 24 µs in A1.
pub const OTHER_REMOTE_BLOCK: CostRange = range(10e-6, 20e-6, 24e-6);
/// A byte of narrow rows that Spark SQL writes, as Spark compresses it. The 111 stages of twelve queries at scale
/// factor 10 took 13.6 ns less at f2e82702, on a machine 1.4 times slower than at fbd4388, whose job times give 9.4;
/// the expected value is between them. Least: S, 0.05 s less on 2 cores for 85 MB. Most: q50, 12.6 s of tasks less
/// for 579 MB.
pub const NARROW_BYTE_WRITTEN: CostRange = range(1.2e-9, 11.5e-9, 20e-9);
/// A byte of narrow rows that Spark SQL reads, remote or local. The same stages took 9.0 ns less at f2e82702; the
/// job times at fbd4388 give 6.2. Least: B2, 0.84 s less on 2 cores for 531 MB. Most: q4, 10.4 s of tasks less
/// for 597 MB.
pub const NARROW_BYTE_READ: CostRange = range(3e-9, 7.5e-9, 17e-9);
/// Rows of more compressed bytes than this are wide: they have long texts. q67, with 75 bytes in a row, saved
/// nothing. The rows of the other queries have up to 53.
pub const NARROW_ROW: f64 = 64.0;
/// A second of Spark's sorts ("sort time", which has neither the insertion of rows nor merges) in a stage that reads rows
/// of a shuffle. q93 at scale factor 10, 2026-11-28: 44.5 s of tasks less than its rows' bytes explain, for 39.6 s of
/// sorting. Least: a sort with one key, 1.1 s of which Faro's took as much. Most: a stage of q72, 6.5 s for 3.6 s.
pub const SORT_SECOND: CostRange = range(0.0, 1.1, 1.8);
/// A remote byte of wide rows, or of rows that Spark does not compress. B1: 0.29 s less on 2 cores for 404 MB.
pub const WIDE_REMOTE_BYTE: CostRange = range(0.5e-9, 1.2e-9, 1.7e-9);
/// A written byte of such rows. B1: no time less for 808 MB; its CPU profile says more.
pub const WIDE_BYTE_WRITTEN: CostRange = range(0.0, 0.1e-9, 0.7e-9);
/// A remote byte of other shuffles. Ladder, 64 KB to 16 MB.
pub const OTHER_REMOTE_BYTE: CostRange = range(0.0, 0.15e-9, 0.3e-9);

/// The part of a fetch that Faro may take away, by the mean size of remote blocks: 1 - Netty's throughput
/// by that of Faro tcp. Only the upper end of a range has it: on a network, a wait may be for the link, which
/// no shuffle changes.
pub const WAIT_SAVED: [(f64, f64); 5] = [
    (1024.0, 0.93),
    (4096.0, 0.87),
    (16384.0, 0.48),
    (65536.0, 0.32),
    (f64::INFINITY, 0.2),
];

/// The largest saving measured in a stage: the join of q93 at scale factor 10.
pub const MAX_STAGE_SHARE: f64 = 0.77;
/// Savings below this part of a job's time count as none: TPC-DS at scale factor 1 took 0.98 of stock
/// Spark's time, which is within the spread.
pub const NOTICEABLE: f64 = 0.04;
/// Operators that a shuffle does not change are named from this part of the tasks' time on.
pub const LARGE_PART: f64 = 0.25;
/// Bytes of a merge join's smaller side in a partition, as Spark compresses them, up to which a hash join is named: a
/// quarter of the threshold that was measured, because a partition may be larger than their mean.
pub const HASH_JOIN_PARTITION: u64 = 16 << 20;
/// What hash joins saved, from docs/benchmarks.md, "Hash joins in place of merge joins".
pub const HASH_JOIN_MEASURED: &str =
    "TPC-DS q93 at scale factor 3 took 6.1 s in place of 10.7 s with stock Spark, 3.5 s in place of 9.4 s with Faro";
