//! Where a whole request lies in frames, if it does.
//!
//! All or nothing: a stream of which a part has to be pushed is pushed, so that the reader follows one
//! protocol at a time. What is pulled costs the owner its checksum and no copy.

use crate::config::limits::{PULL_BYTES, PULL_MEAN_BYTES};
use crate::files::{Output, Run};
use faro_pool::Lease;
use faro_region::{Residency, Version, CHUNK_BYTES};
use faro_wire::crc32c;
use faro_wire::message::MAX_EXTENTS;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of one frame.
pub(crate) struct Place {
    pub(crate) frame: Arc<Lease>,
    pub(crate) offset: u32,
    pub(crate) length: u32,
    pub(crate) slot: usize,
    /// Under which the bytes had that checksum.
    pub(crate) version: Version,
    pub(crate) crc: u32,
}

/// The places of `runs`, in order; `None` if some of it is in no frame, or if a push is as cheap.
/// Nothing is held: that the bytes stay is for the versions to tell.
pub(crate) fn locate(
    residency: &Arc<Residency>,
    outputs: &[Arc<Output>],
    runs: &VecDeque<(usize, Run)>,
    total: u64,
) -> Option<Vec<Place>> {
    let most = (total / PULL_MEAN_BYTES).min(u64::from(MAX_EXTENTS)) as usize;
    if total < PULL_BYTES {
        return None;
    }
    let mut places = Vec::new();
    for (position, run) in runs {
        let region = outputs.get(*position)?.region()?;
        let (mut at, end) = (run.offset, run.offset + run.length);
        while at < end {
            let (chunk, within) = (at / CHUNK_BYTES, (at % CHUNK_BYTES) as usize);
            let length = (end - at).min(CHUNK_BYTES - within as u64);
            let pin = residency.pin(region.id(), chunk)?;
            let bytes = pin.bytes().get(within..within + length as usize)?;
            if places.len() == most {
                return None;
            }
            places.push(Place {
                frame: Arc::clone(pin.frame()),
                offset: within as u32,
                length: length as u32,
                slot: pin.slot(),
                version: pin.version(),
                crc: crc32c(bytes),
            });
            at += length;
        }
    }
    Some(places)
}
