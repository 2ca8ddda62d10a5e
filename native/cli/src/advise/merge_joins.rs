//! Merge joins that could be shuffled hash joins, which need no sort.
//!
//! A log's stages do not name their joins (code generation hides them): a stage that reads two shuffles of Spark SQL
//! and sorts for a large part of its time is taken for one.

use super::constants::{HASH_JOIN_MEASURED, HASH_JOIN_PARTITION, LARGE_PART, NOTICEABLE};
use super::figures::StageFigures;
use super::units::{bytes, percent};

/// Stages that the note names; others are counted.
const NAMED: usize = 5;

/// Returns the bytes of the smaller side in one partition, if the stage looks like a merge join whose smaller side
/// fits into memory.
fn build_side(stage: &StageFigures) -> Option<u64> {
    let sorts = stage.sort_ms as f64 >= LARGE_PART * stage.run_ms.max(1) as f64;
    let smaller = match *stage.inputs {
        [a, b] => a.min(b),
        _ => return None,
    };
    let partition = smaller / stage.tasks.max(1);
    (stage.reads_rows && sorts && partition <= HASH_JOIN_PARTITION).then_some(partition)
}

/// Names these stages, the setting, its risk and what it saved.
pub fn note<'a>(
    stages: impl Iterator<Item = (u64, &'a StageFigures)>,
    totals: &StageFigures,
) -> Option<String> {
    let (mut ids, mut sorts, mut largest) = (Vec::new(), 0_u64, 0);
    for (id, stage) in stages {
        if let Some(partition) = build_side(stage) {
            ids.push(id);
            sorts = sorts.saturating_add(stage.sort_ms);
            largest = largest.max(partition);
        }
    }
    let part = sorts as f64 / totals.run_ms.max(1) as f64;
    if part < NOTICEABLE {
        return None;
    }
    let named: Vec<String> = ids.iter().take(NAMED).map(u64::to_string).collect();
    let more = match ids.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "stages {}{more} look like merge joins, and sort for {} of the tasks' time; their smaller sides have up to {} in a \
         partition, so that hash joins would fit: --conf \
         spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold=64m. A hash join does not spill: where a partition's \
         smaller side does not fit into a task's memory, the job fails. Measured: {HASH_JOIN_MEASURED}",
        named.join(", "),
        percent(part.min(1.0)),
        bytes(largest),
    ))
}
