//! The events that are read, with the fields that are used. Spark's JsonProtocol names them; a field
//! that a version lacks has its default.

use serde::Deserialize;
use std::collections::HashMap;

pub const LOG_START: &str = "SparkListenerLogStart";
pub const ENVIRONMENT: &str = "SparkListenerEnvironmentUpdate";
pub const APPLICATION_START: &str = "SparkListenerApplicationStart";
pub const APPLICATION_END: &str = "SparkListenerApplicationEnd";
pub const EXECUTOR_ADDED: &str = "SparkListenerExecutorAdded";
pub const JOB_START: &str = "SparkListenerJobStart";
pub const JOB_END: &str = "SparkListenerJobEnd";
pub const STAGE_COMPLETED: &str = "SparkListenerStageCompleted";
pub const TASK_END: &str = "SparkListenerTaskEnd";

pub fn is_read(name: &str) -> bool {
    [
        LOG_START,
        ENVIRONMENT,
        APPLICATION_START,
        APPLICATION_END,
        EXECUTOR_ADDED,
        JOB_START,
        JOB_END,
        STAGE_COMPLETED,
        TASK_END,
    ]
    .contains(&name)
}

#[derive(Debug, Deserialize)]
pub struct LogStart {
    #[serde(rename = "Spark Version")]
    pub version: String,
}

#[derive(Debug, Deserialize)]
pub struct Environment {
    #[serde(rename = "Spark Properties", default)]
    pub properties: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub struct ApplicationStart {
    #[serde(rename = "App Name")]
    pub name: String,
    #[serde(rename = "App ID", default)]
    pub id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct ExecutorAdded {
    #[serde(rename = "Executor Info")]
    pub info: ExecutorInfo,
}

#[derive(Debug, Deserialize)]
pub struct ExecutorInfo {
    #[serde(rename = "Host", default)]
    pub host: String,
    #[serde(rename = "Total Cores", default)]
    pub cores: u64,
}

#[derive(Debug, Deserialize)]
pub struct JobStart {
    #[serde(rename = "Job ID")]
    pub id: u64,
    #[serde(rename = "Submission Time", default)]
    pub submitted: i64,
    #[serde(rename = "Stage IDs", default)]
    pub stages: Vec<u64>,
    /// Of the same stages, also of those that are skipped because their shuffle exists.
    #[serde(rename = "Stage Infos", default)]
    pub stage_infos: Vec<StageInfo>,
    #[serde(rename = "Properties", default)]
    pub properties: Option<HashMap<String, String>>,
}

#[derive(Debug, Deserialize)]
pub struct JobEnd {
    #[serde(rename = "Job ID")]
    pub id: u64,
    #[serde(rename = "Completion Time", default)]
    pub completed: i64,
}

#[derive(Debug, Deserialize)]
pub struct StageCompleted {
    #[serde(rename = "Stage Info")]
    pub info: StageInfo,
}

#[derive(Debug, Deserialize)]
pub struct StageInfo {
    #[serde(rename = "Stage ID")]
    pub id: u64,
    #[serde(rename = "Stage Name", default)]
    pub name: String,
    #[serde(rename = "RDD Info", default)]
    pub rdds: Vec<RddInfo>,
    #[serde(rename = "Parent IDs", default)]
    pub parents: Vec<u64>,
    #[serde(rename = "Submission Time", default)]
    pub submitted: Option<i64>,
    #[serde(rename = "Completion Time", default)]
    pub completed: Option<i64>,
}

impl StageInfo {
    /// The RDD that the stage computes. The others of a stage are its ancestors, which were made before it.
    pub fn rdd(&self) -> Option<u64> {
        self.rdds.iter().filter_map(|rdd| rdd.id).max()
    }
}

#[derive(Debug, Deserialize)]
pub struct RddInfo {
    #[serde(rename = "RDD ID", default)]
    pub id: Option<u64>,
    #[serde(rename = "Name", default)]
    pub name: String,
    /// JSON in a text: `{"id":"4","name":"Exchange"}`.
    #[serde(rename = "Scope", default)]
    pub scope: String,
}

#[derive(Debug, Deserialize)]
pub struct TaskEnd {
    #[serde(rename = "Stage ID")]
    pub stage: u64,
    #[serde(rename = "Task Info", default)]
    pub info: TaskInfo,
    #[serde(rename = "Task Metrics", default)]
    pub metrics: Option<TaskMetrics>,
}

#[derive(Debug, Default, Deserialize)]
pub struct TaskInfo {
    #[serde(rename = "Launch Time", default)]
    pub launched: i64,
    #[serde(rename = "Finish Time", default)]
    pub finished: i64,
    #[serde(rename = "Failed", default)]
    pub failed: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TaskMetrics {
    #[serde(rename = "Executor Run Time")]
    pub run_ms: u64,
    #[serde(rename = "Executor CPU Time")]
    pub cpu_ns: u64,
    #[serde(rename = "JVM GC Time")]
    pub gc_ms: u64,
    #[serde(rename = "Memory Bytes Spilled")]
    pub memory_spilled: u64,
    #[serde(rename = "Disk Bytes Spilled")]
    pub disk_spilled: u64,
    #[serde(rename = "Shuffle Read Metrics")]
    pub read: ReadMetrics,
    #[serde(rename = "Shuffle Write Metrics")]
    pub write: WriteMetrics,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReadMetrics {
    #[serde(rename = "Remote Blocks Fetched")]
    pub remote_blocks: u64,
    #[serde(rename = "Local Blocks Fetched")]
    pub local_blocks: u64,
    #[serde(rename = "Fetch Wait Time")]
    pub wait_ms: u64,
    #[serde(rename = "Remote Bytes Read")]
    pub remote_bytes: u64,
    #[serde(rename = "Local Bytes Read")]
    pub local_bytes: u64,
    #[serde(rename = "Total Records Read")]
    pub rows: u64,
    /// From Spark 3.5.
    #[serde(rename = "Remote Requests Duration")]
    pub requests_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct WriteMetrics {
    #[serde(rename = "Shuffle Bytes Written")]
    pub bytes: u64,
    #[serde(rename = "Shuffle Write Time")]
    pub write_ns: u64,
    #[serde(rename = "Shuffle Records Written")]
    pub rows: u64,
}
