//! Tracks the peers that hold a permit: those with running work, up to a limit.
//!
//! A *straggler* is a peer that holds a permit and makes no progress for a whole slice, either
//! while the other peers do, or while all of them are silent for longer than usual. Its work
//! continues, but it stops counting, so that another peer can have its permit. "While the others
//! do" is a number of messages and not a time: on a slow link that all share, every peer is silent
//! for long and none is a straggler. "Longer than usual" is twice the longest recent silence: on a
//! link that loses packets, all peers are silent until the sender's timer runs out, and more peers
//! at once would only lose more.

use faro_fabric::EndpointId;
use faro_sync::HashMap;
use std::time::{Duration, Instant};

/// A straggler has made no progress while the others made this many steps for each permit.
const PROGRESS_MISSED: u64 = 4;

/// Rate at which a long silence is forgotten: by this share with each step of progress.
const FORGET: u32 = 64;

/// The longest silence that can be usual, in slices; beyond it another peer is admitted.
const LONGEST: u32 = 100;

/// One peer that holds a permit.
struct HeldPermit {
    /// The time at which it got the permit, or at which its last slice began.
    since: Instant,
    /// Time when it last made progress.
    progress: Instant,
    /// Steps of all peers until then.
    progress_count: u64,
}

/// The permits of one direction, by peer.
pub(super) struct Permits {
    /// Peers that count at once.
    limit: usize,
    /// Peers that may hold a permit without counting.
    spare: usize,
    slice: Duration,
    held: HashMap<EndpointId, HeldPermit>,
    /// Steps of progress of all peers.
    progress_count: u64,
    /// Time when any peer last made progress.
    last_progress: Option<Instant>,
    /// The longest time between two steps while any peer held a permit; fades.
    silence: Duration,
}

impl Permits {
    pub(super) fn new(limit: usize, spare: usize, slice: Duration) -> Self {
        Self {
            limit,
            spare,
            slice,
            held: HashMap::default(),
            progress_count: 0,
            last_progress: None,
            silence: Duration::ZERO,
        }
    }

    /// Changes the limits; no peer loses its permit.
    pub(super) fn resize(&mut self, limit: usize, spare: usize) {
        (self.limit, self.spare) = (limit, spare);
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn holds(&self, peer: EndpointId) -> bool {
        self.held.contains_key(&peer)
    }

    /// Returns whether one more peer may have a permit.
    pub(super) fn free(&self, now: Instant) -> bool {
        let held = self.held.len();
        if held < self.limit {
            return true;
        }
        held < self.limit.saturating_add(self.spare)
            && self
                .held
                .values()
                .filter(|h| !self.straggles(h, now))
                .count()
                < self.limit
    }

    fn straggles(&self, held: &HeldPermit, now: Instant) -> bool {
        let silent = now.duration_since(held.progress);
        let missed = self.progress_count - held.progress_count;
        silent >= self.slice
            && (missed >= PROGRESS_MISSED.saturating_mul(self.limit as u64)
                || silent >= self.unusual()
                    && self
                        .last_progress
                        .is_none_or(|at| now.duration_since(at) >= self.unusual()))
    }

    /// Returns whether the silence of all exceeds the recent maximum.
    fn unusual(&self) -> Duration {
        (self.silence * 2).clamp(self.slice, self.slice * LONGEST)
    }

    /// Returns whether the peer has had its permit for a slice.
    pub(super) fn slice_over(&self, peer: EndpointId, now: Instant) -> bool {
        let held = self.held.get(&peer);
        held.is_some_and(|held| now.duration_since(held.since) >= self.slice)
    }

    /// Grants a permit, or another slice to a peer that has one. Returns whether it had none.
    pub(super) fn grant(&mut self, peer: EndpointId, now: Instant) -> bool {
        if let Some(held) = self.held.get_mut(&peer) {
            held.since = now;
            return false;
        }
        let held = HeldPermit {
            since: now,
            progress: now,
            progress_count: self.progress_count,
        };
        if self.held.is_empty() {
            // No peer was expected to make progress until now.
            self.last_progress = Some(now);
        }
        self.held.insert(peer, held);
        true
    }

    /// Takes the permit back. Returns whether the peer had one.
    pub(super) fn release(&mut self, peer: EndpointId) -> bool {
        self.held.remove(&peer).is_some()
    }

    /// Notes that something arrived from the peer.
    pub(super) fn progress(&mut self, peer: EndpointId, now: Instant) {
        if let Some(held) = self.held.get_mut(&peer) {
            self.progress_count += 1;
            (held.progress, held.progress_count) = (now, self.progress_count);
            let gap = self.last_progress.map(|last| now.duration_since(last));
            let faded = self.silence - self.silence / FORGET;
            self.silence = faded.max(gap.unwrap_or_default());
            self.last_progress = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(10);

    /// Returns two permits, held by peers 1 and 2.
    fn full(now: Instant) -> Permits {
        let mut permits = Permits::new(2, 2, SLICE);
        for peer in [1, 2] {
            assert!(permits.free(now));
            assert!(permits.grant(peer, now));
        }
        assert!(!permits.free(now));
        permits
    }

    #[test]
    fn a_peer_that_is_silent_while_others_are_not_stops_counting() {
        let start = Instant::now();
        let mut permits = full(start);
        for n in 1..=8 {
            permits.progress(2, start + SLICE);
            assert_eq!(permits.free(start + SLICE), n == 8, "after {n} steps");
        }
        assert!(permits.free(start + SLICE));
        assert!(!permits.free(start + SLICE / 2), "not before a slice");
        permits.progress(1, start + SLICE);
        assert!(!permits.free(start + SLICE), "it was not lost");
    }

    #[test]
    fn a_peer_that_is_as_slow_as_all_others_counts() {
        let start = Instant::now();
        let mut permits = full(start);
        for n in 1..100 {
            let now = start + SLICE * n;
            permits.progress(1 + u128::from(n % 2), now);
            assert!(!permits.free(now), "step {n}");
        }
    }

    #[test]
    fn silence_of_all_frees_no_more_than_the_spare_permits() {
        let start = Instant::now();
        let mut permits = full(start);
        let later = start + SLICE;
        for peer in [3, 4] {
            assert!(permits.free(later));
            permits.grant(peer, later);
        }
        assert!(!permits.free(later + SLICE), "four of two and two");
        permits.release(1);
        assert!(permits.free(later + SLICE));
    }

    #[test]
    fn a_silence_of_all_that_is_usual_frees_nothing() {
        let start = Instant::now();
        let mut permits = full(start);
        // A loss: five slices until anything comes.
        assert!(
            permits.free(start + SLICE),
            "what is usual on this link is not known yet"
        );
        let mut now = start + SLICE * 5;
        permits.progress(1, now);
        permits.progress(2, now);
        assert!(!permits.free(now + SLICE * 9), "the next loss");
        assert!(permits.free(now + SLICE * 11), "a peer is dead");
        // It fades while progress is fast.
        for n in 0..200 {
            now += SLICE / 100;
            permits.progress(1 + n % 2, now);
        }
        assert!(permits.free(now + SLICE));
    }

    #[test]
    fn a_time_without_permits_was_no_silence() {
        let start = Instant::now();
        let mut permits = full(start);
        permits.progress(1, start);
        permits.release(1);
        permits.release(2);
        let later = start + SLICE * 1_000;
        permits.grant(1, later);
        permits.grant(2, later);
        permits.progress(1, later + SLICE / 10);
        assert!(permits.free(later + SLICE * 2));
    }

    #[test]
    fn without_a_limit_there_is_always_one() {
        let start = Instant::now();
        let mut permits = Permits::new(usize::MAX, 0, SLICE);
        for peer in 0..1_000 {
            assert!(permits.free(start + SLICE));
            permits.grant(peer, start);
        }
    }
}
