//! What one fabric adds to the shared stream: a transport driver.
//!
//! ```text
//!   Reactor<D>  -- sockets, deadlines, greeting --> ControlChannel   how a connection begins and ends
//!               -- frames, operations, memory ----> Datapath         what an open connection does
//!               -- D::Path ------------------------> FramePath       how its frames travel
//! ```
//! The three are separate because verbs differ from TCP and shared memory in the last one only:
//! their frames leave the socket once the connection is open.

use super::kinds::TransportKind;
use super::reactor::Reactor;
use super::session::{Context, Shared};
use super::socket::{Listener, Socket};
use super::turns::Turn;
use crate::stream::inbound::Sink;
use crate::{
    CloseReason, ConnectionId, Exposure, FabricError, FabricKind, RemoteRange, Revoked, Write,
};
use faro_pool::Lease;
use faro_wire::WireError;
use std::io;

/// What both halves of a driver share.
pub(crate) trait Transport: Send + Sized {
    /// Which fabric it is.
    const KIND: FabricKind;
    /// What the driver keeps per connection.
    type Connection: Default + Send;
    /// See [`crate::Fabric::connection_bytes`].
    fn connection_bytes(&self) -> u64 {
        0
    }
    /// See [`crate::Fabric::wants_fewer_connections`].
    fn wants_fewer_connections(&self) -> bool {
        false
    }
    /// Counters of its own, besides those of every stream fabric.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// What follows the greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Greeted {
    /// The connection is open.
    Open,
    /// The two sides exchange more frames first; the driver calls `Context::opened` when it is done.
    Pairing,
}

/// How connections begin and how their end is noticed.
pub(crate) trait ControlChannel: Transport {
    /// The socket of a connection.
    type Socket: Socket;
    /// Accepts sockets.
    type Listener: Listener<Socket = Self::Socket>;

    /// Starts to connect. The outer error: `location` is not one of this fabric.
    fn start(&mut self, location: &str) -> Result<io::Result<Self::Socket>, FabricError>;
    /// Called after each receive: takes over what came beside the bytes (file descriptors).
    fn collect(
        _socket: &mut Self::Socket,
        _state: &mut Self::Connection,
    ) -> Result<(), CloseReason> {
        Ok(())
    }
    /// The peer has proven who it is.
    fn greeted(
        &mut self,
        _cx: &mut Context<'_>,
        _state: &mut Self::Connection,
    ) -> Result<Greeted, CloseReason> {
        Ok(Greeted::Open)
    }
}

/// Why a lease was not exposed.
pub(crate) enum Unexposed {
    /// No slot is free; try again after a revocation.
    Full,
    /// The connection has to end.
    Broken(CloseReason),
}

/// The peer that may reach an exposure.
pub(crate) enum Holder<'a, S> {
    /// Its connection is open.
    Open(Context<'a>, &'a mut S),
    /// Its connection is closed here, but the peer may not know it yet.
    Lingering,
    /// Its connection has ended on both sides.
    Gone,
}

/// What an open connection does: operations, and the memory they reach.
pub(crate) trait Datapath: Transport {
    /// The frames that only this fabric has.
    type Kind: TransportKind;
    /// What a closed connection leaves behind until the peer has ended its side.
    type Remains: Send;
    /// Bytes of the buffer that frames are received into.
    const STAGING_BYTES: usize;

    /// The head of a payload of `length` bytes came (only for kinds of `Shape::Headed`).
    fn on_head(
        &mut self,
        _cx: &mut Context<'_>,
        kind: Self::Kind,
        _id: u64,
        _head: &[u8],
        _length: usize,
    ) -> Result<Sink, CloseReason> {
        Err(WireError::UnknownKind { got: kind.byte() }.into())
    }
    /// A whole frame of this fabric came.
    fn on_frame(
        &mut self,
        cx: &mut Context<'_>,
        state: &mut Self::Connection,
        kind: Self::Kind,
        id: u64,
        body: &[u8],
    ) -> Result<(), CloseReason>;

    /// Queues a write that was admitted.
    fn post_write(&mut self, cx: &mut Context<'_>, state: &mut Self::Connection, write: Write);
    /// Queues a read that was admitted and is listed among the session's.
    fn post_read(
        &mut self,
        cx: &mut Context<'_>,
        state: &mut Self::Connection,
        sequence: u64,
        source: RemoteRange,
    );

    /// See [`crate::Fabric::register`].
    fn register(&mut self, _lease: &Lease) -> Result<(), FabricError> {
        Ok(())
    }
    /// An exposure is about to enter the table under `key`. Returns the offset of its range.
    fn expose(
        &mut self,
        _cx: &mut Context<'_>,
        _state: &mut Self::Connection,
        _key: u64,
        _exposure: &Exposure,
    ) -> Result<u64, Unexposed> {
        Ok(0)
    }
    /// An exposure left the table. Returns it, or keeps it until the peer cannot reach it any more.
    fn revoke(
        &mut self,
        _holder: Holder<'_, Self::Connection>,
        _connection: ConnectionId,
        _key: u64,
        exposure: Exposure,
    ) -> Revoked {
        Revoked::Now(exposure)
    }

    /// A connection ended: reports the operations that only the driver knows, oldest first.
    /// `told`: the peer was sent a GOODBYE that may still be on its way.
    fn on_closed(
        &mut self,
        cx: &mut Context<'_>,
        state: Self::Connection,
        told: bool,
    ) -> Option<Self::Remains>;
    /// The peer has ended its side of a closed connection (or the linger time is over).
    fn on_gone(
        &mut self,
        _shared: &mut Shared,
        _connection: ConnectionId,
        _remains: Self::Remains,
    ) {
    }
}

/// A fabric's driver: both halves, and how the frames of an open connection travel.
pub(crate) trait TransportDriver: ControlChannel + Datapath {
    /// [`super::turns::OverSocket`], unless a device carries the frames.
    type Path: FramePath<Self>;
}

/// How the frames of an open connection travel, and what else wakes the reactor for them.
pub(crate) trait FramePath<D: TransportDriver> {
    /// Receives from one open connection until nothing is left or its turn is over.
    fn receive(reactor: &mut Reactor<D>, connection: ConnectionId) -> Result<Turn, CloseReason>;
    /// Sends what one open connection has queued, as far as that goes without waiting.
    fn send(reactor: &mut Reactor<D>, connection: ConnectionId) -> io::Result<()>;
    /// Ends the sending direction after GOODBYE. False: the socket is broken.
    fn end_sending(socket: &D::Socket) -> bool;
    /// Called once: registers what else wakes the reactor, under `reactor::DEVICE` tokens.
    fn watch(_driver: &mut D, _registry: &mio::Registry) -> io::Result<()> {
        Ok(())
    }
    /// What was registered under that token is ready.
    fn signalled(_driver: &mut D, _token: mio::Token) {}
    /// Called before a wait. True: there is something to do, so the reactor does not wait.
    fn before_wait(_reactor: &mut Reactor<D>) -> bool {
        false
    }
    /// Called after each wait, before the sockets are served.
    fn after_wait(_reactor: &mut Reactor<D>) {}
}
