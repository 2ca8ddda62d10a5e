//! The map outputs of all simulations of a process: written once, read by all, never changed.

use crate::sim_rng::SimRng;
use faro_endpoint::OutputFiles;
use faro_wire::{BlockId, OutputId};
use std::io;
use std::ops::Range;
use std::path::Path;
use tempfile::TempDir;

/// The shapes of map outputs: the number of partitions, and the range of a partition's bytes.
const SHAPES: [(usize, Range<u64>); 5] = [
    (128, 0..2_000),
    (48, 0..40_000),
    (16, 60_000..600_000),
    (3, 1_000_000..3_000_000),
    (2, 4_000_000..6_000_000),
];

/// The first map id without an output.
pub(crate) const UNKNOWN: i64 = 1_000_000;

/// The size of a request's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Tiny,
    Small,
    Middle,
    Large,
    Huge,
}

struct SimulatedOutput {
    files: OutputFiles,
    bytes: Vec<u8>,
    /// The offset of each partition in bytes, and the end of the last one.
    offsets: Vec<usize>,
}

/// Map outputs on disk, and their bytes.
pub struct MapOutputs {
    outputs: Vec<SimulatedOutput>,
    _directory: TempDir,
}

impl MapOutputs {
    /// Writes the map outputs to a temporary directory.
    ///
    /// # Errors
    /// Fails if the file system does.
    pub fn write() -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut dice = SimRng::new(1);
        let outputs = SHAPES.into_iter().enumerate();
        let outputs = outputs.map(|(number, (partitions, lengths))| {
            let lengths = (0..partitions).map(|_| match dice.chance(100) {
                true => 0,
                false => dice.number(lengths.clone()) as usize,
            });
            let lengths: Vec<usize> = lengths.collect();
            write(directory.path(), number, &lengths, &mut dice)
        });
        let outputs = outputs.collect::<io::Result<_>>()?;
        Ok(Self {
            outputs,
            _directory: directory,
        })
    }

    fn of(&self, map: i64) -> Option<&SimulatedOutput> {
        let known = (0..UNKNOWN).contains(&map);
        known.then(|| &self.outputs[map as usize % SHAPES.len()])
    }

    /// Returns the files of a map output, if it exists.
    pub(crate) fn files(&self, id: OutputId) -> Option<OutputFiles> {
        self.of(id.map_id).map(|output| output.files.clone())
    }

    /// Returns the bytes of a map output; empty if it does not exist.
    pub(crate) fn all_bytes(&self, map: i64) -> &[u8] {
        self.of(map).map_or(&[], |output| &output.bytes)
    }

    /// Returns the bytes of a block; `None` if there is no such output.
    pub(crate) fn bytes(&self, block: &BlockId) -> Option<&[u8]> {
        let output = self.of(block.map_id.get())?;
        let [from, to] =
            [block.start_reduce, block.end_reduce].map(|at| output.offsets[at.get() as usize]);
        Some(&output.bytes[from..to])
    }

    /// Returns the block with the most bytes: all partitions of the last shape.
    pub(crate) fn largest(&self) -> BlockId {
        let map = SHAPES.len() - 1;
        BlockId {
            map_id: (map as i64).into(),
            shuffle_id: 0.into(),
            start_reduce: 0.into(),
            end_reduce: (SHAPES[map].0 as u32).into(),
            piece: 0.into(),
        }
    }

    /// Returns a map id whose partitions have that size.
    pub(crate) fn map(dice: &mut SimRng, size: Size) -> i64 {
        size as i64 + dice.number(0..4) as i64 * SHAPES.len() as i64
    }

    /// Returns a block of one to three partitions of a map output.
    pub(crate) fn block(&self, dice: &mut SimRng, shuffle: u32, map: i64) -> BlockId {
        let partitions = SHAPES[map as usize % SHAPES.len()].0;
        let start = dice.place(partitions);
        let end = match dice.chance(200) {
            true => (start + 3).min(partitions),
            false => start + 1,
        };
        BlockId {
            map_id: map.into(),
            shuffle_id: shuffle.into(),
            start_reduce: (start as u32).into(),
            end_reduce: (end as u32).into(),
            piece: 0.into(),
        }
    }
}

fn write(
    directory: &Path,
    number: usize,
    lengths: &[usize],
    dice: &mut SimRng,
) -> io::Result<SimulatedOutput> {
    let files = OutputFiles {
        data: directory.join(format!("{number}.data")),
        index: directory.join(format!("{number}.index")),
    };
    let mut offsets = vec![0];
    for length in lengths {
        offsets.push(offsets.last().unwrap_or(&0) + length);
    }
    let total = *offsets.last().unwrap_or(&0);
    let mut bytes = Vec::with_capacity(total + 8);
    while bytes.len() < total {
        bytes.extend_from_slice(&dice.next().to_le_bytes());
    }
    bytes.truncate(total);
    let index: Vec<u8> = offsets
        .iter()
        .flat_map(|offset| (*offset as u64).to_be_bytes())
        .collect();
    std::fs::write(&files.index, index)?;
    std::fs::write(&files.data, &bytes)?;
    Ok(SimulatedOutput {
        files,
        bytes,
        offsets,
    })
}
