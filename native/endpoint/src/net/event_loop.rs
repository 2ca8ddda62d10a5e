//! The event loop's operations on a [`Net`]: polling, and the connections' beginning and end.

use super::connections::LinkState;
use super::Net;
use crate::limits::{MAX_CONNECTIONS_OF_PEER, MAX_UNKNOWN_PEER_CONNECTIONS};
use faro_fabric::{CloseReason, ConnectionId, EndpointId, Event, FabricError};
use faro_sync::clock;
use std::time::Duration;

impl Net {
    /// Posts again what waited, and hands all posts to the kernel or the device.
    pub(crate) fn flush(&mut self) {
        self.outbox.retry(&mut *self.fabric);
        self.fabric.flush();
    }

    /// Waits for events of the fabric.
    ///
    /// # Errors
    /// The fabric has failed for good.
    pub(crate) fn poll(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Duration,
    ) -> Result<(), FabricError> {
        let polled = self.fabric.poll(events, timeout);
        self.idleness.set_time(clock::now());
        for event in events.iter() {
            if let Event::Message { connection, .. }
            | Event::WriteEnded { connection, .. }
            | Event::ReadEnded { connection, .. } = event
            {
                self.idleness.used(*connection);
            }
        }
        if self.kind().is_by_device() {
            let held = self.fabric.connection_bytes();
            self.counters.connection_bytes.set(held);
        }
        polled
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.outbox.is_empty()
    }

    pub(crate) fn connections(&self) -> Vec<ConnectionId> {
        self.connections.all()
    }

    /// Notes that a connection that this endpoint has begun is open.
    pub(crate) fn connected(&mut self, connection: ConnectionId) {
        self.connections.connected(connection);
        self.idleness.opened(connection, true);
        self.count();
    }

    /// Notes that a peer has made a connection.
    pub(crate) fn accepted(&mut self, connection: ConnectionId, endpoint: EndpointId) {
        self.idleness.opened(connection, false);
        if let Some(unneeded) = self.connections.accepted(endpoint, connection) {
            self.counters.connections_surplus.add(1);
            self.fabric.disconnect(unneeded, CloseReason::Local);
        }
        self.hold_to_shares(connection, endpoint);
        self.count();
    }

    /// Closes a connection if the peer that has made another one, or all unknown peers together, have more than their share.
    fn hold_to_shares(&mut self, connection: ConnectionId, endpoint: EndpointId) {
        let is_unknown = self.quota_key(endpoint).is_unknown;
        let mut close = |connection, what, limit: usize| {
            let limit = limit as u64;
            let reason = CloseReason::Bound { what, limit };
            self.fabric.disconnect(connection, reason);
        };
        if let Some(oldest) = self.accepted.came(endpoint, connection, is_unknown) {
            let what = "connections that one peer has made";
            close(oldest, what, MAX_CONNECTIONS_OF_PEER);
        }
        let peers = &self.peers;
        let unknown = self
            .accepted
            .too_many_unknown(|endpoint| !peers.has_card_of(endpoint));
        if let Some(unused) = self.idleness.least_used(&unknown) {
            let what = "connections of peers whose card is not here";
            close(unused, what, MAX_UNKNOWN_PEER_CONNECTIONS);
            if let Some(endpoint) = self.connections.endpoint_of(unused) {
                self.accepted.ended(endpoint, unused);
            }
        }
    }

    /// Removes a connection that has ended. Returns its other end.
    pub(crate) fn closed(
        &mut self,
        connection: ConnectionId,
        reason: &CloseReason,
    ) -> Option<EndpointId> {
        self.outbox.closed(connection);
        self.idleness.closed(connection);
        let removed = self.connections.removed(connection)?;
        self.accepted.ended(removed.endpoint, connection);
        if removed.was_opening {
            self.back_off(removed.endpoint, &reason.to_string());
        }
        if self.connections.link(removed.endpoint) == LinkState::None {
            self.peers.disconnected(removed.endpoint);
        }
        self.count();
        Some(removed.endpoint)
    }

    /// Closes the redundant outgoing connections, once they are not in use.
    pub(crate) fn close_surplus(&mut self, in_use: impl Fn(ConnectionId) -> bool) {
        for connection in self.connections.surplus() {
            if !in_use(connection) {
                self.connections.removed(connection);
                self.counters.connections_surplus.add(1);
                self.fabric.disconnect(connection, CloseReason::Local);
                self.count();
            }
        }
    }

    /// Closes the connections that were not used for long, unless something keeps them: see `idle`.
    pub(crate) fn close_idle(&mut self, is_kept: impl Fn(ConnectionId) -> bool) {
        let crowded = self.fabric.wants_fewer_connections();
        for connection in self.idleness.expired(crowded) {
            if is_kept(connection) {
                continue;
            }
            // Now, so that no message takes it any more; `Event::Closed` finds nothing to do.
            self.idleness.closed(connection);
            if let Some(removed) = self.connections.removed(connection) {
                self.accepted.ended(removed.endpoint, connection);
                if self.connections.link(removed.endpoint) == LinkState::None {
                    self.peers.disconnected(removed.endpoint);
                }
            }
            self.counters.connections_idle.add(1);
            self.fabric.disconnect(connection, CloseReason::Local);
            self.count();
        }
    }

    /// Counts the memory of the connections' buffers.
    pub(crate) fn count_buffers(&self) {
        let named = self.fabric.counters();
        let memory = named.into_iter().find(|(name, _)| *name == "memory_bytes");
        let bytes = memory.map_or(0, |(_, bytes)| bytes);
        let counters = self.counters.fabric(self.kind());
        counters.buffer_bytes.set(bytes);
    }

    /// Says goodbye on all connections, as far as the kernel takes it at once.
    pub(crate) fn close(&mut self) {
        for connection in self.connections.all() {
            self.fabric.disconnect(connection, CloseReason::Local);
            self.connections.removed(connection);
        }
        self.count();
        let mut events = Vec::new();
        if let Err(error) = self.fabric.poll(&mut events, Duration::ZERO) {
            log::debug!("last poll: {error}");
        }
    }
}
