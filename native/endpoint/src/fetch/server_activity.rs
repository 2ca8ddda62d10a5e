//! When something last arrived on each connection, and which servers are silent.

use faro_fabric::ConnectionId;
use faro_sync::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// What each server has sent lately.
#[derive(Default)]
pub(super) struct ServerActivity {
    /// The time at which something last arrived on each connection with attempts.
    at: HashMap<ConnectionId, Instant>,
    /// Connections whose servers have sent nothing for a while, although other attempts waited for
    /// the memory that requests there hold.
    silent: HashSet<ConnectionId>,
}

impl ServerActivity {
    /// Notes that something has arrived on the connection.
    pub(super) fn hear(&mut self, connection: ConnectionId, now: Instant) {
        self.at.insert(connection, now);
        if !self.silent.is_empty() {
            self.silent.remove(&connection);
        }
    }

    /// Returns the time at which something last arrived on the connection.
    pub(super) fn last(&self, connection: ConnectionId) -> Option<Instant> {
        self.at.get(&connection).copied()
    }

    /// Returns whether nothing has arrived on the connection for that time, or ever.
    pub(super) fn nothing_for(
        &self,
        connection: ConnectionId,
        time: Duration,
        now: Instant,
    ) -> bool {
        let last = self.at.get(&connection);
        last.is_none_or(|at| now.duration_since(*at) >= time)
    }

    /// Notes that the server is silent, until something arrives.
    pub(super) fn note_silent(&mut self, connection: ConnectionId) {
        self.silent.insert(connection);
    }

    pub(super) fn is_silent(&self, connection: ConnectionId) -> bool {
        self.silent.contains(&connection)
    }

    pub(super) fn has_silent(&self) -> bool {
        !self.silent.is_empty()
    }

    /// Forgets a connection that was closed.
    pub(super) fn closed(&mut self, connection: ConnectionId) {
        self.at.remove(&connection);
        self.silent.remove(&connection);
    }
}
