//! Moves bytes between two endpoints: the [`Fabric`] contract and its implementations.
//!
//! A fabric is an object that one progress thread owns and polls. It never blocks and starts no
//! thread for its progress, so that a test can drive two of them step by step. Every operation that
//! was accepted ends in exactly one event. When a connection closes, all its pending operations end
//! first, and [`Event::Closed`] is the last event that names the connection.
//!
//! Setup (addresses, handshakes, exposure of memory) and datapath live in separate files of each
//! fabric. Every fabric passes one suite of checks, `faro-conformance`.
//!
//! Two fabrics of one process, polled by one thread; the first connects and sends a message:
//!
//! ```
//! use faro_fabric::tcp::{TcpConfig, TcpFabric};
//! use faro_fabric::{Event, Fabric, Identity, Message, OwnIdentity};
//! use faro_pool::{Pool, MIN_LIMIT_BYTES};
//! use std::time::{Duration, Instant};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let fabric = |number| -> Result<TcpFabric, Box<dyn std::error::Error>> {
//!     Ok(TcpFabric::new(TcpConfig {
//!         bind: ([127, 0, 0, 1], 0).into(),
//!         advertise: String::new(),
//!         identity: OwnIdentity::public(number),
//!         protection: faro_secure::Protection::Clear,
//!         pool: Pool::new(MIN_LIMIT_BYTES)?,
//!     })?)
//! };
//! let (mut client, mut server) = (fabric(1)?, fabric(2)?);
//! let deadline = Instant::now() + Duration::from_secs(10);
//! client.connect(&server.location(), &Identity::public(2), deadline)?;
//! let mut events = Vec::new();
//! let received = loop {
//!     client.poll(&mut events, Duration::from_millis(1))?;
//!     server.poll(&mut events, Duration::from_millis(1))?;
//!     let mut found = None;
//!     for event in events.drain(..) {
//!         match event {
//!             Event::Connected { connection, .. } => {
//!                 let (kind, body) = (faro_wire::kind::FIRST_MESSAGE, b"hello".to_vec());
//!                 client.send(connection, Message { kind, id: 42, body }).map_err(|_| "no room")?;
//!             }
//!             Event::Message { message, .. } => found = Some(message),
//!             Event::Closed { reason, .. } => return Err(reason.to_string().into()),
//!             _ => {}
//!         }
//!     }
//!     if let Some(message) = found {
//!         break message;
//!     }
//! };
//! assert_eq!((received.id, received.body), (42, b"hello".to_vec()));
//! # Ok(())
//! # }
//! ```
//! `examples/two_peers.rs` also writes and reads the peer's memory.

pub mod diagnose;
mod error;
mod file_pipe;
mod frame;
mod identity;
mod intercept;
mod kind;
mod operations;
mod peer_user;
pub mod rare_log;
mod reactor;
mod session;
pub mod shm;
pub mod tcp;
pub mod verbs;

pub use error::{CloseReason, FabricError, RejectedPost};
pub use file_pipe::{FilePipe, FilePipes, NotPiped, PIPE_BYTES};
pub use identity::{ConnectionId, EndpointId, Identity, OwnIdentity};
pub use intercept::{Intercept, InterceptedFabric};
pub use kind::FabricKind;
pub use operations::{
    Event, Exposure, Message, Outcome, Read, RemoteRange, RevokeStatus, SourceMemory, Waker, Write,
    WritePart, WriteSource, WriteSources, MAX_PARTS,
};
pub use peer_user::peer_user;

use faro_pool::Lease;
use std::time::{Duration, Instant};

/// Connections, messages, writes and reads, as every fabric has them.
pub trait Fabric: Send {
    /// Returns the kind of this fabric.
    fn kind(&self) -> FabricKind;
    /// Returns the address at which peers reach this fabric: the part after `scheme://` in the card.
    fn location(&self) -> String;
    /// Wakes the thread in `poll`; can be cloned.
    fn waker(&self) -> Waker;

    /// Starts to connect to `location` (an address; no name is resolved) and expects the endpoint
    /// `expected` there; with any other the connection closes.
    /// Ends in `Connected` or `Closed`, at the latest shortly after `deadline`.
    fn connect(
        &mut self,
        location: &str,
        expected: &Identity,
        deadline: Instant,
    ) -> Result<ConnectionId, FabricError>;
    /// Closes a connection after sending what is queued, as far as that needs no wait. Sends the peer
    /// the `reason` (unless it is `Lost`, `Peer` or `Unreachable`). `Closed` follows with the next
    /// `poll`; no operation is accepted any more.
    fn disconnect(&mut self, connection: ConnectionId, reason: CloseReason);

    /// Returns the bytes of the arena that connections hold for themselves, without the leases of
    /// operations.
    fn connection_bytes(&self) -> u64 {
        0
    }
    /// Returns whether connections hold most of the memory that the fabric may use for them. Unused
    /// ones should then be closed, before a new one is refused.
    fn wants_fewer_connections(&self) -> bool {
        false
    }

    /// Registers a lease's memory with the device now (*eager*); otherwise the first operation on it
    /// does (*lazy*). Slabs are registered already. Does nothing on a fabric without a device.
    ///
    /// # Errors
    /// `Unavailable`: the device refused, or it is lost.
    fn register(&mut self, _lease: &Lease) -> Result<(), FabricError> {
        Ok(())
    }

    /// Lets the peer of `connection` reach the exposed bytes until `revoke`. The range covers the
    /// lease's capacity. An exposure outlives its connection: only `revoke` returns it.
    fn expose(
        &mut self,
        connection: ConnectionId,
        exposure: Exposure,
    ) -> Result<RemoteRange, RejectedPost<Exposure>>;
    /// Ends an exposure.
    fn revoke(&mut self, key: u64) -> RevokeStatus;

    /// Queues a message; the next `flush` or `poll` sends it. After `Full`, `poll` returns as soon as
    /// there is room, with or without an event.
    fn send(
        &mut self,
        connection: ConnectionId,
        message: Message,
    ) -> Result<(), RejectedPost<Message>>;
    /// Returns what writes to the peer of this connection may send.
    fn write_sources(&mut self, connection: ConnectionId) -> WriteSources;
    /// Queues a one-sided write. Returns `TooLarge` if a part ends behind its lease, and for a source that
    /// `write_sources` does not allow.
    fn write(&mut self, connection: ConnectionId, write: Write) -> Result<(), RejectedPost<Write>>;
    /// Queues a one-sided read. Returns `TooLarge` if it is longer than the target.
    fn read(&mut self, connection: ConnectionId, read: Read) -> Result<(), RejectedPost<Read>>;
    /// Hands everything that is queued to the kernel or device, as far as it takes it, in as few calls
    /// as possible. `poll` does this too, before it waits and before it returns.
    fn flush(&mut self);
    /// Waits up to `timeout` (zero: not at all) for events and appends them. May return early without
    /// any.
    fn poll(&mut self, events: &mut Vec<Event>, timeout: Duration) -> Result<(), FabricError>;
    /// Returns the counters by name (bytes and frames in and out, connections, refused writes,
    /// system calls).
    fn counters(&self) -> Vec<(&'static str, u64)>;
}
