//! The endpoint's messages: one fetch, start to finish.
//!
//! ```text
//!  reader                                   owner
//!    | FETCH {blocks, first credits}          |
//!    |--------------------------------------->|  resolve, read lengths
//!    |            one-sided WRITEs into credits|
//!    |<=======================================|
//!    |   LAYOUT {status, length of each block}|
//!    |<---------------------------------------|
//!    |   PUSHED {credit, length, crc}...      |
//!    |<---------------------------------------|
//!    | CREDIT {more}                          |  only when the first credits were too small
//!    |--------------------------------------->|
//!    |            WRITEs, PUSHED ... (last)   |
//!    |<=======================================|
//! ```
//! The bytes of all blocks with status `Ok` form one dense stream in request order. Credits are
//! filled in the order they were given, each from its start and, except for the stream's last
//! one, to its end. `LAYOUT` precedes the first `PUSHED`; a `PUSHED` follows the writes it names on
//! the same connection. `FAILED` ends a request at any time, after it no write will come.

use crate::block::{BlockId, BlockStatus, BLOCK_ID_BYTES};
use crate::WireError;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Most blocks one `FETCH` may name.
pub const MAX_BLOCKS: u32 = 32_768;
/// Most credits one `FETCH` or `CREDIT` may carry.
pub const MAX_CREDITS: u32 = 4_096;
/// Longest text of a `FAILED`, in bytes.
pub const MAX_DETAIL_BYTES: usize = 1_024;

/// Registered bytes of the reader that the owner may write: 24 bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Credit {
    /// Remote key, from the reader's fabric.
    pub key: U64,
    /// Offset (or address) the key is relative to.
    pub offset: U64,
    /// Bytes.
    pub length: U32,
    /// Zero.
    pub reserved: U32,
}

/// One credit that was filled: 16 bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Chunk {
    /// Position of the credit among all credits of the request, from 0.
    pub credit: U32,
    /// Bytes written to it.
    pub length: U32,
    /// CRC-32C of these bytes, computed where they were read from the file.
    pub crc: U32,
    /// Zero.
    pub reserved: U32,
}

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
    /// An entry for a block that is there.
    #[must_use]
    pub fn found(length: u64) -> Self {
        Self {
            status: (BlockStatus::Ok as u32).into(),
            reserved: 0.into(),
            length: length.into(),
        }
    }

    /// An entry for a block that is not.
    #[must_use]
    pub fn missing(status: BlockStatus) -> Self {
        Self {
            status: (status as u32).into(),
            reserved: 0.into(),
            length: 0.into(),
        }
    }
}

/// Why an owner gave a request up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum FailureCode {
    /// The reader asked for it.
    Cancelled = 1,
    /// The owner has as many requests as it can hold; try again or elsewhere.
    Busy = 2,
    /// The reader's deadline passed at the owner.
    DeadlinePassed = 3,
    /// A fault of the owner, named in the detail.
    Internal = 4,
    /// The owner is shutting down.
    Closing = 5,
}

impl TryFrom<u32> for FailureCode {
    type Error = WireError;
    fn try_from(value: u32) -> Result<Self, Self::Error> {
        Ok(match value {
            1 => Self::Cancelled,
            2 => Self::Busy,
            3 => Self::DeadlinePassed,
            4 => Self::Internal,
            5 => Self::Closing,
            got => {
                return Err(WireError::BadValue {
                    what: "failure code",
                    got: u64::from(got),
                });
            }
        })
    }
}

/// `FETCH`: 16-byte head, credits, blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// How long the reader will wait, in milliseconds from now.
    pub deadline_ms: u32,
    /// First credits, possibly none.
    pub credits: Vec<Credit>,
    /// Blocks wanted, in the order they are to be packed.
    pub blocks: Vec<BlockId>,
}

/// `LAYOUT`: 8-byte head, one entry per block of the request, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Entries.
    pub blocks: Vec<BlockEntry>,
}

/// `CREDIT`: 8-byte head, credits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoreCredit {
    /// Credits that follow those given before.
    pub credits: Vec<Credit>,
}

/// `PUSHED`: 8-byte head (count, last), chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// Chunks in stream order.
    pub chunks: Vec<Chunk>,
    /// The stream is complete; nothing more will be written for this request.
    pub last: bool,
}

/// `FAILED`: 8-byte head (code, detail length), detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Why.
    pub code: FailureCode,
    /// What a person should read; cut at [`MAX_DETAIL_BYTES`].
    pub detail: String,
}

/// A bounds-checked walk over a body.
struct Body<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    fn new(what: &'static str, rest: &'a [u8]) -> Self {
        Self { what, rest }
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes([0, 1, 2, 3].map({
            let bytes = self.bytes(4)?;
            move |i| bytes[i]
        })))
    }

    fn count(&mut self, what: &'static str, limit: u32) -> Result<usize, WireError> {
        let got = self.u32()?;
        if got > limit {
            return Err(WireError::TooLarge {
                what,
                got: u64::from(got),
                limit: u64::from(limit),
            });
        }
        Ok(got as usize)
    }

    fn bytes(&mut self, needed: usize) -> Result<&'a [u8], WireError> {
        if self.rest.len() < needed {
            return Err(WireError::Truncated {
                what: self.what,
                needed,
                got: self.rest.len(),
            });
        }
        let (taken, rest) = self.rest.split_at(needed);
        self.rest = rest;
        Ok(taken)
    }

    fn array<T: FromBytes + Immutable + KnownLayout + Unaligned + Copy>(
        &mut self,
        count: usize,
    ) -> Result<Vec<T>, WireError> {
        // The counts are bounded by `count`, so this cannot overflow.
        let bytes = self.bytes(count * size_of::<T>())?;
        // Unaligned and exactly `count` long, so the cast has no way to fail.
        Ok(<[T]>::ref_from_bytes(bytes)
            .map(<[T]>::to_vec)
            .unwrap_or_default())
    }

    fn end(self) -> Result<(), WireError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(WireError::Trailing {
            what: self.what,
            extra: self.rest.len(),
        })
    }
}

fn put_u32(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(&(value as u32).to_le_bytes());
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
        put_u32(&mut out, 0);
        out.extend_from_slice(self.credits.as_bytes());
        out.extend_from_slice(self.blocks.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for a request of no blocks.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("FETCH", body);
        let deadline_ms = body.u32()?;
        let credits = body.count("FETCH credits", MAX_CREDITS)?;
        let blocks = body.count("FETCH blocks", MAX_BLOCKS)?;
        let _reserved = body.u32()?;
        if blocks == 0 {
            return Err(WireError::BadValue {
                what: "FETCH blocks",
                got: 0,
            });
        }
        let message = Self {
            deadline_ms,
            credits: body.array(credits)?,
            blocks: body.array(blocks)?,
        };
        body.end()?;
        Ok(message)
    }
}

impl Layout {
    /// The body's bytes.
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
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for an unknown status, or a length on a
    /// block that is not there.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("LAYOUT", body);
        let count = body.count("LAYOUT blocks", MAX_BLOCKS)?;
        let _reserved = body.u32()?;
        let blocks: Vec<BlockEntry> = body.array(count)?;
        body.end()?;
        for block in &blocks {
            if BlockStatus::try_from(block.status.get())? != BlockStatus::Ok && block.length != 0 {
                let got = block.length.get();
                return Err(WireError::BadValue {
                    what: "length of a missing block",
                    got,
                });
            }
        }
        Ok(Self { blocks })
    }
}

impl MoreCredit {
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
    /// `Truncated`, `Trailing`, `TooLarge`.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("CREDIT", body);
        let count = body.count("CREDIT credits", MAX_CREDITS)?;
        let _reserved = body.u32()?;
        let credits = body.array(count)?;
        body.end()?;
        Ok(Self { credits })
    }
}

impl Pushed {
    /// The body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.chunks.len() * 16);
        put_u32(&mut out, self.chunks.len());
        put_u32(&mut out, usize::from(self.last));
        out.extend_from_slice(self.chunks.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for a `last` that is neither 0 nor 1.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("PUSHED", body);
        let count = body.count("PUSHED chunks", MAX_CREDITS)?;
        let last = match body.u32()? {
            0 => false,
            1 => true,
            got => {
                return Err(WireError::BadValue {
                    what: "PUSHED last",
                    got: u64::from(got),
                });
            }
        };
        let chunks = body.array(count)?;
        body.end()?;
        Ok(Self { chunks, last })
    }
}

impl Failed {
    /// The body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut end = self.detail.len().min(MAX_DETAIL_BYTES);
        while !self.detail.is_char_boundary(end) {
            end -= 1;
        }
        let detail = &self.detail[..end];
        let mut out = Vec::with_capacity(8 + detail.len());
        put_u32(&mut out, self.code as usize);
        put_u32(&mut out, detail.len());
        out.extend_from_slice(detail.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`, `NotUtf8`; `BadValue` for an unknown code.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("FAILED", body);
        let code = FailureCode::try_from(body.u32()?)?;
        let length = body.count("FAILED detail", MAX_DETAIL_BYTES as u32)?;
        let detail = std::str::from_utf8(body.bytes(length)?)
            .map_err(|_| WireError::NotUtf8 {
                what: "FAILED detail",
            })?
            .to_owned();
        body.end()?;
        Ok(Self { code, detail })
    }
}
