//! Connections that are not open yet: their deadlines, and which of them are unauthenticated.

use super::unauthenticated::{Origin, UnauthenticatedConnections};
use crate::session::bounds::Bounds;
use crate::session::state::Session;
use crate::{CloseReason, ConnectionId};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The connections of one fabric that are not open yet.
pub(super) struct OpeningConnections {
    /// Accepted connections that have not proven who they are.
    strangers: UnauthenticatedConnections,
    /// Deadlines of greetings: `(time, connection)`. A connection that has opened keeps its entry
    /// until the deadline, so that opening one costs no search.
    deadlines: BTreeSet<(Instant, u64)>,
    /// Time that an accepted connection has to authenticate.
    hello_timeout: Duration,
}

impl OpeningConnections {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            strangers: UnauthenticatedConnections::new(bounds.strangers),
            deadlines: BTreeSet::new(),
            hello_timeout: bounds.hello_timeout,
        }
    }

    /// Returns the deadline of a stranger that comes at that time.
    pub(super) fn deadline_of_strangers(&self, now: Instant) -> Instant {
        now + self.hello_timeout
    }

    /// Enters a connection that must be open at that time.
    pub(super) fn began(&mut self, connection: ConnectionId, deadline: Instant) {
        self.deadlines.insert((deadline, connection.0));
    }

    /// Notes that the connection is a stranger's.
    pub(super) fn came(&mut self, connection: ConnectionId, origin: Origin) {
        self.strangers.came(connection, origin);
    }

    /// Returns the connection that must make room for a new one, if too many are unauthenticated.
    pub(super) fn displaced(&self) -> Option<ConnectionId> {
        self.strangers.displaced()
    }

    /// Notes that the peer of a connection has proven who it is.
    pub(super) fn proven(&mut self, connection: ConnectionId) {
        self.strangers.left(connection);
    }

    /// Removes a connection that ended or moved to another reactor. Returns its origin if it was
    /// unauthenticated.
    pub(super) fn ended(&mut self, connection: ConnectionId, deadline: Instant) -> Option<Origin> {
        self.deadlines.remove(&(deadline, connection.0));
        self.strangers.left(connection)
    }

    /// Returns when the next deadline is over.
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
