//! The results of the decoder's calls.

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
