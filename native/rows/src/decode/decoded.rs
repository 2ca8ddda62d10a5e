//! Decompressed bytes that are not yet in a batch.

use super::row_writer::RowWriter;
use crate::format::corruption::Corruption;

/// A reused buffer whose bytes from `at` to `end` are not yet in a batch.
#[derive(Default)]
pub(crate) struct Decoded {
    bytes: Vec<u8>,
    at: usize,
    end: usize,
}

impl Decoded {
    /// Returns at least `bytes` bytes to write to, and drops what was not drained.
    pub fn space(&mut self, bytes: usize) -> Result<&mut [u8], Corruption> {
        (self.at, self.end) = (0, 0);
        if let Some(more) = bytes.checked_sub(self.bytes.len()) {
            self.bytes
                .try_reserve_exact(more)
                .map_err(|_| Corruption::NoMemory {
                    bytes,
                    purpose: "decompression buffer",
                })?;
            self.bytes.resize(bytes, 0);
        }
        Ok(&mut self.bytes)
    }

    pub fn set_end(&mut self, end: usize) {
        debug_assert!(end <= self.bytes.len());
        self.end = end;
    }

    /// Moves bytes to the batch. Returns false if it is full and bytes are left.
    pub fn drain(&mut self, rows: &mut RowWriter) -> Result<bool, Corruption> {
        if self.at < self.end {
            self.at += rows.take(&self.bytes[self.at..self.end])?;
        }
        Ok(self.at == self.end)
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    pub fn clear(&mut self, keep: usize) {
        (self.at, self.end) = (0, 0);
        if self.bytes.len() > keep {
            self.bytes.truncate(keep);
            self.bytes.shrink_to_fit();
        }
    }
}
