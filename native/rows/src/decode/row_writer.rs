//! Cuts the row stream into rows and puts them into batches.

use super::batch::{head, Batch, Piece, ROW_HEAD_BYTES};
use super::filling_batch::{FillingBatch, LENGTH_BYTES};
use crate::format::corruption::Corruption;

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
    batch: FillingBatch,
    /// Bytes of the part's row stream that were taken.
    taken: u64,
    state: RowState,
    /// The place of an unfinished row, head included, after the batch that was handed out. The next
    /// `take` moves the row to the front.
    moved: Option<MovedRow>,
}

struct MovedRow {
    start: usize,
    bytes: usize,
}

impl RowWriter {
    /// Returns a writer of batches of up to `limit` bytes; `None` if the buffer cannot be
    /// allocated.
    pub fn new(limit: usize) -> Option<Self> {
        Some(Self {
            batch: FillingBatch::new(limit)?,
            taken: 0,
            state: BETWEEN_ROWS,
            moved: None,
        })
    }

    /// Returns whether a turn would hand out rows, or a piece of a row.
    pub fn has_batch(&self) -> bool {
        self.batch.has_rows() || matches!(self.state, RowState::Long { held: 1.., .. })
    }

    /// Returns whether the batch is the last piece of a long row.
    pub fn ends_long_row(&self) -> bool {
        matches!(self.state, RowState::Long { length, given, held } if given + held == length)
    }

    pub fn memory_bytes(&self) -> usize {
        self.batch.memory_bytes()
    }

    pub fn rows_handed_out(&self) -> u64 {
        self.batch.rows_handed_out()
    }

    /// Takes decoded bytes and returns how many. If it takes fewer than all, the next row needs an
    /// empty batch.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, Corruption> {
        if let Some(MovedRow { start, bytes }) = self.moved.take() {
            self.batch.move_to_front(start, bytes);
        }
        let mut at = 0;
        loop {
            if let RowState::Length { known: 0, .. } = self.state {
                let taken = self.batch.take_whole_rows(&bytes[at..]);
                self.taken += taken as u64;
                at += taken;
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

    pub fn is_between_rows(&self) -> bool {
        matches!(self.state, RowState::Length { known: 0, .. })
    }

    /// Returns space for rows of `bytes` bytes, heads included, after the batch's last row; `None`
    /// if too little is left. Call it only between two rows. [`add`](Self::add) then makes the rows
    /// part of the batch.
    pub fn space(&mut self, bytes: usize) -> Option<&mut [u8]> {
        // The unfinished row that was to be moved belongs to an abandoned part.
        self.moved = None;
        self.batch.space(bytes)
    }

    /// Returns whether an empty batch has space for rows of `bytes` bytes, heads included.
    pub fn would_fit(&self, bytes: usize) -> bool {
        bytes <= self.batch.limit()
    }

    /// Adds rows that were written to [`space`](Self::space). `taken` is their size in the row
    /// stream, in bytes.
    pub fn add(&mut self, rows: usize, bytes: usize, taken: usize) {
        self.batch.add(rows, bytes);
        self.taken += taken as u64;
    }

    /// Takes rows that already have heads, as many as fit in the batch, and returns their bytes.
    pub fn take_placed(&mut self, placed: &[u8]) -> usize {
        if !self.is_between_rows() {
            return 0;
        }
        self.moved = None;
        let (bytes, rows) = self.batch.take_placed(placed);
        self.taken += (bytes - rows * (ROW_HEAD_BYTES - LENGTH_BYTES)) as u64;
        bytes
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
                self.batch.write(ROW_HEAD_BYTES + *copied, &bytes[..piece]);
                *copied += piece;
                piece
            }
            RowState::Long {
                length,
                given,
                held,
            } => {
                let room = (self.batch.limit() - *held).min(*length - *given - *held);
                let piece = bytes.len().min(room);
                self.batch.write(*held, &bytes[..piece]);
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
        if !self.batch.has_space(ROW_HEAD_BYTES + bytes) {
            if self.batch.has_rows() {
                return Ok(false);
            }
            self.state = RowState::Long {
                length: bytes,
                given: 0,
                held: 0,
            };
            return Ok(true);
        }
        self.batch.write(0, &head(bytes));
        self.state = RowState::Body {
            length: bytes,
            copied: 0,
        };
        Ok(true)
    }

    fn finish_row(&mut self) {
        if let RowState::Body { length, copied } = self.state {
            if copied == length {
                self.batch.add(1, ROW_HEAD_BYTES + length);
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
        self.batch.end_part();
        self.start_part();
    }

    /// Removes the rows of the current part that were not handed out.
    pub fn abandon_part(&mut self) {
        self.batch.abandon_part();
        self.start_part();
    }

    fn start_part(&mut self) {
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
        if !self.batch.has_rows() {
            // Nothing is handed out, so an unfinished row stays in place.
            return Batch::Empty;
        }
        if let RowState::Body { copied, .. } = self.state {
            self.moved = Some(MovedRow {
                start: self.batch.end(),
                bytes: ROW_HEAD_BYTES + copied,
            });
        }
        self.batch.turn()
    }

    fn turn_piece(&mut self, row_bytes: usize, offset: usize, held: usize) -> Batch<'_> {
        debug_assert!(offset + held <= row_bytes);
        if held == 0 {
            return Batch::Empty;
        }
        if offset + held == row_bytes {
            self.batch.count_long_row();
            self.state = BETWEEN_ROWS;
        } else {
            self.state = RowState::Long {
                length: row_bytes,
                given: offset + held,
                held: 0,
            };
        }
        Batch::Piece {
            bytes: self.batch.front(held),
            piece: Piece { offset, row_bytes },
        }
    }
}
