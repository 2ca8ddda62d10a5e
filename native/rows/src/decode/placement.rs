//! Places the rows of a block in its output: consecutively, each after a head of one word.

use super::batch::{head, ROW_HEAD_BYTES};
use crate::format::fault::RowBlockFault;
use crate::scratch::Scratch;
use zerocopy::little_endian::U64;

/// Bytes of a row's length in the row stream.
const LENGTH_BYTES: u64 = 4;

#[derive(Default)]
pub(crate) struct Placement {
    /// The index of each row's first word, which follows its head.
    starts: Scratch<u32>,
    rows: usize,
    /// Words from one row to the next, if all rows have the same length.
    stride: Option<usize>,
}

impl Placement {
    /// Places rows of these lengths, in words. Fails if a row is shorter than `min` words or the
    /// rows do not have `original` bytes in the row stream.
    pub fn set(
        &mut self,
        lengths: &[u64],
        min: usize,
        original: usize,
    ) -> Result<(), RowBlockFault> {
        let first = lengths.first().copied().unwrap_or(0);
        let (mut shortest, mut longest, mut sum) = (u64::MAX, 0, 0_u64);
        for &length in lengths {
            shortest = shortest.min(length);
            longest = longest.max(length);
            sum = sum.wrapping_add(length);
        }
        let max = original / 8;
        if shortest < min as u64 || longest > max as u64 {
            let wrong = |length: &&u64| **length < min as u64 || **length > max as u64;
            let words = lengths.iter().find(wrong).copied().unwrap_or(0);
            return Err(RowBlockFault::RowLength {
                row: lengths
                    .iter()
                    .position(|length| *length == words)
                    .unwrap_or(0),
                words,
                min,
                max,
            });
        }
        // Both factors are bounded by the longest block, so the result does not overflow.
        let found = LENGTH_BYTES * lengths.len() as u64 + 8 * sum;
        if found != original as u64 {
            return Err(RowBlockFault::Original { found, original });
        }
        let starts = self.starts.sized(lengths.len())?;
        let mut at = 1_u32;
        for (start, length) in starts.iter_mut().zip(lengths) {
            *start = at;
            at += 1 + *length as u32;
        }
        self.rows = lengths.len();
        self.stride = (shortest == longest).then_some(1 + first as usize);
        Ok(())
    }

    pub fn starts(&self) -> &[u32] {
        &self.starts.values()[..self.rows]
    }

    pub fn write_heads(&self, lengths: &[u64], out: &mut [U64]) {
        for (start, length) in self.starts().iter().zip(lengths) {
            out[*start as usize - 1] = U64::from_bytes(head(8 * *length as usize));
        }
    }

    /// Writes a column's values to their rows.
    pub fn write_column(&self, column: usize, values: &[u64], out: &mut [U64]) {
        debug_assert_eq!(values.len(), self.rows);
        match self.stride {
            Some(stride) => {
                for (row, value) in out.chunks_exact_mut(stride).zip(values) {
                    row[1 + column].set(*value);
                }
            }
            None => {
                for (start, value) in self.starts().iter().zip(values) {
                    out[*start as usize + column].set(*value);
                }
            }
        }
    }

    /// Writes the same value to a column of all rows.
    pub fn write_constant(&self, column: usize, value: u64, out: &mut [U64]) {
        match self.stride {
            Some(stride) => out
                .chunks_exact_mut(stride)
                .for_each(|row| row[1 + column].set(value)),
            None => self
                .starts()
                .iter()
                .for_each(|start| out[*start as usize + column].set(value)),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.starts.memory_bytes()
    }

    pub fn clear(&mut self, keep: usize) {
        self.starts.clear(keep);
    }
}

/// Returns the output size of rows that have `original` bytes in the row stream: each length
/// becomes a head.
pub fn placed_bytes(rows: usize, original: usize) -> usize {
    original + rows * (ROW_HEAD_BYTES - LENGTH_BYTES as usize)
}
