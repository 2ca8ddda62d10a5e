//! The connections of one progress thread, and which of them a message to an endpoint takes.
//!
//! Idea: a connection serves both directions, so two endpoints that fetch from each other have one
//! and not two (over verbs: one queue pair). The side that needs it first makes it; the other uses
//! it. When both make one at the same moment, that of the smaller endpoint id is kept:
//!
//! ```text
//!   a, the smaller id                        b, the larger id
//!   makes ca ─────────────────╲ ╱─────────── makes cb
//!   accepts cb, stays with ca ◀╳▶ accepts ca: what waits for cb moves to ca, new requests take ca
//!                             ◀───────────── closes cb once no request uses it
//! ```
//! Rules:
//! 1. A connection is begun only while there is none to that endpoint, opening or open.
//! 2. A message takes the best one: what the smaller id made before what the larger id made, and
//!    of those that one side made the newest.
//! 3. A connection is closed as surplus only by its maker, only while a better one is open, and
//!    only when no request uses it in either direction.
//!
//! Nothing is lost, because `cb` exists beside `ca` only if a began `ca` before it accepted `cb` (1), so a has put no
//! request on `cb`, and puts none there as long as it has `ca` (2). From the moment b accepts `ca` it puts none on `cb`
//! either, and what it had there ends before `cb` does (3). So no message on `cb` is still waited for. Requests that
//! waited for `cb` were never sent: they move without having seen a fault. Both sides choose the same connection
//! without a message about it, because the ids and the maker of each connection are the same to both.
//!
//! Idle connections are closed too, by their maker or where a fabric has no room for more (`idle`); a
//! request that crosses that is asked for again, as after every loss.
//!
//! One loss remains possible: a may lose `ca`, take `cb` (now its best) and send, just as b, which has not heard of the
//! loss, closes `cb`. A connection was lost then, and the request is asked for again, as after every loss.
//!
//! Older connections whose other end vanished silently: a peer that makes a second one has lost its
//! first (1), so the newest of one maker is better (2). If the connection that a peer lost is the
//! better one by its maker, an outgoing one, then this side stays on it until the fabric or a request's deadline
//! notices, as it would with a connection for each direction.
//!
//! Trade-off: there is one queue to a peer, so a request may wait behind bytes that are served to
//! that same peer; and closing a connection because the peer misbehaves in one direction ends the
//! other direction too.

use faro_fabric::{ConnectionId, EndpointId};
use faro_sync::HashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionState {
    Opening,
    Open,
}

struct PeerConnection {
    id: ConnectionId,
    /// This side made it.
    outgoing: bool,
    state: ConnectionState,
}

/// State of the way to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// The best connection, which all messages take.
    Open(ConnectionId),
    /// The best connection is opening: it will be open, or closed.
    Opening,
    /// No connection.
    None,
}

/// A connection that has been removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RemovedConnection {
    /// The other end.
    pub(super) endpoint: EndpointId,
    /// It was never open.
    pub(super) was_opening: bool,
}

/// The connections by endpoint, and which are surplus.
pub(crate) struct PeerConnections {
    own: EndpointId,
    /// Connections by their other end, oldest first; no entry is empty.
    by_endpoint: HashMap<EndpointId, Vec<PeerConnection>>,
    /// Every connection once.
    endpoints: HashMap<ConnectionId, EndpointId>,
    /// Outgoing, open connections that were not the best when they were put here.
    surplus: Vec<ConnectionId>,
}

impl PeerConnections {
    pub(super) fn new(own: EndpointId) -> Self {
        Self {
            own,
            by_endpoint: HashMap::default(),
            endpoints: HashMap::default(),
            surplus: Vec::new(),
        }
    }

    pub(super) fn all(&self) -> Vec<ConnectionId> {
        self.endpoints.keys().copied().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// Returns whether outgoing connections are better. An endpoint that fetches from itself has
    /// both ends here, and stays with the one it made.
    fn prefers_outgoing(&self, endpoint: EndpointId) -> bool {
        self.own <= endpoint
    }

    /// Returns the best connection to `endpoint`.
    pub(super) fn link(&self, endpoint: EndpointId) -> LinkState {
        let outgoing = self.prefers_outgoing(endpoint);
        let connections = self.by_endpoint.get(&endpoint).into_iter().flatten();
        // The last one of equals, which is the newest.
        match connections.max_by_key(|connection| connection.outgoing == outgoing) {
            None => LinkState::None,
            Some(best) => match best.state {
                ConnectionState::Open => LinkState::Open(best.id),
                ConnectionState::Opening => LinkState::Opening,
            },
        }
    }

    /// Returns the other end of a connection, until it is closed.
    pub(super) fn endpoint_of(&self, id: ConnectionId) -> Option<EndpointId> {
        self.endpoints.get(&id).copied()
    }

    /// Adds a connection that this endpoint has begun.
    pub(super) fn begun(&mut self, endpoint: EndpointId, id: ConnectionId) {
        self.insert(endpoint, id, true, ConnectionState::Opening);
    }

    /// Notes that a connection that this endpoint has begun is open.
    pub(super) fn connected(&mut self, id: ConnectionId) {
        let endpoint = self.endpoints.get(&id);
        let connections = endpoint.and_then(|endpoint| self.by_endpoint.get_mut(endpoint));
        for connection in connections.into_iter().flatten().filter(|c| c.id == id) {
            connection.state = ConnectionState::Open;
        }
    }

    /// Adds a connection that a peer made. Returns the outgoing connection that is no longer needed
    /// although it is not open yet; it was removed, and the caller closes it.
    pub(super) fn accepted(
        &mut self,
        endpoint: EndpointId,
        id: ConnectionId,
    ) -> Option<ConnectionId> {
        self.insert(endpoint, id, false, ConnectionState::Open);
        if self.prefers_outgoing(endpoint) {
            return None;
        }
        let connections = self.by_endpoint.get_mut(&endpoint)?;
        let open = |c: &&PeerConnection| c.outgoing && c.state == ConnectionState::Open;
        self.surplus
            .extend(connections.iter().filter(open).map(|c| c.id));
        let at = connections
            .iter()
            .position(|c| c.state == ConnectionState::Opening)?;
        let unneeded = connections.remove(at);
        self.endpoints.remove(&unneeded.id);
        Some(unneeded.id)
    }

    /// Returns the redundant outgoing connections. The caller closes them when no request uses
    /// them.
    pub(super) fn surplus(&mut self) -> Vec<ConnectionId> {
        let (by_endpoint, endpoints) = (&self.by_endpoint, &self.endpoints);
        let has_incoming =
            |connections: &Vec<PeerConnection>| connections.iter().any(|c| !c.outgoing);
        self.surplus.retain(|id| {
            let connections = endpoints.get(id).and_then(|e| by_endpoint.get(e));
            connections.is_some_and(has_incoming)
        });
        self.surplus.clone()
    }

    /// Removes a connection that has ended or is about to. Returns `None` if it was removed before.
    pub(super) fn removed(&mut self, id: ConnectionId) -> Option<RemovedConnection> {
        let endpoint = self.endpoints.remove(&id)?;
        let connections = self.by_endpoint.get_mut(&endpoint)?;
        let at = connections.iter().position(|c| c.id == id)?;
        let connection = connections.remove(at);
        if connections.is_empty() {
            self.by_endpoint.remove(&endpoint);
        }
        Some(RemovedConnection {
            endpoint,
            was_opening: connection.state == ConnectionState::Opening,
        })
    }

    fn insert(
        &mut self,
        endpoint: EndpointId,
        id: ConnectionId,
        outgoing: bool,
        state: ConnectionState,
    ) {
        self.endpoints.insert(id, endpoint);
        let connections = self.by_endpoint.entry(endpoint).or_default();
        connections.push(PeerConnection {
            id,
            outgoing,
            state,
        });
    }
}
