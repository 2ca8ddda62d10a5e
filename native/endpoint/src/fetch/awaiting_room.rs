//! Attempts that wait for room in the queue of their connection, in the order of their requests'
//! age.
//!
//! A slow peer fills the queue of its own connection. Its attempts wait here without memory that
//! they do not use yet, so that attempts at other peers proceed.

use faro_fabric::ConnectionId;
use std::collections::{BTreeMap, BTreeSet};

/// The waiting attempts of each connection, as pairs of the request's id and the id on the wire.
#[derive(Default)]
pub(super) struct AwaitingRoom(BTreeMap<ConnectionId, BTreeSet<(u64, u64)>>);

impl AwaitingRoom {
    pub(super) fn insert(&mut self, connection: ConnectionId, attempt: (u64, u64)) {
        self.0.entry(connection).or_default().insert(attempt);
    }

    pub(super) fn remove(&mut self, connection: ConnectionId, attempt: (u64, u64)) -> bool {
        let Some(attempts) = self.0.get_mut(&connection) else {
            return false;
        };
        let was_there = attempts.remove(&attempt);
        if attempts.is_empty() {
            self.0.remove(&connection);
        }
        was_there
    }

    /// Removes and returns a connection's oldest attempt.
    pub(super) fn pop(&mut self, connection: ConnectionId) -> Option<(u64, u64)> {
        let first = *self.0.get(&connection)?.first()?;
        self.remove(connection, first);
        Some(first)
    }

    pub(super) fn has_any(&self, connection: ConnectionId) -> bool {
        self.0.contains_key(&connection)
    }

    /// Returns whether an attempt at an older request waits on the connection.
    pub(super) fn has_older(&self, connection: ConnectionId, request: u64) -> bool {
        let first = self.0.get(&connection).and_then(BTreeSet::first);
        first.is_some_and(|(oldest, _)| *oldest < request)
    }

    /// Returns whether an attempt at this request waits on the connection.
    pub(super) fn has(&self, connection: ConnectionId, request: u64) -> bool {
        let attempts = self.0.get(&connection);
        let of_request = (request, 0)..=(request, u64::MAX);
        attempts.is_some_and(|attempts| attempts.range(of_request).next().is_some())
    }

    pub(super) fn connections(&self) -> Vec<ConnectionId> {
        self.0.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_its_own_the_oldest_first() {
        let (a, b) = (ConnectionId(1), ConnectionId(2));
        let mut awaiting = AwaitingRoom::default();
        for (connection, attempt) in [(a, (7, 1)), (b, (3, 2)), (a, (5, 3)), (a, (9, 4))] {
            awaiting.insert(connection, attempt);
        }
        assert!(awaiting.remove(a, (9, 4)) && !awaiting.remove(a, (9, 4)));
        assert!(awaiting.has_older(a, 7) && !awaiting.has_older(a, 5));
        assert!(awaiting.has(a, 5) && !awaiting.has(b, 5));
        assert_eq!(awaiting.pop(a), Some((5, 3)));
        assert_eq!(awaiting.pop(a), Some((7, 1)));
        assert_eq!((awaiting.pop(a), awaiting.connections()), (None, vec![b]));
        assert!(!awaiting.has_any(a));
    }
}
