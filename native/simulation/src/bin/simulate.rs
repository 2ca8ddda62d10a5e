//! Runs seeds, several at a time, for `make simulate`; counts the connections of clusters.

use faro_simulation::{Cluster, HostConnections, MapOutputs, Profile, Seed};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const USAGE: &str =
    "simulate [--seeds N] [--from N] [--seed N] [--profile NAME] [--jobs N] [--all] [--twice]
simulate --hosts N [--executors N]
  --seeds N       how many seeds to run (default 10000)
  --from N        the first of them (default 0)
  --seed N        one seed, with a line for each step
  --profile NAME  the kind of run, instead of the one that each seed chooses
  --jobs N        seeds at a time (default: as many as there are processors)
  --all           go on after a seed has failed
  --twice         run each seed again and compare the traces
  --hosts N       the connections of one of N hosts, with and without node services
  --executors N   executors of each host (default 8)";

/// The options of the command.
#[derive(Default)]
struct SimulateOptions {
    seeds: Option<u64>,
    from: u64,
    seed: Option<u64>,
    profile: Option<Profile>,
    jobs: Option<u64>,
    all: bool,
    twice: bool,
    hosts: Option<u64>,
    executors: Option<u64>,
}

fn parse() -> Result<SimulateOptions, String> {
    let mut asked = SimulateOptions::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
        let number = |text: String| {
            let parsed = text.parse::<u64>();
            parsed.map_err(|_| format!("{name} {text:?} is not a number from 0 on"))
        };
        match name.as_str() {
            "--seeds" => asked.seeds = Some(number(value()?)?),
            "--from" => asked.from = number(value()?)?,
            "--seed" => asked.seed = Some(number(value()?)?),
            "--jobs" => asked.jobs = Some(number(value()?)?.max(1)),
            "--profile" => asked.profile = Some(profile(&value()?)?),
            "--hosts" => asked.hosts = Some(number(value()?)?),
            "--executors" => asked.executors = Some(number(value()?)?),
            "--all" => asked.all = true,
            "--twice" => asked.twice = true,
            other => return Err(format!("no option {other:?}\n{USAGE}")),
        }
    }
    Ok(asked)
}

fn profile(name: &str) -> Result<Profile, String> {
    let is_it = |profile: &Profile| format!("{profile:?}").eq_ignore_ascii_case(name);
    Profile::ALL
        .into_iter()
        .find(is_it)
        .ok_or(format!("no profile {name:?}; there are {:?}", Profile::ALL))
}

/// The sums over all runs of one profile.
#[derive(Default)]
struct Sum {
    seeds: u64,
    steps: u64,
    right: usize,
    failed: usize,
    slowest_healthy: Duration,
}

/// The state that all threads share.
struct SharedState {
    asked: SimulateOptions,
    outputs: MapOutputs,
    next: AtomicU64,
    end: u64,
    stop: AtomicBool,
    sums: Mutex<BTreeMap<Profile, Sum>>,
    failures: AtomicU64,
    begun: Instant,
}

fn main() -> ExitCode {
    match parse().and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(asked: SimulateOptions) -> Result<bool, String> {
    let outputs = MapOutputs::write().map_err(|error| format!("map outputs: {error}"))?;
    if let Some(hosts) = asked.hosts {
        return connections(hosts, asked.executors.unwrap_or(8), &outputs);
    }
    if let Some(seed) = asked.seed {
        let seed = Seed {
            seed,
            profile: asked.profile,
            prints: true,
        };
        let run = seed.run(&outputs);
        println!("{run:#?}");
        return Ok(run.is_ok());
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let jobs = asked.jobs.unwrap_or(cores);
    let shared = SharedState {
        next: AtomicU64::new(asked.from),
        end: asked.from + asked.seeds.unwrap_or(10_000),
        asked,
        outputs,
        stop: AtomicBool::new(false),
        sums: Mutex::default(),
        failures: AtomicU64::new(0),
        begun: Instant::now(),
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| work(&shared));
        }
    });
    Ok(sum_up(&shared))
}

/// A row of that table.
type ConnectionRow = (&'static str, fn(&HostConnections) -> usize);

/// Prints the connections of one of `hosts` hosts, and their registered memory over verbs, as a
/// table for a document.
fn connections(hosts: u64, executors: u64, outputs: &MapOutputs) -> Result<bool, String> {
    if !(2..=256).contains(&hosts) || !(1..=64).contains(&executors) {
        return Err(format!(
            "--hosts {hosts} --executors {executors}: 2 to 256 hosts, each with 1 to 64 executors"
        ));
    }
    let count = |services| {
        let cluster = Cluster {
            hosts: hosts as usize,
            executors: executors as usize,
            services,
            one_host: true,
        };
        cluster.count(outputs).map_err(|error| error.to_string())
    };
    let [direct, by_services] = [count(false)?, count(true)?];
    println!(
        "| {hosts} hosts with {executors} executors each | without services | with services |"
    );
    println!("|---|--:|--:|");
    let rows: [ConnectionRow; 4] = [
        ("connections of an executor", |c| c.executor),
        ("of these to other hosts", |c| c.executor_to_others),
        ("connections of a service", |c| c.service),
        ("connections of a host to other hosts", |c| c.host_to_others),
    ];
    for (name, of) in rows {
        println!("| {name} | {} | {} |", of(&direct), of(&by_services));
    }
    for (name, of) in [("an executor", rows[1].1), ("a host", rows[3].1)] {
        let mib = |c| HostConnections::registered_bytes(of(c)) as f64 / f64::from(1 << 20);
        println!(
            "| registered for those of {name} over RDMA, MiB | {:.1} | {:.1} |",
            mib(&direct),
            mib(&by_services)
        );
    }
    Ok(true)
}

fn work(shared: &SharedState) {
    while !shared.stop.load(Ordering::Relaxed) {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        if number >= shared.end {
            return;
        }
        let seed = Seed {
            profile: shared.asked.profile,
            ..Seed::new(number)
        };
        let report = seed.run(&shared.outputs).and_then(|report| {
            match shared.asked.twice && seed.run(&shared.outputs).as_ref() != Ok(&report) {
                true => Err(report.differs()),
                false => Ok(report),
            }
        });
        match report {
            Ok(report) => {
                let mut sums = faro_sync::lock(&shared.sums);
                let sum = sums.entry(report.profile).or_default();
                sum.seeds += 1;
                sum.steps += report.steps;
                sum.right += report.right;
                sum.failed += report.failed;
                sum.slowest_healthy = sum.slowest_healthy.max(report.slowest_healthy);
                let done: u64 = sums.values().map(|sum| sum.seeds).sum();
                if done % 500 == 0 {
                    let seconds = shared.begun.elapsed().as_secs();
                    eprintln!("{done} seeds in {seconds} s");
                }
            }
            Err(violation) => {
                let profile = match shared.asked.profile {
                    Some(profile) => format!(" PROFILE={profile:?}"),
                    None => String::new(),
                };
                println!(
                    "seed {number} ({violation})\n    again, step by step: make simulate SEED={number}{profile}"
                );
                shared.failures.fetch_add(1, Ordering::Relaxed);
                if !shared.asked.all {
                    shared.stop.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

fn sum_up(shared: &SharedState) -> bool {
    println!("profile         seeds      steps  right bytes  errors  slowest healthy request");
    let mut seeds = 0;
    for (profile, sum) in faro_sync::lock(&shared.sums).iter() {
        let (name, slowest) = (format!("{profile:?}"), sum.slowest_healthy.as_secs_f64());
        let Sum {
            steps,
            right,
            failed,
            ..
        } = sum;
        println!(
            "{name:<13} {:>7} {steps:>10} {right:>12} {failed:>7} {slowest:>12.3} s",
            sum.seeds
        );
        seeds += sum.seeds;
    }
    let failures = shared.failures.load(Ordering::Relaxed);
    let seconds = shared.begun.elapsed().as_secs();
    println!("{seeds} seeds passed and {failures} failed in {seconds} s");
    failures == 0
}
