//! Why a part cannot be decoded.

/// What is wrong with a part. Offsets count from the part's first byte.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corruption {
    #[error("a row of {length} bytes at decoded byte {offset}; a length is a multiple of 8, 0 or more")]
    RowLength { offset: u64, length: i32 },
}
