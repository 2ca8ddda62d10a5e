//! `faro sim`: simulates a shuffle of many endpoints under each policy. `engine` and `model` hold the
//! model; docs/design/scaling.md lists its limits.

mod args;
mod engine;
mod events;
mod flows;
mod model;
mod policy;
mod report;
mod stats;
mod units;

#[cfg(test)]
mod validation;

pub use args::SimArgs;

use crate::CliError;
use engine::Engine;
use faro_exchange::{ExchangeError, Policy};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::Model;
use policy::PolicyFetch;
use stats::PolicyFigures;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;
use std::thread;
use units::Picos;

#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error(transparent)]
    Schedule(#[from] ExchangeError),
    #[error(
        "a pair of endpoints exchanges {bytes} bytes, more than 65535 requests of {request} bytes; \
         raise --in-flight or lower --bytes-per-endpoint"
    )]
    TooManyRequests { bytes: u64, request: u64 },
}

pub fn run(args: &SimArgs, out: &mut impl Write) -> Result<(), CliError> {
    if args.groups {
        return groups(args, out);
    }
    let model = Model::new(args);
    let ideal = model.ideal();
    let all = simulate(args, &model, ideal)?;
    if args.json {
        report::json(out, args, ideal, &all)?;
    } else {
        report::table(out, args, ideal, &all)?;
    }
    Ok(())
}

/// Runs the policies in parallel, at most one per processor; the result does not depend on their
/// number.
fn simulate(args: &SimArgs, model: &Model, ideal: Picos) -> Result<Vec<PolicyFigures>, SimError> {
    let bars = match io::stderr().is_terminal() {
        true => MultiProgress::new(),
        false => MultiProgress::with_draw_target(ProgressDrawTarget::hidden()),
    };
    let one = |policy| {
        let total = args.bytes_per_endpoint * u64::from(args.endpoints);
        let bar = ProgressBar::new(total).with_message(report::name(policy));
        let style = ProgressStyle::with_template("{msg:<11} {bar:40} {percent:>3}% {eta}");
        let bar = bars.add(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())));
        let fetch = PolicyFetch::new(policy, args, model)?;
        let stats = Engine::new(model, &fetch).run(|bytes| bar.set_position(bytes));
        bar.finish_and_clear();
        Ok(PolicyFigures::new(policy, &stats, ideal, args.qps_per_peer))
    };
    let workers = thread::available_parallelism().map_or(1, |n| n.get());
    let workers = workers.min(args.policies.len());
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<Result<PolicyFigures, SimError>>> =
        args.policies.iter().map(|_| OnceLock::new()).collect();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let take = || next.fetch_add(1, Relaxed);
                let turn = |i| args.policies.get(i).zip(results.get(i));
                while let Some((&policy, result)) = turn(take()) {
                    result.get_or_init(|| one(policy));
                }
            });
        }
    });
    results
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect()
}

/// The groups of each round, one round per line; members of a group in issue order.
fn groups(args: &SimArgs, out: &mut impl Write) -> Result<(), CliError> {
    let schedule = policy::schedule(args.endpoints as usize, args.seed, Policy::Grouped)?;
    let rounds: Vec<_> = (0..schedule.rounds()).map(|r| schedule.groups(r)).collect();
    if args.json {
        let result = serde_json::json!({
            "endpoints": args.endpoints,
            "epoch": args.seed,
            "local_round": schedule.local_round(),
            "rounds": rounds,
        });
        serde_json::to_writer(&mut *out, &result).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(());
    }
    for (r, groups) in rounds.iter().enumerate() {
        write!(out, "round {r}:")?;
        for group in groups {
            let members: Vec<String> = group.iter().map(usize::to_string).collect();
            write!(out, "  {{{}}}", members.join(" "))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
