//! The connections of one progress thread, and which of them a request takes.
//!
//! Idea: a connection serves both directions, so two endpoints that fetch from each other have one
//! and not two (over verbs: one queue pair). Whoever has need first makes it; the other uses it.
//! When both make one at the same moment, that of the smaller endpoint id is kept:
//!
//! ```text
//!   a, the smaller id                        b, the larger id
//!   makes ca ─────────────────╲ ╱─────────── makes cb
//!   accepts cb, stays with ca ◀╳▶ accepts ca: what waits for cb moves to ca, new requests take ca
//!                             ◀───────────── gives cb up once nothing is under way on it
//! ```
//! Rules:
//! 1. A connection is begun only while there is none to that peer, begun or open.
//! 2. A request takes the best one: what the smaller id made before what the larger id made, and
//!    of those that one side made the newest.
//! 3. A connection is given up only by its maker, only while a better one is open, and only when
//!    nothing is under way on it in either direction.
//!
//! Why nothing is lost: `cb` exists beside `ca` only if a began `ca` before it accepted `cb` (1), so
//! a has put no request on `cb`, and puts none there as long as it has `ca` (2). From the moment b
//! accepts `ca` it puts none on `cb` either, and what it had there ends before `cb` does (3). So
//! there is no message on `cb` that anybody waits for. Requests that waited for `cb` were never sent:
//! they move without having seen a fault. Both sides agree on the best one without a word, because
//! the ids and who made what are the same to both.
//!
//! What remains: a may lose `ca`, take `cb` (now its best) and send, just as b, which has not heard
//! of the loss, ends `cb`. A connection was lost then, and the request is asked for again, as after
//! every loss.
//!
//! Older connections whose other end is gone without a word: a peer that makes a second one has
//! lost its first (1), so the newest of one maker is better (2). If the connection that a peer lost
//! is the better one by its maker, ours, then we stay on it until the fabric or a request's
//! deadline finds out, as we would with a connection of our own for each direction.
//!
//! Trade-off: one queue to a peer, so a request may wait behind the bytes that we are serving to
//! that same peer; and who closes a connection because the peer misbehaves in one direction ends
//! the other too.

use super::Request;
use faro_fabric::{ConnectionId, EndpointId};
use std::collections::HashMap;

enum State {
    /// Requests wait for it.
    Connecting(Vec<Request>),
    Open,
}

struct Link {
    peer: ConnectionId,
    /// This side made it.
    ours: bool,
    state: State,
}

/// What a request can do now.
pub(super) enum Way {
    /// Be sent on this connection.
    Open(ConnectionId, Request),
    /// It waits for a connection that was begun.
    Waits,
    /// There is none: one has to be begun.
    Nowhere(Request),
}

/// What a connection that ended leaves behind.
pub(super) struct Rest {
    /// Requests that waited for it.
    pub(super) waiting: Vec<Request>,
    /// It was never open.
    pub(super) failed: bool,
    /// Another open one to the same peer.
    pub(super) other: Option<ConnectionId>,
}

/// See the module's comment.
pub(super) struct Links {
    own: EndpointId,
    /// By the other end, oldest first; no entry is empty.
    by_endpoint: HashMap<EndpointId, Vec<Link>>,
    /// Every connection once.
    endpoints: HashMap<ConnectionId, EndpointId>,
    /// Ours, open, not the best when they were put here.
    surplus: Vec<ConnectionId>,
}

impl Links {
    pub(super) fn new(own: EndpointId) -> Self {
        Self {
            own,
            by_endpoint: HashMap::new(),
            endpoints: HashMap::new(),
            surplus: Vec::new(),
        }
    }

    pub(super) fn all(&self) -> Vec<ConnectionId> {
        self.endpoints.keys().copied().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.endpoints.len()
    }

    pub(super) fn has(&self, endpoint: EndpointId) -> bool {
        self.by_endpoint.contains_key(&endpoint)
    }

    /// Ours are better. An endpoint that fetches from itself has both ends here, and stays with
    /// the one it made.
    fn prefers_ours(&self, endpoint: EndpointId) -> bool {
        self.own <= endpoint
    }

    fn best(&mut self, endpoint: EndpointId) -> Option<&mut Link> {
        let ours = self.prefers_ours(endpoint);
        let links = self.by_endpoint.get_mut(&endpoint)?;
        // The last one of equals, which is the newest.
        links.iter_mut().max_by_key(|link| link.ours == ours)
    }

    /// Finds a request its way to `endpoint`.
    pub(super) fn take(&mut self, endpoint: EndpointId, request: Request) -> Way {
        match self.best(endpoint) {
            None => Way::Nowhere(request),
            Some(link) => match &mut link.state {
                State::Open => Way::Open(link.peer, request),
                State::Connecting(waiting) => {
                    waiting.push(request);
                    Way::Waits
                }
            },
        }
    }

    /// The best one, and whether it is open.
    pub(super) fn state(&mut self, endpoint: EndpointId) -> Option<(ConnectionId, bool)> {
        let link = self.best(endpoint)?;
        Some((link.peer, matches!(link.state, State::Open)))
    }

    pub(super) fn endpoint_of(&self, peer: ConnectionId) -> Option<EndpointId> {
        self.endpoints.get(&peer).copied()
    }

    /// A connection was begun, for `request` if not for a collective.
    pub(super) fn begun(
        &mut self,
        endpoint: EndpointId,
        peer: ConnectionId,
        request: Option<Request>,
    ) {
        let waiting = request.into_iter().collect();
        self.insert(endpoint, peer, true, State::Connecting(waiting));
    }

    /// One of ours is through; gives what waited for it, to be sent on it.
    pub(super) fn connected(&mut self, peer: ConnectionId) -> Vec<Request> {
        let Some(link) = self.find(peer) else {
            return Vec::new();
        };
        match std::mem::replace(&mut link.state, State::Open) {
            State::Connecting(waiting) => waiting,
            State::Open => Vec::new(),
        }
    }

    /// A peer made one. Gives the connection of ours that is not needed any more before it is
    /// through: forgotten here, to be closed, and what waited for it is to be sent on `peer`.
    pub(super) fn accepted(
        &mut self,
        endpoint: EndpointId,
        peer: ConnectionId,
    ) -> Option<(ConnectionId, Vec<Request>)> {
        self.insert(endpoint, peer, false, State::Open);
        if self.prefers_ours(endpoint) {
            return None;
        }
        let links = self.by_endpoint.get_mut(&endpoint)?;
        let open = |link: &&Link| link.ours && matches!(link.state, State::Open);
        let surplus = links.iter().filter(open).map(|link| link.peer);
        self.surplus.extend(surplus);
        let at = links
            .iter()
            .position(|link| matches!(link.state, State::Connecting(_)))?;
        let link = links.remove(at);
        self.endpoints.remove(&link.peer);
        match link.state {
            State::Connecting(waiting) => Some((link.peer, waiting)),
            State::Open => None,
        }
    }

    /// Connections of ours beside which there is a better one: to be given up when nothing is
    /// under way on them.
    pub(super) fn surplus(&mut self) -> Vec<ConnectionId> {
        let (by_endpoint, endpoints) = (&self.by_endpoint, &self.endpoints);
        let theirs = |links: &Vec<Link>| links.iter().any(|link| !link.ours);
        self.surplus.retain(|peer| {
            let endpoint = endpoints.get(peer);
            endpoint.is_some_and(|endpoint| by_endpoint.get(endpoint).is_some_and(theirs))
        });
        self.surplus.clone()
    }

    /// It ended, or is about to.
    pub(super) fn removed(&mut self, peer: ConnectionId) -> Option<Rest> {
        let endpoint = self.endpoints.remove(&peer)?;
        let links = self.by_endpoint.get_mut(&endpoint)?;
        let at = links.iter().position(|link| link.peer == peer)?;
        let link = links.remove(at);
        if links.is_empty() {
            self.by_endpoint.remove(&endpoint);
        }
        let other = self
            .best(endpoint)
            .filter(|other| matches!(other.state, State::Open))
            .map(|other| other.peer);
        let (waiting, failed) = match link.state {
            State::Connecting(waiting) => (waiting, true),
            State::Open => (Vec::new(), false),
        };
        Some(Rest {
            waiting,
            failed,
            other,
        })
    }

    /// Takes a request back that waits for a connection.
    pub(super) fn withdraw(&mut self, request: u64) -> Option<Request> {
        for link in self.by_endpoint.values_mut().flatten() {
            if let State::Connecting(waiting) = &mut link.state {
                if let Some(at) = waiting.iter().position(|r| r.id == request) {
                    return Some(waiting.swap_remove(at));
                }
            }
        }
        None
    }

    /// Forgets all connections; gives what waited for them.
    pub(super) fn clear(&mut self) -> Vec<Request> {
        self.endpoints.clear();
        self.surplus.clear();
        let links = self.by_endpoint.drain().flat_map(|(_, links)| links);
        links
            .flat_map(|link| match link.state {
                State::Connecting(waiting) => waiting,
                State::Open => Vec::new(),
            })
            .collect()
    }

    fn insert(&mut self, endpoint: EndpointId, peer: ConnectionId, ours: bool, state: State) {
        self.endpoints.insert(peer, endpoint);
        let links = self.by_endpoint.entry(endpoint).or_default();
        links.push(Link { peer, ours, state });
    }

    fn find(&mut self, peer: ConnectionId) -> Option<&mut Link> {
        let links = self.by_endpoint.get_mut(self.endpoints.get(&peer)?)?;
        links.iter_mut().find(|link| link.peer == peer)
    }
}
