//! The advice of one application: what its shuffles cost, what Faro would save, and the settings.

use super::constants;
use super::figures::{LoggedApplication, StageFigures};
use super::model::{estimate, Gain, Reason, StageVerdict};
use super::reader::{LogContent, Problem};
use super::spans::{shares, Weighted};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct StageAdvice {
    pub id: u64,
    #[serde(flatten)]
    pub figures: StageFigures,
    pub wall_ms: i64,
    /// The part of the time of all jobs that is this stage's, when stages ran at once.
    pub job_share: f64,
    /// Share of the stage's time.
    pub gain: Gain,
    pub reason: Reason,
}

#[derive(Debug, Serialize)]
pub struct GroupAdvice {
    pub name: String,
    pub jobs: u64,
    pub job_ms: i64,
    /// Share of the time of these jobs.
    pub gain: Gain,
}

#[derive(Debug, Serialize)]
pub struct Advice {
    pub application: String,
    pub id: String,
    pub spark: String,
    pub executors: u64,
    pub hosts: usize,
    pub cores: u64,
    pub jobs: u64,
    pub job_ms: i64,
    /// Share of the time of all jobs; 0 where Faro cannot be used.
    pub gain: Gain,
    pub verdict: StageVerdict,
    pub message: String,
    pub notes: Vec<String>,
    pub settings: Vec<String>,
    pub totals: StageFigures,
    pub stages: Vec<StageAdvice>,
    pub groups: Vec<GroupAdvice>,
    pub in_progress: bool,
    pub problems: Vec<Problem>,
    pub more_problems: u64,
    pub measured: &'static str,
}

impl Advice {
    pub fn of(read: LogContent) -> Self {
        let mut app = read.application;
        let job_ms = app.time.millis();
        let mut stages = advised(&app, job_ms);
        let mut groups = grouped(&mut app, &stages, job_ms);
        let mut totals = StageFigures::default();
        for stage in &stages {
            add(&mut totals, &stage.figures);
        }
        let mut gain = stages.iter().fold(Gain::default(), |sum, stage| {
            sum.plus(stage.gain.times(stage.job_share))
        });
        let mut notes = notes(&app);
        let unfit = unfit(&app);
        if unfit.is_some() {
            gain = Gain::default();
            for stage in &mut stages {
                (stage.gain, stage.reason) = (Gain::default(), Reason::Nothing);
            }
            groups.iter_mut().for_each(|g| g.gain = Gain::default());
        }
        let verdict = StageVerdict::of(gain);
        let message = match (unfit, verdict) {
            (Some(why), _) => why,
            (None, StageVerdict::Helps) => {
                format!("Faro would help: {} of the jobs' time", saved(gain))
            }
            (None, StageVerdict::Perhaps) => {
                format!("Faro may help: {} of the jobs' time", saved(gain))
            }
            (None, StageVerdict::DoesNotHelp) => {
                format!("Faro would not help here: {}", why_not(&totals, gain))
            }
        };
        if app.tasks_left_out > 0 {
            notes.push(format!(
                "{} tasks of stages beyond the first 100,000 are not in the figures",
                app.tasks_left_out
            ));
        }
        let settings = match verdict {
            StageVerdict::DoesNotHelp => Vec::new(),
            _ => settings(&app),
        };
        Self {
            application: app.name,
            id: app.id,
            spark: app.version,
            executors: app.executors,
            hosts: app.hosts.len(),
            cores: app.cores,
            jobs: app.jobs,
            job_ms,
            gain,
            verdict,
            message,
            notes,
            settings,
            totals,
            stages,
            groups,
            in_progress: read.in_progress,
            problems: read.problems,
            more_problems: read.more_problems,
            measured: constants::MEASURED,
        }
    }
}

fn advised(app: &LoggedApplication, job_ms: i64) -> Vec<StageAdvice> {
    let interval = |stage: &StageFigures| Weighted {
        from: stage.start,
        to: stage.end,
        weight: stage.run_ms as f64 / (stage.end - stage.start).max(1) as f64,
    };
    let intervals: Vec<Weighted> = app.stages.values().map(interval).collect();
    let millis = shares(&intervals);
    let compressed = app.property("spark.shuffle.compress") != "false";
    let advice = app
        .stages
        .iter()
        .zip(millis)
        .map(|((&id, figures), millis)| {
            let (gain, reason) = estimate(figures, compressed);
            StageAdvice {
                id,
                wall_ms: figures.end - figures.start,
                job_share: (millis / job_ms.max(1) as f64).min(1.0),
                gain,
                reason,
                figures: figures.clone(),
            }
        });
    advice.collect()
}

fn grouped(app: &mut LoggedApplication, stages: &[StageAdvice], job_ms: i64) -> Vec<GroupAdvice> {
    let mut gains = vec![Gain::default(); app.groups.len()];
    for stage in stages {
        if let Some(sum) = stage.figures.group.and_then(|g| gains.get_mut(g)) {
            *sum = sum.plus(stage.gain.times(stage.job_share * job_ms as f64));
        }
    }
    let groups = app.groups.iter_mut().zip(gains).map(|(group, gain)| {
        let millis = group.time.millis();
        GroupAdvice {
            name: group.name.clone(),
            jobs: group.jobs,
            job_ms: millis,
            gain: gain.times(1.0 / millis.max(1) as f64),
        }
    });
    groups.collect()
}

fn add(sum: &mut StageFigures, stage: &StageFigures) {
    sum.tasks += stage.tasks;
    sum.failed_tasks += stage.failed_tasks;
    sum.run_ms += stage.run_ms;
    sum.cpu_ms += stage.cpu_ms;
    sum.gc_ms += stage.gc_ms;
    sum.memory_spilled += stage.memory_spilled;
    sum.disk_spilled += stage.disk_spilled;
    sum.remote_blocks += stage.remote_blocks;
    sum.local_blocks += stage.local_blocks;
    sum.remote_bytes += stage.remote_bytes;
    sum.local_bytes += stage.local_bytes;
    sum.rows_read += stage.rows_read;
    sum.wait_ms += stage.wait_ms;
    if let Some(millis) = stage.requests_ms {
        *sum.requests_ms.get_or_insert(0) += millis;
    }
    sum.bytes_written += stage.bytes_written;
    sum.rows_written += stage.rows_written;
    sum.write_ms += stage.write_ms;
    sum.blocks_written += stage.blocks_written;
}

/// `5 to 12 %`.
pub fn saved(gain: Gain) -> String {
    let (low, high) = (100.0 * gain.low, 100.0 * gain.high);
    format!("{low:.0} to {high:.0} %")
}

fn why_not(totals: &StageFigures, gain: Gain) -> String {
    if !totals.shuffles() {
        "the application has no shuffle".to_owned()
    } else if gain.high < constants::NOTICEABLE {
        let max = (100.0 * gain.high).ceil().max(1.0);
        format!("its shuffles cost too little; at most {max:.0} % of the jobs' time could be saved")
    } else {
        format!(
            "no gain can be promised; {:.0} % of the jobs' time only if its tasks wait for something \
             that Faro changes",
            100.0 * gain.high
        )
    }
}

/// Returns the reason that the estimate does not hold for this application.
fn unfit(app: &LoggedApplication) -> Option<String> {
    let manager = app.property("spark.shuffle.manager");
    let faro = |value: &str| value.contains("io.faro.spark");
    if faro(manager) || faro(app.property("spark.plugins")) {
        return Some(
            "This run used Faro already: the estimate needs the log of a run without it".to_owned(),
        );
    }
    if !["", "sort", "tungsten-sort"].contains(&manager)
        && !manager.ends_with(".SortShuffleManager")
    {
        return Some(format!(
            "No estimate: the run used another shuffle, spark.shuffle.manager={manager}, and the \
             measurements are against Spark's own; docs/compatibility.md says how Faro works behind it"
        ));
    }
    let master = app.property("spark.master");
    if master == "local" || master.starts_with("local[") {
        return Some("Faro would not help here: in local mode no block is remote".to_owned());
    }
    None
}

fn notes(app: &LoggedApplication) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |text: &str| notes.push(text.to_owned());
    if app.property("spark.shuffle.push.enabled") == "true" {
        note("push-based shuffle: merged blocks come from the shuffle service, without Faro");
    }
    if app.hosts.len() == 1 && app.executors > 1 {
        note("all executors were on one host: with several hosts, more blocks are remote");
    }
    if app.property("spark.network.crypto.enabled") == "true" {
        note("the run was encrypted: Spark's encryption costs more than the estimate has (docs/benchmarks.md)");
    }
    notes
}

fn settings(app: &LoggedApplication) -> Vec<String> {
    let mut settings = vec![
        "--conf spark.shuffle.manager=io.faro.spark.FaroShuffleManager".to_owned(),
        "--jars faro-spark.jar".to_owned(),
    ];
    if app.version.starts_with("3.") {
        settings.push("--driver-class-path /path/to/faro-spark.jar".to_owned());
        settings.push("--conf spark.executor.extraClassPath=/path/to/faro-spark.jar".to_owned());
    }
    settings
}
