//! Connections that are not open yet: their deadlines, and which of them are unauthenticated.

use super::unauthenticated::{Origin, UnauthenticatedConnections};
use crate::session::bounds::Bounds;
use crate::session::state::Session;
use crate::{CloseReason, ConnectionId};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The connections of one fabric that are not open yet.
pub(super) struct OpeningConnections {
    unauthenticated: UnauthenticatedConnections,
    /// Deadlines of handshakes: `(time, connection)`. A connection that has opened keeps its entry
    /// until the deadline, so that opening one costs no search.
    deadlines: BTreeSet<(Instant, u64)>,
    /// Time that an accepted connection has to authenticate.
    hello_timeout: Duration,
}

impl OpeningConnections {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            unauthenticated: UnauthenticatedConnections::new(bounds.unauthenticated),
            deadlines: BTreeSet::new(),
            hello_timeout: bounds.hello_timeout,
        }
    }

    pub(super) fn proof_deadline(&self, now: Instant) -> Instant {
        now + self.hello_timeout
    }

    /// Enters a connection that must be open by `deadline`.
    pub(super) fn insert(&mut self, connection: ConnectionId, deadline: Instant) {
        self.deadlines.insert((deadline, connection.0));
    }

    pub(super) fn insert_unauthenticated(&mut self, connection: ConnectionId, origin: Origin) {
        self.unauthenticated.insert(connection, origin);
    }

    /// Returns the connection that must make room for a new one, if too many are unauthenticated.
    pub(super) fn displaced(&self) -> Option<ConnectionId> {
        self.unauthenticated.displaced()
    }

    pub(super) fn authenticated(&mut self, connection: ConnectionId) {
        self.unauthenticated.remove(connection);
    }

    /// Removes a connection that ended or moved to another reactor. Returns its origin if it was
    /// unauthenticated.
    pub(super) fn ended(&mut self, connection: ConnectionId, deadline: Instant) -> Option<Origin> {
        self.deadlines.remove(&(deadline, connection.0));
        self.unauthenticated.remove(connection)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Removes and returns the next deadline's connection if it is over. The connection may have
    /// opened meanwhile.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<ConnectionId> {
        self.next_deadline().filter(|deadline| *deadline <= now)?;
        let (_, connection) = self.deadlines.pop_first()?;
        Some(ConnectionId(connection))
    }

    /// Returns why a connection that did not open in time is closed.
    pub(super) fn too_late(&self, session: &Session) -> CloseReason {
        match session.expected {
            Some(_) => CloseReason::Lost {
                detail: "no answer before the deadline".to_owned(),
            },
            None => CloseReason::Bound {
                what: "milliseconds of a connection that has not proven who it is",
                limit: self.hello_timeout.as_millis() as u64,
            },
        }
    }
}
