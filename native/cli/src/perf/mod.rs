//! `faro perf`: bandwidth and latency of a fabric alone, between two processes.
//!
//! It drives [`faro_fabric::Fabric`] as an endpoint does, without requests, blocks and checksums. The
//! difference to another tool's figures is the cost of the fabric; the difference to a Spark job's is
//! the cost of the endpoint and Spark. An operation has at most the bytes of one lease (256 KiB), as
//! in a shuffle; a longer transfer is several operations. Counters of both sides show how many work
//! requests, completions, wake-ups and system calls a transfer takes.

pub(crate) mod args;
pub(crate) mod client;
mod client_group;
pub(crate) mod protocol;
pub(crate) mod report;
pub(crate) mod server;
mod server_link;
pub(crate) mod site;

pub use args::PerfArgs;

use crate::CliError;
use args::{ClientArgs, PerfSide};
use client_group::ClientGroup;
use faro_fabric::{CloseReason, FabricError, Outcome};
use faro_pool::PoolError;
use indicatif::{ProgressBar, ProgressStyle};
use protocol::PerfJob;
use report::ReportRow;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    #[error(transparent)]
    Fabric(#[from] FabricError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error("{0}")]
    Closed(CloseReason),
    #[error("the server refused the test: {why}")]
    Refused { why: String },
    #[error("{what} was not accepted: {why}")]
    Rejected { what: &'static str, why: String },
    #[error("a {what} ended as {outcome:?}: the server no longer exposes its memory")]
    Ended {
        what: &'static str,
        outcome: Outcome,
    },
    #[error("no {what} within {after:?}; a larger --timeout waits longer")]
    Late { what: &'static str, after: Duration },
    #[error(
        "{depth} reads of {size} bytes need {need} bytes, more than half of --memory {memory}; lower \
         --depth or raise --memory"
    )]
    TooDeep {
        size: usize,
        depth: usize,
        need: u64,
        memory: u64,
    },
    #[error("{location:?} is not an IP:PORT such as 10.0.0.1:7001")]
    Location { location: String },
    #[error("no route to {target}: {source}")]
    Route {
        target: SocketAddr,
        source: io::Error,
    },
    #[error("cannot read a message of kind {kind:#x}: {source}; client and server must have the same version")]
    Body { kind: u8, source: serde_json::Error },
    #[error("cannot create the latency histogram: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error("the thread of client {number} ended without a result")]
    Gone { number: usize },
}

pub fn run(args: &PerfArgs, out: &mut impl Write) -> Result<(), CliError> {
    match &args.side {
        PerfSide::Server(args) => server::run(args, out),
        PerfSide::Client(args) => {
            let rows = measure(args)?;
            if args.json {
                report::json(out, args, &rows)?;
            } else {
                report::table(out, &rows)?;
            }
            Ok(())
        }
    }
}

/// Runs all measurements round by round, so that a disturbance affects few rounds of each.
fn measure(args: &ClientArgs) -> Result<Vec<ReportRow>, PerfError> {
    let clients = ClientGroup::connect(args)?;
    let mut rows = Vec::new();
    for &mode in &args.mode {
        for &operation in &args.operation {
            for &size in &args.size {
                let job = PerfJob {
                    operation,
                    mode,
                    size,
                };
                rows.push(ReportRow::new(job)?);
            }
        }
    }
    let rounds = rows.len() as u32 * args.rounds;
    let bar = progress(args.seconds * rounds);
    for _ in 0..args.rounds {
        for row in &mut rows {
            bar.set_message(row.title());
            let (round, latencies) = clients.round(row.job, &bar)?;
            row.add(&round, &latencies);
        }
    }
    bar.finish_and_clear();
    Ok(rows)
}

/// A progress bar in milliseconds of measuring; hidden unless standard error is a terminal.
fn progress(length: Duration) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:<28} {bar:40} {percent:>3}% {eta}");
    ProgressBar::new(length.as_millis() as u64)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
