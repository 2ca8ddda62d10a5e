//! The bounds of the fabrics, but for the length of a message (`faro_wire`).

use std::time::Duration;

/// Bounds of what peers and the caller can queue at one fabric instance.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Connections, including opening and closing ones; more are closed at once.
    pub connections: usize,
    /// Unauthenticated connections. A new one displaces the oldest of the address that has most.
    pub unauthenticated: usize,
    /// Time that an accepted connection has to authenticate.
    pub hello_timeout: Duration,
    /// Operations of the caller per peer that have not ended.
    pub operations: usize,
    /// Bytes of these operations per peer.
    pub queued_bytes: u64,
    /// Exposures per peer.
    pub exposures: usize,
    /// Reads of one peer that wait for their reply to be sent.
    pub reads_served: usize,
    /// Bytes received from (or sent to) one peer before the next one is served.
    pub turn_bytes: usize,
    /// Time for which a closed connection is kept so that the peer can receive its GOODBYE.
    pub linger: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 4_096,
            unauthenticated: 1_024,
            hello_timeout: Duration::from_secs(10),
            operations: 1_024,
            queued_bytes: 64 << 20,
            exposures: 65_536,
            reads_served: 1_024,
            turn_bytes: 1 << 20,
            linger: Duration::from_secs(1),
        }
    }
}

/// Maximum body of a handshake frame, in bytes: all that an unauthenticated peer may send.
pub const MAX_HANDSHAKE_BYTES: u32 = 4 << 10;
/// Staging bytes behind payload that is received in place: room for the next head.
pub(crate) const TAIL_BYTES: usize = 4 << 10;
/// Bytes discarded after GOODBYE before the connection is dropped.
pub(crate) const LINGER_BYTES: usize = 1 << 20;
/// Maximum number of closing connections with which an unauthenticated one still waits for its
/// peer to close.
pub(crate) const UNAUTHENTICATED_CLOSING: usize = 256;
/// Connections accepted per `poll`.
pub(crate) const ACCEPTS: usize = 64;
