//! Batches: what is handed out, the heads of rows in it, and the buffer that it is filled in.

/// A batch that [`turn`](crate::RowDecoder::turn) hands out. The decoder owns its bytes and
/// overwrites them in its next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch<'a> {
    /// Nothing was decoded since the last turn.
    Empty,
    /// Whole rows, each behind its head.
    Rows { bytes: &'a [u8], rows: u32 },
    /// The next bytes of a row that is longer than a batch, without a head.
    Piece { bytes: &'a [u8], piece: Piece },
}

/// Bytes before each row in a batch: the row's length as a native-endian `u32`, then four zeros.
pub const ROW_HEAD_BYTES: usize = 8;

/// Returns the bytes that a batch has before a row of `length` bytes.
pub(crate) fn head(length: usize) -> [u8; ROW_HEAD_BYTES] {
    let [a, b, c, d] = (length as u32).to_ne_bytes();
    [a, b, c, d, 0, 0, 0, 0]
}

/// Returns the length of the row whose head starts `placed`; `None` if fewer than 4 bytes are left.
pub(crate) fn placed_length(placed: &[u8]) -> Option<usize> {
    let [a, b, c, d, ..] = *placed else {
        return None;
    };
    Some(u32::from_ne_bytes([a, b, c, d]) as usize)
}

/// Bytes behind a batch's last row, so that short rows are copied in pieces of a fixed size.
pub(crate) const SLACK_BYTES: usize = 128;

/// Allocates a batch buffer for `bytes` bytes of rows; `None` if the allocation fails.
pub(crate) fn buffer(bytes: usize) -> Option<Vec<u8>> {
    let mut buffer = Vec::new();
    let length = bytes + SLACK_BYTES;
    buffer.try_reserve_exact(length).ok()?;
    buffer.resize(length, 0);
    Some(buffer)
}

/// The result of [`push`](crate::RowDecoder::push).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct PushResult {
    /// Bytes of the input that need not be pushed again.
    pub taken: usize,
    /// The next row needs an empty batch: call [`turn`](crate::RowDecoder::turn), then push the rest
    /// of the input, even if nothing is left of it.
    pub full: bool,
}

/// The result of [`end_part`](crate::RowDecoder::end_part).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct PartEnd {
    /// The part is not over: call [`turn`](crate::RowDecoder::turn), then `end_part` again.
    pub full: bool,
}

/// The position of a piece in its row, which is longer than a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes of the row in the pieces before this one.
    pub offset: usize,
    /// Bytes of the whole row.
    pub row_bytes: usize,
}
