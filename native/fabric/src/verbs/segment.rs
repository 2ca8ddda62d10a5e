//! Segments: registered memory of the arena for one SEND.

use super::device::VerbsError;
use super::frames::SEGMENT_BYTES;
use super::rdma_context::RdmaContext;
use super::ring_share::{RingShare, SegmentUse};
use faro_pool::{Lease, PoolError, Purpose};
use std::sync::Arc;
use thiserror::Error;

const _: () = assert!(SEGMENT_BYTES == faro_pool::SIZE_CLASSES[1]);

/// Reason why no segment was leased.
#[derive(Debug, Error)]
pub(super) enum NoSegment {
    /// The rings' share of the arena is used up.
    #[error(
        "the rings of other connections hold {used} of the {total} segments of 4 KiB that there may \
         be (an eighth of the arena)"
    )]
    Share { used: u32, total: u32 },
    /// The arena is used up.
    #[error("no memory for a queue pair: {0}")]
    Arena(#[from] PoolError),
    /// The memory cannot be registered.
    #[error(transparent)]
    Device(#[from] VerbsError),
}

/// Counts one segment of the share until it is dropped.
struct CountedSegment(Arc<RingShare>);

impl Drop for CountedSegment {
    fn drop(&mut self) {
        self.0.give();
    }
}

/// One segment. While it is posted, the device reads or writes it: then only its address is used.
pub(super) struct Segment {
    memory: Lease,
    pub(super) address: u64,
    pub(super) lkey: u32,
    _counted: CountedSegment,
}

impl Segment {
    /// Takes a segment of the share and of the arena.
    ///
    /// # Errors
    /// Which of the two is used up; or the device refused to register the slab.
    pub(super) fn take(context: &mut RdmaContext, purpose: SegmentUse) -> Result<Self, NoSegment> {
        let share = Arc::clone(&context.share);
        if !share.take(purpose) {
            let (used, total) = (share.used(), share.total());
            return Err(NoSegment::Share { used, total });
        }
        let counted = CountedSegment(share);
        let memory = context.pool.try_lease(SEGMENT_BYTES, Purpose::Serve)?;
        let keys = context.keys(&memory)?;
        Ok(Self {
            memory,
            address: keys.address,
            lkey: keys.lkey,
            _counted: counted,
        })
    }

    /// Returns the bytes of a segment that is not posted.
    pub(super) fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// Returns the bytes of a segment that is not posted, for writing.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}
