//! Finds the columns that TEXT and WIDE can represent, and gathers the bytes that they refer to.

use super::row_reader::RowsIn;
use crate::format::fault::RowBlockFault;
use crate::format::mode::{padded, ColumnMode, WIDE_BYTES};
use crate::scratch::Scratch;

/// The columns of a block that are TEXT or WIDE.
#[derive(Default)]
pub(crate) struct StringEncoder {
    columns: Vec<Column>,
    used: usize,
    /// Offset that each row's next text would have in its row, in bytes.
    places: Scratch<u64>,
}

#[derive(Default)]
struct Column {
    word: usize,
    mode: Option<ColumnMode>,
    /// The values of the inner column.
    values: Scratch<u64>,
}

impl StringEncoder {
    /// Finds the columns among the first `words` words of each row.
    pub fn find(&mut self, piece: &[u8], rows: &RowsIn, words: usize) -> Result<(), RowBlockFault> {
        self.used = 0;
        let places = self.places.sized(rows.count())?;
        places.fill(8 * words as u64);
        let last = rows.count() - 1;
        for word in 0..words {
            // One row is enough to exclude most columns that are not texts.
            let sample = rows.word(piece, last, word);
            if sample != 0 && sample >> 32 != places[last] {
                continue;
            }
            if self.used == self.columns.len() {
                self.columns
                    .try_reserve(1)
                    .map_err(|_| RowBlockFault::NoMemory {
                        bytes: size_of::<Column>(),
                    })?;
                self.columns.push(Column::default());
            }
            let column = &mut self.columns[self.used];
            let values = column.values.sized(rows.count())?;
            rows.column(piece, word, values);
            let Some(mode) = mode(piece, rows, places, values) else {
                continue;
            };
            for (value, place) in values.iter_mut().zip(places.iter_mut()) {
                let bytes = *value & u64::from(u32::MAX);
                if mode == ColumnMode::Wide {
                    *value = bytes;
                    *place += WIDE_BYTES;
                } else if *value != 0 {
                    *value = bytes + 1;
                    *place += padded(bytes);
                }
            }
            (column.word, column.mode) = (word, Some(mode));
            self.used += 1;
        }
        Ok(())
    }

    pub fn forget(&mut self) {
        self.used = 0;
    }

    pub fn any(&self) -> bool {
        self.used > 0
    }

    /// Returns the mode and the inner values of the word's column, if it is TEXT or WIDE.
    pub fn of_word(&self, word: usize, rows: usize) -> Option<(ColumnMode, &[u64])> {
        let columns = &self.columns[..self.used];
        let found = columns.binary_search_by_key(&word, |column| column.word);
        let column = &columns[found.ok()?];
        Some((column.mode?, &column.values.values()[..rows]))
    }

    /// Writes the tail's bytes to `tail`, which must have the piece's length, and returns their
    /// number. Returns `None` if padding is not zeros: the lengths alone could not restore it.
    pub fn gather(
        &mut self,
        piece: &[u8],
        rows: &RowsIn,
        words: usize,
        tail: &mut [u8],
    ) -> Result<Option<usize>, RowBlockFault> {
        let places = self.places.sized(rows.count())?;
        places.fill(8 * words as u64);
        let (mut end, mut padding) = (0, 0);
        for column in &self.columns[..self.used] {
            let wide = column.mode == Some(ColumnMode::Wide);
            let values = &column.values.values()[..rows.count()];
            for ((value, place), start) in values.iter().zip(places.iter_mut()).zip(rows.starts()) {
                let (bytes, room) = match wide {
                    true => (*value, WIDE_BYTES),
                    false => {
                        let bytes = value.saturating_sub(1);
                        (bytes, padded(bytes))
                    }
                };
                if bytes > 0 {
                    let from = *start as usize + *place as usize;
                    let from = &piece[from..from + padded(bytes) as usize];
                    // The padding after the text is copied too, and the next text overwrites it.
                    let last = copy_words(from, &mut tail[end..]);
                    let used = 8 - (padded(bytes) - bytes);
                    padding |= if used < 8 { last >> (8 * used) } else { 0 };
                }
                end += bytes as usize;
                *place += room;
            }
        }
        if padding != 0 {
            return Ok(None);
        }
        for (row, place) in places.iter().enumerate() {
            let rest = &rows.row(piece, row)[*place as usize..];
            tail[end..end + rest.len()].copy_from_slice(rest);
            end += rest.len();
        }
        Ok(Some(end))
    }

    pub fn memory_bytes(&self) -> usize {
        let columns = self
            .columns
            .iter()
            .map(|column| column.values.memory_bytes());
        self.columns.capacity() * size_of::<Column>()
            + columns.sum::<usize>()
            + self.places.memory_bytes()
    }
}

/// Copies whole words and returns the last. `from` must not be empty.
#[inline(always)]
fn copy_words(from: &[u8], to: &mut [u8]) -> u64 {
    const SHORT: usize = 64;
    let to = &mut to[..from.len()];
    if from.len() > SHORT {
        to.copy_from_slice(from);
    } else {
        for (from, to) in from.chunks_exact(8).zip(to.chunks_exact_mut(8)) {
            to.copy_from_slice(from);
        }
    }
    from.last_chunk::<8>()
        .map_or(0, |word| u64::from_le_bytes(*word))
}

/// Returns the mode that represents these words in all rows, if the next texts are at `places`.
fn mode(piece: &[u8], rows: &RowsIn, places: &[u64], words: &[u64]) -> Option<ColumnMode> {
    let (mut some, mut longest, mut shortest) = (0, 0, u64::MAX);
    for ((word, place), length) in words.iter().zip(places).zip(rows.lengths()) {
        let (at, bytes) = (word >> 32, word & u64::from(u32::MAX));
        let fits = *place + padded(bytes) <= 8 * length;
        if *word != 0 && (at != *place || !fits) {
            return None;
        }
        some |= word;
        longest = longest.max(bytes);
        shortest = shortest.min(bytes);
    }
    if some == 0 {
        // Zeros need no mode of their own.
        return None;
    }
    // If all values have more than 8 bytes, both modes give the same result.
    let may_be_wide = longest <= WIDE_BYTES && shortest <= WIDE_BYTES - 8;
    if may_be_wide && is_wide(piece, rows, places, words) {
        return Some(ColumnMode::Wide);
    }
    Some(ColumnMode::Text)
}

/// Returns whether each row has 16 bytes for its value. A short text is followed by the next text,
/// or by the row's end.
fn is_wide(piece: &[u8], rows: &RowsIn, places: &[u64], words: &[u64]) -> bool {
    let mut rows = rows
        .starts()
        .iter()
        .zip(rows.lengths())
        .zip(places)
        .zip(words);
    rows.all(|(((start, length), place), word)| {
        let bytes = (word & u64::from(u32::MAX)) as usize;
        if word >> 32 != *place || *place + WIDE_BYTES > 8 * length {
            return false;
        }
        let at = *start as usize + *place as usize;
        piece[at..at + WIDE_BYTES as usize][bytes..]
            .iter()
            .all(|byte| *byte == 0)
    })
}
