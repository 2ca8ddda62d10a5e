//! Errors of a fabric.

use crate::ConnectionId;
use faro_secure::{HandshakeError, Protection, RecordError};
use faro_wire::WireError;
use thiserror::Error;

/// Reason for which a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// This side asked for it.
    #[error("closed by this side")]
    Local,
    /// The peer said goodbye.
    #[error("closed by the peer: {detail}")]
    Peer { detail: String },
    /// The stream ended or the device flushed.
    #[error("connection lost: {detail}")]
    Lost { detail: String },
    /// This side has no device or no memory for the connection.
    #[error("this side cannot serve the connection: {detail}")]
    Unable { detail: String },
    /// There was no answer before the deadline, or the address refused.
    #[error("no connection to {location}: {detail}")]
    Unreachable { location: String, detail: String },
    /// The peer did not authenticate as the expected endpoint.
    #[error("{0}")]
    Unproven(#[from] HandshakeError),
    /// One side seals its bytes, the other does not.
    #[error("this side has its bytes {}, the peer does not: the security settings differ", said(*.local))]
    Protection { local: Protection },
    /// Bytes on a sealed connection are not those that the peer sent.
    #[error("{0}")]
    Tampered(#[from] RecordError),
    /// The peer broke the protocol.
    #[error("protocol error: {0}")]
    Protocol(#[from] WireError),
    /// The peer sent or asked for more than a bound allows.
    #[error("{what} reached its bound of {limit}")]
    Bound { what: &'static str, limit: u64 },
}

fn said(protection: Protection) -> &'static str {
    match protection {
        Protection::Clear => "in the clear",
        Protection::Sealed => "sealed",
    }
}

/// An error of the fabric itself, not of one connection.
#[derive(Debug, Error)]
pub enum FabricError {
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        what: String,
        source: std::io::Error,
    },
    /// An address of the wrong form.
    #[error("{location:?} is not an address of the {fabric} fabric: {detail}")]
    BadLocation {
        fabric: &'static str,
        location: String,
        detail: String,
    },
    /// The fabric does not work on this machine. `absent` says that the machine has no such device,
    /// so this is not a fault.
    #[error("{fabric} is not available: {reason}")]
    Unavailable {
        fabric: &'static str,
        reason: String,
        absent: bool,
    },
    /// A bound on connections.
    #[error("{what} reached its bound of {limit}")]
    Bound { what: &'static str, limit: u64 },
}

/// An operation that was not accepted; the caller gets it back.
#[derive(Debug)]
pub enum RejectedPost<T> {
    /// The peer's queue is full; try again after events of that peer.
    Full(T),
    /// No such connection, or not (or no longer) open.
    NotConnected(T, ConnectionId),
    /// Larger than the protocol allows.
    TooLarge(T, u64),
}
