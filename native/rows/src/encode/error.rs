//! The error of [`BlockCompressor`](crate::BlockCompressor).

use thiserror::Error;

/// The reason that a piece of a row stream cannot be compressed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompressError {
    /// The piece is longer than a block.
    #[error("a block of {bytes} bytes, at most {max} are allowed")]
    TooLong { bytes: usize, max: usize },
    /// The output is shorter than [`BlockCompressor::max_bytes`](crate::BlockCompressor::max_bytes).
    #[error("{room} bytes for a block that may take {max}")]
    NoRoom { room: usize, max: usize },
    /// The codec failed.
    #[error("{codec} cannot compress {bytes} bytes: {problem}")]
    Refused {
        codec: &'static str,
        bytes: usize,
        problem: String,
    },
}
