//! The record in which finished blocks cross from native code to Java, many per JNI call.
//!
//! ```text
//!   0 u32 record_bytes     whole record, a multiple of 8
//!   4 u32 outcome          0: delivered; else a FetchErrorCode
//!   8 u64 request
//!  16 u32 first_block      position of the first block in the request
//!  20 u32 block_count      blocks in this record (on an error: all that will not come)
//!  24 u64 batch            handle that holds the segments' memory; 0: none; released once
//!  32 u32 segment_count
//!  36 u32 fabric           FabricCode
//!  40 u32 last             1: nothing follows for this request
//!  44 u32 detail_bytes     length of the text, without padding
//!  48 segments: segment_count x { u32 slab, u32 offset, u32 length, u32 0 }
//!     blocks:   block_count   x { u32 status, u32 0, u64 length }   (none on an error)
//!     detail:   UTF-8, zero-padded to a multiple of 8
//! ```
//! The segments, one after the other, are the blocks' bytes, one after the other: the first block
//! starts at the first segment's start. All little-endian.

use crate::message::BlockEntry;
use zerocopy::IntoBytes;

/// Bytes before the segments.
pub const RECORD_HEAD_BYTES: usize = 48;
/// Bytes of one segment.
pub const SLICE_BYTES: usize = 16;
/// Bytes of one block entry.
pub const BLOCK_ENTRY_BYTES: usize = 16;

/// Which fabric carried the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum FabricCode {
    /// None did.
    None = 0,
    /// TCP.
    Tcp = 1,
    /// Shared memory of one host.
    Shm = 2,
    /// RDMA.
    Verbs = 3,
}

/// Why blocks will not come through Faro. Java has one exception type for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum FetchErrorCode {
    /// No fabric reaches the peer.
    Unreachable = 1,
    /// The connection was lost, and the retry as well.
    ConnectionLost = 2,
    /// The request's deadline passed.
    TimedOut = 3,
    /// Bytes arrived whose CRC disagrees.
    Corrupt = 4,
    /// The arena had no room before the wait's deadline.
    PoolExhausted = 5,
    /// The peer refused or failed the request.
    Refused = 6,
    /// The peer broke the protocol.
    Protocol = 7,
    /// This endpoint is closing.
    Closing = 8,
    /// The caller cancelled.
    Cancelled = 9,
}

/// A run of bytes in a slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSlice {
    /// Slab index in the pool.
    pub slab: u32,
    /// Offset in the slab.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

/// One record, see the module's diagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Error, or `None` for delivered blocks.
    pub error: Option<FetchErrorCode>,
    /// Request.
    pub request: u64,
    /// Position of the first block.
    pub first_block: u32,
    /// Number of blocks.
    pub block_count: u32,
    /// Memory handle or 0.
    pub batch: u64,
    /// Where the bytes came from.
    pub fabric: FabricCode,
    /// Nothing follows for this request.
    pub last: bool,
    /// The bytes.
    pub segments: &'a [BufferSlice],
    /// The blocks; as many as `block_count`, or none on an error.
    pub blocks: &'a [BlockEntry],
    /// For people; empty when delivered.
    pub detail: &'a str,
}

impl Record<'_> {
    /// Length of the encoded record, a multiple of 8.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        RECORD_HEAD_BYTES
            + self.segments.len() * SLICE_BYTES
            + self.blocks.len() * BLOCK_ENTRY_BYTES
            + self.detail.len().next_multiple_of(8)
    }

    /// Appends the record to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let bytes = self.encoded_bytes();
        out.reserve(bytes);
        let put = |out: &mut Vec<u8>, value: u32| out.extend_from_slice(&value.to_le_bytes());
        let start = out.len();
        put(out, bytes as u32);
        put(out, self.error.map_or(0, |error| error as u32));
        out.extend_from_slice(&self.request.to_le_bytes());
        put(out, self.first_block);
        put(out, self.block_count);
        out.extend_from_slice(&self.batch.to_le_bytes());
        put(out, self.segments.len() as u32);
        put(out, self.fabric as u32);
        put(out, u32::from(self.last));
        put(out, self.detail.len() as u32);
        for segment in self.segments {
            for value in [segment.slab, segment.offset, segment.length, 0] {
                put(out, value);
            }
        }
        out.extend_from_slice(self.blocks.as_bytes());
        out.extend_from_slice(self.detail.as_bytes());
        out.resize(start + bytes, 0);
    }
}
