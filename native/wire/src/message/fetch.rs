//! `FETCH` and `MORE_BUFFERS`: the blocks a client wants and the memory the server may write them to.
//!
//! ```text
//!  FETCH                                      MORE_BUFFERS
//!   0 u32 deadline_ms                          0 u32 buffers (n)
//!   4 u32 buffers (n)                          4 u32 0
//!   8 u32 blocks  (b)                          8 n x RemoteBuffer
//!  12 u32 flags    bit 0: writes_only, bit 1: reader_verifies
//!  16 n x RemoteBuffer, ranges that name b blocks (see `block_list`)
//! ```

use super::body::{put_u32, BodyReader};
use super::{block_list, MAX_BLOCKS, MAX_BUFFERS};
use crate::block::BlockId;
use crate::WireError;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Registered memory of the sender that the receiver may access one-sidedly: 24 bytes. In a `FETCH`,
/// memory of the client that the server may write.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct RemoteBuffer {
    /// Remote key, from the fabric of the memory's endpoint.
    pub key: U64,
    /// Position of its first byte under that key: an offset or an address, as the fabric says.
    pub offset: U64,
    /// Bytes, at least 1.
    pub length: U32,
    /// Zero.
    pub reserved: U32,
}

/// `FETCH`: 16-byte head, buffers, ranges of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Time for which the client waits, in milliseconds from now.
    pub deadline_ms: u32,
    /// The server must write the bytes; it may not answer with a `READ_OFFER`.
    pub writes_only: bool,
    /// The blocks carry checksums of their own, which their reader verifies: the server need not sum them.
    pub reader_verifies: bool,
    /// First buffers, possibly none.
    pub buffers: Vec<RemoteBuffer>,
    /// Blocks wanted, in the order of the byte stream; at least 1.
    pub blocks: Vec<BlockId>,
}

/// `MORE_BUFFERS`: 8-byte head, buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoreBuffers {
    /// Buffers that follow those sent before; at least 1.
    pub buffers: Vec<RemoteBuffer>,
}

/// Reads `count` buffers, none of them empty or beyond the last address.
pub(super) fn buffers(
    body: &mut BodyReader<'_>,
    count: usize,
) -> Result<Vec<RemoteBuffer>, WireError> {
    let buffers: Vec<RemoteBuffer> = body.array(count)?;
    for buffer in &buffers {
        body.nonzero("length of a buffer", buffer.length.get())?;
        body.range(
            "offset of a buffer",
            buffer.offset.get(),
            buffer.length.get(),
        )?;
        body.zero(buffer.reserved.get())?;
    }
    Ok(buffers)
}

impl Fetch {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.buffers.len() * 24 + 32 + self.blocks.len());
        put_u32(&mut out, self.deadline_ms as usize);
        put_u32(&mut out, self.buffers.len());
        put_u32(&mut out, self.blocks.len());
        let flags = usize::from(self.writes_only) | usize::from(self.reader_verifies) << 1;
        put_u32(&mut out, flags);
        out.extend_from_slice(self.buffers.as_bytes());
        block_list::put(&mut out, &self.blocks);
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for a request of no blocks, an empty range,
    /// an empty buffer, one whose end overflows, an unknown flag, an integer of more than 64 bits
    /// or a reserved field that is not zero.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("FETCH", body);
        let deadline_ms = body.u32()?;
        let buffers = body.count("FETCH buffers", MAX_BUFFERS)?;
        let blocks = body.count("FETCH blocks", MAX_BLOCKS)?;
        let flags = body.u32()?;
        if flags > 3 {
            return Err(WireError::BadValue {
                what: "flags of FETCH",
                got: u64::from(flags),
            });
        }
        body.nonzero("FETCH blocks", blocks as u32)?;
        let buffers = self::buffers(&mut body, buffers)?;
        let blocks = block_list::read(&mut body, blocks)?;
        body.end()?;
        Ok(Self {
            deadline_ms,
            writes_only: flags & 1 != 0,
            reader_verifies: flags & 2 != 0,
            buffers,
            blocks,
        })
    }
}

impl MoreBuffers {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.buffers.len() * 24);
        put_u32(&mut out, self.buffers.len());
        put_u32(&mut out, 0);
        out.extend_from_slice(self.buffers.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for no buffers, an empty one, one whose end
    /// overflows or a reserved field that is not zero.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("MORE_BUFFERS", body);
        let count = body.count("MORE_BUFFERS buffers", MAX_BUFFERS)?;
        let reserved = body.u32()?;
        body.zero(reserved)?;
        body.nonzero("MORE_BUFFERS buffers", count as u32)?;
        let buffers = buffers(&mut body, count)?;
        body.end()?;
        Ok(Self { buffers })
    }
}
