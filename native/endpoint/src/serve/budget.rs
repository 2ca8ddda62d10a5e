//! Memory of the requests that a progress thread holds for its clients, in bytes.
//!
//! A request is small, but a client chooses how many it sends and how many blocks each names. Beyond
//! the bound, which all progress threads of an endpoint share, a request is answered `Busy`, and its
//! client asks again. No connection may take more than a quarter, and none that has some may take more
//! than it leaves free: so there is room for one that has less, and clients that hear at once of room
//! do not shut out those that ask now and then.

use faro_fabric::ConnectionId;
use std::collections::HashMap;
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
pub(super) struct Budget {
    limit: usize,
    /// Of all progress threads of the endpoint. Relaxed: it orders nothing.
    of_all: Arc<AtomicU64>,
    /// Of this one.
    held: usize,
    /// No entry is zero.
    by_connection: HashMap<ConnectionId, usize>,
}

/// Bytes that a request takes.
pub(super) fn bytes_of_request(blocks: usize, buffers: usize) -> usize {
    REQUEST_BYTES + blocks * BLOCK_BYTES + bytes_of_buffers(buffers)
}

/// Bytes that buffers of a request take.
pub(super) fn bytes_of_buffers(buffers: usize) -> usize {
    buffers * BUFFER_BYTES
}

impl Budget {
    pub(super) fn new(limit: usize, of_all: Arc<AtomicU64>) -> Self {
        Self {
            limit,
            of_all,
            held: 0,
            by_connection: HashMap::new(),
        }
    }

    /// Most bytes at once.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes `bytes` for a request of that connection. False: the bound is reached. A request that is
    /// larger than a connection's share is taken when the connection has no other, and one larger than
    /// the rest of the bound when this thread has no other.
    pub(super) fn take(&mut self, connection: ConnectionId, bytes: usize) -> bool {
        let of_connection = self.by_connection.get(&connection).copied().unwrap_or(0);
        let free = self
            .limit
            .saturating_sub(self.of_all.load(Ordering::Relaxed) as usize);
        let share = of_connection == 0 || of_connection + bytes <= free.min(self.limit / 4);
        if !share || !self.reserve(bytes) {
            return false;
        }
        self.held += bytes;
        self.by_connection.insert(connection, of_connection + bytes);
        true
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

    /// Adds bytes to what a request of that connection has taken. False: the connection alone has more
    /// than the bound, which no client of this version causes.
    pub(super) fn add(&mut self, connection: ConnectionId, bytes: usize) -> bool {
        self.held += bytes;
        self.of_all.fetch_add(bytes as u64, Ordering::Relaxed);
        let of_connection = self.by_connection.entry(connection).or_default();
        *of_connection += bytes;
        *of_connection <= self.limit
    }

    /// Returns what `take` and `add` took.
    pub(super) fn give(&mut self, connection: ConnectionId, bytes: usize) {
        let given = bytes.min(self.held);
        self.held -= given;
        self.of_all.fetch_sub(given as u64, Ordering::Relaxed);
        if let Some(of_connection) = self.by_connection.get_mut(&connection) {
            *of_connection = of_connection.saturating_sub(bytes);
            if *of_connection == 0 {
                self.by_connection.remove(&connection);
            }
        }
    }

    /// Returns everything.
    pub(super) fn clear(&mut self) {
        self.of_all.fetch_sub(self.held as u64, Ordering::Relaxed);
        self.held = 0;
        self.by_connection.clear();
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ConnectionId = ConnectionId(1);

    fn budget(limit: usize) -> Budget {
        Budget::new(limit, Arc::default())
    }

    #[test]
    fn the_whole_is_that_of_all_threads() {
        let all = Arc::<AtomicU64>::default();
        let mut first = Budget::new(1_000, Arc::clone(&all));
        let mut second = Budget::new(1_000, Arc::clone(&all));
        for connection in 0..4 {
            assert!(first.take(ConnectionId(connection), 220));
        }
        assert!(second.take(A, 100), "each thread may have one request");
        assert!(!second.take(ConnectionId(5), 100), "beyond the whole");
        assert!(second.take(ConnectionId(5), 20));
        assert_eq!(all.load(Ordering::Relaxed), 1_000);
        first.clear();
        assert!(second.add(A, 100) && second.take(ConnectionId(2), 100));
        assert_eq!(all.load(Ordering::Relaxed), 320);
        drop(second);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_connection_has_a_quarter_and_all_have_the_whole() {
        let mut budget = budget(1_000);
        assert!(budget.take(A, 200));
        assert!(!budget.take(A, 51), "beyond its quarter");
        assert!(budget.take(A, 50));
        for other in 2..5 {
            assert!(budget.take(ConnectionId(other), 250));
        }
        assert!(!budget.take(ConnectionId(9), 1), "beyond the whole");
        budget.give(A, 200);
        budget.give(A, 50);
        assert!(budget.by_connection.len() == 3 && budget.held == 750);
        assert!(budget.take(ConnectionId(9), 250));
    }

    #[test]
    fn a_connection_that_has_some_leaves_room_for_one_that_has_less() {
        let mut budget = budget(1_000);
        for connection in 1..5 {
            assert!(budget.take(ConnectionId(connection), 120));
        }
        for connection in 1..5 {
            let second = budget.take(ConnectionId(connection), 120);
            assert_eq!(second, connection < 4, "{connection}");
        }
        assert!(budget.take(ConnectionId(9), 120));
        // Room that a connection returns is not its own again at once.
        budget.give(A, 120);
        assert!(!budget.take(A, 120));
        assert!(budget.take(ConnectionId(10), 120));
    }

    #[test]
    fn a_request_larger_than_the_bound_is_served_by_itself() {
        let mut budget = budget(1_000);
        assert!(budget.take(A, 5_000));
        assert!(!budget.take(ConnectionId(2), 1));
        budget.give(A, 5_000);
        assert!(budget.take(ConnectionId(2), 1));
    }
}
