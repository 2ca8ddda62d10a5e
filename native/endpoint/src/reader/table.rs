//! All that one progress thread fetches: connections are found or made, requests sent on them.

use super::attempts::Attempts;
use super::links::{Links, Way};
use super::Request;
use crate::config::limits::CONNECT_TIMEOUT;
use crate::memory::Memory;
use crate::outbox::Outbox;
use crate::router::{Router, CANCELLED};
use crate::routes::Route;
use faro_fabric::{CloseReason, ConnectionId, EndpointId, Fabric, FabricError, Message, Outcome};
use faro_pool::Lease;
use faro_wire::codes::FetchErrorCode;
use faro_wire::WireError;
use std::sync::Arc;
use std::time::Instant;

/// See the module's comment.
pub(crate) struct Reader {
    router: Arc<Router>,
    links: Links,
    attempts: Attempts,
}

/// What there is to an endpoint.
pub(crate) enum Link {
    /// The best connection, for requests and what is like one.
    Open(ConnectionId),
    /// A connection was begun; it will be open, or closed.
    Begun,
    None,
}

impl Reader {
    pub(crate) fn new(own: EndpointId, router: Arc<Router>, memory: Arc<Memory>) -> Self {
        Self {
            links: Links::new(own),
            attempts: Attempts::new(Arc::clone(&router), memory),
            router,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.attempts.is_idle()
    }

    /// All connections of the thread, whoever made them.
    pub(crate) fn connections(&self) -> Vec<ConnectionId> {
        self.links.all()
    }

    pub(crate) fn connection_count(&self) -> usize {
        self.links.len()
    }

    /// The connection that whatever is sent to that endpoint has to take.
    pub(crate) fn link(&mut self, endpoint: EndpointId) -> Link {
        match self.links.state(endpoint) {
            Some((peer, true)) => Link::Open(peer),
            Some((_, false)) => Link::Begun,
            None => Link::None,
        }
    }

    /// The other end of a connection, until it is closed.
    pub(crate) fn endpoint_of(&self, peer: ConnectionId) -> Option<EndpointId> {
        self.links.endpoint_of(peer)
    }

    /// Is there any connection to it, begun or open?
    pub(crate) fn is_linked(&self, endpoint: EndpointId) -> bool {
        self.links.has(endpoint)
    }

    /// Begins a connection that no request waits for; only where there is no link.
    ///
    /// # Errors
    /// The fabric's.
    pub(crate) fn begin(
        &mut self,
        fabric: &mut dyn Fabric,
        route: &Route,
    ) -> Result<(), FabricError> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let peer = fabric.connect(&route.location, route.endpoint, deadline)?;
        self.links.begun(route.endpoint, peer, None);
        Ok(())
    }

    /// Starts on `request`, connecting first if there is need.
    pub(crate) fn start(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        request: Request,
        route: &Route,
    ) {
        let request = match self.links.take(route.endpoint, request) {
            Way::Open(peer, request) => return self.attempts.issue(fabric, outbox, peer, request),
            Way::Waits => return,
            Way::Nowhere(request) => request,
        };
        let deadline = Instant::now() + CONNECT_TIMEOUT.min(request.patience);
        match fabric.connect(&route.location, route.endpoint, deadline) {
            Ok(peer) => self.links.begun(route.endpoint, peer, Some(request)),
            Err(error) => {
                self.router
                    .rest(request.peer, fabric.kind(), &error.to_string());
                self.router.dispatch(request);
            }
        }
    }

    /// A connection of ours is through.
    pub(crate) fn on_connected(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: ConnectionId,
        endpoint: EndpointId,
    ) {
        self.router.works(endpoint, fabric.kind());
        for request in self.links.connected(peer) {
            self.attempts.issue(fabric, outbox, peer, request);
        }
    }

    /// A peer made a connection.
    pub(crate) fn on_accepted(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: ConnectionId,
        endpoint: EndpointId,
    ) {
        let Some((unneeded, waiting)) = self.links.accepted(endpoint, peer) else {
            return;
        };
        self.router.counters.connections_given_up.add(1);
        fabric.disconnect(unneeded, CloseReason::Local);
        for request in waiting {
            self.attempts.issue(fabric, outbox, peer, request);
        }
    }

    /// Gives up the connections of ours that a better one stands beside, once they are not used:
    /// neither here nor, as `serves` tells, by the peer.
    pub(crate) fn give_up_surplus(
        &mut self,
        fabric: &mut dyn Fabric,
        serves: impl Fn(ConnectionId) -> bool,
    ) {
        for peer in self.links.surplus() {
            if !self.attempts.any_on(peer) && !serves(peer) {
                self.links.removed(peer);
                self.router.counters.connections_given_up.add(1);
                fabric.disconnect(peer, CloseReason::Local);
            }
        }
    }

    /// `FETCH_RESPONSE`, `DATA_WRITTEN`, `READ_OFFER` and `FAILED`.
    ///
    /// # Errors
    /// What the peer sent breaks the protocol.
    pub(crate) fn on_message(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: ConnectionId,
        message: &Message,
    ) -> Result<(), WireError> {
        self.attempts.on_message(fabric, outbox, peer, message)
    }

    /// A read of ours ended.
    pub(crate) fn on_read_ended(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        token: u64,
        target: Lease,
        outcome: &Outcome,
    ) {
        self.attempts
            .on_read_ended(fabric, outbox, token, target, outcome);
    }

    /// Arena memory may have come back.
    pub(crate) fn quench(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox) {
        self.attempts.quench(fabric, outbox);
    }

    pub(crate) fn tick(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, now: Instant) {
        self.attempts.tick(fabric, outbox, now);
    }

    pub(crate) fn cancel(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, request: u64) {
        if self.attempts.cancel(fabric, outbox, request) {
            return;
        }
        if let Some(request) = self.links.withdraw(request) {
            self.router
                .fail(request, FetchErrorCode::Cancelled, CANCELLED.to_owned());
        }
    }

    pub(crate) fn on_closed(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: ConnectionId,
        reason: &CloseReason,
    ) {
        // Unknown: it was given up, with nothing on it.
        let Some(rest) = self.links.removed(peer) else {
            return;
        };
        match rest.other {
            // The peer reached us, even if we did not reach it.
            Some(other) => {
                for request in rest.waiting {
                    self.attempts.issue(fabric, outbox, other, request);
                }
            }
            None => {
                if let (true, Some(request)) = (rest.failed, rest.waiting.first()) {
                    self.router
                        .rest(request.peer, fabric.kind(), &reason.to_string());
                }
                for request in rest.waiting {
                    self.router.dispatch(request);
                }
            }
        }
        self.attempts.on_closed(fabric, outbox, peer, reason);
    }

    /// Ends everything.
    pub(crate) fn close(&mut self, fabric: &mut dyn Fabric) {
        self.attempts.close(fabric);
        for request in self.links.clear() {
            self.router.fail_closing(request);
        }
    }
}
