//! Connections that have ended for the caller, while the peer may still receive the GOODBYE.
//!
//! After GOODBYE a socket is not closed at once: closing it with unread bytes makes the kernel send
//! RST, which would destroy the GOODBYE. The sending direction is shut down, and what still comes
//! is discarded until the peer closes, or a bound or a deadline is reached (RFC 9112 section 9.6).

use crate::session::bounds::LINGER_BYTES;
use crate::session::counters::FabricCounters;
use crate::session::socket::Socket as _;
use crate::session::transport::Datapath;
use std::io::{self, IoSliceMut};
use std::time::Instant;

/// One of them.
pub(crate) struct Lingering<D: Datapath> {
    socket: D::Socket,
    pub(crate) deadline: Instant,
    /// Bytes that may still be thrown away.
    left: usize,
    /// Resources that the peer may use until it has ended its side.
    pub(crate) remains: Option<D::Remains>,
}

impl<D: Datapath> Lingering<D> {
    pub(crate) fn new(socket: D::Socket, deadline: Instant, remains: Option<D::Remains>) -> Self {
        Self {
            socket,
            deadline,
            left: LINGER_BYTES,
            remains,
        }
    }

    /// Discards bytes that the peer still sends. Returns false if it has ended its side, or sent
    /// too much.
    pub(crate) fn discard(&mut self, counters: &mut FabricCounters) -> bool {
        let mut waste = [0; 4096];
        while self.left > 0 {
            counters.receive_calls += 1;
            match self.socket.receive(&mut [IoSliceMut::new(&mut waste)]) {
                Ok(bytes) if bytes > 0 => self.left = self.left.saturating_sub(bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        false
    }
}
