//! `FETCH` and `MORE_BUFFERS`: what a reader wants and where it may be written.
//!
//! ```text
//!  FETCH                                      MORE_BUFFERS
//!   0 u32 deadline_ms                          0 u32 credits (c)
//!   4 u32 credits (c)                          4 u32 0
//!   8 u32 blocks  (b)                          8 c x RemoteBuffer
//!  12 u32 flags    bit 0: push_only
//!  16 c x RemoteBuffer, b x BlockId
//! ```

use super::body::{put_u32, Body};
use super::{MAX_BLOCKS, MAX_BUFFERS};
use crate::block::{BlockId, BLOCK_ID_BYTES};
use crate::WireError;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Registered bytes of the reader that the owner may write: 24 bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct RemoteBuffer {
    /// Remote key, from the reader's fabric.
    pub key: U64,
    /// Offset (or address) the key is relative to.
    pub offset: U64,
    /// Bytes.
    pub length: U32,
    /// Zero.
    pub reserved: U32,
}

/// `FETCH`: 16-byte head, credits, blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// How long the reader will wait, in milliseconds from now.
    pub deadline_ms: u32,
    /// The bytes must come by writes: no `READ_OFFER`.
    pub push_only: bool,
    /// First credits, possibly none.
    pub credits: Vec<RemoteBuffer>,
    /// Blocks wanted, in the order they are to be packed.
    pub blocks: Vec<BlockId>,
}

/// `MORE_BUFFERS`: 8-byte head, credits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoreBuffers {
    /// Credits that follow those given before.
    pub credits: Vec<RemoteBuffer>,
}

/// Credits as they stand in a body, none of them empty.
fn credits(body: &mut Body<'_>, count: usize) -> Result<Vec<RemoteBuffer>, WireError> {
    let credits: Vec<RemoteBuffer> = body.array(count)?;
    for credit in &credits {
        body.nonzero("length of a credit", credit.length.get())?;
        body.zero(credit.reserved.get())?;
    }
    Ok(credits)
}

impl Fetch {
    /// The body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out =
            Vec::with_capacity(16 + self.credits.len() * 24 + self.blocks.len() * BLOCK_ID_BYTES);
        put_u32(&mut out, self.deadline_ms as usize);
        put_u32(&mut out, self.credits.len());
        put_u32(&mut out, self.blocks.len());
        put_u32(&mut out, usize::from(self.push_only));
        out.extend_from_slice(self.credits.as_bytes());
        out.extend_from_slice(self.blocks.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for a request of no blocks, an empty credit
    /// an unknown flag or a reserved field in use.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("FETCH", body);
        let deadline_ms = body.u32()?;
        let credits = body.count("FETCH credits", MAX_BUFFERS)?;
        let blocks = body.count("FETCH blocks", MAX_BLOCKS)?;
        let push_only = match body.u32()? {
            0 => false,
            1 => true,
            got => {
                return Err(WireError::BadValue {
                    what: "flags of FETCH",
                    got: u64::from(got),
                });
            }
        };
        body.nonzero("FETCH blocks", blocks as u32)?;
        let credits = self::credits(&mut body, credits)?;
        let blocks: Vec<BlockId> = body.array(blocks)?;
        for block in &blocks {
            body.zero(block.reserved.get())?;
        }
        body.end()?;
        Ok(Self {
            deadline_ms,
            push_only,
            credits,
            blocks,
        })
    }
}

impl MoreBuffers {
    /// The body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.credits.len() * 24);
        put_u32(&mut out, self.credits.len());
        put_u32(&mut out, 0);
        out.extend_from_slice(self.credits.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for no credits, an empty one or a reserved
    /// field in use.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("MORE_BUFFERS", body);
        let count = body.count("MORE_BUFFERS credits", MAX_BUFFERS)?;
        let reserved = body.u32()?;
        body.zero(reserved)?;
        body.nonzero("MORE_BUFFERS credits", count as u32)?;
        let credits = credits(&mut body, count)?;
        body.end()?;
        Ok(Self { credits })
    }
}
