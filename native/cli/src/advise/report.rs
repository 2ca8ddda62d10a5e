//! The advice of one application: what its shuffles cost, what Faro would save, and the settings.

use super::answer;
use super::constants;
use super::figures::{LoggedApplication, StageFigures};
use super::merge_joins;
use super::model::{estimate, AdviceVerdict, Gain, Reason};
use super::problem::Problem;
use super::reader::LogContent;
use super::spans::{shares, WeightedSpan};
use super::units::{counted, percent};
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
    /// The file, or the first of a rolling log.
    pub log: String,
    pub application: String,
    pub id: String,
    pub spark: String,
    pub executors: u64,
    pub hosts: usize,
    pub cores: u64,
    pub jobs: u64,
    pub job_ms: i64,
    /// The part of that time in which stages ran that shuffle.
    pub shuffle_share: f64,
    /// Share of the time of all jobs in the log; 0 without an estimate.
    pub gain: Gain,
    pub verdict: AdviceVerdict,
    pub why: Reason,
    pub message: String,
    pub notes: Vec<String>,
    pub settings: Vec<String>,
    pub totals: StageFigures,
    pub stages: Vec<StageAdvice>,
    /// Number of shuffling stages that were dropped.
    #[serde(skip)]
    pub more_stages: usize,
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
        let mut stages = advised(&mut app, job_ms);
        let mut groups = grouped(&mut app, &stages, job_ms);
        let mut totals = StageFigures::default();
        let (mut gain, mut shuffle_share) = (Gain::default(), 0.0);
        for stage in &stages {
            totals.plus(&stage.figures);
            gain = gain.plus(stage.gain.times(stage.job_share));
            if stage.figures.shuffles() {
                shuffle_share += stage.job_share;
            }
        }
        let unfit = answer::unfit(&app);
        if unfit.is_some() {
            gain = Gain::default();
            for stage in &mut stages {
                (stage.gain, stage.reason) = (Gain::default(), Reason::Nothing);
            }
            groups.iter_mut().for_each(|g| g.gain = Gain::default());
        }
        let (verdict, why, message) = unfit.unwrap_or_else(|| match read.missing {
            Some(part) => answer::cannot_say(part, &totals, gain),
            None => answer::estimated(main_reason(&stages), &totals, gain),
        });
        let settings = match verdict {
            AdviceVerdict::Helps | AdviceVerdict::Perhaps => settings(&app),
            AdviceVerdict::CannotSay | AdviceVerdict::DoesNotHelp => Vec::new(),
        };
        Self {
            log: read.log,
            notes: notes(&app, &totals, &stages),
            application: app.name,
            id: app.id,
            spark: app.version,
            executors: app.executors,
            hosts: app.hosts.len(),
            cores: app.cores,
            jobs: app.jobs,
            job_ms,
            shuffle_share: f64::min(shuffle_share, 1.0),
            gain,
            verdict,
            why,
            message,
            settings,
            totals,
            stages,
            more_stages: 0,
            groups,
            in_progress: read.in_progress,
            problems: read.problems.first,
            more_problems: read.problems.more,
            measured: constants::MEASURED,
        }
    }

    /// Keeps the stages with most bytes of shuffle, in the order of their numbers. This bounds the
    /// memory of many logs.
    pub fn keep_largest(&mut self, max: usize) {
        let moved = |s: &StageAdvice| {
            let figures = &s.figures;
            figures.bytes_read().saturating_add(figures.bytes_written)
        };
        self.stages.retain(|s| s.figures.shuffles());
        self.stages.sort_by_key(|s| std::cmp::Reverse(moved(s)));
        self.more_stages = self.stages.len().saturating_sub(max);
        self.stages.truncate(max);
        self.stages.shrink_to_fit();
        self.stages.sort_by_key(|s| s.id);
        self.groups = Vec::new();
    }

    /// Milliseconds of the jobs that Faro is expected to save.
    pub fn saved_ms(&self) -> f64 {
        self.gain.expected * self.job_ms as f64
    }
}

/// The reason of the stages that save most together.
fn main_reason(stages: &[StageAdvice]) -> Reason {
    let saved_by = |reason| -> f64 {
        let stages = stages.iter().filter(|stage| stage.reason == reason);
        stages.map(|s| s.gain.expected * s.job_share).sum()
    };
    let reasons = [
        Reason::SmallBlocks,
        Reason::RowStreams,
        Reason::Sorts,
        Reason::Bytes,
    ];
    reasons
        .into_iter()
        .max_by(|a, b| saved_by(*a).total_cmp(&saved_by(*b)))
        .unwrap_or(Reason::Nothing)
}

fn advised(app: &mut LoggedApplication, job_ms: i64) -> Vec<StageAdvice> {
    let interval = |stage: &StageFigures| WeightedSpan {
        from: stage.start,
        to: stage.end,
        weight: stage.run_ms.saturating_mul(1_000)
            / u64::try_from(stage.end - stage.start).unwrap_or(1).max(1),
    };
    let intervals: Vec<WeightedSpan> = app.stages.values().map(interval).collect();
    let millis = shares(&intervals);
    let compressed = app.properties.get("spark.shuffle.compress") != "false";
    let stages = std::mem::take(&mut app.stages).into_iter().zip(millis);
    let advice = stages.map(|((id, figures), millis)| {
        let (gain, reason) = estimate(&figures, compressed);
        StageAdvice {
            id,
            wall_ms: (figures.end - figures.start).max(0),
            job_share: (millis / job_ms.max(1) as f64).clamp(0.0, 1.0),
            gain,
            reason,
            figures,
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

fn notes(app: &LoggedApplication, totals: &StageFigures, stages: &[StageAdvice]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |text: &str| notes.push(text.to_owned());
    if app.properties.get("spark.shuffle.push.enabled") == "true" {
        note("push-based shuffle: merged blocks come from the shuffle service, without Faro");
    }
    if app.hosts.len() == 1 && app.executors > 1 {
        note("all executors were on one host: with several hosts, more blocks are remote");
    }
    if app.properties.get("spark.network.crypto.enabled") == "true" {
        note("the run was encrypted: Spark's encryption costs more than the estimate has (docs/benchmarks.md)");
    }
    if app.tasks_left_out > 0 {
        notes.push(format!(
            "{} of stages beyond the first 100,000 are not in the figures",
            counted(app.tasks_left_out, "task")
        ));
    }
    let sorts = stages.iter().filter(|stage| !stage.figures.reads_rows);
    let elsewhere = sorts.map(|stage| stage.figures.sort_ms).sum();
    notes.extend(in_operators(totals, elsewhere));
    let figures = stages.iter().map(|stage| (stage.id, &stage.figures));
    notes.extend(merge_joins::note(figures, totals));
    notes
}

/// What neither a shuffle nor a sort behind it can change, if it is a large part of the tasks' time.
fn in_operators(totals: &StageFigures, sorts_elsewhere: u64) -> Option<String> {
    let part = |millis: u64| (millis as f64 / totals.run_ms.max(1) as f64).min(1.0);
    let (sorts, scans) = (part(sorts_elsewhere), part(totals.scan_ms));
    (sorts + scans >= constants::LARGE_PART).then(|| {
        let sorting = match sorts >= constants::NOTICEABLE {
            true => format!(
                " and sorting of what no shuffle brought ({})",
                percent(sorts)
            ),
            false => String::new(),
        };
        format!(
            "Faro does not change reading tables ({} of the tasks' time){sorting}",
            percent(scans)
        )
    })
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
