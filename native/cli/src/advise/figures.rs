//! Figures of an application and its stages, added up as a log's events come.

use super::bounded::{KeptProperties, DESCRIPTION, GROUP, MAX_ALL_PARENTS, MAX_STAGES};
use super::event::{JobStart, StageInfo, TaskEnd};
use super::spans::Union;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Jobs and hosts beyond these are counted and left out, so that memory is bounded, as beyond `MAX_STAGES`.
const MAX_RUNNING_JOBS: usize = 100_000;
const MAX_GROUPS: usize = 1_000;
const MAX_HOSTS: usize = 10_000;

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
    /// In Spark SQL's operators, by their metrics.
    pub sort_ms: u64,
    pub scan_ms: u64,
    /// From the reads of later stages: a log does not count written blocks.
    pub blocks_written: f64,
    /// Spark SQL's rows, which Faro's own reader and writer serve.
    pub reads_rows: bool,
    pub writes_rows: bool,
    pub start: i64,
    pub end: i64,
    #[serde(skip)]
    pub parents: Box<[u64]>,
    /// Bytes that each of the stages before has written for this one, and perhaps for others.
    #[serde(skip)]
    pub inputs: Box<[u64]>,
    #[serde(skip)]
    pub rdd: Option<u64>,
    #[serde(skip)]
    pub group: Option<usize>,
}

impl StageFigures {
    pub fn shuffles(&self) -> bool {
        self.blocks_read() > 0 || self.bytes_written > 0
    }

    pub fn blocks_read(&self) -> u64 {
        self.remote_blocks.saturating_add(self.local_blocks)
    }

    pub fn bytes_read(&self) -> u64 {
        self.remote_bytes.saturating_add(self.local_bytes)
    }

    fn of(task: &TaskEnd) -> Self {
        let mut one = Self {
            tasks: 1,
            failed_tasks: u64::from(task.info.failed),
            ..Self::default()
        };
        let Some(m) = &task.metrics else { return one };
        one.run_ms = m.run_ms;
        one.cpu_ms = m.cpu_ns / 1_000_000;
        one.gc_ms = m.gc_ms;
        one.memory_spilled = m.memory_spilled;
        one.disk_spilled = m.disk_spilled;
        one.remote_blocks = m.read.remote_blocks;
        one.local_blocks = m.read.local_blocks;
        one.remote_bytes = m.read.remote_bytes;
        one.local_bytes = m.read.local_bytes;
        one.rows_read = m.read.rows;
        one.wait_ms = m.read.wait_ms;
        one.requests_ms = m.read.requests_ms;
        one.bytes_written = m.write.bytes;
        one.rows_written = m.write.rows;
        one.write_ms = m.write.write_ns as f64 / 1e6;
        one
    }

    /// Adds what can be added: not names, times of day and kinds. Sums saturate, because a damaged log may
    /// have any number.
    pub fn plus(&mut self, other: &Self) {
        let sums = [
            (&mut self.tasks, other.tasks),
            (&mut self.failed_tasks, other.failed_tasks),
            (&mut self.run_ms, other.run_ms),
            (&mut self.cpu_ms, other.cpu_ms),
            (&mut self.gc_ms, other.gc_ms),
            (&mut self.memory_spilled, other.memory_spilled),
            (&mut self.disk_spilled, other.disk_spilled),
            (&mut self.remote_blocks, other.remote_blocks),
            (&mut self.local_blocks, other.local_blocks),
            (&mut self.remote_bytes, other.remote_bytes),
            (&mut self.local_bytes, other.local_bytes),
            (&mut self.rows_read, other.rows_read),
            (&mut self.wait_ms, other.wait_ms),
            (&mut self.bytes_written, other.bytes_written),
            (&mut self.rows_written, other.rows_written),
            (&mut self.sort_ms, other.sort_ms),
            (&mut self.scan_ms, other.scan_ms),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        if let Some(millis) = other.requests_ms {
            let sum = self.requests_ms.get_or_insert(0);
            *sum = sum.saturating_add(millis);
        }
        self.write_ms += other.write_ms;
        self.blocks_written += other.blocks_written;
    }

    fn add(&mut self, task: &TaskEnd) {
        self.plus(&Self::of(task));
        if task.info.launched > 0 && (self.start == 0 || task.info.launched < self.start) {
            self.start = task.info.launched;
        }
        self.end = self.end.max(task.info.finished);
    }

    /// Keeps at most `parents` parents.
    fn identify(&mut self, info: &StageInfo, parents: usize) {
        let kept = info.parents.get(..parents).unwrap_or(&info.parents);
        if *self.parents != *kept {
            self.parents = kept.into();
        }
        self.rdd = info.rdds.last.or(self.rdd);
    }

    fn describe(&mut self, info: &StageInfo) {
        self.name.clone_from(&info.name.0);
        self.reads_rows |= info.rdds.reads_rows;
        self.writes_rows |= info.rdds.writes_rows;
        let operators = info.operators;
        self.sort_ms = self.sort_ms.saturating_add(operators.sort_ms);
        self.scan_ms = self.scan_ms.saturating_add(operators.scan_ms);
        if info.submitted > 0 && info.completed > 0 {
            self.start = match self.start {
                0 => info.submitted,
                start => start.min(info.submitted),
            };
            self.end = self.end.max(info.completed);
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
    pub properties: KeptProperties,
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
    /// Parents that all stages have together.
    parents: usize,
    running: HashMap<u64, (i64, Option<usize>)>,
}

impl LoggedApplication {
    pub fn add_executor(&mut self, host: String, cores: u64) {
        self.executors += 1;
        self.cores = self.cores.saturating_add(cores);
        if self.hosts.len() < MAX_HOSTS {
            self.hosts.insert(host);
        }
    }

    pub fn start_job(&mut self, job: &JobStart) {
        self.jobs += 1;
        let names = [DESCRIPTION, GROUP].map(|key| job.properties.get(key));
        let name = names.into_iter().find(|name| !name.is_empty());
        let group = name.and_then(|name| self.group(name));
        for &stage in &job.stages {
            if let Some(stage) = self.stage(stage) {
                stage.group = stage.group.or(group);
            }
        }
        for info in &job.stage_infos {
            self.identify(info);
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
        self.identify(info);
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

    fn identify(&mut self, info: &StageInfo) {
        let others = self.parents;
        let Some(stage) = self.stage(info.id) else {
            return;
        };
        let others = others.saturating_sub(stage.parents.len());
        stage.identify(info, MAX_ALL_PARENTS.saturating_sub(others));
        self.parents = others + stage.parents.len();
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
