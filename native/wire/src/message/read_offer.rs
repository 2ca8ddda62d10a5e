//! `READ_OFFER`: all bytes of a `FETCH` are in the server's memory, and the client may read them
//! one-sidedly.
//!
//! ```text
//!   0 u32 slices (n)
//!   4 u32 0
//!   8 u64 key of the versions    16 u64 offset    24 u32 length    28 u32 0
//!  32 n x OfferedSlice
//! ```
//! The slices, one after the other, are the stream that the following `FETCH_RESPONSE` describes.
//! The client reads a slice, and when that has ended, the 8 bytes of its slot in the versions (a
//! little-endian word at `8 * slot`). It accepts the slice only if that word is `version` and the CRC
//! agrees. The server sends nothing more for this request: the client asks for the rest with
//! another `FETCH` that sets `writes_only`.

use super::body::{put_u32, BodyReader};
use super::RemoteBuffer;
use crate::WireError;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Maximum number of slices of one `READ_OFFER`: 1 GiB, if each is a page of 256 KiB.
pub const MAX_OFFERED_SLICES: u32 = 4_096;
/// Maximum bytes of one slice: a page, the largest memory that a client reads into.
pub const MAX_OFFERED_SLICE_BYTES: u32 = 256 << 10;
/// Bytes of one version.
pub const VERSION_BYTES: u32 = 8;

/// A run of bytes in one page of the server: 40 bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct OfferedSlice {
    /// Remote key, from the server's fabric.
    pub key: U64,
    /// Position of its first byte under that key: an offset or an address, as the fabric says.
    pub offset: U64,
    /// Bytes, at least 1 and at most [`MAX_OFFERED_SLICE_BYTES`].
    pub length: U32,
    /// The slot in the versions that changes when the page gets other bytes.
    pub slot: U32,
    /// The slot's version while the page holds these bytes; even.
    pub version: U64,
    /// CRC-32C of the bytes.
    pub crc: U32,
    /// Zero.
    pub reserved: U32,
}

/// `READ_OFFER`: 32-byte head, slices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOffer {
    /// The array of all versions.
    pub versions: RemoteBuffer,
    /// In stream order; at least 1.
    pub slices: Vec<OfferedSlice>,
}

impl ReadOffer {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 + self.slices.len() * size_of::<OfferedSlice>());
        put_u32(&mut out, self.slices.len());
        put_u32(&mut out, 0);
        out.extend_from_slice(self.versions.as_bytes());
        out.extend_from_slice(self.slices.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`; `TooLarge` for too many slices or a slice of more than a page;
    /// `BadValue` for no slices, an empty one, an odd version, a slot beyond the versions, memory
    /// whose end overflows, or a reserved field that is not zero.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("READ_OFFER", body);
        let count = body.count("READ_OFFER slices", MAX_OFFERED_SLICES)?;
        let reserved = body.u32()?;
        body.zero(reserved)?;
        body.nonzero("READ_OFFER slices", count as u32)?;
        let versions: RemoteBuffer = *body.array(1)?.first().ok_or(WireError::BadValue {
            what: "versions of READ_OFFER",
            got: 0,
        })?;
        body.zero(versions.reserved.get())?;
        body.range(
            "offset of the versions",
            versions.offset.get(),
            versions.length.get(),
        )?;
        let slots = versions.length.get() / VERSION_BYTES;
        let slices: Vec<OfferedSlice> = body.array(count)?;
        for slice in &slices {
            body.zero(slice.reserved.get())?;
            let length = slice.length.get();
            body.nonzero("length of a slice", length)?;
            WireError::check_limit(
                "length of a slice",
                u64::from(length),
                u64::from(MAX_OFFERED_SLICE_BYTES),
            )?;
            body.range("offset of a slice", slice.offset.get(), length)?;
            if slice.slot.get() >= slots {
                return Err(WireError::BadValue {
                    what: "slot of a slice",
                    got: u64::from(slice.slot.get()),
                });
            }
            if slice.version.get() % 2 != 0 {
                return Err(WireError::BadValue {
                    what: "version of a slice (odd)",
                    got: slice.version.get(),
                });
            }
        }
        body.end()?;
        Ok(Self { versions, slices })
    }
}
