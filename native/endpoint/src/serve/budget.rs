//! Memory of the requests that a progress thread holds for its clients, in bytes.
//!
//! A request is small, but a client chooses how many it sends and how many blocks each names. Beyond
//! the bound, which all progress threads of an endpoint share, a request is answered `Busy`, and its
//! client asks again. No peer may take more than a quarter, however many connections it has, and none that
//! has some may take more than it leaves free: so there is room for one that has less, and clients that
//! hear at once of room do not shut out those that ask now and then. Unknown peers together may take half: see
//! [`QuotaKey`].

use crate::quota_key::{QuotaKey, UNKNOWN_PEERS_SHARE};
use faro_fabric::EndpointId;
use faro_sync::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Bytes that a request takes beside its blocks: entry, job, message.
const REQUEST_BYTES: usize = 1 << 10;
/// Bytes that a block takes: its id, its range, its part of the response.
const BLOCK_BYTES: usize = 96;
/// Bytes that an offered buffer takes.
const BUFFER_BYTES: usize = 24;

/// The bytes in use.
#[derive(Debug)]
pub(super) struct ServeBudget {
    limit: usize,
    /// Bytes of all progress threads of the endpoint. Relaxed: it orders nothing.
    of_all: Arc<AtomicU64>,
    /// Bytes of this thread.
    held: usize,
    /// Bytes of unknown peers.
    of_unknown: usize,
    /// No entry is zero.
    by_peer: HashMap<EndpointId, PeerCharge>,
}

/// A peer's share that is taken.
#[derive(Debug, Clone, Copy)]
struct PeerCharge {
    bytes: usize,
    /// It was unknown when it had nothing.
    is_unknown: bool,
}

/// Returns the bytes that a request takes.
pub(super) fn bytes_of_request(blocks: usize, buffers: usize) -> usize {
    REQUEST_BYTES + blocks * BLOCK_BYTES + bytes_of_buffers(buffers)
}

/// Returns the bytes that buffers of a request take.
pub(super) fn bytes_of_buffers(buffers: usize) -> usize {
    buffers * BUFFER_BYTES
}

impl ServeBudget {
    pub(super) fn new(limit: usize, of_all: Arc<AtomicU64>) -> Self {
        Self {
            limit,
            of_all,
            held: 0,
            of_unknown: 0,
            by_peer: HashMap::default(),
        }
    }

    /// Returns the bound in bytes.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes `bytes` for a request of that peer. Returns false if the bound is reached. A request
    /// that is larger than a peer's share is taken if the peer has no other, one larger than the
    /// unknown peers' share if they have no other, and one larger than the rest of the bound if this
    /// thread has no other.
    pub(super) fn take(&mut self, peer: QuotaKey, bytes: usize) -> bool {
        let QuotaKey {
            endpoint,
            is_unknown,
        } = peer;
        let nothing = PeerCharge {
            bytes: 0,
            is_unknown,
        };
        let held = self.by_peer.get(&endpoint).copied().unwrap_or(nothing);
        let free = self
            .limit
            .saturating_sub(self.of_all.load(Ordering::Relaxed) as usize);
        let share = held.bytes == 0 || held.bytes + bytes <= free.min(self.limit / 4);
        let unknown = !held.is_unknown
            || self.of_unknown == 0
            || self.of_unknown + bytes <= self.limit / UNKNOWN_PEERS_SHARE;
        if !share || !unknown || !self.reserve(bytes) {
            return false;
        }
        self.held += bytes;
        self.by_peer.insert(endpoint, held);
        self.count(endpoint, bytes);
        true
    }

    /// Counts bytes of a peer that has an entry. Returns all that it has.
    fn count(&mut self, endpoint: EndpointId, bytes: usize) -> usize {
        let Some(held) = self.by_peer.get_mut(&endpoint) else {
            return 0;
        };
        held.bytes += bytes;
        if held.is_unknown {
            self.of_unknown += bytes;
        }
        held.bytes
    }

    /// Counts the bytes for all threads, within the bound if this one has a request already.
    fn reserve(&self, bytes: usize) -> bool {
        if self.held == 0 {
            self.of_all.fetch_add(bytes as u64, Ordering::Relaxed);
            return true;
        }
        let fits = |all: u64| Some(all + bytes as u64).filter(|all| *all <= self.limit as u64);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        self.of_all.fetch_update(set, read, fits).is_ok()
    }

    /// Adds to the bytes that a request of that peer has taken. Returns false if the peer alone
    /// then has more than the bound, which no client of this version causes.
    pub(super) fn add(&mut self, peer: EndpointId, bytes: usize) -> bool {
        self.held += bytes;
        self.of_all.fetch_add(bytes as u64, Ordering::Relaxed);
        self.count(peer, bytes) <= self.limit
    }

    /// Returns what `take` and `add` took.
    pub(super) fn give(&mut self, peer: EndpointId, bytes: usize) {
        let given = bytes.min(self.held);
        self.held -= given;
        self.of_all.fetch_sub(given as u64, Ordering::Relaxed);
        let Some(held) = self.by_peer.get_mut(&peer) else {
            return;
        };
        let given = bytes.min(held.bytes);
        held.bytes -= given;
        if held.is_unknown {
            self.of_unknown = self.of_unknown.saturating_sub(given);
        }
        if held.bytes == 0 {
            self.by_peer.remove(&peer);
        }
    }

    /// Returns everything.
    pub(super) fn clear(&mut self) {
        self.of_all.fetch_sub(self.held as u64, Ordering::Relaxed);
        self.held = 0;
        self.of_unknown = 0;
        self.by_peer.clear();
    }
}

impl Drop for ServeBudget {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: EndpointId = 1;

    fn peer(endpoint: EndpointId) -> QuotaKey {
        QuotaKey::known(endpoint)
    }

    fn budget(limit: usize) -> ServeBudget {
        ServeBudget::new(limit, Arc::default())
    }

    #[test]
    fn the_whole_is_that_of_all_threads() {
        let all = Arc::<AtomicU64>::default();
        let mut first = ServeBudget::new(1_000, Arc::clone(&all));
        let mut second = ServeBudget::new(1_000, Arc::clone(&all));
        for endpoint in 0..4 {
            assert!(first.take(peer(endpoint), 220));
        }
        assert!(
            second.take(peer(A), 100),
            "each thread may have one request"
        );
        assert!(!second.take(peer(5), 100), "beyond the whole");
        assert!(second.take(peer(5), 20));
        assert_eq!(all.load(Ordering::Relaxed), 1_000);
        first.clear();
        assert!(second.add(A, 100) && second.take(peer(2), 100));
        assert_eq!(all.load(Ordering::Relaxed), 320);
        drop(second);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_peer_has_a_quarter_and_all_have_the_whole() {
        let mut budget = budget(1_000);
        assert!(budget.take(peer(A), 200));
        assert!(!budget.take(peer(A), 51), "beyond its quarter");
        assert!(budget.take(peer(A), 50));
        for other in 2..5 {
            assert!(budget.take(peer(other), 250));
        }
        assert!(!budget.take(peer(9), 1), "beyond the whole");
        budget.give(A, 200);
        budget.give(A, 50);
        assert!(budget.by_peer.len() == 3 && budget.held == 750);
        assert!(budget.take(peer(9), 250));
    }

    #[test]
    fn a_peer_that_has_some_leaves_room_for_one_that_has_less() {
        let mut budget = budget(1_000);
        for endpoint in 1..5 {
            assert!(budget.take(peer(endpoint), 120));
        }
        for endpoint in 1..5 {
            let second = budget.take(peer(endpoint), 120);
            assert_eq!(second, endpoint < 4, "{endpoint}");
        }
        assert!(budget.take(peer(9), 120));
        // Room that a peer returns is not its own again at once.
        budget.give(A, 120);
        assert!(!budget.take(peer(A), 120));
        assert!(budget.take(peer(10), 120));
    }

    #[test]
    fn a_request_larger_than_the_bound_is_served_by_itself() {
        let mut budget = budget(1_000);
        assert!(budget.take(peer(A), 5_000));
        assert!(!budget.take(peer(2), 1));
        budget.give(A, 5_000);
        assert!(budget.take(peer(2), 1));
    }

    #[test]
    fn unknown_peers_leave_half_to_peers_whose_card_is_here() {
        let mut budget = budget(1_000);
        for peer in 10..19 {
            let first = budget.take(QuotaKey::unknown(peer), 100);
            assert_eq!(first, peer < 15, "{peer}");
        }
        assert!(budget.take(peer(A), 250) && budget.take(peer(2), 250));
        budget.give(10, 100);
        assert!(
            budget.take(QuotaKey::unknown(18), 100),
            "what one has returned"
        );
        // Its card has come meanwhile.
        budget.give(11, 100);
        assert!(budget.take(peer(11), 100));
        assert!(
            budget.take(QuotaKey::unknown(17), 0),
            "the unknown peers have 400"
        );
    }
}
