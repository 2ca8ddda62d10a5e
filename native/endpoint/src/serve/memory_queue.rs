//! Turns that wait for memory: each peer's in the order in which they began to wait, the peers in turn.
//!
//! ```text
//!   ring   A ── C ── D        peers whose first turn waits for the arena; the first one is next
//!   A: 7, 12    C: 9    D: 11, 14, 15
//!   B: 8, 10                  not in the ring: B has its share, and waits until it takes some of its bytes
//! ```
//! So memory that returns begins one turn and wakes no other, and no peer has two turns while another one
//! waits for its first. Pure: it names peers and serial numbers only.

use faro_fabric::EndpointId;
use faro_sync::HashMap;
use std::collections::VecDeque;

/// The turns of one peer. None is empty.
#[derive(Default)]
struct PeerTurns {
    waiting: VecDeque<u64>,
    /// It is in the ring.
    in_ring: bool,
}

/// The turns that wait for memory, by their serial numbers.
#[derive(Default)]
pub(super) struct MemoryQueue {
    peers: HashMap<EndpointId, PeerTurns>,
    ring: VecDeque<EndpointId>,
    /// The arena has refused memory to the next turn: it is asked again when some has returned.
    is_arena_empty: bool,
}

impl MemoryQueue {
    /// Adds a turn that waits.
    pub(super) fn push(&mut self, peer: EndpointId, serial: u64) {
        let is_new = !self.peers.contains_key(&peer);
        self.peers
            .entry(peer)
            .or_default()
            .waiting
            .push_back(serial);
        if is_new {
            self.has_room(peer);
        }
    }

    /// Returns the next turn that may get memory, and its peer.
    pub(super) fn first(&self) -> Option<(EndpointId, u64)> {
        let peer = self.ring.front().filter(|_| !self.is_arena_empty)?;
        let serial = self.peers.get(peer)?.waiting.front()?;
        Some((*peer, *serial))
    }

    /// Removes the next turn, which has begun. Its peer's following turn comes after those of the
    /// others.
    pub(super) fn first_began(&mut self) {
        let Some(peer) = self.ring.pop_front() else {
            return;
        };
        if let Some(of_peer) = self.peers.get_mut(&peer) {
            of_peer.waiting.pop_front();
            match of_peer.waiting.is_empty() {
                true => drop(self.peers.remove(&peer)),
                false => self.ring.push_back(peer),
            }
        }
    }

    /// Notes that the peer of the next turn has its whole share of the arena.
    pub(super) fn first_has_its_share(&mut self) {
        let peer = self.ring.pop_front();
        if let Some(of_peer) = peer.and_then(|peer| self.peers.get_mut(&peer)) {
            of_peer.in_ring = false;
        }
    }

    /// Notes that the arena has no memory.
    pub(super) fn arena_is_empty(&mut self) {
        self.is_arena_empty = true;
    }

    /// Notes that memory has returned to the arena.
    pub(super) fn arena_has_room(&mut self) {
        self.is_arena_empty = false;
    }

    /// Notes that a peer took bytes, so that it may have less than its share.
    pub(super) fn has_room(&mut self, peer: EndpointId) {
        if let Some(of_peer) = self.peers.get_mut(&peer) {
            if !std::mem::replace(&mut of_peer.in_ring, true) {
                self.ring.push_back(peer);
            }
        }
    }

    /// Notes that any peer may have less than its share, and that the arena may have memory.
    pub(super) fn all_have_room(&mut self) {
        self.is_arena_empty = false;
        for (peer, of_peer) in &mut self.peers {
            if !std::mem::replace(&mut of_peer.in_ring, true) {
                self.ring.push_back(*peer);
            }
        }
    }

    /// Returns whether a new turn of the peer would have to wait behind others.
    pub(super) fn must_wait(&self, peer: EndpointId) -> bool {
        !self.ring.is_empty() || self.peers.contains_key(&peer)
    }

    /// Removes a turn whose fetch has ended.
    pub(super) fn remove(&mut self, peer: EndpointId, serial: u64) {
        if let Some(of_peer) = self.peers.get_mut(&peer) {
            of_peer.waiting.retain(|waiting| *waiting != serial);
            if of_peer.waiting.is_empty() {
                self.peers.remove(&peer);
                self.ring.retain(|waiting| *waiting != peer);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.peers.clear();
        self.ring.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: EndpointId = 1;
    const B: EndpointId = 2;

    fn waiting(turns: &[(EndpointId, u64)]) -> MemoryQueue {
        let mut queue = MemoryQueue::default();
        for (peer, serial) in turns {
            queue.push(*peer, *serial);
        }
        queue
    }

    fn all(mut queue: MemoryQueue) -> Vec<u64> {
        let first = || {
            let (_, serial) = queue.first()?;
            queue.first_began();
            Some(serial)
        };
        std::iter::from_fn(first).collect()
    }

    #[test]
    fn peers_take_turns_and_each_peers_turns_begin_in_order() {
        let queue = waiting(&[(A, 1), (A, 2), (A, 3), (B, 4), (B, 5)]);
        assert_eq!(all(queue), [1, 4, 2, 5, 3]);
    }

    #[test]
    fn a_peer_with_its_share_holds_no_other_up() {
        let mut queue = waiting(&[(A, 1), (B, 2), (A, 3)]);
        queue.first_has_its_share();
        assert_eq!(queue.first(), Some((B, 2)));
        queue.first_began();
        assert_eq!(queue.first(), None);
        queue.push(A, 4);
        assert_eq!(queue.first(), None, "one more turn gives it no room");
        assert!(queue.must_wait(A) && !queue.must_wait(B));
        queue.has_room(A);
        queue.has_room(A);
        queue.has_room(B);
        assert_eq!(all(queue), [1, 3, 4]);
    }

    #[test]
    fn what_has_ended_leaves_nothing_behind() {
        let mut queue = waiting(&[(A, 1), (A, 2), (B, 3)]);
        queue.first_has_its_share();
        queue.remove(A, 1);
        queue.remove(A, 2);
        queue.remove(B, 3);
        queue.remove(B, 3);
        assert!(queue.peers.is_empty() && queue.ring.is_empty());
        let mut queue = waiting(&[(A, 1), (B, 2)]);
        queue.first_has_its_share();
        queue.first_has_its_share();
        queue.all_have_room();
        queue.remove(A, 1);
        assert_eq!(all(queue), [2]);
    }
}
