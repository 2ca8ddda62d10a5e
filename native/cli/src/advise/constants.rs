//! Measured savings: the only table of constants of the model. docs/advise.md has the same.
//!
//! From docs/benchmarks.md: "Spark workloads" (Spark 4.3.0, Faro 64526d9, 2026-11-25), side "Faro" against
//! "stock Spark"; "Transport ladder" (Faro 9c2a235, 2026-11-21), 8 clients, Faro tcp against Netty; "TPC-DS
//! queries" (Faro 435d1c7, 2026-11-23) for what is not told from nothing; and "Scale factor 10" (Faro fbd4388,
//! 2026-11-25), whose queries run once, in code that the JVM has just compiled, for the upper end of a row.

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
    "docs/benchmarks.md: Spark workloads at 64526d9, ladder at 9c2a235, TPC-DS at 435d1c7 and fbd4388";

/// A block that a task of Spark SQL reads, local ones too. A1: the stage that reads took 2.25 s less on
/// 2 cores for 160,000 blocks; M600x200 and R3000 of "Many tiny tasks" have the ends.
pub const ROW_BLOCK_READ: CostRange = range(15e-6, 28e-6, 45e-6);
/// A block that a task of Spark SQL writes. A1: the other stage took 0.77 s less on 2 cores.
pub const ROW_BLOCK_WRITTEN: CostRange = range(5e-6, 10e-6, 40e-6);
/// A remote block of other shuffles, for which only the transport changes. Ladder, A1 and 1 KB: 21 µs of
/// CPU at both ends; "Faro, Spark's reader" saves 24 µs in A1.
pub const OTHER_REMOTE_BLOCK: CostRange = range(10e-6, 20e-6, 24e-6);
/// A row that Spark SQL reads. The stages that read took on 2 cores: B2 0.84 s less for 24 million rows, S 0.24 s
/// for 4 million, J 1.13 s for 9 million. Upper end: q78 at scale factor 10, 35 s of tasks less for 54 million
/// rows read and written; q14a, 35 s for 63 million.
pub const ROW_READ: CostRange = range(50e-9, 120e-9, 250e-9);
/// A row that Spark SQL writes. The other stages took on 2 cores: B2 0.96 s less for 24 million rows, S and J 0.05
/// and 0.08 s for 4 and 9 million. Upper end as for reading.
pub const ROW_WRITTEN: CostRange = range(20e-9, 80e-9, 400e-9);
/// A remote byte that Spark SQL reads. B1: 0.29 s less on 2 cores for 404 MB.
pub const ROW_REMOTE_BYTE: CostRange = range(0.5e-9, 1.2e-9, 1.7e-9);
/// A byte that Spark SQL writes. B1: no time less for 808 MB; its CPU profile says more.
pub const ROW_BYTE_WRITTEN: CostRange = range(0.0, 0.1e-9, 0.7e-9);
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

/// No stage of a workload lost more of its time than B2's that reads.
pub const MAX_STAGE_SHARE: f64 = 0.7;
/// Below this part of a job's time nothing is promised: TPC-DS at scale factor 1, with 0.98 of stock
/// Spark's time, lay within its spread.
pub const NOTICEABLE: f64 = 0.04;
