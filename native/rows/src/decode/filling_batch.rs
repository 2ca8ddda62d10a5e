//! The batch that is being filled: whole rows behind their heads, and what of them is of the current
//! part.

use super::batch::{buffer, head, placed_length, Batch, ROW_HEAD_BYTES};

/// Bytes of a row's length in the row stream.
pub(crate) const LENGTH_BYTES: usize = 4;

/// The rows of a batch that was not handed out.
pub(crate) struct FillingBatch {
    buffer: Vec<u8>,
    /// Maximum size of a batch in bytes, heads included.
    limit: usize,
    /// Bytes and number of the whole rows in the buffer.
    end: usize,
    rows: u32,
    /// The values of `end` and `rows` when the current part began.
    part_end: usize,
    part_rows: u32,
    /// Number of rows of the current part in batches that were handed out.
    handed_out: u64,
}

impl FillingBatch {
    /// Returns an empty batch of up to `limit` bytes; `None` if the buffer cannot be allocated.
    pub fn new(limit: usize) -> Option<Self> {
        Some(Self {
            buffer: buffer(limit)?,
            limit,
            end: 0,
            rows: 0,
            part_end: 0,
            part_rows: 0,
            handed_out: 0,
        })
    }

    #[inline]
    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn end(&self) -> usize {
        self.end
    }

    #[inline]
    pub fn has_rows(&self) -> bool {
        self.rows > 0
    }

    pub fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    pub fn rows_handed_out(&self) -> u64 {
        self.handed_out
    }

    /// Returns whether `bytes` bytes more fit, heads included.
    #[inline]
    pub fn has_space(&self, bytes: usize) -> bool {
        bytes <= self.limit - self.end
    }

    /// Returns space for `bytes` bytes after the last row; `None` if too little is left.
    #[inline]
    pub fn space(&mut self, bytes: usize) -> Option<&mut [u8]> {
        self.has_space(bytes)
            .then(|| &mut self.buffer[self.end..][..bytes])
    }

    /// Writes bytes `at` bytes after the last row.
    #[inline]
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.buffer[self.end + at..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Moves `bytes` bytes from `start` to the front of the buffer.
    pub fn move_to_front(&mut self, start: usize, bytes: usize) {
        debug_assert!(self.end == 0 && start >= ROW_HEAD_BYTES);
        self.buffer.copy_within(start..start + bytes, 0);
    }

    pub fn front(&self, bytes: usize) -> &[u8] {
        &self.buffer[..bytes]
    }

    /// Adds rows that were written after the last row.
    #[inline]
    pub fn add(&mut self, rows: usize, bytes: usize) {
        self.end += bytes;
        self.rows += rows as u32;
        debug_assert!(self.end <= self.limit);
    }

    /// Takes the rows that lie wholly in `bytes`, up to the first one that is not valid or does not
    /// fit in the batch. Returns the bytes taken.
    pub fn take_whole_rows(&mut self, bytes: &[u8]) -> usize {
        let buffer = &mut self.buffer;
        let (mut at, mut end, mut rows) = (0, self.end, self.rows);
        while let Some((length, body)) = bytes[at..].split_first_chunk::<LENGTH_BYTES>() {
            let length = u32::from_be_bytes(*length) as usize;
            // The length is read as unsigned: a negative one is too large for any batch.
            if length % 8 != 0 || length > body.len() || end + ROW_HEAD_BYTES + length > self.limit
            {
                break;
            }
            let row = &mut buffer[end..];
            row[..ROW_HEAD_BYTES].copy_from_slice(&head(length));
            copy_row(body, &mut row[ROW_HEAD_BYTES..], length);
            end += ROW_HEAD_BYTES + length;
            at += LENGTH_BYTES + length;
            rows += 1;
        }
        debug_assert!(end <= self.limit && at <= bytes.len());
        (self.end, self.rows) = (end, rows);
        at
    }

    /// Takes rows that already have heads, as many as fit. Returns their bytes and their number.
    pub fn take_placed(&mut self, placed: &[u8]) -> (usize, usize) {
        let room = self.limit - self.end;
        let (mut at, mut rows) = (0, 0);
        while let Some(length) = placed_length(&placed[at..]) {
            let next = at + ROW_HEAD_BYTES + length;
            if next > room {
                break;
            }
            (at, rows) = (next, rows + 1);
        }
        self.write(0, &placed[..at]);
        self.add(rows, at);
        (at, rows)
    }

    /// Keeps the rows of the current part; the next ones belong to another part.
    pub fn end_part(&mut self) {
        (self.part_end, self.part_rows) = (self.end, self.rows);
        self.handed_out = 0;
    }

    /// Removes the rows of the current part that were not handed out.
    pub fn abandon_part(&mut self) {
        (self.end, self.rows) = (self.part_end, self.part_rows);
        self.handed_out = 0;
    }

    /// Counts a row of the current part that was handed out in pieces.
    pub fn count_long_row(&mut self) {
        self.handed_out += 1;
    }

    /// Hands out the rows.
    pub fn turn(&mut self) -> Batch<'_> {
        let (end, rows) = (self.end, self.rows);
        debug_assert!(self.part_end <= end && self.part_rows <= rows);
        self.handed_out += u64::from(rows - self.part_rows);
        (self.end, self.rows) = (0, 0);
        (self.part_end, self.part_rows) = (0, 0);
        Batch::Rows {
            bytes: &self.buffer[..end],
            rows,
        }
    }
}

/// Copies the first `length` bytes of `from`. Short rows are copied in pieces of a fixed size,
/// which take a few instructions and no call. The next row overwrites what such a piece writes
/// beyond the row's end; after the last row it falls into the buffer's slack.
#[inline(always)]
fn copy_row(from: &[u8], to: &mut [u8], length: usize) {
    const PIECE: usize = 32;
    if length <= PIECE {
        if let (Some(from), Some(to)) = (from.first_chunk::<PIECE>(), to.first_chunk_mut::<PIECE>())
        {
            *to = *from;
            return;
        }
    } else if length <= 3 * PIECE {
        if let (Some(from), Some(to)) = (
            from.first_chunk::<{ 3 * PIECE }>(),
            to.first_chunk_mut::<{ 3 * PIECE }>(),
        ) {
            *to = *from;
            return;
        }
    }
    to[..length].copy_from_slice(&from[..length]);
}
