//! `FETCH_RESPONSE`: status and length of each block of a `FETCH`.
//!
//! ```text
//!  0 u32 blocks (b)
//!  4 u32 0
//!  8 b x BlockEntry
//! ```

use super::body::{put_u32, BodyReader};
use super::MAX_BLOCKS;
use crate::{BlockStatus, WireError};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Status and exact length of one block: 16 bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct BlockEntry {
    /// A [`BlockStatus`].
    pub status: U32,
    /// Zero.
    pub reserved: U32,
    /// Bytes in the stream; zero unless the status is `Ok`.
    pub length: U64,
}

impl BlockEntry {
    /// Returns an entry for a block that the server has.
    #[must_use]
    pub fn found(length: u64) -> Self {
        Self {
            status: (BlockStatus::Ok as u32).into(),
            reserved: 0.into(),
            length: length.into(),
        }
    }

    /// Returns an entry for a block that the server does not have, or cannot read.
    #[must_use]
    pub fn missing(status: BlockStatus) -> Self {
        Self {
            status: (status as u32).into(),
            reserved: 0.into(),
            length: 0.into(),
        }
    }
}

/// `FETCH_RESPONSE`: 8-byte head, one entry per block of the request, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchResponse {
    /// The entries, at least one.
    pub blocks: Vec<BlockEntry>,
}

impl FetchResponse {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.blocks.len() * 16);
        put_u32(&mut out, self.blocks.len());
        put_u32(&mut out, 0);
        out.extend_from_slice(self.blocks.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for no blocks, an unknown status, a length
    /// on a block whose status is not `Ok`, lengths whose sum exceeds `i64::MAX` (Java's long), or a
    /// reserved field that is not zero.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("FETCH_RESPONSE", body);
        let count = body.count("FETCH_RESPONSE blocks", MAX_BLOCKS)?;
        let reserved = body.u32()?;
        body.zero(reserved)?;
        body.nonzero("FETCH_RESPONSE blocks", count as u32)?;
        let blocks: Vec<BlockEntry> = body.array(count)?;
        let mut total = 0_u64;
        for block in &blocks {
            let length = block.length.get();
            let bad = |what| WireError::BadValue { what, got: length };
            body.zero(block.reserved.get())?;
            if BlockStatus::try_from(block.status.get())? != BlockStatus::Ok && length != 0 {
                return Err(bad("length of a missing block"));
            }
            total = total
                .checked_add(length)
                .filter(|total| i64::try_from(*total).is_ok())
                .ok_or_else(|| bad("length of a block, summed with those before"))?;
        }
        body.end()?;
        Ok(Self { blocks })
    }
}
