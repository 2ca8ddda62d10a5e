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
//! There is no shared receive queue, because it saves memory only if peers are promised more than
//! there is, and then one peer that sends much, or many that send at once, use up what the others
//! were promised, and their devices wait (RNR). Here a peer can use up its own ring only, and no
//! receive request is ever missing.

use super::frames::SEGMENT_BYTES;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// Receive requests of a connection at its beginning. Two of them are [`RESERVE`]d.
pub(super) const SMALLEST: u32 = 4;
/// Receive requests of a connection at most.
pub(super) const LARGEST: u32 = 64;
/// Segments of one connection on their way to its peer, at most.
pub(super) const SENDS: u32 = 16;
/// Credits kept for giving credits back. Without them two sides that have used up their credits
/// would wait for each other.
pub(super) const RESERVE: u32 = 2;

/// The arena's part for rings is one of this many.
const PARTS: u64 = 8;

const _: () = assert!(RESERVE + needed_for_update(SMALLEST) <= SMALLEST);

/// Credits owed to the peer from which on they are sent although nothing else is, and from which on
/// a ring of `size` receive requests grows.
pub(super) const fn needed_for_update(size: u32) -> u32 {
    size / 2
}

/// Purpose for which a segment is taken.
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
    /// Returns the share of an arena of `limit` bytes.
    pub(super) fn of_arena(limit: u64) -> Arc<Self> {
        let total = limit / PARTS / SEGMENT_BYTES as u64;
        Arc::new(Self {
            total: u32::try_from(total).unwrap_or(u32::MAX),
            used: AtomicU32::new(0),
        })
    }

    /// Segments in use.
    pub(super) fn used(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    /// Segments that there may be.
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
        self.used.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of receive requests by which to grow a ring of `size`, of which
    /// `returned` are about to be given back to the peer; the device's queue holds `depth`.
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
mod tests {
    use super::*;
    use std::collections::{HashSet, VecDeque};

    fn share(total: u32, used: u32) -> RingShare {
        let used = AtomicU32::new(used);
        RingShare { total, used }
    }

    #[test]
    fn the_share_is_an_eighth_of_the_arena() {
        for (limit, segments) in [(32 << 20, 1_024), (256 << 20, 8_192), (64 << 30, 1 << 21)] {
            assert_eq!(RingShare::of_arena(limit).total(), segments);
        }
        // A thousand connections fit that of the default limit, and a ring that is used grows.
        assert!(1_000 * (SMALLEST + 1) <= RingShare::of_arena(256 << 20).total());
    }

    #[test]
    fn what_a_segment_may_be_taken_for_depends_on_how_many_are_taken() {
        use SegmentUse::{Connection, Growth, Send};
        #[rustfmt::skip]
        let table = [
            // Used of 100   a new connection  growth  a further send  crowded
            (0,         true,             true,   true,           false),
            (49,        true,             true,   true,           false),
            (50,        true,             false,  true,           false),
            (74,        true,             false,  true,           false),
            (75,        true,             false,  false,          false),
            (76,        true,             false,  false,          true),
            (99,        true,             false,  false,          true),
            (100,       false,            false,  false,          true),
        ];
        for (used, connection, growth, send, crowded) in table {
            assert_eq!(share(100, used).is_crowded(), crowded, "{used}");
            for (purpose, allowed) in [(Connection, connection), (Growth, growth), (Send, send)] {
                let share = share(100, used);
                assert_eq!(share.take(purpose), allowed, "{purpose:?} of {used}");
                assert_eq!(share.used(), used + u32::from(allowed));
            }
        }
    }

    #[test]
    fn a_ring_doubles_when_half_of_it_is_returned() {
        #[rustfmt::skip]
        let table = [
            // Used of 1,000, size, returned, depth, expected growth
            (0,         4,    1,        64,    0),
            (0,         4,    2,        64,    4),
            (0,         32,   15,       64,    0),
            (0,         32,   16,       64,    32),
            (0,         64,   64,       64,    0),
            (0,         48,   24,       64,    16),
            (0,         16,   16,       20,    4),
            (0,         16,   16,       16,    0),
            (497,       4,    2,        64,    3),
            (500,       4,    4,        64,    0),
            (900,       4,    4,        64,    0),
        ];
        for (used, size, returned, depth, expected) in table {
            let got = share(1_000, used).growth(size, returned, depth);
            assert_eq!(got, expected, "{used} used, {size}, {returned}, {depth}");
        }
        // From the smallest to the largest in four steps.
        let sizes = std::iter::successors(Some(SMALLEST), |size| {
            let more = share(1_000, 0).growth(*size, *size, LARGEST);
            (more > 0).then_some(size + more)
        });
        assert_eq!(sizes.collect::<Vec<_>>(), [4, 8, 16, 32, 64]);
    }

    #[test]
    fn a_ring_shrinks_as_it_is_used_while_the_share_is_crowded() {
        #[rustfmt::skip]
        let table = [
            // Used of 1,000, size, returned, expected number that is not posted again
            (750,       64,   32,       0),
            (751,       64,   32,       1),
            (1_000,     64,   32,       32),
            (1_000,     8,    8,        4),
            (1_000,     4,    4,        0),
        ];
        for (used, size, returned, expected) in table {
            let got = share(1_000, used).shrinkage(size, returned);
            assert_eq!(got, expected, "{used} used, {size}, {returned}");
        }
    }

    /// One side of a connection. Its peer's ring is the other side's.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct RingSide {
        /// Receive requests that the peer has posted for this side.
        credits: u32,
        /// Used by the peer, and not given back.
        owed: u32,
        size: u32,
        /// On their way to this side: the credits that each carries.
        arriving: VecDeque<u32>,
    }

    /// Explores every interleaving of two sides that both always have something to send, with rings
    /// that grow and shrink at any time. Some step must always be possible, so that neither side
    /// waits for ever.
    #[test]
    fn two_sides_never_wait_for_each_other() {
        const LONGEST: u32 = 6;
        let side = RingSide {
            credits: SMALLEST,
            owed: 0,
            size: SMALLEST,
            arriving: VecDeque::new(),
        };
        let start = [side.clone(), side];
        let (mut seen, mut next) = (HashSet::from([start.clone()]), vec![start]);
        while let Some(state) = next.pop() {
            let mut follow = Vec::new();
            let mut moves = 0;
            for me in [0, 1] {
                let send = |with_credits: bool| {
                    let mut after = state.clone();
                    after[me].credits -= 1;
                    // A write carries no credits.
                    let carried = if with_credits { after[me].owed } else { 0 };
                    after[me].owed -= carried;
                    after[1 - me].arriving.push_back(carried);
                    after
                };
                let now = &state[me];
                let in_flight: u32 = now.arriving.iter().sum();
                let sent = state[1 - me].arriving.len() as u32;
                let known = now.credits + in_flight + state[1 - me].owed + sent;
                assert_eq!(known, state[1 - me].size, "no credit is lost");
                if now.credits > RESERVE {
                    follow.extend([send(true), send(false)]);
                    moves += 2;
                }
                if now.credits > 0 && now.owed >= needed_for_update(now.size) {
                    follow.push(send(true));
                    moves += 1;
                }
                if let Some(carried) = now.arriving.front() {
                    let mut after = state.clone();
                    after[me].credits += carried;
                    after[me].owed += 1;
                    after[me].arriving.pop_front();
                    follow.push(after);
                    moves += 1;
                }
                // Progress does not need it, so it is not counted.
                if now.owed >= needed_for_update(now.size) && now.size < LONGEST {
                    let mut after = state.clone();
                    after[me].size += 1;
                    after[me].owed += 1;
                    follow.push(after);
                }
                if now.owed > 0 && now.size > SMALLEST {
                    let mut after = state.clone();
                    after[me].size -= 1;
                    after[me].owed -= 1;
                    follow.push(after);
                }
            }
            assert!(moves > 0, "both wait");
            next.extend(
                follow
                    .into_iter()
                    .filter(|state| seen.insert(state.clone())),
            );
        }
        assert!(seen.len() > 1_000, "{} states", seen.len());
    }
}
