//! `READ_OFFER`: all that was asked for is in the owner's frames, to be read one-sidedly.
//!
//! ```text
//!   0 u32 extents (e)
//!   4 u32 0
//!   8 u64 key of the versions    16 u64 offset    24 u32 length    28 u32 0
//!  32 e x OfferedSlice
//! ```
//! The extents, one after the other, are the stream that the `FETCH_RESPONSE` after it describes. The reader reads an
//! extent, then the 8 bytes of its slot in the versions (a little-endian word at `8 * slot`), and
//! believes the extent only if that word is `version` and the CRC agrees. Nothing else follows from
//! the owner: what was not believed is asked for again, with `push_only`.

use super::body::{put_u32, Body};
use super::RemoteBuffer;
use crate::WireError;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Most extents of one `READ_OFFER`: 1 GiB, if each is a frame.
pub const MAX_OFFERED_SLICES: u32 = 4_096;
/// Bytes of one version.
pub const VERSION_BYTES: u32 = 8;

/// Bytes of one frame of the owner: 40 bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct OfferedSlice {
    /// Remote key, from the owner's fabric.
    pub key: U64,
    /// Offset (or address) the key is relative to.
    pub offset: U64,
    /// Bytes, at least 1.
    pub length: U32,
    /// Whose version tells whether they are still those.
    pub slot: U32,
    /// The version, which is even.
    pub version: U64,
    /// CRC-32C of the bytes.
    pub crc: U32,
    /// Zero.
    pub reserved: U32,
}

/// `READ_OFFER`: 32-byte head, extents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOffer {
    /// Where all versions are.
    pub versions: RemoteBuffer,
    /// In stream order.
    pub extents: Vec<OfferedSlice>,
}

impl ReadOffer {
    /// The body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 + self.extents.len() * size_of::<OfferedSlice>());
        put_u32(&mut out, self.extents.len());
        put_u32(&mut out, 0);
        out.extend_from_slice(self.versions.as_bytes());
        out.extend_from_slice(self.extents.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for no extents, an empty one, an odd version, a
    /// slot whose version is outside of the versions, or a reserved field in use.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("READ_OFFER", body);
        let count = body.count("READ_OFFER extents", MAX_OFFERED_SLICES)?;
        let reserved = body.u32()?;
        body.zero(reserved)?;
        body.nonzero("READ_OFFER extents", count as u32)?;
        let versions: RemoteBuffer = *body.array(1)?.first().ok_or(WireError::BadValue {
            what: "versions of READ_OFFER",
            got: 0,
        })?;
        body.zero(versions.reserved.get())?;
        let slots = versions.length.get() / VERSION_BYTES;
        let extents: Vec<OfferedSlice> = body.array(count)?;
        for extent in &extents {
            body.zero(extent.reserved.get())?;
            body.nonzero("length of an extent", extent.length.get())?;
            if extent.slot.get() >= slots {
                return Err(WireError::BadValue {
                    what: "slot of an extent",
                    got: u64::from(extent.slot.get()),
                });
            }
            if extent.version.get() % 2 != 0 {
                return Err(WireError::BadValue {
                    what: "version of an extent (odd)",
                    got: extent.version.get(),
                });
            }
        }
        body.end()?;
        Ok(Self { versions, extents })
    }
}
