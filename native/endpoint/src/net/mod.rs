//! Connections to peers, as a layer below the services.
//!
//! ```text
//!   fetch     serve     collective     command     each a Service, given &mut Net
//!     │ send · write · read · expose · revoke · link · open_to · disconnect
//!     ▼
//!   Net ── connections   which connection a message to an endpoint takes
//!    ├──── outbox        posts that the fabric has no room for yet
//!    ├──── accepted_connections   how many connections peers may hold that they have made
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
//! thread; the peer table is shared by all. `event_loop` has the operations that the thread's event
//! loop needs and no service does.

mod accepted_connections;
mod card_routes;
mod connections;
#[cfg(test)]
mod connections_model;
mod event_loop;
mod idle;
mod inbox;
mod outbox;
mod peer_backoff;
mod peers;
mod routes;
mod service;

pub(crate) use card_routes::{CardRoutes, CardSecrets};
pub(crate) use connections::LinkState;
pub(crate) use inbox::{Doorbell, Inbox};
pub(crate) use peers::PeerTable;
pub(crate) use routes::Route;
pub(crate) use service::{ClosedConnection, MessageSource, ProgressService};

use crate::counters::EndpointCounters;
use crate::quota_key::QuotaKey;
use accepted_connections::AcceptedConnections;
use connections::PeerConnections;
use faro_fabric::{
    CloseReason, ConnectionId, EndpointId, Exposure, Fabric, FabricError, FabricKind, Message,
    Read, RejectedPost, RemoteRange, RevokeStatus, Write, WriteSources,
};
use faro_pool::Lease;
use faro_sync::clock;
use faro_wire::message::{ToClient, ToCommands, ToMember, ToServer};
use idle::Idleness;
use outbox::{Outbox, Post};
use std::sync::Arc;
use std::time::Duration;

/// Token of a write whose end no service waits for.
pub(crate) const UNTRACKED: u64 = u64::MAX;

/// A message as its bytes, which another thread may have made.
pub(crate) struct EncodedMessage {
    kind: u8,
    body: Vec<u8>,
}

macro_rules! encoded_from {
    ($($message:ty),*) => {$(
        impl From<$message> for EncodedMessage {
            fn from(message: $message) -> Self {
                Self {
                    kind: message.kind(),
                    body: message.encode(),
                }
            }
        }
    )*};
}
encoded_from!(ToServer, ToClient, ToMember, ToCommands);

/// One fabric and the connections on it, for the services of one progress thread.
pub(crate) struct Net {
    fabric: Box<dyn Fabric>,
    connections: PeerConnections,
    accepted: AcceptedConnections,
    idleness: Idleness,
    outbox: Outbox,
    peers: Arc<PeerTable>,
    counters: Arc<EndpointCounters>,
}

impl Net {
    pub(crate) fn new(
        own: EndpointId,
        fabric: Box<dyn Fabric>,
        peers: Arc<PeerTable>,
        counters: Arc<EndpointCounters>,
        connection_idle: Duration,
    ) -> Self {
        Self {
            fabric,
            connections: PeerConnections::new(own),
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
    pub(crate) fn send(
        &mut self,
        connection: ConnectionId,
        id: u64,
        message: impl Into<EncodedMessage>,
    ) {
        self.idleness.used(connection);
        let EncodedMessage { kind, body } = message.into();
        let post = Post::Message(Message { kind, id, body });
        self.outbox.post(&mut *self.fabric, connection, post);
    }

    /// Returns whether messages or writes to the connection wait for room: the peer takes them slower than it asks.
    pub(crate) fn has_waiting_posts(&self, connection: ConnectionId) -> bool {
        self.outbox.has_waiting(connection)
    }

    /// Posts a write, in order with the messages of the connection. Its end comes to `on_write_ended`.
    pub(crate) fn write(&mut self, connection: ConnectionId, write: Write) {
        self.idleness.used(connection);
        let post = Post::Write(write);
        self.outbox.post(&mut *self.fabric, connection, post);
    }

    /// Returns what writes to the peer of this connection may send.
    pub(crate) fn write_sources(&mut self, connection: ConnectionId) -> WriteSources {
        self.fabric.write_sources(connection)
    }

    /// Posts a read. Its end comes to `on_read_ended`.
    ///
    /// # Errors
    /// The fabric's, with the read: `Full` is worth another try.
    pub(crate) fn read(
        &mut self,
        connection: ConnectionId,
        read: Read,
    ) -> Result<(), RejectedPost<Read>> {
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
    pub(crate) fn revoke(&mut self, key: u64) -> RevokeStatus {
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
    pub(crate) fn link(&self, endpoint: EndpointId) -> LinkState {
        self.connections.link(endpoint)
    }

    /// Returns the state of the way to the route's endpoint; begins a connection if there is none, which may take
    /// `at_most` and no longer than another route should wait for it. `LinkState::None`: that failed, and the route is in
    /// back-off.
    pub(crate) fn open_to(&mut self, route: &Route, at_most: Duration) -> LinkState {
        let endpoint = route.peer.endpoint;
        match self.connections.link(endpoint) {
            LinkState::None => {}
            link @ (LinkState::Open(_) | LinkState::Opening) => return link,
        }
        let timeout = self.peers.connect_timeout(endpoint, route.fabric);
        let deadline = clock::now() + timeout.min(at_most);
        match self.fabric.connect(&route.location, &route.peer, deadline) {
            Ok(connection) => {
                self.connections.begun(endpoint, connection);
                self.count();
                LinkState::Opening
            }
            Err(error) => {
                self.back_off(endpoint, &error.to_string());
                LinkState::None
            }
        }
    }

    /// Notes that the route to an endpoint by this fabric failed.
    pub(crate) fn back_off(&self, endpoint: EndpointId, cause: &str) {
        self.peers.back_off(endpoint, self.kind(), cause);
    }

    /// Returns the peer that work for that endpoint counts for. It is unknown as long as its card is not here.
    pub(crate) fn quota_key(&self, endpoint: EndpointId) -> QuotaKey {
        let is_unknown = !self.peers.has_card_of(endpoint);
        QuotaKey {
            endpoint,
            is_unknown,
        }
    }

    /// Returns the other end of a connection, until it is closed.
    pub(crate) fn endpoint_of(&self, connection: ConnectionId) -> Option<EndpointId> {
        self.connections.endpoint_of(connection)
    }

    /// Counts the connections.
    fn count(&self) {
        let counters = self.counters.fabric(self.kind());
        counters.connections.set(self.connections.len() as u64);
    }
}
