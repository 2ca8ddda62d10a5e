//! Limits the part of the arena that the rings of all connections take, and decides the length of a
//! ring.
//!
//! ```text
//!   share: an eighth of the arena, in segments
//!   0 ............ 1/2 ............ 3/4 ............ all
//!   rings grow      |  rings stay    |  rings shrink   |  a new connection is refused
//!   sends are lent ................. |  own send only  |
//!                                       the endpoint closes idle connections
//! ```
//! A connection begins with [`SMALLEST`] receive requests and one segment to send. When its peer
//! has used half of the ring and the credits are about to be given back, the ring doubles, up to
//! [`LARGEST`]: four doublings, so a busy connection has its full ring after a few round trips. A
//! ring cannot be shortened at will, because posted receive requests cannot be taken back; so it
//! shrinks as it is used, by segments that are not posted again.
//!
//! A shared receive queue would save memory only by promising peers more than it holds. Then one
//! peer that sends much, or many that send at once, use up the others' share, and their devices
//! wait (RNR). Here a peer can use up its own ring only, and no
//! receive request is ever missing.

use super::frames::SEGMENT_BYTES;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// Number of receive requests of a connection at its beginning. Two of them are [`RESERVE`]d.
pub(super) const SMALLEST: u32 = 4;
/// Maximum number of receive requests of a connection.
pub(super) const LARGEST: u32 = 64;
/// Maximum number of segments of one connection that are on their way to its peer.
pub(super) const SENDS: u32 = 16;
/// Number of credits kept for giving credits back. Without them two sides that have used up their
/// credits would wait for each other.
pub(super) const RESERVE: u32 = 2;

/// Rings may take one part in this many of the arena.
const PARTS: u64 = 8;

const _: () = assert!(RESERVE + needed_for_update(SMALLEST) <= SMALLEST);

/// Returns the number of credits to return that triggers a credit update, and the growth of
/// a ring of `size` receive requests.
pub(super) const fn needed_for_update(size: u32) -> u32 {
    size / 2
}

/// The purpose for which a segment is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentUse {
    /// A new connection's own.
    Connection,
    /// A longer ring.
    Growth,
    /// One more segment on its way to the peer.
    Send,
}

/// The part of the arena that rings may take, in segments. One thread takes; any may give back.
#[derive(Debug)]
pub(super) struct RingShare {
    total: u32,
    used: AtomicU32,
}

impl RingShare {
    pub(super) fn of_arena(limit: u64) -> Arc<Self> {
        let total = limit / PARTS / SEGMENT_BYTES as u64;
        Arc::new(Self {
            total: u32::try_from(total).unwrap_or(u32::MAX),
            used: AtomicU32::new(0),
        })
    }

    pub(super) fn used(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    /// Maximum number of segments.
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// Returns whether rings must shrink, and idle connections be closed.
    pub(super) fn is_crowded(&self) -> bool {
        u64::from(self.used()) * 4 > u64::from(self.total) * 3
    }

    /// Counts one more segment in, if there may be one for that use.
    pub(super) fn take(&self, purpose: SegmentUse) -> bool {
        let limit = match purpose {
            SegmentUse::Connection => self.total,
            SegmentUse::Growth => self.total / 2,
            SegmentUse::Send => self.total / 4 * 3,
        };
        let fits = self.used() < limit;
        if fits {
            self.used.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    /// Notes that a segment was returned.
    pub(super) fn give(&self) {
        let before = self.used.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a segment was returned twice");
    }

    /// Returns the number of receive requests to add to a ring of `size`. `returned`: those about to
    /// be given back to the peer; `depth`: the most that the device's queue holds.
    pub(super) fn growth(&self, size: u32, returned: u32, depth: u32) -> u32 {
        if returned < needed_for_update(size) {
            return 0;
        }
        let room = (self.total / 2).saturating_sub(self.used());
        size.min(LARGEST.min(depth).saturating_sub(size)).min(room)
    }

    /// Returns how many of `returned` receive requests of a ring of `size` are not posted again.
    pub(super) fn shrinkage(&self, size: u32, returned: u32) -> u32 {
        if !self.is_crowded() {
            return 0;
        }
        let over = self.used() - self.total / 4 * 3;
        returned.min(size.saturating_sub(SMALLEST)).min(over)
    }
}

#[cfg(test)]
#[path = "ring_share_test.rs"]
mod tests;
