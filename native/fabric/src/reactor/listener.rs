//! The sockets that connections come from.

use super::strangers::Origin;
use crate::session::socket::Socket;
use std::io;

/// A listening socket.
pub(crate) trait Listener: mio::event::Source + Send {
    /// The sockets that it accepts.
    type Socket: Socket;
    /// Accepts the next connection.
    fn accept(&self) -> io::Result<AcceptedSocket<Self::Socket>>;
}

/// A connection that the kernel has handed over.
pub(crate) enum AcceptedSocket<S> {
    /// Its options are set and its peer is checked; its origin.
    Taken(S, Origin),
    /// Its peer may not connect; why.
    Refused(io::Error),
}
