//! Connections that have ended for the caller, while the peer may still receive the GOODBYE.
//!
//! After GOODBYE a socket is not closed at once: closing it with unread bytes makes the kernel send
//! RST, which would destroy the GOODBYE. The sending direction is shut down, and what still comes
//! is discarded until the peer closes, or a bound or a deadline is reached (RFC 9112 section 9.6).

use crate::session::bounds::{LINGER_BYTES, UNAUTHENTICATED_CLOSING};
use crate::session::carrier::Carrier;
use crate::session::connection::Common;
use crate::session::counters::FabricCounters;
use crate::session::exposure::ByKey;
use crate::session::socket::Socket as _;
use crate::session::state::ConnectionPhase;
use crate::ConnectionId;
use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::net::Shutdown;
use std::time::Instant;

/// The closing connections of one fabric, by number.
pub(crate) struct ClosingConnections<D: Carrier> {
    connections: ByKey<ClosingConnection<D>>,
    /// `(time, connection)`.
    deadlines: BTreeSet<(Instant, u64)>,
}

impl<D: Carrier> Default for ClosingConnections<D> {
    fn default() -> Self {
        Self {
            connections: ByKey::default(),
            deadlines: BTreeSet::new(),
        }
    }
}

impl<D: Carrier> ClosingConnections<D> {
    pub(crate) fn len(&self) -> usize {
        self.connections.len()
    }

    pub(crate) fn contains(&self, connection: ConnectionId) -> bool {
        self.connections.contains_key(&connection.0)
    }

    /// Shuts the sending direction of a connection that ends in that phase. Returns false if the
    /// connection is to be dropped at once.
    pub(crate) fn takes(&self, phase: ConnectionPhase, socket: &D::Socket) -> bool {
        match phase {
            ConnectionPhase::OpenConnection => D::end_sending(socket),
            ConnectionPhase::Connecting
            | ConnectionPhase::AwaitWelcome
            | ConnectionPhase::Pairing => socket.shutdown(Shutdown::Write).is_ok(),
            // Unauthenticated peers cannot fill the table.
            ConnectionPhase::AwaitHello | ConnectionPhase::AwaitProof => {
                self.len() < UNAUTHENTICATED_CLOSING && socket.shutdown(Shutdown::Write).is_ok()
            }
        }
    }

    /// Enters a connection whose sending direction is shut down. The peer may use
    /// `close_state` until it has ended its side.
    pub(crate) fn insert(
        &mut self,
        connection: ConnectionId,
        socket: D::Socket,
        deadline: Instant,
        close_state: Option<D::CloseState>,
    ) {
        let entry = ClosingConnection {
            socket,
            deadline,
            discard_left: LINGER_BYTES,
            close_state,
        };
        self.deadlines.insert((deadline, connection.0));
        self.connections.insert(connection.0, entry);
    }

    /// Discards the bytes that the peer of a connection still sends.
    pub(crate) fn ready(&mut self, connection: ConnectionId, common: &mut Common<D>) {
        let Some(closing) = self.connections.get_mut(&connection.0) else {
            return;
        };
        if !closing.discard(&mut common.shared.counters) {
            self.end(connection, common);
        }
    }

    /// Drops a connection's socket and its close state.
    fn end(&mut self, connection: ConnectionId, common: &mut Common<D>) {
        let Some(ended) = self.connections.remove(&connection.0) else {
            return;
        };
        self.deadlines.remove(&(ended.deadline, connection.0));
        if let Some(close_state) = ended.close_state {
            let Common { driver, shared, .. } = common;
            driver.on_peer_closed(shared, connection, close_state);
        }
    }

    pub(crate) fn end_all(&mut self, common: &mut Common<D>) {
        let all: Vec<u64> = self.connections.keys().copied().collect();
        for connection in all {
            self.end(ConnectionId(connection), common);
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Ends every connection whose deadline is over.
    pub(crate) fn expire(&mut self, now: Instant, common: &mut Common<D>) {
        while let Some(&(deadline, connection)) = self.deadlines.first() {
            if deadline > now {
                return;
            }
            self.deadlines.pop_first();
            self.end(ConnectionId(connection), common);
        }
    }
}

/// A connection whose sending direction is shut down.
struct ClosingConnection<D: Carrier> {
    socket: D::Socket,
    deadline: Instant,
    /// Bytes that may still be discarded.
    discard_left: usize,
    close_state: Option<D::CloseState>,
}

impl<D: Carrier> ClosingConnection<D> {
    /// Discards bytes that the peer still sends. Returns false if it has ended its side, or sent
    /// too much.
    fn discard(&mut self, counters: &mut FabricCounters) -> bool {
        let mut waste = [0; 4096];
        while self.discard_left > 0 {
            counters.receive_calls += 1;
            match self.socket.receive(&mut [IoSliceMut::new(&mut waste)]) {
                Ok(bytes) if bytes > 0 => {
                    self.discard_left = self.discard_left.saturating_sub(bytes)
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        false
    }
}
