//! Interface of one fabric to a connection: how it pairs, its frames, its operations, and the memory
//! that they reach.

use super::context::Context;
use super::socket::Socket;
use super::state::FabricShared;
use crate::frame::inbound::Sink;
use crate::frame::kinds::TransportKind;
use crate::{
    CloseReason, ConnectionId, Exposure, FabricError, FabricKind, RemoteRange, RevokeStatus, Write,
    WriteSources,
};
use faro_pool::Lease;
use faro_wire::WireError;

/// The types of a fabric, and how its connections are paired.
pub(crate) trait Transport: Send + Sized {
    /// Kind of the fabric.
    const KIND: FabricKind;
    /// The socket of a connection.
    type Socket: Socket;
    /// State that only this fabric keeps for a connection.
    type State: Default + Send;

    /// See [`crate::Fabric::connection_bytes`].
    fn connection_bytes(&self) -> u64 {
        0
    }
    /// See [`crate::Fabric::wants_fewer_connections`].
    fn wants_fewer_connections(&self) -> bool {
        false
    }
    /// Returns the counters that only this fabric has.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    /// Called after each receive: takes the file descriptors that came with the bytes.
    fn collect(_socket: &mut Self::Socket, _state: &mut Self::State) -> Result<(), CloseReason> {
        Ok(())
    }
    /// Called when the peer has authenticated.
    fn on_authenticated(
        &mut self,
        _cx: &mut Context<'_>,
        _state: &mut Self::State,
    ) -> Result<HandshakeStep, CloseReason> {
        Ok(HandshakeStep::OpenConnection)
    }
}

/// Next step after the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandshakeStep {
    /// The connection is open.
    OpenConnection,
    /// The two sides exchange more frames first; the driver calls `Context::opened` when it is
    /// done.
    Pairing,
}

/// Reason why a lease was not exposed.
pub(crate) enum ExposeError {
    /// No slot is free; try again after a revocation.
    Full,
    /// The connection has to end.
    Broken(CloseReason),
}

/// The peer that may reach an exposure.
pub(crate) enum Holder<'a, S> {
    /// Its connection is open.
    OpenConnection(Context<'a>, &'a mut S),
    /// Its connection is closed here, but the peer may not know it yet.
    Closing,
    /// Its connection has ended on both sides.
    Closed,
}

/// Operations of an open connection, and the memory that they reach.
pub(crate) trait Datapath: Transport {
    /// The frames that only this fabric has.
    type Kind: TransportKind;
    /// Resources of a closed connection that are kept until the peer has ended its side.
    type CloseState: Send;
    /// Bytes of the buffer that frames are received into.
    const STAGING_BYTES: usize;

    /// Handles the head of a payload of `length` bytes (only for kinds of `BodyShape::Headed`).
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
    /// Handles a whole frame of this fabric.
    fn on_frame(
        &mut self,
        cx: &mut Context<'_>,
        state: &mut Self::State,
        kind: Self::Kind,
        id: u64,
        body: &[u8],
    ) -> Result<(), CloseReason>;

    /// See [`crate::Fabric::write_sources`]; for a connection whose bytes are in the clear.
    fn write_sources(&self, _state: &Self::State) -> WriteSources {
        WriteSources::FRAMES
    }
    /// Queues a write that was admitted.
    fn post_write(&mut self, cx: &mut Context<'_>, state: &mut Self::State, write: Write);
    /// Queues a read that was admitted and is listed among the session's.
    fn post_read(
        &mut self,
        cx: &mut Context<'_>,
        state: &mut Self::State,
        sequence: u64,
        source: RemoteRange,
    );

    /// See [`crate::Fabric::register`].
    fn register(&mut self, _lease: &Lease) -> Result<(), FabricError> {
        Ok(())
    }
    /// Called before an exposure enters the table under `key`. Returns the offset of its range.
    fn expose(
        &mut self,
        _cx: &mut Context<'_>,
        _state: &mut Self::State,
        _key: u64,
        _exposure: &Exposure,
    ) -> Result<u64, ExposeError> {
        Ok(0)
    }
    /// Called when an exposure has left the table. Returns it, or keeps it until the peer cannot
    /// reach it any more.
    fn revoke(
        &mut self,
        _holder: Holder<'_, Self::State>,
        _connection: ConnectionId,
        _key: u64,
        exposure: Exposure,
    ) -> RevokeStatus {
        RevokeStatus::Now(exposure)
    }

    /// Called when a connection has ended: reports the operations that only the driver knows, the
    /// oldest first. `goodbye_sent` says that the peer was sent a GOODBYE that may still be on its way.
    fn on_closed(
        &mut self,
        cx: &mut Context<'_>,
        state: Self::State,
        goodbye_sent: bool,
    ) -> Option<Self::CloseState>;
    /// Called when the peer has ended its side of a closed connection (or the linger time is over).
    fn on_peer_closed(
        &mut self,
        _shared: &mut FabricShared,
        _connection: ConnectionId,
        _close_state: Self::CloseState,
    ) {
    }
}
