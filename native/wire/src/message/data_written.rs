//! `DATA_WRITTEN`: the buffers that the server has written.
//!
//! ```text
//!  0 u32 buffers (n)
//!  4 u32 last       0 or 1
//!  8 n x WrittenBuffer
//! ```

use super::body::{put_u32, BodyReader};
use super::MAX_BUFFERS;
use crate::WireError;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One buffer that was written: 16 bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct WrittenBuffer {
    /// Position of the buffer among all buffers of the request, from 0.
    pub buffer: U32,
    /// Bytes written to it, at least 1.
    pub length: U32,
    /// CRC-32C of these bytes, computed when they were read from the file; 0 if `unsummed`.
    pub crc: U32,
    /// 1 if there is no checksum, which only a `FETCH` with `reader_verifies` allows; otherwise 0.
    pub unsummed: U32,
}

impl WrittenBuffer {
    /// Returns the checksum, if there is one.
    #[must_use]
    pub fn sum(&self) -> Option<u32> {
        (self.unsummed.get() == 0).then(|| self.crc.get())
    }
}

/// `DATA_WRITTEN`: 8-byte head (count, last), buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataWritten {
    /// The buffers in stream order.
    pub buffers: Vec<WrittenBuffer>,
    /// The stream is complete; nothing more will be written for this request.
    pub last: bool,
}

impl DataWritten {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.buffers.len() * 16);
        put_u32(&mut out, self.buffers.len());
        put_u32(&mut out, usize::from(self.last));
        out.extend_from_slice(self.buffers.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for a `last` that is neither 0 nor 1, an
    /// empty buffer, a checksum of one that has none, or a message with neither a buffer nor `last`.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("DATA_WRITTEN", body);
        let count = body.count("DATA_WRITTEN buffers", MAX_BUFFERS)?;
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
            body.nonzero("DATA_WRITTEN buffers", count as u32)?;
        }
        let buffers: Vec<WrittenBuffer> = body.array(count)?;
        for buffer in &buffers {
            body.nonzero("length of a written buffer", buffer.length.get())?;
            match buffer.unsummed.get() {
                0 => {}
                1 => body.zero(buffer.crc.get())?,
                got => {
                    return Err(WireError::BadValue {
                        what: "unsummed of a written buffer",
                        got: u64::from(got),
                    });
                }
            }
        }
        body.end()?;
        Ok(Self { buffers, last })
    }
}
