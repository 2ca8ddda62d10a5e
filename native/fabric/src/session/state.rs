//! The state of one connection, and the state that all connections of a fabric share.
//!
//! ```text
//!  connector: Connecting -> AwaitWelcome -> [Pairing] -> Open    acceptor: AwaitHello -> AwaitProof -> [Pairing] -> Open
//! ```
//! State that only one fabric keeps for a connection is in its `Transport::State`, beside the
//! session, so that a driver can work on both at once.

use super::bounds::Bounds;
use super::counters::FabricCounters;
use super::exposure::{ByKey, Exposures};
use super::handshake::Handshake;
use crate::frame::bodies::AckEntry;
use crate::frame::outbound::Outbound;
use crate::{ConnectionId, EndpointId, Event, FabricError, FabricKind, Identity, OwnIdentity};
use faro_pool::Lease;
use faro_secure::{Keys, Protection};
use faro_wire::header::OLDEST_VERSION;
use std::time::Instant;

/// Phase of a connection's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionPhase {
    /// Connector: the socket is not connected yet.
    Connecting,
    /// Connector: HELLO is on its way.
    AwaitWelcome,
    /// Acceptor: HELLO has not come.
    AwaitHello,
    /// Acceptor: WELCOME is on its way, and the peer's proof has not come.
    AwaitProof,
    /// Both endpoints are known; the fabric exchanges frames of its own before the connection
    /// opens.
    Pairing,
    /// Usable.
    OpenConnection,
}

/// A read that this side posted.
pub(crate) struct PendingRead {
    pub(crate) token: u64,
    pub(crate) length: usize,
    pub(crate) target: Lease,
}

/// The protocol state of one connection: its phase, its handshake, and its pending operations.
pub(crate) struct Session {
    pub(crate) connection: ConnectionId,
    pub(crate) phase: ConnectionPhase,
    /// The endpoint that a connector expects, and its location; `None` for accepted connections.
    pub(crate) expected: Option<(Identity, String)>,
    /// The peer's endpoint; 0 before it has authenticated.
    pub(crate) remote: EndpointId,
    /// The protocol version that both sides speak. WELCOME says it.
    pub(crate) version: u8,
    pub(crate) handshake: Handshake,
    /// The peer sends records.
    pub(crate) is_sealed: bool,
    /// Keys of the records, until the connection has taken them over.
    pub(crate) keys: Option<Keys>,
    /// Bytes at the front of `outbound` that are sent in clear before the records.
    pub(crate) in_clear: usize,
    /// Deadline for `OpenConnection`.
    pub(crate) deadline: Instant,
    pub(crate) outbound: Outbound,
    /// Operations of the caller that have not ended.
    pub(crate) operations: usize,
    /// Bytes of these operations.
    pub(crate) operation_bytes: u64,
    /// An operation was rejected since the queue last had room.
    pub(crate) wants_room: bool,
    /// Last sequence number given to a one-sided operation.
    pub(crate) sequence: u64,
    /// The caller's reads, by sequence number.
    pub(crate) reads: ByKey<PendingRead>,
    /// The peer's reads whose reply is not sent yet.
    pub(crate) reads_served: usize,
    /// Exposures granted to this peer.
    pub(crate) exposures: usize,
    /// Verdicts for the next WRITE_ACK.
    pub(crate) verdicts: Vec<AckEntry>,
    /// On the list of connections to flush.
    pub(crate) dirty: bool,
}

impl Session {
    /// Returns the state of a new connection. `expected` is the endpoint that a connector expects,
    /// with its location.
    pub(crate) fn new(
        connection: ConnectionId,
        expected: Option<(Identity, String)>,
        deadline: Instant,
    ) -> Self {
        let phase = match expected {
            Some(_) => ConnectionPhase::Connecting,
            None => ConnectionPhase::AwaitHello,
        };
        Self {
            connection,
            phase,
            expected,
            version: OLDEST_VERSION,
            remote: 0,
            handshake: Handshake::None,
            is_sealed: false,
            keys: None,
            in_clear: 0,
            deadline,
            outbound: Outbound::default(),
            operations: 0,
            operation_bytes: 0,
            wants_room: false,
            sequence: 0,
            reads: ByKey::default(),
            reads_served: 0,
            exposures: 0,
            verdicts: Vec::new(),
            dirty: false,
        }
    }
}

/// State that all connections of one fabric share, and their lists of work for the event loop.
pub(crate) struct FabricShared {
    pub(crate) fabric: FabricKind,
    /// This endpoint's identity.
    pub(crate) identity: OwnIdentity,
    pub(crate) protection: Protection,
    pub(crate) bounds: Bounds,
    pub(crate) exposures: Exposures,
    pub(crate) events: Vec<Event>,
    pub(crate) counters: FabricCounters,
    /// Bytes that frames of this turn made this side copy outside the stream.
    pub(crate) work: usize,
    /// A queue that was full has room again: the next `poll` returns at once, so that the caller
    /// tries again.
    pub(crate) room: bool,
    /// Connections with something to send.
    pub(crate) dirty: Vec<ConnectionId>,
    /// Connections whose peers have authenticated since the event loop last looked.
    pub(crate) proven: Vec<ConnectionId>,
}

impl FabricShared {
    pub(crate) fn new(
        fabric: FabricKind,
        identity: OwnIdentity,
        protection: Protection,
        bounds: Bounds,
    ) -> Result<Self, FabricError> {
        Ok(Self {
            fabric,
            identity,
            protection,
            bounds,
            exposures: Exposures::new()?,
            events: Vec::new(),
            counters: FabricCounters::default(),
            work: 0,
            room: false,
            dirty: Vec::new(),
            proven: Vec::new(),
        })
    }
}
