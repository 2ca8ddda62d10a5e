//! `DATA_WRITTEN`: which credits were filled.
//!
//! ```text
//!  0 u32 chunks (c)
//!  4 u32 last       0 or 1
//!  8 c x WrittenBuffer
//! ```

use super::body::{put_u32, Body};
use super::MAX_BUFFERS;
use crate::WireError;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One credit that was filled: 16 bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct WrittenBuffer {
    /// Position of the credit among all credits of the request, from 0.
    pub credit: U32,
    /// Bytes written to it.
    pub length: U32,
    /// CRC-32C of these bytes, computed where they were read from the file.
    pub crc: U32,
    /// Zero.
    pub reserved: U32,
}

/// `DATA_WRITTEN`: 8-byte head (count, last), chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataWritten {
    /// Chunks in stream order.
    pub chunks: Vec<WrittenBuffer>,
    /// The stream is complete; nothing more will be written for this request.
    pub last: bool,
}

impl DataWritten {
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
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for a `last` that is neither 0 nor 1, an
    /// empty chunk, a reserved field in use, or a message that says nothing (no chunk, not last).
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("DATA_WRITTEN", body);
        let count = body.count("DATA_WRITTEN chunks", MAX_BUFFERS)?;
        let last = match body.u32()? {
            0 => false,
            1 => true,
            got => {
                return Err(WireError::BadValue {
                    what: "DATA_WRITTEN last",
                    got: u64::from(got),
                });
            }
        };
        if !last {
            body.nonzero("DATA_WRITTEN chunks", count as u32)?;
        }
        let chunks: Vec<WrittenBuffer> = body.array(count)?;
        for chunk in &chunks {
            body.nonzero("length of a chunk", chunk.length.get())?;
            body.zero(chunk.reserved.get())?;
        }
        body.end()?;
        Ok(Self { chunks, last })
    }
}
