//! How far a call came.

/// What [`push`](crate::RowDecoder::push) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Pushed {
    /// Bytes of the input that need not be pushed again.
    pub taken: usize,
    /// The next row needs an empty batch: call [`turn`](crate::RowDecoder::turn), then push the rest
    /// of the input, even if nothing is left of it.
    pub full: bool,
}

/// What [`end_part`](crate::RowDecoder::end_part) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Ended {
    /// The part is not over: call [`turn`](crate::RowDecoder::turn), then `end_part` again.
    pub full: bool,
}

/// Where some bytes of a row that is longer than a batch belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes of the row in the pieces before this one.
    pub offset: usize,
    /// Bytes of the whole row.
    pub row_bytes: usize,
}
