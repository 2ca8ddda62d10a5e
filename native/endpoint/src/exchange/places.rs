//! Who has a place: the peers that something is under way with, up to a limit.
//!
//! A *straggler* is a peer that holds a place and gives no sign for a whole slice while others do,
//! or while nobody does for longer than is usual. It keeps what is under way but stops counting, so
//! that somebody else can have its place. "While others do" is a number of signs and not a time: on
//! a slow link that all share, everybody is silent for long and nobody is a straggler. "Longer than
//! is usual" is twice the longest silence of late: on a link that loses, all are silent until the
//! sender's timer runs out, and more peers at once would only lose more.

use faro_fabric::EndpointId;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A straggler has missed this many signs for each place: the others had their turn and again.
const SIGNS_MISSED: u64 = 4;

/// How fast a long silence is forgotten: by this share with each sign.
const FORGET: u32 = 64;

/// The longest silence that can be usual, in slices; beyond it somebody else is let in.
const LONGEST: u32 = 100;

/// One peer that holds a place.
struct Held {
    /// Since when, or since its last slice began.
    since: Instant,
    /// When it gave its last sign.
    sign: Instant,
    /// Signs of all peers until then.
    signs: u64,
}

/// See the module's comment.
pub(super) struct Places {
    /// Peers that count at once.
    limit: usize,
    /// Peers that may hold a place without counting.
    spare: usize,
    slice: Duration,
    held: HashMap<EndpointId, Held>,
    /// Signs of all peers.
    signs: u64,
    /// When the last sign came, of whomever.
    last_sign: Option<Instant>,
    /// The longest time between two signs while anybody held a place; fades.
    silence: Duration,
}

impl Places {
    pub(super) fn new(limit: usize, spare: usize, slice: Duration) -> Self {
        Self {
            limit,
            spare,
            slice,
            held: HashMap::new(),
            signs: 0,
            last_sign: None,
            silence: Duration::ZERO,
        }
    }

    /// Other limits from now on; nobody loses a place.
    pub(super) fn resize(&mut self, limit: usize, spare: usize) {
        (self.limit, self.spare) = (limit, spare);
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn holds(&self, peer: EndpointId) -> bool {
        self.held.contains_key(&peer)
    }

    /// One more peer may have a place.
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

    fn straggles(&self, held: &Held, now: Instant) -> bool {
        let silent = now.duration_since(held.sign);
        let missed = self.signs - held.signs;
        silent >= self.slice
            && (missed >= SIGNS_MISSED.saturating_mul(self.limit as u64)
                || silent >= self.unusual()
                    && self
                        .last_sign
                        .is_none_or(|at| now.duration_since(at) >= self.unusual()))
    }

    /// A silence of all that is longer than what was usual of late.
    fn unusual(&self) -> Duration {
        (self.silence * 2).clamp(self.slice, self.slice * LONGEST)
    }

    /// Has the peer had its place for a slice?
    pub(super) fn slice_over(&self, peer: EndpointId, now: Instant) -> bool {
        let held = self.held.get(&peer);
        held.is_some_and(|held| now.duration_since(held.since) >= self.slice)
    }

    /// Gives a place, or another slice to who has one. True: it had none.
    pub(super) fn give(&mut self, peer: EndpointId, now: Instant) -> bool {
        if let Some(held) = self.held.get_mut(&peer) {
            held.since = now;
            return false;
        }
        let held = Held {
            since: now,
            sign: now,
            signs: self.signs,
        };
        if self.held.is_empty() {
            // Nobody owed a sign until now.
            self.last_sign = Some(now);
        }
        self.held.insert(peer, held);
        true
    }

    /// True: it had one.
    pub(super) fn take_back(&mut self, peer: EndpointId) -> bool {
        self.held.remove(&peer).is_some()
    }

    /// Something came from the peer.
    pub(super) fn sign(&mut self, peer: EndpointId, now: Instant) {
        if let Some(held) = self.held.get_mut(&peer) {
            self.signs += 1;
            (held.sign, held.signs) = (now, self.signs);
            let gap = self.last_sign.map(|last| now.duration_since(last));
            let faded = self.silence - self.silence / FORGET;
            self.silence = faded.max(gap.unwrap_or_default());
            self.last_sign = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(10);

    /// Two places, both held by peers 1 and 2.
    fn full(now: Instant) -> Places {
        let mut places = Places::new(2, 2, SLICE);
        for peer in [1, 2] {
            assert!(places.free(now));
            assert!(places.give(peer, now));
        }
        assert!(!places.free(now));
        places
    }

    #[test]
    fn who_is_silent_while_others_are_not_stops_counting() {
        let start = Instant::now();
        let mut places = full(start);
        for n in 1..=8 {
            places.sign(2, start + SLICE);
            assert_eq!(places.free(start + SLICE), n == 8, "after {n} signs");
        }
        assert!(places.free(start + SLICE));
        assert!(!places.free(start + SLICE / 2), "not before a slice");
        places.sign(1, start + SLICE);
        assert!(!places.free(start + SLICE), "it was not lost");
    }

    #[test]
    fn who_is_slow_like_everybody_else_counts() {
        let start = Instant::now();
        let mut places = full(start);
        for n in 1..100 {
            let now = start + SLICE * n;
            places.sign(1 + u128::from(n % 2), now);
            assert!(!places.free(now), "sign {n}");
        }
    }

    #[test]
    fn silence_of_all_frees_no_more_than_the_spare_places() {
        let start = Instant::now();
        let mut places = full(start);
        let later = start + SLICE;
        for peer in [3, 4] {
            assert!(places.free(later));
            places.give(peer, later);
        }
        assert!(!places.free(later + SLICE), "four of two and two");
        places.take_back(1);
        assert!(places.free(later + SLICE));
    }

    #[test]
    fn a_silence_of_all_that_is_usual_frees_nothing() {
        let start = Instant::now();
        let mut places = full(start);
        // A loss: five slices until anything comes.
        assert!(places.free(start + SLICE), "nobody knows this link yet");
        let mut now = start + SLICE * 5;
        places.sign(1, now);
        places.sign(2, now);
        assert!(!places.free(now + SLICE * 9), "the next loss");
        assert!(places.free(now + SLICE * 11), "somebody is dead");
        // It fades while signs come fast.
        for n in 0..200 {
            now += SLICE / 100;
            places.sign(1 + n % 2, now);
        }
        assert!(places.free(now + SLICE));
    }

    #[test]
    fn a_time_when_nobody_held_a_place_was_no_silence() {
        let start = Instant::now();
        let mut places = full(start);
        places.sign(1, start);
        places.take_back(1);
        places.take_back(2);
        let later = start + SLICE * 1_000;
        places.give(1, later);
        places.give(2, later);
        places.sign(1, later + SLICE / 10);
        assert!(places.free(later + SLICE * 2));
    }

    #[test]
    fn without_a_limit_there_is_always_one() {
        let start = Instant::now();
        let mut places = Places::new(usize::MAX, 0, SLICE);
        for peer in 0..1_000 {
            assert!(places.free(start + SLICE));
            places.give(peer, start);
        }
    }
}
