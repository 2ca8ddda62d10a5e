//! Where the connections of TCP, and the control connections of RDMA, come from.

use super::shared_port::{Arrivals, SharedPort};
use crate::reactor::listener::{AcceptedSocket, ListenSocket};
use crate::session::bounds::Bounds;
use crate::{FabricError, FabricKind, OwnIdentity};
use faro_secure::Protection;
use mio::event::Source;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use std::io;
use std::net::SocketAddr;

/// The listener of an endpoint.
pub(crate) enum StreamListener {
    /// A port of its own.
    Own(TcpListener),
    /// A port that it shares with other endpoints.
    Shared(Arrivals),
}

impl StreamListener {
    /// Joins a port that the endpoint shares with others. Returns the listener, and the address that
    /// peers connect to.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn behind(
        port: &SharedPort,
        identity: &OwnIdentity,
        fabric: FabricKind,
        protection: Protection,
        bounds: &Bounds,
    ) -> Result<(Self, SocketAddr), FabricError> {
        let arrivals = port.join(identity, fabric, protection, bounds.unauthenticated)?;
        Ok((Self::Shared(arrivals), port.address()))
    }
}

impl ListenSocket for StreamListener {
    type Socket = TcpStream;

    fn accept(&self) -> io::Result<AcceptedSocket<TcpStream>> {
        match self {
            Self::Own(listener) => ListenSocket::accept(listener),
            Self::Shared(arrivals) => arrivals.accept(),
        }
    }
}

impl Source for StreamListener {
    fn register(&mut self, registry: &Registry, token: Token, what: Interest) -> io::Result<()> {
        match self {
            Self::Own(listener) => listener.register(registry, token, what),
            Self::Shared(arrivals) => arrivals.register(registry, token, what),
        }
    }
    fn reregister(&mut self, registry: &Registry, token: Token, what: Interest) -> io::Result<()> {
        match self {
            Self::Own(listener) => listener.reregister(registry, token, what),
            Self::Shared(arrivals) => arrivals.reregister(registry, token, what),
        }
    }
    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Self::Own(listener) => listener.deregister(registry),
            Self::Shared(arrivals) => arrivals.deregister(registry),
        }
    }
}
