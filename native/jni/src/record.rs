//! The record that carries finished blocks from native code to Java; one JNI call carries many.
//!
//! ```text
//!   0 u32 record_bytes     whole record, a multiple of 8
//!   4 u32 outcome          0: delivered; else a FetchErrorCode
//!   8 u64 request
//!  16 u32 first_block      position of the first block in the request
//!  20 u32 block_count      blocks in this record (on an error: all blocks that failed)
//!  24 u64 batch            handle that holds the slices' memory; 0: none; released once
//!  32 u32 slice_count
//!  36 u32 fabric           FabricCode
//!  40 u32 flags            bit 0: nothing follows for this request; bit 1: memory is scarce
//!  44 u32 detail_bytes     length of the text, without padding
//!  48 slices:   slice_count x { u32 slab, u32 offset, u32 length, u32 0 }
//!     blocks:   block_count   x { u32 status, u32 0, u64 length }   (none on an error)
//!     detail:   UTF-8, zero-padded to a multiple of 8
//! ```
//! The slices, one after the other, are the blocks' bytes, one after the other: the first block
//! starts at the first slice's start. All little-endian.

use faro_wire::codes::{FabricCode, FetchErrorCode};
use faro_wire::message::BlockEntry;
use zerocopy::IntoBytes;

/// Bytes before the slices.
pub const RECORD_HEAD_BYTES: usize = 48;
/// Bytes of one slice.
pub const SLICE_BYTES: usize = 16;
/// Bytes of one block entry.
pub const BLOCK_ENTRY_BYTES: usize = 16;

/// A run of bytes in a slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabRun {
    /// Slab index in the pool.
    pub slab: u32,
    /// Offset in the slab.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

/// One record; the module's diagram has its layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRecord<'a> {
    /// Error, or `None` for delivered blocks.
    pub error: Option<FetchErrorCode>,
    /// Id of the request.
    pub request: u64,
    /// Position of the first block.
    pub first_block: u32,
    /// Number of blocks.
    pub block_count: u32,
    /// Handle of the slices' memory; 0 without slices.
    pub batch: u64,
    /// The fabric that carried the bytes.
    pub fabric: FabricCode,
    /// Nothing follows for this request.
    pub last: bool,
    /// True if at least half of the arena is in use, so that the bytes should be copied out of it.
    pub scarce: bool,
    /// The memory of the blocks' bytes.
    pub slices: &'a [SlabRun],
    /// `block_count` entries, or none on an error.
    pub blocks: &'a [BlockEntry],
    /// Text of the error, for people; empty for delivered blocks.
    pub detail: &'a str,
}

impl CompletionRecord<'_> {
    /// Returns the length of the encoded record, a multiple of 8.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        RECORD_HEAD_BYTES
            + self.slices.len() * SLICE_BYTES
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
        put(out, self.slices.len() as u32);
        put(out, self.fabric.0);
        put(out, u32::from(self.last) | u32::from(self.scarce) << 1);
        put(out, self.detail.len() as u32);
        for slice in self.slices {
            for value in [slice.slab, slice.offset, slice.length, 0] {
                put(out, value);
            }
        }
        out.extend_from_slice(self.blocks.as_bytes());
        out.extend_from_slice(self.detail.as_bytes());
        out.resize(start + bytes, 0);
    }
}
