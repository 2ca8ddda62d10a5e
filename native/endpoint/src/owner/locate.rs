//! Where a whole request lies in frames, if it does.
//!
//! All or nothing: a stream of which a part has to be pushed is pushed, so that the reader follows one
//! protocol at a time. What is pulled costs the owner its checksum and no copy. Or where it lies in
//! its file's mapping, in the modes that register those.

use crate::config::limits::{PULL_BYTES, PULL_MEAN_BYTES};
use crate::files::{Output, Run};
use crate::memory::Memory;
use faro_pool::Lease;
use faro_region::{Sleep, Version, CHUNK_BYTES};
use faro_wire::crc32c;
use faro_wire::message::MAX_OFFERED_SLICES;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of one frame.
pub(crate) struct Place {
    pub(crate) frame: Arc<Lease>,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    pub(crate) slot: usize,
    /// Under which the bytes had that checksum.
    pub(crate) version: Version,
    pub(crate) crc: u32,
    /// Only a device may read it.
    pub(crate) verbs_only: bool,
}

/// The places of `runs`, in order; `None` if some of it is in no frame, or if a push is as cheap.
/// Nothing is held: that the bytes stay is for the versions to tell.
pub(crate) fn locate(
    memory: &Memory,
    outputs: &[Arc<Output>],
    runs: &VecDeque<(usize, Run)>,
    total: u64,
    sleep: Sleep,
) -> Option<Vec<Place>> {
    let most = (total / PULL_MEAN_BYTES).min(u64::from(MAX_OFFERED_SLICES)) as usize;
    if total < PULL_BYTES {
        return None;
    }
    let mut places = Vec::new();
    for (position, run) in runs {
        let output = outputs.get(*position)?;
        let mapped = output.mapped(&memory.pool, memory.regions);
        let (mut at, end) = (run.offset, run.offset + run.length);
        while at < end {
            if places.len() == most {
                return None;
            }
            let length = (end - at).min(CHUNK_BYTES - at % CHUNK_BYTES) as u32;
            places.push(match mapped {
                Some(lease) => in_mapping(memory, output, lease, at, length, sleep)?,
                None => in_frame(memory, output, at, length)?,
            });
            at += u64::from(length);
        }
    }
    Some(places)
}

fn in_frame(memory: &Memory, output: &Output, at: u64, length: u32) -> Option<Place> {
    let (chunk, within) = (at / CHUNK_BYTES, (at % CHUNK_BYTES) as usize);
    let pin = memory.cache.get(output.region()?.id(), chunk)?;
    let bytes = pin.bytes().get(within..within + length as usize)?;
    Some(Place {
        frame: Arc::clone(pin.page()),
        offset: within as u64,
        length,
        slot: pin.slot(),
        version: pin.version(),
        crc: crc32c(bytes),
        verbs_only: false,
    })
}

fn in_mapping(
    memory: &Memory,
    output: &Output,
    lease: &Arc<Lease>,
    at: u64,
    length: u32,
    sleep: Sleep,
) -> Option<Place> {
    let (slot, version) = memory.cache.constant()?;
    let mut bytes = vec![0; length as usize];
    let got = output.read(&memory.cache, at, &mut bytes, sleep).ok()?;
    (got == bytes.len()).then(|| Place {
        frame: Arc::clone(lease),
        offset: at,
        length,
        slot,
        version,
        crc: crc32c(&bytes),
        verbs_only: true,
    })
}
