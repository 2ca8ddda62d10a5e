//! The result as a table or as JSON.

use super::args::{PolicyName, SimArgs};
use super::stats::PolicyFigures;
use super::units::{Picos, SECOND};
use crate::units::show;
use serde_json::{json, Map, Value};
use std::io::{self, Write};

pub fn name(policy: PolicyName) -> &'static str {
    match policy {
        PolicyName::Grouped => "grouped",
        PolicyName::Rotated => "rotated",
        PolicyName::Random => "random",
        PolicyName::Sequential => "sequential",
    }
}

pub fn json(
    out: &mut impl Write,
    args: &SimArgs,
    ideal: Picos,
    all: &[PolicyFigures],
) -> io::Result<()> {
    let seconds = |t: Picos| t as f64 / SECOND as f64;
    let policies: Map<String, Value> = all
        .iter()
        .map(|f| (name(f.policy).to_owned(), json!(f)))
        .collect();
    let result = json!({
        "endpoints": args.endpoints,
        "ideal_s": seconds(ideal),
        "policies": policies,
        "speedup_over_random": speedup(all),
        "model": {
            "bytes_per_endpoint": args.bytes_per_endpoint,
            "link_bits_per_s": args.link,
            "latency_s": seconds(args.latency),
            "window_bytes": args.window,
            "packet_bytes": args.packet,
            "buffer_bytes": args.buffer,
            "overflow": args.overflow,
            "rto_s": seconds(args.rto),
            "in_flight_bytes": args.in_flight,
            "max_peers": args.max_peers,
            "post_s": seconds(args.post),
            "op_bytes": args.op_size,
            "verb": args.verb,
            "queue_pairs_per_peer": args.qps_per_peer,
            "stragglers": args.stragglers,
            "slowdown": args.slowdown,
            "pair_skew": args.pair_skew,
            "reader_skew": args.reader_skew,
            "jitter_s": seconds(args.jitter),
            "seed": args.seed,
        },
    });
    serde_json::to_writer_pretty(&mut *out, &result)?;
    writeln!(out)
}

/// Random's completion time divided by each other policy's.
fn speedup(all: &[PolicyFigures]) -> Value {
    let Some(random) = all.iter().find(|f| f.policy == PolicyName::Random) else {
        return Value::Null;
    };
    let others = all.iter().filter(|f| f.policy != PolicyName::Random);
    let of = |f: &PolicyFigures| json!(random.completion_s / f.completion_s);
    Value::Object(others.map(|f| (name(f.policy).to_owned(), of(f))).collect())
}

pub fn table(
    out: &mut impl Write,
    args: &SimArgs,
    ideal: Picos,
    all: &[PolicyFigures],
) -> io::Result<()> {
    writeln!(
        out,
        "{} endpoints, {} each at {} Gbit/s, buffer {} per port; lower bound {:.2} ms",
        args.endpoints,
        show(args.bytes_per_endpoint),
        args.link as f64 / 1e9,
        show(args.buffer),
        ideal as f64 / 1e9,
    )?;
    writeln!(
        out,
        "{:<12}{:>12}{:>11}{:>9}{:>9}{:>9}{:>11}{:>11}{:>9}",
        "policy",
        "complete ms",
        "mean ms",
        "of link",
        "peers",
        "fan-in",
        "queue prs",
        "overflows",
        "lost %"
    )?;
    for f in all {
        let lost = 100.0 * f.lost_bytes as f64 / f.received_bytes.max(1) as f64;
        writeln!(
            out,
            "{:<12}{:>12.2}{:>11.2}{:>8.0}%{:>9}{:>9}{:>11}{:>11}{:>9.2}",
            name(f.policy),
            f.completion_s * 1e3,
            f.mean_completion_s * 1e3,
            f.efficiency * 1e2,
            f.peak_active_peers,
            f.peak_fan_in,
            f.peak_active_queue_pairs,
            f.buffer_overflows,
            lost,
        )?;
    }
    Ok(())
}
