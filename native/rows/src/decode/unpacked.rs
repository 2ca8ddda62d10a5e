//! Rows of a row block that are not yet in a batch.

use super::batch::{placed_length, ROW_HEAD_BYTES};
use super::row_writer::RowWriter;
use crate::format::corruption::Corruption;

/// Rows with heads, as in a batch, whose bytes from `at` to `end` are not yet in one.
#[derive(Default)]
pub(crate) struct Unpacked {
    bytes: Vec<u8>,
    at: usize,
    end: usize,
    /// Remaining bytes of a row that was taken in part because it is longer than a batch.
    long: usize,
}

impl Unpacked {
    /// Returns exactly `bytes` bytes to write to, and drops rows that were not drained.
    pub fn space(&mut self, bytes: usize) -> Result<&mut [u8], Corruption> {
        (self.at, self.end, self.long) = (0, 0, 0);
        if let Some(more) = bytes.checked_sub(self.bytes.len()) {
            self.bytes
                .try_reserve_exact(more)
                .map_err(|_| Corruption::NoMemory {
                    bytes,
                    purpose: "row block's rows",
                })?;
            self.bytes.resize(bytes, 0);
        }
        Ok(&mut self.bytes[..bytes])
    }

    pub fn set_end(&mut self, end: usize) {
        debug_assert!(end <= self.bytes.len());
        self.end = end;
    }

    /// Moves the rows to the batch. Returns false if it is full and rows are left.
    pub fn drain(&mut self, rows: &mut RowWriter) -> Result<bool, Corruption> {
        while self.at < self.end {
            if self.long == 0 {
                self.at += rows.take_placed(&self.bytes[self.at..self.end]);
                let Some(length) = placed_length(&self.bytes[self.at..self.end]) else {
                    return Ok(true);
                };
                // The next row needs an empty batch, or is longer than one.
                if rows.has_batch() {
                    return Ok(false);
                }
                rows.take(&(length as u32).to_be_bytes())?;
                self.at += ROW_HEAD_BYTES;
                self.long = length;
            }
            let taken = rows.take(&self.bytes[self.at..self.at + self.long])?;
            self.at += taken;
            self.long -= taken;
            if self.long > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    pub fn clear(&mut self, keep: usize) {
        (self.at, self.end, self.long) = (0, 0, 0);
        if self.bytes.len() > keep {
            self.bytes.truncate(keep);
            self.bytes.shrink_to_fit();
        }
    }
}
