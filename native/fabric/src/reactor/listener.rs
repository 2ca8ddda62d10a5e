//! The sockets that connections come from.

use super::unauthenticated::Origin;
use crate::session::socket::Socket;
use std::io;

/// A listening socket.
pub(crate) trait ListenSocket: mio::event::Source + Send {
    /// The sockets that it accepts.
    type Socket: Socket;
    /// Accepts the next connection.
    fn accept(&self) -> io::Result<AcceptedSocket<Self::Socket>>;
}

/// A connection that the kernel has handed over.
pub(crate) enum AcceptedSocket<S> {
    /// The socket's options are set and its peer is checked. Has the connection's origin.
    Taken(S, Origin),
    /// The peer may not connect. Has the reason.
    Refused(io::Error),
}
