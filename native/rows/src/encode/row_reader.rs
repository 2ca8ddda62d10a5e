//! Finds the rows of a piece of the row stream.

use crate::format::fault::RowBlockFault;
use crate::scratch::Scratch;

const LENGTH_BYTES: usize = 4;

/// The positions of the rows in a piece.
#[derive(Default)]
pub(crate) struct RowsIn {
    starts: Scratch<u32>,
    lengths: Scratch<u64>,
    rows: usize,
    shortest: u64,
    longest: u64,
}

impl RowsIn {
    /// Finds the rows. Returns false if the piece is empty or is not whole rows.
    pub fn find(&mut self, piece: &[u8]) -> Result<bool, RowBlockFault> {
        self.rows = 0;
        (self.shortest, self.longest) = (u64::MAX, 0);
        let mut at = 0;
        while at < piece.len() {
            let Some((length, row)) = piece[at..].split_first_chunk::<LENGTH_BYTES>() else {
                return Ok(false);
            };
            let length = u32::from_be_bytes(*length) as usize;
            if length % 8 != 0 || length > row.len() {
                return Ok(false);
            }
            if self.rows == self.starts.values().len() {
                // With rows of equal lengths, this estimate needs no second growth.
                let count = (piece.len() - at) / (LENGTH_BYTES + length);
                let count = self.rows + count.max(1);
                self.starts.sized(count)?;
                self.lengths.sized(count)?;
            }
            let words = length as u64 / 8;
            self.starts.sized(self.rows + 1)?[self.rows] = (at + LENGTH_BYTES) as u32;
            self.lengths.sized(self.rows + 1)?[self.rows] = words;
            self.shortest = self.shortest.min(words);
            self.longest = self.longest.max(words);
            self.rows += 1;
            at += LENGTH_BYTES + length;
        }
        Ok(self.rows > 0)
    }

    pub fn count(&self) -> usize {
        self.rows
    }

    /// Returns the offset of each row in the piece, in bytes.
    pub fn starts(&self) -> &[u32] {
        &self.starts.values()[..self.rows]
    }

    /// Returns the length of each row, in words.
    pub fn lengths(&self) -> &[u64] {
        &self.lengths.values()[..self.rows]
    }

    /// In words.
    pub fn shortest(&self) -> usize {
        self.shortest as usize
    }

    /// Copies one word of each row to `values`. Every row must have that word.
    pub fn column(&self, piece: &[u8], word: usize, values: &mut [u64]) {
        let at = 8 * word;
        if self.shortest == self.longest {
            let stride = LENGTH_BYTES + 8 * self.shortest as usize;
            for (row, value) in piece.chunks_exact(stride).zip(values) {
                *value = load(row, LENGTH_BYTES + at);
            }
        } else {
            for (start, value) in self.starts().iter().zip(values) {
                *value = load(piece, *start as usize + at);
            }
        }
    }

    pub fn word(&self, piece: &[u8], row: usize, word: usize) -> u64 {
        load(piece, self.starts()[row] as usize + 8 * word)
    }

    pub fn row<'a>(&self, piece: &'a [u8], row: usize) -> &'a [u8] {
        &piece[self.starts()[row] as usize..][..8 * self.lengths()[row] as usize]
    }

    pub fn memory_bytes(&self) -> usize {
        self.starts.memory_bytes() + self.lengths.memory_bytes()
    }
}

#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
