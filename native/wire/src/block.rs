//! The name of a block, and the status that a server gives it.

use zerocopy::little_endian::{I64, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Spark's `(shuffleId, mapId, startReduceId, endReduceId)`; `end` is exclusive. The layout is how Java hands blocks
/// over; a `FETCH` names them by ranges.
///
/// ```text
///  0        8            12             16           20         24
///  +--------+------------+--------------+------------+----------+
///  | map_id | shuffle_id | start_reduce | end_reduce | piece    |
///  | i64    | u32        | u32          | u32        | u32      |
///  +--------+------------+--------------+------------+----------+
/// ```
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct BlockId {
    /// Spark's attempt-unique map id.
    pub map_id: I64,
    /// Spark's shuffle id.
    pub shuffle_id: U32,
    /// First reduce partition.
    pub start_reduce: U32,
    /// One past the last reduce partition.
    pub end_reduce: U32,
    /// 0 is the whole block. `n` is its bytes from `(n - 1) * PIECE_BYTES` up to `n * PIECE_BYTES`
    /// or its end, and none beyond its end. So a client can fetch a block of any length with little
    /// memory.
    pub piece: U32,
}

/// Bytes of a piece of a block, except its last.
pub const PIECE_BYTES: u64 = 4 << 20;

/// Bytes of a [`BlockId`].
pub const BLOCK_ID_BYTES: usize = 24;

/// One map output: a data file and its index file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutputId {
    /// Spark's shuffle id.
    pub shuffle_id: u32,
    /// Spark's attempt-unique map id.
    pub map_id: i64,
}

impl BlockId {
    /// Returns the map output that holds this block.
    #[must_use]
    pub fn output(&self) -> OutputId {
        OutputId {
            shuffle_id: self.shuffle_id.get(),
            map_id: self.map_id.get(),
        }
    }
}

coded! {
    /// The server's answer for one block.
    pub enum BlockStatus: "block status" {
        /// Bytes follow.
        Ok = 0,
        /// The server has no such map output.
        UnknownOutput = 1,
        /// The reduce range lies outside the map output's partitions, or is empty or reversed.
        BadRange = 2,
        /// The index file is truncated, or its offsets run backwards or beyond the data file.
        BadIndex = 3,
        /// The operating system refused to read the file.
        Unreadable = 4,
    }
}
