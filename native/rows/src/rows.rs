//! Cuts the row stream into rows and puts them into batches.

use crate::batch::{buffer, head, placed_length, Batch, ROW_HEAD_BYTES};
use crate::corruption::Corruption;
use crate::progress::Piece;

/// Bytes of a row's length in the row stream.
const LENGTH_BYTES: usize = 4;

/// The position in the row stream.
enum RowState {
    /// The first `known` bytes of a row's length were taken; fewer than all four.
    Length {
        known: usize,
        bytes: [u8; LENGTH_BYTES],
    },
    /// The head and `copied` bytes of a row follow the batch's last whole row.
    Body { length: usize, copied: usize },
    /// A row that is longer than a batch: `given` bytes of it were handed out, and the next `held`
    /// bytes are the current batch.
    Long {
        length: usize,
        given: usize,
        held: usize,
    },
}

const BETWEEN_ROWS: RowState = RowState::Length {
    known: 0,
    bytes: [0; LENGTH_BYTES],
};

/// Fills batches with the rows of parts.
pub(crate) struct RowWriter {
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
    /// Bytes of the part's row stream that were taken.
    taken: u64,
    state: RowState,
    /// The place of an unfinished row, head included, after the batch that was handed out. The next
    /// `take` moves the row to the front.
    moved: Option<Moved>,
}

struct Moved {
    start: usize,
    bytes: usize,
}

impl RowWriter {
    /// Returns a writer of batches of up to `limit` bytes; `None` if the buffer cannot be
    /// allocated.
    pub fn new(limit: usize) -> Option<Self> {
        Some(Self {
            buffer: buffer(limit)?,
            limit,
            end: 0,
            rows: 0,
            part_end: 0,
            part_rows: 0,
            handed_out: 0,
            taken: 0,
            state: BETWEEN_ROWS,
            moved: None,
        })
    }

    /// Returns whether a turn would hand out rows, or a piece of a row.
    pub fn has_batch(&self) -> bool {
        self.rows > 0 || matches!(self.state, RowState::Long { held: 1.., .. })
    }

    /// Returns whether the batch is the last piece of a long row.
    pub fn ends_long_row(&self) -> bool {
        matches!(self.state, RowState::Long { length, given, held } if given + held == length)
    }

    pub fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    pub fn rows_handed_out(&self) -> u64 {
        self.handed_out
    }

    /// Takes decoded bytes and returns how many. If it takes fewer than all, the next row needs an
    /// empty batch.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, Corruption> {
        if let Some(Moved { start, bytes }) = self.moved.take() {
            self.buffer.copy_within(start..start + bytes, 0);
        }
        let mut at = 0;
        loop {
            if let RowState::Length { known: 0, .. } = self.state {
                at += self.take_whole_rows(&bytes[at..]);
            }
            if at == bytes.len() {
                return Ok(at);
            }
            let taken = self.take_piece(&bytes[at..])?;
            if taken == 0 {
                return Ok(at);
            }
            at += taken;
        }
    }

    /// Returns whether the row stream is between two rows.
    pub fn is_between_rows(&self) -> bool {
        matches!(self.state, RowState::Length { known: 0, .. })
    }

    /// Returns space for rows of `bytes` bytes, heads included, after the batch's last row; `None`
    /// if too little is left. Call it only between two rows. [`add`](Self::add) then makes the rows
    /// part of the batch.
    pub fn space(&mut self, bytes: usize) -> Option<&mut [u8]> {
        // The unfinished row that was to be moved belongs to an abandoned part.
        self.moved = None;
        (bytes <= self.limit - self.end).then(|| &mut self.buffer[self.end..][..bytes])
    }

    /// Returns whether an empty batch has space for rows of `bytes` bytes, heads included.
    pub fn would_fit(&self, bytes: usize) -> bool {
        bytes <= self.limit
    }

    /// Adds rows that were written to [`space`](Self::space). `taken` is their size in the row
    /// stream, in bytes.
    pub fn add(&mut self, rows: usize, bytes: usize, taken: usize) {
        self.end += bytes;
        self.rows += rows as u32;
        self.taken += taken as u64;
    }

    /// Takes rows that already have heads, as many as fit in the batch, and returns their bytes.
    pub fn take_placed(&mut self, placed: &[u8]) -> usize {
        if !self.is_between_rows() {
            return 0;
        }
        let room = self.limit - self.end;
        let (mut at, mut rows) = (0, 0);
        while let Some(length) = placed_length(&placed[at..]) {
            let next = at + ROW_HEAD_BYTES + length;
            if next > room {
                break;
            }
            (at, rows) = (next, rows + 1);
        }
        if let Some(space) = self.space(at) {
            space.copy_from_slice(&placed[..at]);
        }
        self.add(rows, at, at - rows * (ROW_HEAD_BYTES - LENGTH_BYTES));
        at
    }

    /// Takes the rows that lie wholly in `bytes`, up to the first one that is not valid or does not
    /// fit in the batch. Returns the bytes taken.
    fn take_whole_rows(&mut self, bytes: &[u8]) -> usize {
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
        (self.end, self.rows) = (end, rows);
        self.taken += at as u64;
        at
    }

    /// Takes the next bytes of a row's length or of its body. Returns 0 if the row does not fit in
    /// the batch. `bytes` must not be empty.
    fn take_piece(&mut self, bytes: &[u8]) -> Result<usize, Corruption> {
        let taken = match &mut self.state {
            RowState::Length {
                known,
                bytes: length,
            } => {
                let piece = bytes.len().min(LENGTH_BYTES - *known);
                let mut longer = *length;
                longer[*known..*known + piece].copy_from_slice(&bytes[..piece]);
                if *known + piece < LENGTH_BYTES {
                    *length = longer;
                    *known += piece;
                } else {
                    let known = *known;
                    if !self.start_row(i32::from_be_bytes(longer), known)? {
                        return Ok(0);
                    }
                }
                piece
            }
            RowState::Body { length, copied } => {
                let piece = bytes.len().min(*length - *copied);
                let start = self.end + ROW_HEAD_BYTES + *copied;
                self.buffer[start..][..piece].copy_from_slice(&bytes[..piece]);
                *copied += piece;
                piece
            }
            RowState::Long {
                length,
                given,
                held,
            } => {
                let room = (self.limit - *held).min(*length - *given - *held);
                let piece = bytes.len().min(room);
                self.buffer[*held..][..piece].copy_from_slice(&bytes[..piece]);
                *held += piece;
                piece
            }
        };
        self.taken += taken as u64;
        self.finish_row();
        Ok(taken)
    }

    /// Starts a row and returns true, or returns false if the row needs an empty batch. `known`
    /// bytes of the length were taken before.
    fn start_row(&mut self, length: i32, known: usize) -> Result<bool, Corruption> {
        let bytes = match usize::try_from(length) {
            Ok(bytes) if bytes % 8 == 0 => bytes,
            _ => {
                return Err(Corruption::RowLength {
                    decoded: self.taken - known as u64,
                    length,
                })
            }
        };
        if self.end + ROW_HEAD_BYTES + bytes > self.limit {
            if self.rows > 0 {
                return Ok(false);
            }
            self.state = RowState::Long {
                length: bytes,
                given: 0,
                held: 0,
            };
            return Ok(true);
        }
        self.buffer[self.end..][..ROW_HEAD_BYTES].copy_from_slice(&head(bytes));
        self.state = RowState::Body {
            length: bytes,
            copied: 0,
        };
        Ok(true)
    }

    fn finish_row(&mut self) {
        if let RowState::Body { length, copied } = self.state {
            if copied == length {
                self.end += ROW_HEAD_BYTES + length;
                self.rows += 1;
                self.state = BETWEEN_ROWS;
            }
        }
    }

    /// Fails if the part ends inside a row.
    pub fn check_end(&self) -> Result<(), Corruption> {
        let bytes = match self.state {
            RowState::Length { known, .. } => known,
            RowState::Body { copied, .. } => LENGTH_BYTES + copied,
            RowState::Long { given, held, .. } => LENGTH_BYTES + given + held,
        } as u64;
        if bytes == 0 {
            return Ok(());
        }
        Err(Corruption::PartialRow {
            decoded: self.taken - bytes,
            bytes,
        })
    }

    /// Keeps the rows of the current part; the next bytes belong to another part.
    pub fn end_part(&mut self) {
        (self.part_end, self.part_rows) = (self.end, self.rows);
        self.start_part();
    }

    /// Removes the rows of the current part that were not handed out.
    pub fn abandon_part(&mut self) {
        (self.end, self.rows) = (self.part_end, self.part_rows);
        self.start_part();
    }

    fn start_part(&mut self) {
        self.handed_out = 0;
        self.taken = 0;
        self.state = BETWEEN_ROWS;
    }

    /// Hands out the batch; the next `take` overwrites its memory.
    pub fn turn(&mut self) -> Batch<'_> {
        if let RowState::Long {
            length,
            given,
            held,
        } = self.state
        {
            return self.turn_piece(length, given, held);
        }
        if self.rows == 0 {
            // Nothing is handed out, so an unfinished row stays in place.
            return Batch::Empty;
        }
        if let RowState::Body { copied, .. } = self.state {
            self.moved = Some(Moved {
                start: self.end,
                bytes: ROW_HEAD_BYTES + copied,
            });
        }
        let (end, rows) = (self.end, self.rows);
        self.handed_out += u64::from(rows - self.part_rows);
        (self.end, self.rows) = (0, 0);
        (self.part_end, self.part_rows) = (0, 0);
        Batch::Rows {
            bytes: &self.buffer[..end],
            rows,
        }
    }

    fn turn_piece(&mut self, row_bytes: usize, offset: usize, held: usize) -> Batch<'_> {
        if held == 0 {
            return Batch::Empty;
        }
        if offset + held == row_bytes {
            self.handed_out += 1;
            self.state = BETWEEN_ROWS;
        } else {
            self.state = RowState::Long {
                length: row_bytes,
                given: offset + held,
                held: 0,
            };
        }
        Batch::Piece {
            bytes: &self.buffer[..held],
            piece: Piece { offset, row_bytes },
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
