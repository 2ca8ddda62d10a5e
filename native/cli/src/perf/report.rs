//! The result as a table or as JSON.

use super::args::{ClientArgs, PerfMode, PerfOperation};
use super::client::RoundResult;
use super::protocol::{CounterValues, PerfJob};
use super::PerfError;
use hdrhistogram::Histogram;
use serde_json::{json, Map, Value};
use std::io::{self, Write};

/// The counters that are shown for each transfer.
const COST: [&str; 7] = [
    "posts",
    "work_requests",
    "completions",
    "wakeups",
    "poll_calls",
    "send_calls",
    "receive_calls",
];
const MICROSECOND: f64 = 1e3;

/// A histogram for latencies in nanoseconds, up to an hour.
pub fn latencies() -> Result<Histogram<u64>, PerfError> {
    Ok(Histogram::new_with_bounds(1, 3_600_000_000_000, 3)?)
}

/// All rounds of a job.
pub struct ReportRow {
    pub job: PerfJob,
    transfers: Vec<f64>,
    /// Median latency of each round, in microseconds.
    medians: Vec<f64>,
    latencies: Histogram<u64>,
    all: u64,
    grew: [CounterValues; 2],
}

impl ReportRow {
    pub fn new(job: PerfJob) -> Result<Self, PerfError> {
        Ok(Self {
            job,
            transfers: Vec::new(),
            medians: Vec::new(),
            latencies: latencies()?,
            all: 0,
            grew: Default::default(),
        })
    }

    pub fn title(&self) -> String {
        let PerfJob {
            operation,
            mode,
            size,
        } = self.job;
        format!("{} {} {size}", verb(operation), kind(mode))
    }

    pub fn add(&mut self, round: &RoundResult, latencies: &Histogram<u64>) {
        self.all += round.transfers;
        self.transfers.push(round.transfers as f64 / round.seconds);
        if !latencies.is_empty() {
            let median = latencies.value_at_quantile(0.5) as f64;
            self.medians.push(median / MICROSECOND);
            // Cannot fail: both histograms have the same bounds.
            self.latencies += latencies;
        }
        for (sum, grew) in self.grew.iter_mut().zip(&round.grew) {
            for (name, value) in grew {
                *sum.entry(name.clone()).or_default() += value;
            }
        }
    }

    fn per_transfer(&self, side: usize, name: &str) -> Option<f64> {
        let count = self.grew.get(side)?.get(name)?;
        (self.all > 0).then(|| *count as f64 / self.all as f64)
    }

    fn quantile(&self, quantile: f64) -> f64 {
        self.latencies.value_at_quantile(quantile) as f64 / MICROSECOND
    }

    fn json(&self) -> Value {
        let bytes = self.job.size as f64;
        let rates: Vec<f64> = self
            .transfers
            .iter()
            .map(|rate| rate * bytes / 1e6)
            .collect();
        let sides: Vec<Map<String, Value>> = (0..2)
            .map(|side| {
                COST.iter()
                    .filter_map(|name| Some((*name, self.per_transfer(side, name)?)))
                    .map(|(name, value)| (name.to_owned(), json!(value)))
                    .collect()
            })
            .collect();
        let latency = (!self.latencies.is_empty()).then(|| {
            json!({
                "rounds_median": self.medians,
                "min": self.quantile(0.0),
                "p50": self.quantile(0.5),
                "p90": self.quantile(0.9),
                "p99": self.quantile(0.99),
                "p999": self.quantile(0.999),
                "max": self.quantile(1.0),
            })
        });
        json!({
            "operation": self.job.operation,
            "mode": self.job.mode,
            "size": self.job.size,
            "transfers": self.all,
            "transfers_per_second": median(&self.transfers),
            "mb_per_second": median(&rates),
            "rounds_mb_per_second": rates,
            "latency_us": latency,
            "client_per_transfer": sides.first(),
            "server_per_transfer": sides.get(1),
        })
    }
}

pub fn json(out: &mut impl Write, args: &ClientArgs, rows: &[ReportRow]) -> io::Result<()> {
    let result = json!({
        "fabric": args.fabric.fabric,
        "location": args.location,
        "clients": args.clients,
        "depth": args.depth,
        "seconds": args.seconds.as_secs_f64(),
        "rounds": args.rounds,
        "spin": args.fabric.spin,
        "rows": rows.iter().map(ReportRow::json).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &result).map_err(io::Error::from)?;
    writeln!(out)
}

pub fn table(out: &mut impl Write, rows: &[ReportRow]) -> io::Result<()> {
    let (flows, trips): (Vec<&ReportRow>, Vec<&ReportRow>) = rows
        .iter()
        .partition(|row| row.job.mode == PerfMode::Bandwidth);
    if !flows.is_empty() {
        writeln!(
            out,
            "{:<9} {:>9} {:>10} {:>21} {:>12}",
            "bandwidth", "bytes", "MB/s", "least - most", "transfers/s"
        )?;
    }
    for row in &flows {
        let scale = row.job.size as f64 / 1e6;
        let (min, max) = bounds(&row.transfers);
        writeln!(
            out,
            "{:<9} {:>9} {:>10.1} {:>10.1} - {:>8.1} {:>12.0}",
            verb(row.job.operation),
            row.job.size,
            median(&row.transfers) * scale,
            min * scale,
            max * scale,
            median(&row.transfers)
        )?;
    }
    if !trips.is_empty() {
        writeln!(
            out,
            "{:<9} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "latency", "bytes", "p50 us", "p90", "p99", "p99.9", "most"
        )?;
    }
    for row in &trips {
        write!(out, "{:<9} {:>9}", verb(row.job.operation), row.job.size)?;
        for quantile in [0.5, 0.9, 0.99, 0.999, 1.0] {
            write!(out, " {:>10.1}", row.quantile(quantile))?;
        }
        writeln!(out)?;
    }
    write!(out, "{:<28} {:<6}", "per transfer", "side")?;
    for name in COST {
        write!(out, " {name:>13}")?;
    }
    writeln!(out)?;
    for row in rows {
        for (side, name) in ["client", "server"].iter().enumerate() {
            let title = if side == 0 {
                row.title()
            } else {
                String::new()
            };
            write!(out, "{title:<28} {name:<6}")?;
            for counter in COST {
                match row.per_transfer(side, counter) {
                    Some(value) => write!(out, " {value:>13.2}")?,
                    None => write!(out, " {:>13}", "-")?,
                }
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn verb(operation: PerfOperation) -> &'static str {
    match operation {
        PerfOperation::Write => "write",
        PerfOperation::Read => "read",
        PerfOperation::Message => "message",
    }
}

fn kind(mode: PerfMode) -> &'static str {
    match mode {
        PerfMode::Bandwidth => "bandwidth",
        PerfMode::Latency => "latency",
    }
}

fn bounds(values: &[f64]) -> (f64, f64) {
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    (min, values.iter().copied().fold(0.0, f64::max))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (Some(high), 0) => (high + sorted.get(middle - 1).unwrap_or(high)) / 2.0,
        (Some(value), _) => *value,
        (None, _) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(bounds(&[2.0, 1.0, 3.0]), (1.0, 3.0));
    }
}
