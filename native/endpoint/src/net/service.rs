//! Interface between a service of the endpoint and the event loop.

use super::Net;
use faro_fabric::{CloseReason, ConnectionId, EndpointId, Outcome};
use faro_pool::Lease;
use faro_wire::WireError;
use std::time::Instant;

/// Origin of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) connection: ConnectionId,
    pub(crate) endpoint: EndpointId,
}

/// A connection that has ended.
pub(crate) struct Closed<'a> {
    pub(crate) connection: ConnectionId,
    /// The other end; `None`: the connection had been given up before, with nothing on it.
    pub(crate) endpoint: Option<EndpointId>,
    pub(crate) reason: &'a CloseReason,
}

/// One of the three services of a progress thread: `fetch` (the client), `serve` (the server),
/// `collective`. All state of a service belongs to one thread and needs no lock; a service reaches
/// peers by the [`Net`] that it is given, other threads reach the service by an
/// [`Inbox`](super::Inbox), and services never call each other. Nothing here may block.
pub(crate) trait Service {
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
        source: Source,
        id: u64,
        message: Self::Message,
    ) -> Result<(), WireError>
    where
        Self: Sized;

    /// Takes the commands that other threads have sent.
    fn on_commands(&mut self, net: &mut Net);

    /// There is a new open connection to `endpoint`.
    fn on_open(&mut self, _net: &mut Net, _endpoint: EndpointId) {}

    /// A read that this service posted has ended; `target` holds its bytes if `outcome` is `Done`.
    fn on_read_ended(
        &mut self,
        _net: &mut Net,
        _connection: ConnectionId,
        _token: u64,
        _target: Lease,
        _outcome: &Outcome,
    ) {
    }

    /// A write that some service posted has ended.
    fn on_write_ended(
        &mut self,
        _net: &mut Net,
        _connection: ConnectionId,
        _token: u64,
        _outcome: &Outcome,
    ) {
    }

    /// A connection has ended, and `net` has forgotten it.
    fn on_closed(&mut self, net: &mut Net, closed: &Closed<'_>);

    /// The arena has memory again that a lease was refused before.
    fn on_memory(&mut self, _net: &mut Net) {}

    /// Time has passed.
    fn tick(&mut self, _net: &mut Net, _now: Instant) {}

    /// Nothing is under way, so that no tick is needed.
    fn is_idle(&self) -> bool;

    /// Is anything under way on that connection?
    fn uses(&self, connection: ConnectionId) -> bool;

    /// Must the connection stay, though nothing was sent on it for long?
    fn keeps(&self, connection: ConnectionId) -> bool {
        self.uses(connection)
    }

    /// Ends everything that is under way: this endpoint closes.
    fn close(&mut self, net: &mut Net);

    /// The fabric is gone for good: commands for it go by another fabric, or fail.
    fn redirect_commands(&mut self);
}
