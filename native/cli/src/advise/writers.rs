//! Finds the stages that wrote a stage's input.

use super::figures::StageFigures;
use std::collections::{BTreeMap, HashMap};

/// Attributes the blocks that a stage read to the stages that wrote them, by their bytes, notes these bytes, and
/// removes the stages without tasks.
///
/// Adaptive execution runs a job for each shuffle. In the jobs that follow, a stage that is skipped stands for the
/// one that wrote: it has the same RDD and another number.
pub fn attribute(stages: &mut BTreeMap<u64, StageFigures>) {
    let by_rdd: HashMap<u64, u64> = stages
        .iter()
        .filter(|(_, stage)| stage.bytes_written > 0)
        .filter_map(|(&id, stage)| Some((stage.rdd?, id)))
        .collect();
    let mut written: Vec<(u64, f64)> = Vec::new();
    let mut inputs: Vec<(u64, Box<[u64]>)> = Vec::new();
    for (&id, stage) in &*stages {
        let writers = stage.parents.iter().filter_map(|parent| {
            let named = stages.get(parent)?;
            match named.bytes_written {
                0 => by_rdd.get(&named.rdd?).copied(),
                _ => Some(*parent),
            }
        });
        let bytes = |id: u64| stages.get(&id).map_or(0, |s| s.bytes_written);
        let mut distinct: Vec<u64> = writers.collect();
        distinct.sort_unstable();
        distinct.dedup();
        inputs.push((id, distinct.iter().map(|&id| bytes(id)).collect()));
        let writers: Vec<(u64, f64)> = distinct
            .into_iter()
            .map(|id| (id, bytes(id) as f64))
            .collect();
        let all: f64 = writers.iter().map(|(_, bytes)| bytes).sum();
        let blocks = stage.blocks_read() as f64;
        if all > 0.0 {
            written.extend(
                writers
                    .iter()
                    .map(|(id, bytes)| (*id, blocks * bytes / all)),
            );
        }
    }
    for (id, of) in inputs {
        if let Some(stage) = stages.get_mut(&id) {
            stage.inputs = of;
        }
    }
    for (id, blocks) in written {
        if let Some(stage) = stages.get_mut(&id) {
            stage.blocks_written += blocks;
        }
    }
    stages.retain(|_, stage| stage.tasks > 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(rdd: u64, parents: &[u64]) -> StageFigures {
        StageFigures {
            rdd: Some(rdd),
            parents: parents.into(),
            ..StageFigures::default()
        }
    }

    #[test]
    fn blocks_go_to_the_stages_that_wrote_them() {
        let wrote = |rdd, bytes_written| StageFigures {
            tasks: 1,
            bytes_written,
            ..stage(rdd, &[])
        };
        let reads = StageFigures {
            tasks: 1,
            remote_blocks: 30,
            local_blocks: 10,
            ..stage(12, &[3, 2])
        };
        // Stage 3 was skipped: its RDD is that of stage 1, which wrote.
        let all = [wrote(10, 300), wrote(11, 100), stage(10, &[]), reads];
        let mut stages: BTreeMap<u64, StageFigures> = (1..).zip(all).collect();
        attribute(&mut stages);
        let blocks: Vec<(u64, f64)> = stages
            .iter()
            .map(|(&id, s)| (id, s.blocks_written))
            .collect();
        assert_eq!(blocks, [(1, 30.0), (2, 10.0), (4, 0.0)]);
        assert_eq!(*stages[&4].inputs, [300, 100]);
    }
}
