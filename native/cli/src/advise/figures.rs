//! Figures of an application and its stages, added up as a log's events come.

use super::event::{JobStart, StageInfo, TaskEnd};
use super::spans::Union;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Stages, jobs and hosts beyond these are counted and left out, so that memory is bounded.
const MAX_STAGES: usize = 100_000;
const MAX_RUNNING_JOBS: usize = 100_000;
const MAX_GROUPS: usize = 1_000;
const MAX_HOSTS: usize = 10_000;
const MAX_NAME: usize = 160;

/// A stage with all its attempts.
#[derive(Debug, Default, Clone, Serialize)]
pub struct StageFigures {
    pub name: String,
    pub tasks: u64,
    pub failed_tasks: u64,
    pub run_ms: u64,
    pub cpu_ms: u64,
    pub gc_ms: u64,
    pub memory_spilled: u64,
    pub disk_spilled: u64,
    pub remote_blocks: u64,
    pub local_blocks: u64,
    pub remote_bytes: u64,
    pub local_bytes: u64,
    pub rows_read: u64,
    pub wait_ms: u64,
    /// From Spark 3.5.
    pub requests_ms: Option<u64>,
    pub bytes_written: u64,
    pub rows_written: u64,
    pub write_ms: f64,
    /// From what the stages read that follow: a log does not say how many blocks were written.
    pub blocks_written: f64,
    /// Spark SQL's rows, which Faro's own reader and writer serve.
    pub reads_rows: bool,
    pub writes_rows: bool,
    pub start: i64,
    pub end: i64,
    #[serde(skip)]
    pub parents: Vec<u64>,
    #[serde(skip)]
    pub rdd: Option<u64>,
    #[serde(skip)]
    pub group: Option<usize>,
}

impl StageFigures {
    pub fn shuffles(&self) -> bool {
        self.remote_blocks + self.local_blocks + self.bytes_written > 0
    }

    fn add(&mut self, task: &TaskEnd) {
        self.tasks += 1;
        self.failed_tasks += u64::from(task.info.failed);
        if task.info.launched > 0 && (self.start == 0 || task.info.launched < self.start) {
            self.start = task.info.launched;
        }
        self.end = self.end.max(task.info.finished);
        let Some(m) = &task.metrics else { return };
        self.run_ms += m.run_ms;
        self.cpu_ms += m.cpu_ns / 1_000_000;
        self.gc_ms += m.gc_ms;
        self.memory_spilled += m.memory_spilled;
        self.disk_spilled += m.disk_spilled;
        self.remote_blocks += m.read.remote_blocks;
        self.local_blocks += m.read.local_blocks;
        self.remote_bytes += m.read.remote_bytes;
        self.local_bytes += m.read.local_bytes;
        self.rows_read += m.read.rows;
        self.wait_ms += m.read.wait_ms;
        if let Some(millis) = m.read.requests_ms {
            *self.requests_ms.get_or_insert(0) += millis;
        }
        self.bytes_written += m.write.bytes;
        self.rows_written += m.write.rows;
        self.write_ms += m.write.write_ns as f64 / 1e6;
    }

    fn identify(&mut self, info: &StageInfo) {
        self.parents.clone_from(&info.parents);
        self.parents.truncate(1_000);
        self.rdd = info.rdd().or(self.rdd);
    }

    fn describe(&mut self, info: &StageInfo) {
        self.name = shortened(&info.name);
        self.identify(info);
        for rdd in &info.rdds {
            if rdd.name.starts_with("ShuffledRowRDD") {
                self.reads_rows = true;
            } else if rdd.scope.contains("\"name\":\"Exchange\"") {
                self.writes_rows = true;
            }
        }
        if let (Some(submitted), Some(completed)) = (info.submitted, info.completed) {
            self.start = match self.start {
                0 => submitted,
                start => start.min(submitted),
            };
            self.end = self.end.max(completed);
        }
    }
}

/// The jobs of one description or group, which the application gave them.
#[derive(Debug, Default, Clone)]
pub struct Group {
    pub name: String,
    pub jobs: u64,
    pub time: Union,
}

#[derive(Debug, Default)]
pub struct LoggedApplication {
    pub version: String,
    pub name: String,
    pub id: String,
    pub properties: BTreeMap<String, String>,
    pub executors: u64,
    pub cores: u64,
    pub hosts: HashSet<String>,
    pub jobs: u64,
    pub time: Union,
    pub ended: bool,
    pub stages: BTreeMap<u64, StageFigures>,
    pub groups: Vec<Group>,
    /// Tasks of stages beyond the most that are kept.
    pub tasks_left_out: u64,
    group_of_name: HashMap<String, usize>,
    running: HashMap<u64, (i64, Option<usize>)>,
}

/// The properties that the report looks at.
const KEPT: [&str; 11] = [
    "spark.master",
    "spark.shuffle.manager",
    "spark.plugins",
    "spark.shuffle.service.enabled",
    "spark.shuffle.push.enabled",
    "spark.shuffle.readHostLocalDisk",
    "spark.shuffle.compress",
    "spark.io.compression.codec",
    "spark.network.crypto.enabled",
    "spark.executor.cores",
    "spark.executor.memoryOverhead",
];

impl LoggedApplication {
    pub fn set_properties(&mut self, all: HashMap<String, String>) {
        let kept = all
            .into_iter()
            .filter(|(key, _)| KEPT.contains(&key.as_str()));
        self.properties = kept.map(|(key, value)| (key, shortened(&value))).collect();
    }

    pub fn property(&self, key: &str) -> &str {
        self.properties.get(key).map_or("", String::as_str)
    }

    pub fn add_executor(&mut self, host: String, cores: u64) {
        self.executors += 1;
        self.cores += cores;
        if self.hosts.len() < MAX_HOSTS {
            self.hosts.insert(host);
        }
    }

    pub fn start_job(&mut self, job: &JobStart) {
        self.jobs += 1;
        let given = |key| job.properties.as_ref().and_then(|p| p.get(key));
        let name = given("spark.job.description").or_else(|| given("spark.jobGroup.id"));
        let group = name.and_then(|name| self.group(&shortened(name)));
        for &stage in &job.stages {
            if let Some(stage) = self.stage(stage) {
                stage.group = stage.group.or(group);
            }
        }
        for info in &job.stage_infos {
            if let Some(stage) = self.stage(info.id) {
                stage.identify(info);
            }
        }
        if let Some(group) = group.and_then(|g| self.groups.get_mut(g)) {
            group.jobs += 1;
        }
        if self.running.len() < MAX_RUNNING_JOBS {
            self.running.insert(job.id, (job.submitted, group));
        }
    }

    pub fn end_job(&mut self, id: u64, at: i64) {
        let Some((from, group)) = self.running.remove(&id) else {
            return;
        };
        self.time.add(from, at);
        if let Some(group) = group.and_then(|g| self.groups.get_mut(g)) {
            group.time.add(from, at);
        }
    }

    pub fn add_task(&mut self, task: &TaskEnd) {
        match self.stage(task.stage) {
            Some(stage) => stage.add(task),
            None => self.tasks_left_out += 1,
        }
    }

    pub fn end_stage(&mut self, info: &StageInfo) {
        if let Some(stage) = self.stage(info.id) {
            stage.describe(info);
        }
    }

    /// Called when no event follows: jobs whose end is missing end with their last stage.
    pub fn finish(&mut self) {
        let last = self.stages.values().map(|s| s.end).max().unwrap_or(0);
        for (_, (from, group)) in std::mem::take(&mut self.running) {
            self.time.add(from, last);
            if let Some(group) = group.and_then(|g| self.groups.get_mut(g)) {
                group.time.add(from, last);
            }
        }
    }

    fn stage(&mut self, id: u64) -> Option<&mut StageFigures> {
        if self.stages.len() >= MAX_STAGES && !self.stages.contains_key(&id) {
            return None;
        }
        Some(self.stages.entry(id).or_default())
    }

    fn group(&mut self, name: &str) -> Option<usize> {
        if let Some(&found) = self.group_of_name.get(name) {
            return Some(found);
        }
        if self.groups.len() >= MAX_GROUPS {
            return None;
        }
        self.groups.push(Group {
            name: name.to_owned(),
            ..Group::default()
        });
        let index = self.groups.len() - 1;
        self.group_of_name.insert(name.to_owned(), index);
        Some(index)
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_NAME).collect()
}
