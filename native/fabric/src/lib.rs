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
mod frame;
mod kind;
mod peer_user;
pub mod rare_log;
mod reactor;
mod session;
pub mod shm;
pub mod tcp;
pub mod verbs;

pub use error::{CloseReason, FabricError, Rejected};
pub use kind::FabricKind;
pub use peer_user::peer_user;

use faro_pool::Lease;
use faro_secure::{KeyError, Psk, Secret, SharedSecret, StaticKey};
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection of one fabric instance; never reused in the instance's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// Id of an endpoint process (in its card): a hash of its static key, see [`StaticKey::id`].
pub type EndpointId = u128;

/// An endpoint, and the key that proves to it that a peer knows its card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The endpoint's id.
    pub endpoint: EndpointId,
    /// The key that proves to the endpoint that a peer knows its card.
    pub psk: Psk,
}

impl Identity {
    /// Makes the identity of the endpoint whose card has `card` as its secret. `shared` is Spark's
    /// secret, if it has one.
    ///
    /// # Errors
    /// `KeyError`.
    pub fn new(
        endpoint: EndpointId,
        card: &Secret,
        shared: Option<&SharedSecret>,
        application: &str,
    ) -> Result<Self, KeyError> {
        let psk = Psk::derive(card, shared, application)?;
        Ok(Self { endpoint, psk })
    }

    /// Makes the identity that [`OwnIdentity::public`] has for this number.
    ///
    /// # Panics
    /// No key can be derived.
    #[must_use]
    pub fn public(number: u128) -> Self {
        OwnIdentity::public(number).identity
    }
}

/// This endpoint, with the static key that proves its id.
#[derive(Debug, Clone)]
pub struct OwnIdentity {
    /// The part that peers know.
    pub identity: Identity,
    pub(crate) key: StaticKey,
}

impl OwnIdentity {
    /// Makes the identity of the endpoint with that static key; the rest as in [`Identity::new`].
    ///
    /// # Errors
    /// `KeyError`.
    pub fn new(
        key: StaticKey,
        card: &Secret,
        shared: Option<&SharedSecret>,
        application: &str,
    ) -> Result<Self, KeyError> {
        let identity = Identity::new(key.id(), card, shared, application)?;
        Ok(Self { identity, key })
    }

    /// Makes a well-known identity, for tests and measurements only: every process can derive the keys of a number, of a
    /// card without a secret and of an application without a name.
    ///
    /// # Panics
    /// No key can be derived.
    #[must_use]
    pub fn public(number: u128) -> Self {
        StaticKey::public(number)
            .and_then(|key| Self::new(key, &Secret::new([0; 32]), None, ""))
            .unwrap_or_else(|error| panic!("endpoint {number}: {error}"))
    }
}

impl Deref for OwnIdentity {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}

/// A key and a range that a peer may read or write one-sidedly. The same key with a larger `offset`
/// and a smaller `length` names a part of it. `offset` starts at a value that the fabric chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteRange {
    /// Key, given out by `expose`.
    pub key: u64,
    /// Offset relative to what the key names.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

/// Memory to expose: always leases of the pool that the fabric was made with.
pub enum Exposure {
    /// A peer may write; the fabric holds the lease until it is revoked.
    Writable(Lease),
    /// A peer may read.
    Readable(Arc<Lease>),
}

impl Exposure {
    /// Returns the memory.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        match self {
            Self::Writable(lease) => lease,
            Self::Readable(lease) => lease,
        }
    }
}

/// Answer to [`Fabric::revoke`].
pub enum Revoked {
    /// From now on no peer changes a byte of it, and no read that sees a byte changed from now on
    /// ends `Done`. (Replies being sent keep a `Readable`'s `Arc` until they are sent.)
    Now(Exposure),
    /// The fabric cannot stop the peer by itself. [`Event::Revoked`] returns the exposure when the
    /// peer has confirmed the revocation or its connection has ended; until then the peer may
    /// change it.
    Later,
    /// There is no such key.
    Unknown,
}

/// A two-sided message: a kind (≥ `wire::kind::FIRST_MESSAGE`), a request id, a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// `wire::kind`.
    pub kind: u8,
    /// Request id.
    pub id: u64,
    /// The message's bytes, at most `wire::header::MAX_MESSAGE_BYTES`.
    pub body: Vec<u8>,
}

/// A one-sided write. The source stays untouched and alive until its `WriteEnded`.
///
/// The target takes all of it or nothing: a range that is not wholly exposed to the writer, or
/// revoked before the last byte came, yields no `Written`; in the second case some bytes may have
/// landed before the revocation, none after it.
pub struct Write {
    /// Comes back in the event.
    pub token: u64,
    /// Memory to send from.
    pub source: Arc<Lease>,
    /// First byte in it.
    pub offset: usize,
    /// Bytes.
    pub length: usize,
    /// The peer's memory to write to.
    pub target: RemoteRange,
    /// Delivered to the target in `Event::Written`, after the bytes. Sixteen bits, because the
    /// 32 of verbs have to name the exposure as well.
    pub immediate: Option<u16>,
    /// The last write under that key: once its bytes are there (which the target knows from
    /// `Written` or from a later message), revoking is `Now` on every fabric. Later writes
    /// under the key may be refused.
    pub last: bool,
}

/// A one-sided read into a lease of this side.
pub struct Read {
    /// Comes back in the event.
    pub token: u64,
    /// The peer's memory to read from.
    pub source: RemoteRange,
    /// The lease that receives the bytes, from its first byte on; the event returns it.
    pub target: Lease,
}

/// Result of an accepted operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A read: the bytes are in the target. A write: the source may be reused, and no more than
    /// that. Only some fabrics know at once whether the target took it (shm: `Done` says so; tcp:
    /// the kernel has the bytes, and a later refusal counts in `writes_refused_by_peer`). A caller
    /// that must know lets a message with a checksum follow the write.
    Done,
    /// The peer does not (or no longer) expose that range. A read's target then holds anything.
    Refused,
    /// The connection closed first. A write may have been taken nevertheless; its source is safe
    /// to drop, the fabric holds it as long as the peer might read it.
    Flushed,
}

/// An event that `poll` reports.
pub enum Event {
    /// An outgoing connection is usable.
    Connected {
        connection: ConnectionId,
        endpoint: EndpointId,
    },
    /// A peer connected to us.
    Accepted {
        connection: ConnectionId,
        endpoint: EndpointId,
    },
    /// A message came. Ordered with the writes of the same peer: all writes the peer posted before
    /// it are in memory.
    Message {
        connection: ConnectionId,
        message: Message,
    },
    /// A peer wrote into this side's memory (only for writes with an immediate).
    Written {
        connection: ConnectionId,
        key: u64,
        immediate: u16,
        length: u32,
    },
    /// This side's write ended.
    WriteEnded {
        connection: ConnectionId,
        token: u64,
        outcome: Outcome,
    },
    /// This side's read ended; the target comes back.
    ReadEnded {
        connection: ConnectionId,
        token: u64,
        target: Lease,
        outcome: Outcome,
    },
    /// A revocation that was `Later` is complete.
    Revoked { key: u64, exposure: Exposure },
    /// The connection ended; the last event that names it. Also the result of a failed `connect`.
    Closed {
        connection: ConnectionId,
        reason: CloseReason,
    },
}

/// Wakes the thread that waits in `poll`; may be called from any thread.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

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
    ) -> Result<RemoteRange, Rejected<Exposure>>;
    /// Ends an exposure.
    fn revoke(&mut self, key: u64) -> Revoked;

    /// Queues a message; the next `flush` or `poll` sends it. After `Full`, `poll` returns as soon as
    /// there is room, with or without an event.
    fn send(&mut self, connection: ConnectionId, message: Message)
        -> Result<(), Rejected<Message>>;
    /// Queues a one-sided write. Returns `TooLarge` if it is longer than the source after `offset`.
    fn write(&mut self, connection: ConnectionId, write: Write) -> Result<(), Rejected<Write>>;
    /// Queues a one-sided read. Returns `TooLarge` if it is longer than the target.
    fn read(&mut self, connection: ConnectionId, read: Read) -> Result<(), Rejected<Read>>;
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
