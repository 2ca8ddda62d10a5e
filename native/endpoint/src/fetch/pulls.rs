//! The posted reads of one progress thread, and the connections on which none are posted any more.

use super::checksum::ChecksumMismatch;
use crate::net::Net;
use faro_fabric::rare_log::RareLog;
use faro_fabric::{ConnectionId, Read, RejectedPost, RemoteRange};
use faro_pool::{Lease, PoolError};
use faro_sync::{clock, HashMap, HashSet};

/// The reason that a read was not posted.
pub(super) enum NotPosted {
    /// The arena has no memory.
    NoMemory,
    /// The connection's queue is full.
    NoRoom,
    /// The fabric will never accept the read.
    Impossible,
}

impl NotPosted {
    pub(super) fn of(refused: PoolError) -> Self {
        match refused {
            PoolError::Exhausted { .. } => Self::NoMemory,
            _ => Self::Impossible,
        }
    }
}

/// Reads from servers' pages.
pub(super) struct Pulls {
    /// The posted reads by token, with their attempt's id on the wire. The attempt may have ended.
    posted: HashMap<u64, u64>,
    /// Token of the next read.
    next_token: u64,
    /// Connections on which a read brought bytes that the server never had.
    stopped: HashSet<ConnectionId>,
    /// Limits the log lines about these connections.
    corrupt_reads: RareLog,
}

impl Default for Pulls {
    fn default() -> Self {
        Self {
            posted: HashMap::default(),
            next_token: 1,
            stopped: HashSet::default(),
            corrupt_reads: RareLog::default(),
        }
    }
}

impl Pulls {
    /// Posts a read for the attempt `id` and returns its token.
    ///
    /// # Errors
    /// The reason that it was not posted, and the lease.
    pub(super) fn post(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        id: u64,
        source: RemoteRange,
        target: Lease,
    ) -> Result<u64, (NotPosted, Lease)> {
        let token = self.next_token;
        let read = Read {
            token,
            source,
            target,
        };
        match net.read(connection, read) {
            Ok(()) => {
                self.next_token += 1;
                self.posted.insert(token, id);
                Ok(token)
            }
            Err(RejectedPost::Full(read)) => Err((NotPosted::NoRoom, read.target)),
            Err(RejectedPost::NotConnected(read, _) | RejectedPost::TooLarge(read, _)) => {
                Err((NotPosted::Impossible, read.target))
            }
        }
    }

    /// Handles the end of a read. Returns the id of the attempt that it was posted for, if this
    /// service has posted it.
    pub(super) fn ended(&mut self, token: u64) -> Option<u64> {
        self.posted.remove(&token)
    }

    /// Returns whether the server is to write on this connection, because a read brought wrong
    /// bytes.
    pub(super) fn are_stopped(&self, connection: ConnectionId) -> bool {
        self.stopped.contains(&connection)
    }

    /// Stops reads on a connection whose reads brought wrong bytes, although the version says that
    /// the page did not change. The server writes instead. If that brings wrong bytes as well, the
    /// connection is at fault.
    pub(super) fn stop(
        &mut self,
        connection: ConnectionId,
        ChecksumMismatch { expected, got }: ChecksumMismatch,
    ) {
        if self.stopped.insert(connection) {
            if let Some(left_out) = self.corrupt_reads.at(clock::now()) {
                log::warn!(
                    "bytes read from a peer's memory have CRC-32C {got:#010x} where the peer read \
                     {expected:#010x} from its file; from now on it writes them on this connection{left_out}"
                );
            }
        }
    }

    /// Forgets a connection that was closed.
    pub(super) fn closed(&mut self, connection: ConnectionId) {
        self.stopped.remove(&connection);
    }
}
