//! The events that are read, with the fields that are used. Spark's JsonProtocol names them; a field
//! that a version lacks has its default.

use super::bounded::{
    self, each, KeptProperties, OperatorTimes, StageRdds, MAX_ALL_PARENTS, MAX_STAGES,
};
use super::plain::PlainName;
use serde::{Deserialize, Deserializer};

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
    pub version: PlainName,
}

#[derive(Debug, Deserialize)]
pub struct Environment {
    #[serde(rename = "Spark Properties", default)]
    pub properties: KeptProperties,
}

#[derive(Debug, Deserialize)]
pub struct ApplicationStart {
    #[serde(rename = "App Name")]
    pub name: PlainName,
    #[serde(rename = "App ID", default)]
    pub id: PlainName,
}

#[derive(Debug, Deserialize)]
pub struct ExecutorAdded {
    #[serde(rename = "Executor Info")]
    pub info: ExecutorInfo,
}

#[derive(Debug, Deserialize)]
pub struct ExecutorInfo {
    #[serde(rename = "Host", default)]
    pub host: PlainName,
    #[serde(rename = "Total Cores", default)]
    pub cores: u64,
}

#[derive(Debug, Deserialize)]
pub struct JobStart {
    #[serde(rename = "Job ID")]
    pub id: u64,
    #[serde(rename = "Submission Time", default, deserialize_with = "moment")]
    pub submitted: i64,
    #[serde(rename = "Stage IDs", default, deserialize_with = "bounded::stages")]
    pub stages: Vec<u64>,
    /// Of the same stages, also of those that are skipped because their shuffle exists.
    #[serde(rename = "Stage Infos", default, deserialize_with = "stage_infos")]
    pub stage_infos: Vec<StageInfo>,
    #[serde(rename = "Properties", default)]
    pub properties: KeptProperties,
}

#[derive(Debug, Deserialize)]
pub struct JobEnd {
    #[serde(rename = "Job ID")]
    pub id: u64,
    #[serde(rename = "Completion Time", default, deserialize_with = "moment")]
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
    pub name: PlainName,
    #[serde(rename = "RDD Info", default)]
    pub rdds: StageRdds,
    #[serde(rename = "Accumulables", default)]
    pub operators: OperatorTimes,
    #[serde(rename = "Parent IDs", default, deserialize_with = "bounded::parents")]
    pub parents: Vec<u64>,
    /// 0 if the stage did not start, or did not end.
    #[serde(rename = "Submission Time", default, deserialize_with = "moment")]
    pub submitted: i64,
    #[serde(rename = "Completion Time", default, deserialize_with = "moment")]
    pub completed: i64,
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
    #[serde(rename = "Launch Time", default, deserialize_with = "moment")]
    pub launched: i64,
    #[serde(rename = "Finish Time", default, deserialize_with = "moment")]
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

/// Milliseconds since 1970, up to the year 10000: sums of later ones could overflow.
fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    const LAST: i64 = 253_402_300_800_000;
    let millis = Option::<i64>::deserialize(from)?;
    Ok(millis.unwrap_or_default().clamp(0, LAST))
}

/// A job's stages, without their names.
fn stage_infos<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<StageInfo>, D::Error> {
    let (mut kept, mut parents) = (Vec::new(), MAX_ALL_PARENTS);
    each(from, |mut info: StageInfo| {
        if kept.len() < MAX_STAGES {
            info.parents.truncate(parents);
            info.parents.shrink_to_fit();
            parents -= info.parents.len();
            info.name = PlainName::default();
            kept.push(info);
        }
    })?;
    Ok(kept)
}
