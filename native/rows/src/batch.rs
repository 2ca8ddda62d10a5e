//! The buffer that batches are filled in.

use crate::progress::Piece;

/// What [`turn`](crate::RowDecoder::turn) hands out: bytes of the decoder, until its next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch<'a> {
    /// Nothing was decoded since the last turn.
    Empty,
    /// Whole rows, each behind its head.
    Rows { bytes: &'a [u8], rows: u32 },
    /// The next bytes of a row that is longer than a batch, without a head.
    Piece { bytes: &'a [u8], piece: Piece },
}

/// Bytes behind a batch's last row, so that short rows are copied in pieces of a fixed size.
pub(crate) const SLACK_BYTES: usize = 128;

/// Memory for `bytes` bytes of rows; `None` without memory.
pub(crate) fn buffer(bytes: usize) -> Option<Vec<u8>> {
    let mut buffer = Vec::new();
    let length = bytes + SLACK_BYTES;
    buffer.try_reserve_exact(length).ok()?;
    buffer.resize(length, 0);
    Some(buffer)
}
