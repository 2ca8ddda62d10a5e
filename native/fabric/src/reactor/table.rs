//! The connections of one fabric: how they enter the table, are served, and leave it.

use super::closing_connections::ClosingConnections;
use super::opening_connections::OpeningConnections;
use super::unauthenticated::Origin;
use crate::rare_log::RareLog;
use crate::session::carrier::{self, Carrier, SocketTurn};
use crate::session::closing::{report_end, say_goodbye};
use crate::session::connection::{Common, FabricConnection};
use crate::session::context::Context;
use crate::session::exposure::ByKey;
use crate::session::handshake_frames::say_hello;
use crate::session::operations::OpenConnection;
use crate::session::socket::Socket as _;
use crate::session::state::{ConnectionPhase, Session};
use crate::session::transport::Holder;
use crate::{CloseReason, ConnectionId, Event, FabricError, Identity, RevokeStatus};
use faro_sync::clock;
use std::io;
use std::time::Instant;

/// All connections of one fabric, by number.
pub(crate) struct ConnectionTable<D: Carrier> {
    registry: mio::Registry,
    connections: ByKey<FabricConnection<D>>,
    /// Connections that have ended for the caller, while the peer may still receive the GOODBYE.
    closing: ClosingConnections<D>,
    pub(super) common: Common<D>,
    opening: OpeningConnections,
    /// Last connection number given out.
    last: u64,
    /// Connections with bytes left to read.
    unread: Vec<ConnectionId>,
    not_watched: RareLog,
}

impl<D: Carrier> ConnectionTable<D> {
    pub(crate) fn new(registry: mio::Registry, common: Common<D>) -> Self {
        let opening = OpeningConnections::new(&common.shared.bounds);
        Self {
            registry,
            connections: ByKey::default(),
            closing: ClosingConnections::default(),
            common,
            opening,
            last: 0,
            unread: Vec::new(),
            not_watched: RareLog::default(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.connections.len() + self.closing.len() >= self.common.shared.bounds.connections
    }

    fn next_id(&mut self) -> ConnectionId {
        self.last += 1;
        ConnectionId(self.last)
    }

    /// Registers a socket as a new connection. `expected` is the endpoint that a connector expects,
    /// with its location.
    fn adopt(
        &mut self,
        mut socket: D::Socket,
        expected: Option<(Identity, String)>,
        deadline: Instant,
    ) -> io::Result<ConnectionId> {
        let connection = self.next_id();
        let interest = mio::Interest::READABLE | mio::Interest::WRITABLE;
        let token = mio::Token(connection.0 as usize);
        self.registry.register(&mut socket, token, interest)?;
        self.opening.insert(connection, deadline);
        let session = Session::new(connection, expected, deadline);
        let entry = FabricConnection::new(socket, session);
        let replaced = self.connections.insert(connection.0, entry);
        debug_assert!(replaced.is_none(), "connection ids are unique");
        Ok(connection)
    }

    /// Enters a connection that was started to `location`; if that failed, `Closed` says so.
    pub(crate) fn connect(
        &mut self,
        started: io::Result<D::Socket>,
        location: &str,
        expected: &Identity,
        deadline: Instant,
    ) -> Result<ConnectionId, FabricError> {
        if self.is_full() {
            return Err(FabricError::Bound {
                what: "connections",
                limit: self.common.shared.bounds.connections as u64,
            });
        }
        let expected = Some((expected.clone(), location.to_owned()));
        match started.and_then(|socket| self.adopt(socket, expected, deadline)) {
            Ok(connection) => Ok(connection),
            Err(error) => {
                let connection = self.next_id();
                let reason = CloseReason::Unreachable {
                    location: location.to_owned(),
                    detail: error.to_string(),
                };
                let shared = &mut self.common.shared;
                shared.counters.handshakes_failed += 1;
                shared.events.push(Event::Closed { connection, reason });
                Ok(connection)
            }
        }
    }

    /// Enters an unauthenticated connection. It must authenticate by a deadline; until then another
    /// may displace it.
    pub(crate) fn accepted(&mut self, socket: D::Socket, origin: Origin) {
        self.note_proven();
        if let Some(displaced) = self.opening.displaced() {
            self.common.shared.counters.connections_refused += 1;
            let detail = "it has not proven who it is, and others wait".to_owned();
            self.close(displaced, CloseReason::Lost { detail });
        }
        let now = clock::now();
        let deadline = self.opening.proof_deadline(now);
        match self.adopt(socket, None, deadline) {
            Ok(connection) => self.opening.insert_unauthenticated(connection, origin),
            Err(error) => {
                if let Some(left_out) = self.not_watched.at(now) {
                    log::warn!("cannot watch a new connection: {error}{left_out}");
                }
            }
        }
    }

    /// Marks the connections that have authenticated since the last call.
    pub(crate) fn note_proven(&mut self) {
        for connection in self.common.shared.proven.drain(..) {
            self.opening.authenticated(connection);
        }
    }

    pub(crate) fn open(&mut self, connection: ConnectionId) -> OpenConnection<'_, D> {
        self.get(connection).filter(|(found, _)| found.is_open())
    }

    /// Returns a connection in any phase.
    pub(crate) fn get(&mut self, connection: ConnectionId) -> OpenConnection<'_, D> {
        let found = self.connections.get_mut(&connection.0)?;
        Some((found, &mut self.common))
    }

    /// Notes what a connection's socket is ready for. Returns true if it is to be received from.
    pub(crate) fn ready(&mut self, connection: ConnectionId, event: &mio::event::Event) -> bool {
        let Some(found) = self.connections.get(&connection.0) else {
            self.closing.ready(connection, &mut self.common);
            return false;
        };
        if found.session.phase == ConnectionPhase::Connecting && !self.finish_connect(connection) {
            return false;
        }
        let Some(found) = self.connections.get_mut(&connection.0) else {
            return false;
        };
        found.ending |= event.is_read_closed() || event.is_error();
        if event.is_writable() {
            found.writable = true;
            if found.has_unsent() {
                found.context(&mut self.common.shared).touch();
            }
        }
        (event.is_readable() || found.ending) && !found.unread
    }

    /// Returns an accepted connection that has not received HELLO.
    pub(crate) fn before_hello(&self, connection: ConnectionId) -> Option<&FabricConnection<D>> {
        let found = self.connections.get(&connection.0)?;
        (found.session.phase == ConnectionPhase::AwaitHello).then_some(found)
    }

    /// Removes an unauthenticated connection without telling its peer, so that another reactor can
    /// serve it from its first byte.
    pub(crate) fn take_out(&mut self, connection: ConnectionId) -> Option<(D::Socket, Origin)> {
        let mut found = self.connections.remove(&connection.0)?;
        let origin = self.opening.ended(connection, found.session.deadline)?;
        if let Err(error) = self.registry.deregister(&mut found.socket) {
            log::debug!("cannot unwatch a connection that is passed on: {error}");
            return None;
        }
        Some((found.socket, origin))
    }

    /// Sends HELLO if the socket is connected. Returns false if it is not, or if the connection
    /// ended.
    fn finish_connect(&mut self, connection: ConnectionId) -> bool {
        let Some(found) = self.connections.get_mut(&connection.0) else {
            return false;
        };
        let result = match found.socket.connect_finished() {
            Ok(false) => return false,
            Ok(true) => {
                found.session.phase = ConnectionPhase::AwaitWelcome;
                say_hello(&mut found.context(&mut self.common.shared))
            }
            Err(error) => {
                let detail = error.to_string();
                Err(CloseReason::Lost { detail })
            }
        };
        match result {
            Ok(()) => true,
            Err(reason) => {
                self.close(connection, reason);
                false
            }
        }
    }

    pub(crate) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Receives from the connections that were cut off before.
    pub(crate) fn receive_unread(&mut self) {
        for connection in std::mem::take(&mut self.unread) {
            if let Some(found) = self.connections.get_mut(&connection.0) {
                found.unread = false;
                self.receive(connection);
            }
        }
    }

    /// Receives from one connection until it is drained or its turn is over.
    pub(crate) fn receive(&mut self, connection: ConnectionId) {
        let Some(found) = self.connections.get_mut(&connection.0) else {
            return;
        };
        match carrier::receive(found, &mut self.common) {
            Ok(SocketTurn::Drained) => {}
            Ok(SocketTurn::CutOff) => {
                debug_assert!(!found.unread, "a connection is listed once");
                found.unread = true;
                self.unread.push(connection);
            }
            Err(reason) => self.close(connection, reason),
        }
    }

    /// See [`crate::Fabric::flush`].
    pub(crate) fn flush(&mut self) {
        for connection in std::mem::take(&mut self.common.shared.dirty) {
            let Some(found) = self.connections.get_mut(&connection.0) else {
                continue;
            };
            found.session.dirty = false;
            if let Err(error) = carrier::send(found, &mut self.common) {
                let reason = carrier::after_failed_send(found, &mut self.common, &error);
                self.close(connection, reason);
            }
        }
    }

    /// Ends a connection: GOODBYE, flush, the pending operations' ends, `Closed`.
    pub(crate) fn close(&mut self, connection: ConnectionId, reason: CloseReason) {
        let Some(mut ended) = self.connections.remove(&connection.0) else {
            return;
        };
        let goodbye_sent = say_goodbye(&mut ended, &mut self.common, &reason);
        let FabricConnection {
            mut socket,
            mut session,
            state,
            ..
        } = ended;
        self.opening.ended(connection, session.deadline);
        let close_state = report_end(&mut session, state, &mut self.common, reason, goodbye_sent);
        let deadline = clock::now() + self.common.shared.bounds.linger;
        let is_closing =
            (goodbye_sent || close_state.is_some()) && self.closing.takes(session.phase, &socket);
        if is_closing {
            self.closing
                .insert(connection, socket, deadline, close_state);
            self.closing.ready(connection, &mut self.common);
        } else {
            if let Err(error) = self.registry.deregister(&mut socket) {
                log::debug!("cannot unwatch a closed connection: {error}");
            }
            if let Some(close_state) = close_state {
                let Common { driver, shared, .. } = &mut self.common;
                driver.on_peer_closed(shared, connection, close_state);
            }
        }
    }

    /// Ends all connections at once, also those that are closing.
    pub(crate) fn close_all(&mut self, reason: &CloseReason) {
        let open: Vec<u64> = self.connections.keys().copied().collect();
        for connection in open {
            self.close(ConnectionId(connection), reason.clone());
        }
        self.closing.end_all(&mut self.common);
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        [self.opening.next_deadline(), self.closing.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Ends every connection whose deadline is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.closing.expire(now, &mut self.common);
        while let Some(connection) = self.opening.take_due(now) {
            let found = self.connections.get(&connection.0);
            if let Some(found) = found.filter(|found| !found.is_open()) {
                let reason = self.opening.too_late(&found.session);
                self.close(connection, reason);
            }
        }
    }

    /// See [`crate::Fabric::revoke`]. Without its entry in the exposure table, no frame can reach
    /// the memory.
    pub(crate) fn revoke(&mut self, key: u64) -> RevokeStatus {
        let Common { driver, shared, .. } = &mut self.common;
        let Some((connection, exposure)) = shared.exposures.remove(key) else {
            return RevokeStatus::Unknown;
        };
        let holder = match self.connections.get_mut(&connection.0) {
            Some(found) => {
                debug_assert!(
                    found.session.exposures > 0,
                    "each entry of the table is counted"
                );
                found.session.exposures -= 1;
                debug_assert!(found.is_open(), "only then it has exposures");
                Holder::OpenConnection(Context::new(&mut found.session, shared), &mut found.state)
            }
            None if self.closing.contains(connection) => Holder::Closing,
            None => Holder::Closed,
        };
        driver.revoke(holder, connection, key, exposure)
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        let shared = &self.common.shared;
        let mut named = shared.counters.named();
        let all = || self.connections.values();
        let buffered: usize = all().map(FabricConnection::buffered).sum();
        let unsent: usize = all().map(|one| one.session.outbound.buffered()).sum();
        let memory = buffered + unsent + self.common.buffer_bytes();
        let queued: usize = all().map(|one| one.session.outbound.len()).sum();
        let connections = self.connections.len() + self.closing.len();
        named.push(("connections", connections as u64));
        named.push(("queued_frames", queued as u64));
        named.push(("buffered_bytes", buffered as u64));
        named.push(("memory_bytes", memory as u64));
        named.push(("exposures", shared.exposures.len() as u64));
        named.extend(self.common.driver.counters());
        named
    }
}
