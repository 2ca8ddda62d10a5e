//! Decides which peers may go now, and which go next: the schedule as a preference and as a bound.
//!
//! A piece of work (a request to a peer, or a turn of a fetch that is served to it) starts at once
//! while its peer holds a [permit](super::permits), and waits otherwise. A peer holds its permit as
//! long as a piece of its work runs; a free permit goes to the peer that is due next:
//!
//! ```text
//!   current round ─▶  peers that wait, in the schedule's order  ─▶ later rounds, cyclically ─▶ unknown peers
//!                     └──────────────── the first of these gets the permit ───────────────┘
//! ```
//! - **Work-conserving**: no peer waits while a permit is free, whatever the round is.
//! - **No lock-step**: the round moves on when no work of it is left, or when its slice is over. A
//!   peer that still holds a permit keeps it until its running work has ended. But once others wait
//!   and the slice is over, the peer's new work waits too, so that no peer keeps a permit by always
//!   having more work.
//! - **Stragglers** stop counting after a slice without progress; they may hold as many permits again
//!   as there are, so that a network that is silent for a moment is not answered by a flood.
//! - **No peer waits for ever**, whatever else goes wrong: one that has waited for `max_wait` gets a
//!   permit beyond the limit.
//!
//! Submitted work starts exactly once: it is in a queue here, or was given out. A new [`PeerOrder`]
//! re-sorts the queues and changes nothing else.
//!
//! It is pure: the caller passes the time, and gets the work that may start.

use super::order::{PeerOrder, SchedulePosition};
use super::permits::Permits;
use faro_fabric::EndpointId;
use faro_sync::HashMap;
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// A peer with waiting or running work; no other peer is kept.
struct PeerWork<T> {
    under_way: usize,
    waiting: VecDeque<T>,
    /// Time when the first of `waiting` began to wait.
    since: Instant,
}

/// The work of all peers in one direction, and which of it may go.
pub(crate) struct PeerAdmission<T> {
    order: PeerOrder,
    slice: Duration,
    /// Time for which a peer waits before it gets a permit beyond the limit.
    max_wait: Duration,
    peers: HashMap<EndpointId, PeerWork<T>>,
    /// Peers whose `waiting` is not empty, as they are due.
    queue: BTreeSet<(SchedulePosition, EndpointId)>,
    permits: Permits,
    /// Peers that got a permit (true) or returned one since the last look.
    moves: Vec<(EndpointId, bool)>,
    /// Below `order.rounds()`, or zero.
    round: u32,
    /// Time when `round` became the current one.
    since: Instant,
    /// Number of times that the round moved on.
    rounds: u64,
    /// Amount of work that had to wait.
    waited: u64,
}

impl<T> PeerAdmission<T> {
    pub(crate) fn new(order: PeerOrder, slice: Duration, max_wait: Duration, now: Instant) -> Self {
        let permits = Permits::new(order.permits, order.permits, slice);
        Self {
            order,
            slice,
            max_wait,
            peers: HashMap::default(),
            queue: BTreeSet::new(),
            permits,
            moves: Vec::new(),
            round: 0,
            since: now,
            rounds: 0,
            waited: 0,
        }
    }

    /// Adopts another order. Waiting work becomes due by it; running work is not affected.
    pub(crate) fn adopt(&mut self, order: PeerOrder, now: Instant, out: &mut Vec<T>) {
        self.permits.resize(order.permits, order.permits);
        self.order = order;
        let queue = std::mem::take(&mut self.queue).into_iter();
        self.queue = queue
            .map(|(_, peer)| (self.order.due(peer), peer))
            .collect();
        (self.round, self.since) = (0, now);
        self.settle(now, out);
    }

    /// Returns the number of peers that hold a permit.
    pub(crate) fn active(&self) -> usize {
        self.permits.len()
    }

    /// Returns whether the number of peers at once has a bound.
    pub(crate) fn is_bounded(&self) -> bool {
        self.order.permits < usize::MAX
    }

    /// Returns whether any work waits.
    pub(crate) fn waits(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Returns the round that is preferred now.
    #[cfg(test)]
    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    /// Returns how often the round has moved on.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Returns how much work had to wait.
    pub(crate) fn waited(&self) -> u64 {
        self.waited
    }

    /// Takes the peers that got a permit (true) or returned one since the last call.
    pub(crate) fn moves(&mut self) -> std::vec::Drain<'_, (EndpointId, bool)> {
        self.moves.drain(..)
    }

    /// Takes work for a peer; appends to `out` what may go now: this, other work, or nothing.
    pub(crate) fn submit(&mut self, peer: EndpointId, work: T, now: Instant, out: &mut Vec<T>) {
        if self.peers.is_empty() {
            // No slice runs while there is nothing to do.
            self.since = now;
        }
        let entry = self.peers.entry(peer).or_insert_with(|| PeerWork {
            under_way: 0,
            waiting: VecDeque::new(),
            since: now,
        });
        let goes = match self.queue.is_empty() {
            true => self.permits.holds(peer) || self.permits.free(now),
            false => {
                entry.waiting.is_empty()
                    && self.permits.holds(peer)
                    && !self.permits.slice_over(peer, now)
            }
        };
        if goes {
            entry.under_way += 1;
            if !self.permits.holds(peer) {
                self.permits.grant(peer, now);
                self.moves.push((peer, true));
            }
            out.push(work);
            return;
        }
        self.waited += 1;
        if entry.waiting.is_empty() {
            entry.since = now;
            self.queue.insert((self.order.due(peer), peer));
        }
        entry.waiting.push_back(work);
        self.settle(now, out);
    }

    /// Counts `pieces` more pieces of a peer's running work, because one piece became several.
    pub(crate) fn more(&mut self, peer: EndpointId, pieces: usize) {
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.under_way += pieces;
        }
    }

    /// Notes that `pieces` pieces of work given out for a peer have ended.
    pub(crate) fn ended(
        &mut self,
        peer: EndpointId,
        pieces: usize,
        now: Instant,
        out: &mut Vec<T>,
    ) {
        if let Some(entry) = self.peers.get_mut(&peer) {
            debug_assert!(entry.under_way >= pieces, "ended more than was under way");
            entry.under_way = entry.under_way.saturating_sub(pieces);
            if entry.under_way == 0 {
                if self.permits.release(peer) {
                    self.moves.push((peer, false));
                }
                if entry.waiting.is_empty() {
                    self.peers.remove(&peer);
                }
            }
        }
        self.settle(now, out);
    }

    /// Notes that something arrived from a peer.
    pub(crate) fn progress(&mut self, peer: EndpointId, now: Instant) {
        self.permits.progress(peer, now);
    }

    /// Called as time passes; starts work that has become due.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<T>) {
        self.settle(now, out);
        while let Some(due) = self.waited_too_long(now) {
            self.admit(due, now, out);
        }
    }

    /// Removes and returns the first waiting work that `which` accepts.
    pub(crate) fn withdraw(&mut self, which: impl Fn(&T) -> bool) -> Option<T> {
        let found = self.queue.iter().find_map(|(due, peer)| {
            let waiting = &self.peers.get(peer)?.waiting;
            Some((*due, *peer, waiting.iter().position(&which)?))
        });
        let (due, peer, at) = found?;
        let entry = self.peers.get_mut(&peer)?;
        let work = entry.waiting.remove(at);
        if entry.waiting.is_empty() {
            self.queue.remove(&(due, peer));
            if entry.under_way == 0 {
                self.peers.remove(&peer);
            }
        }
        work
    }

    /// Removes and returns all that waits, in no order.
    pub(crate) fn clear(&mut self) -> Vec<T> {
        self.queue.clear();
        let peers = self.peers.values_mut();
        let all = peers
            .flat_map(|peer| std::mem::take(&mut peer.waiting))
            .collect();
        self.peers.retain(|_, peer| peer.under_way > 0);
        all
    }

    /// Grants permits as long as one is free and a peer waits.
    fn settle(&mut self, now: Instant, out: &mut Vec<T>) {
        self.move_on(now);
        while let Some(due) = self.next(now) {
            self.admit(due, now, out);
        }
    }

    /// Grants the peer a permit, or another slice if it has one, and releases all that waits for it.
    fn admit(&mut self, due: (SchedulePosition, EndpointId), now: Instant, out: &mut Vec<T>) {
        let (_, peer) = due;
        self.queue.remove(&due);
        if self.permits.grant(peer, now) {
            self.moves.push((peer, true));
        }
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.under_way += entry.waiting.len();
            out.extend(entry.waiting.drain(..));
        }
    }

    fn next(&self, now: Instant) -> Option<(SchedulePosition, EndpointId)> {
        let first = self.first()?;
        // A peer that holds a permit needs no other, and waits only for those that have none.
        let goes = self.permits.free(now) || self.queue.iter().all(|(_, p)| self.permits.holds(*p));
        goes.then_some(first)
    }

    /// Returns the peer that is due next.
    fn first(&self) -> Option<(SchedulePosition, EndpointId)> {
        let current = SchedulePosition {
            round: self.round,
            position: 0,
        };
        let later = self.queue.range((current, 0)..).next();
        let known = later.filter(|(due, _)| due.round < self.order.rounds());
        known.or_else(|| self.queue.first()).copied()
    }

    fn waited_too_long(&self, now: Instant) -> Option<(SchedulePosition, EndpointId)> {
        let waited = |(_, peer): &&(SchedulePosition, EndpointId)| {
            let entry = self.peers.get(peer);
            entry.is_some_and(|entry| now.duration_since(entry.since) >= self.max_wait)
        };
        self.queue.iter().find(waited).copied()
    }

    /// Moves to the next round that has work, if this one has none or its slice is over.
    fn move_on(&mut self, now: Instant) {
        let rounds = self.order.rounds();
        if rounds == 0 || self.peers.is_empty() {
            return;
        }
        let has_work = |round: &u32| {
            let mut peers = self.order.of_round(*round).iter();
            peers.any(|peer| self.peers.contains_key(peer))
        };
        if has_work(&self.round) && now.duration_since(self.since) < self.slice {
            return;
        }
        let mut others = (1..rounds).map(|i| (self.round + i) % rounds);
        if let Some(next) = others.find(has_work) {
            self.round = next;
            self.rounds += 1;
        }
        self.since = now;
    }
}

#[cfg(test)]
#[path = "admission_test.rs"]
mod tests;
