//! Finds the places of a whole request in the chunk cache, if all of it is there.
//!
//! All or nothing: a stream of which a part has to be written is written, so that the client follows
//! one protocol at a time. What the client reads costs this server the checksum and no copy.

use super::content::Content;
use crate::files::Output;
use crate::limits::{READ_OFFER_BYTES, READ_OFFER_MEAN_BYTES};
use crate::memory::Memory;
use faro_pool::Lease;
use faro_region::{Sleep, Version, CHUNK_BYTES};
use faro_wire::crc32c;
use faro_wire::message::MAX_OFFERED_SLICES;
use std::sync::Arc;

/// Bytes of one page.
pub(crate) struct ResidentSlice {
    pub(crate) page: Arc<Lease>,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    pub(crate) slot: usize,
    /// The version under which the bytes had that checksum.
    pub(crate) version: Version,
    pub(crate) crc: u32,
    /// Only a device may read it: it lies in a mapping of the file.
    #[cfg(feature = "research")]
    pub(crate) needs_device: bool,
}

/// Returns the slices of the content, in order. Returns `None` if some of it is in no page, or if
/// writing is as cheap. Nothing is held: the versions tell the client whether the bytes stayed.
pub(super) fn offer(
    memory: &Memory,
    content: &Content,
    sleep: Sleep,
) -> Option<Vec<ResidentSlice>> {
    let total = content.remaining();
    let max = (total / READ_OFFER_MEAN_BYTES).min(u64::from(MAX_OFFERED_SLICES)) as usize;
    if total < READ_OFFER_BYTES {
        return None;
    }
    let mut slices = Vec::new();
    for piece in content.pieces(total) {
        if slices.len() == max {
            return None;
        }
        let length = piece.length as u32;
        slices.push(slice(memory, piece.output, piece.offset, length, sleep)?);
    }
    Some(slices)
}

#[cfg(not(feature = "research"))]
fn slice(m: &Memory, output: &Output, at: u64, length: u32, _: Sleep) -> Option<ResidentSlice> {
    in_page(m, output, at, length)
}

fn in_page(memory: &Memory, output: &Output, at: u64, length: u32) -> Option<ResidentSlice> {
    let (chunk, within) = (at / CHUNK_BYTES, (at % CHUNK_BYTES) as usize);
    let guard = memory.cache.get(output.region()?.id(), chunk)?;
    let bytes = guard.bytes().get(within..within + length as usize)?;
    Some(ResidentSlice {
        page: Arc::clone(guard.page()),
        offset: within as u64,
        length,
        slot: guard.slot(),
        version: guard.version(),
        crc: crc32c(bytes),
        #[cfg(feature = "research")]
        needs_device: false,
    })
}

/// Returns the slice of the file's mapping, in the modes for comparison; where there is none, that of
/// a page. The checksum is of bytes that are read from the file: this process never touches a mapping.
#[cfg(feature = "research")]
fn slice(
    memory: &Memory,
    output: &Output,
    at: u64,
    length: u32,
    sleep: Sleep,
) -> Option<ResidentSlice> {
    let Some(lease) = output.mapped(&memory.pool, memory.regions) else {
        return in_page(memory, output, at, length);
    };
    let (slot, version) = memory.cache.constant()?;
    let mut bytes = vec![0; length as usize];
    let got = output.read(&memory.cache, at, &mut bytes, sleep).ok()?;
    (got == bytes.len()).then(|| ResidentSlice {
        page: Arc::clone(lease),
        offset: at,
        length,
        slot,
        version,
        crc: crc32c(&bytes),
        needs_device: true,
    })
}
