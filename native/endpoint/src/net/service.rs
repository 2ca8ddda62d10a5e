//! Interface between a service of the endpoint and the event loop.

use super::Net;
use faro_fabric::{CloseReason, ConnectionId, EndpointId, Outcome};
use faro_pool::Lease;
use faro_wire::WireError;
use std::time::Instant;

/// Origin of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageSource {
    pub(crate) connection: ConnectionId,
    pub(crate) endpoint: EndpointId,
}

/// A connection that has ended.
pub(crate) struct ClosedConnection<'a> {
    pub(crate) connection: ConnectionId,
    /// The other end; `None` if the connection was given up before, without a request on it.
    pub(crate) endpoint: Option<EndpointId>,
    pub(crate) reason: &'a CloseReason,
}

/// One of the three services of a progress thread: `fetch` (the client), `serve` (the server),
/// `collective`. All state of a service belongs to one thread and needs no lock; a service reaches
/// peers by the [`Net`] that it is given, other threads reach the service by an
/// [`Inbox`](super::Inbox), and services never call each other. Nothing here may block.
pub(crate) trait ProgressService {
    /// The messages that it takes.
    type Message
    where
        Self: Sized;

    /// A message of a peer.
    ///
    /// # Errors
    /// What the peer sent breaks the protocol: the connection is closed.
    fn on_message(
        &mut self,
        net: &mut Net,
        source: MessageSource,
        id: u64,
        message: Self::Message,
    ) -> Result<(), WireError>
    where
        Self: Sized;

    /// Takes the commands that other threads have sent.
    fn on_commands(&mut self, net: &mut Net);

    /// Called when there is a new open connection to `endpoint`.
    fn on_open(&mut self, _net: &mut Net, _endpoint: EndpointId) {}

    /// Called when a read that this service posted has ended; `target` holds its bytes if `outcome`
    /// is `Done`.
    fn on_read_ended(
        &mut self,
        _net: &mut Net,
        _connection: ConnectionId,
        _token: u64,
        _target: Lease,
        _outcome: &Outcome,
    ) {
    }

    /// Called when a write that some service posted has ended.
    fn on_write_ended(
        &mut self,
        _net: &mut Net,
        _connection: ConnectionId,
        _token: u64,
        _outcome: &Outcome,
    ) {
    }

    /// Called when a connection has ended; `net` has forgotten it.
    fn on_closed(&mut self, net: &mut Net, closed: &ClosedConnection<'_>);

    /// Called when the arena has memory again after it refused a lease.
    fn on_memory(&mut self, _net: &mut Net) {}

    /// Called regularly, to handle deadlines.
    fn tick(&mut self, _net: &mut Net, _now: Instant) {}

    /// Returns whether the service has no work, so that it needs no tick.
    fn is_idle(&self) -> bool;

    /// Returns whether the service uses that connection.
    fn uses(&self, connection: ConnectionId) -> bool;

    /// Must the connection stay, though nothing was sent on it for long?
    fn keeps(&self, connection: ConnectionId) -> bool {
        self.uses(connection)
    }

    /// Ends all work, because this endpoint closes.
    fn close(&mut self, net: &mut Net);

    /// Called when the fabric has failed for good: sends commands to another fabric, or fails them.
    fn redirect_commands(&mut self);
}
