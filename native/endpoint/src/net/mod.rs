//! Connections to peers, as a layer below the services.
//!
//! ```text
//!   fetch        serve        collective          each a Service, given &mut Net
//!     │ send · write · read · expose · revoke · link · open_to · disconnect
//!     ▼
//!   Net ── connections   which connection a message to an endpoint takes
//!    ├──── outbox        posts that the fabric has no room for yet
//!    ├──── guests        how many connections peers may hold that they have made
//!    ├──── idle          when each connection was last used
//!    ├──── peers         the peers that are known by their cards
//!    │     ├─ card_routes   the routes and the identity that a card gives
//!    │     ├─ routes        fabrics and addresses of a peer, best first; back-off of a route
//!    │     └─ peer_backoff  whether a peer is better left alone after requests failed
//!    └──── fabric        moves the bytes
//!   inbox                how other threads reach a service of a progress thread
//! ```
//! A service names a peer by its endpoint id and never sees the fabric: which fabric, which
//! connection, and what happens when one fails is decided here. A [`Net`] belongs to one progress
//! thread; the peer table is shared by all.

mod card_routes;
mod connections;
#[cfg(test)]
mod connections_model;
mod guests;
mod idle;
mod inbox;
mod outbox;
mod peer_backoff;
mod peers;
mod routes;
mod service;

pub(crate) use card_routes::{CardRoutes, Membership};
pub(crate) use connections::Link;
pub(crate) use inbox::{Doorbell, Inbox};
pub(crate) use peers::PeerTable;
pub(crate) use routes::Route;
pub(crate) use service::{Closed, Service, Source};

use crate::counters::Counters;
use crate::limits::{MAX_CONNECTIONS_OF_PEER, MAX_GUEST_CONNECTIONS};
use crate::payer::Payer;
use connections::Connections;
use faro_fabric::{
    CloseReason, ConnectionId, EndpointId, Event, Exposure, Fabric, FabricError, FabricKind,
    Message, Read, Rejected, RemoteRange, Revoked, Write,
};
use faro_pool::Lease;
use faro_sync::clock;
use faro_wire::message::{ToClient, ToMember, ToServer};
use guests::AcceptedConnections;
use idle::Idleness;
use outbox::{Outbox, Post};
use std::sync::Arc;
use std::time::Duration;

/// Token of a write whose end no service waits for.
pub(crate) const UNTRACKED: u64 = u64::MAX;

/// A message as its bytes, which another thread may have made.
pub(crate) struct Encoded {
    kind: u8,
    body: Vec<u8>,
}

macro_rules! encoded_from {
    ($($message:ty),*) => {$(
        impl From<$message> for Encoded {
            fn from(message: $message) -> Self {
                Self {
                    kind: message.kind(),
                    body: message.encode(),
                }
            }
        }
    )*};
}
encoded_from!(ToServer, ToClient, ToMember);

/// One fabric and the connections on it, for the services of one progress thread.
pub(crate) struct Net {
    fabric: Box<dyn Fabric>,
    connections: Connections,
    accepted: AcceptedConnections,
    idleness: Idleness,
    outbox: Outbox,
    peers: Arc<PeerTable>,
    counters: Arc<Counters>,
}

impl Net {
    pub(crate) fn new(
        own: EndpointId,
        fabric: Box<dyn Fabric>,
        peers: Arc<PeerTable>,
        counters: Arc<Counters>,
        connection_idle: Duration,
    ) -> Self {
        Self {
            fabric,
            connections: Connections::new(own),
            accepted: AcceptedConnections::default(),
            idleness: Idleness::new(connection_idle, clock::now()),
            outbox: Outbox::default(),
            peers,
            counters,
        }
    }

    pub(crate) fn kind(&self) -> FabricKind {
        self.fabric.kind()
    }

    /// Sends a message now, or as soon as the fabric has room. To a connection that is closed it
    /// vanishes: the service hears of that by `on_closed`.
    pub(crate) fn send(&mut self, connection: ConnectionId, id: u64, message: impl Into<Encoded>) {
        self.idleness.used(connection);
        let Encoded { kind, body } = message.into();
        let post = Post::Message(Message { kind, id, body });
        self.outbox.post(&mut *self.fabric, connection, post);
    }

    /// Posts a write, in order with the messages of the connection. Its end comes to `on_write_ended`.
    pub(crate) fn write(&mut self, connection: ConnectionId, write: Write) {
        self.idleness.used(connection);
        let post = Post::Write(write);
        self.outbox.post(&mut *self.fabric, connection, post);
    }

    /// Posts a read. Its end comes to `on_read_ended`.
    ///
    /// # Errors
    /// The fabric's, with the read: `Full` is worth another try.
    pub(crate) fn read(
        &mut self,
        connection: ConnectionId,
        read: Read,
    ) -> Result<(), Rejected<Read>> {
        self.idleness.used(connection);
        self.fabric.read(connection, read)
    }

    /// Exposes a lease to the peer until it is revoked. Returns `None` if the connection is closed
    /// or full.
    pub(crate) fn expose(
        &mut self,
        connection: ConnectionId,
        what: Exposure,
    ) -> Option<RemoteRange> {
        self.fabric.expose(connection, what).ok()
    }

    /// Ends an exposure. What is revoked `Later` the fabric keeps until no peer can reach it.
    pub(crate) fn revoke(&mut self, key: u64) -> Revoked {
        self.fabric.revoke(key)
    }

    /// Registers a lease with the device now, and not at its first use.
    ///
    /// # Errors
    /// What the device refused.
    pub(crate) fn register(&mut self, lease: &Lease) -> Result<(), FabricError> {
        self.fabric.register(lease)
    }

    /// Closes a connection; `on_closed` follows.
    pub(crate) fn disconnect(&mut self, connection: ConnectionId, reason: CloseReason) {
        self.fabric.disconnect(connection, reason);
    }

    /// Returns the state of the way to an endpoint.
    pub(crate) fn link(&self, endpoint: EndpointId) -> Link {
        self.connections.link(endpoint)
    }

    /// Returns the state of the way to the route's endpoint; begins a connection if there is none, which may take
    /// `at_most` and no longer than another route should wait for it. `Link::None`: that failed, and the route is in
    /// back-off.
    pub(crate) fn open_to(&mut self, route: &Route, at_most: Duration) -> Link {
        let endpoint = route.peer.endpoint;
        match self.connections.link(endpoint) {
            Link::None => {}
            link @ (Link::Open(_) | Link::Opening) => return link,
        }
        let timeout = self.peers.connect_timeout(endpoint, route.fabric);
        let deadline = clock::now() + timeout.min(at_most);
        match self.fabric.connect(&route.location, &route.peer, deadline) {
            Ok(connection) => {
                self.connections.begun(endpoint, connection);
                self.count();
                Link::Opening
            }
            Err(error) => {
                self.back_off(endpoint, &error.to_string());
                Link::None
            }
        }
    }

    /// Notes that the route to an endpoint by this fabric failed.
    pub(crate) fn back_off(&self, endpoint: EndpointId, cause: &str) {
        self.peers.back_off(endpoint, self.kind(), cause);
    }

    /// Returns who pays for work for that endpoint: itself, or the guests as long as its card is not here.
    pub(crate) fn payer(&self, endpoint: EndpointId) -> Payer {
        let is_guest = !self.peers.has_card_of(endpoint);
        Payer { endpoint, is_guest }
    }

    /// Returns the other end of a connection, until it is closed.
    pub(crate) fn endpoint_of(&self, connection: ConnectionId) -> Option<EndpointId> {
        self.connections.endpoint_of(connection)
    }
}

/// The event loop's operations.
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

    /// Closes a connection if the peer that has made another one, or guests together, have more than their share.
    fn hold_to_shares(&mut self, connection: ConnectionId, endpoint: EndpointId) {
        let is_guest = self.payer(endpoint).is_guest;
        let mut close = |connection, what, limit: usize| {
            let limit = limit as u64;
            let reason = CloseReason::Bound { what, limit };
            self.fabric.disconnect(connection, reason);
        };
        if let Some(oldest) = self.accepted.came(endpoint, connection, is_guest) {
            let what = "connections that one peer has made";
            close(oldest, what, MAX_CONNECTIONS_OF_PEER);
        }
        let peers = &self.peers;
        let guests = self
            .accepted
            .too_many_guests(|endpoint| !peers.has_card_of(endpoint));
        if let Some(unused) = self.idleness.least_used(&guests) {
            let what = "connections of peers whose card is not here";
            close(unused, what, MAX_GUEST_CONNECTIONS);
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
        if self.connections.link(removed.endpoint) == Link::None {
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
            // Now, so that no message takes it any more; `Closed` finds nothing to do.
            self.idleness.closed(connection);
            if let Some(removed) = self.connections.removed(connection) {
                self.accepted.ended(removed.endpoint, connection);
                if self.connections.link(removed.endpoint) == Link::None {
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

    fn count(&self) {
        let counters = self.counters.fabric(self.kind());
        counters.connections.set(self.connections.len() as u64);
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
