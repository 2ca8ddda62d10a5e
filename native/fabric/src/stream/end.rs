//! How connections end; none of it is on the datapath.
//!
//! After GOODBYE a socket is not closed at once: closing it with unread bytes makes the kernel send
//! RST, which would destroy the GOODBYE. The sending direction is shut down, and what still comes is
//! discarded until the peer closes, or a bound or a deadline is reached (RFC 9112 section 9.6). For
//! the caller the connection has ended before that.

use super::bounds::{LINGER_BYTES, STRANGERS_LINGERING};
use super::driver::{FramePath, TransportDriver};
use super::frames::{Goodbye, GoodbyeCode};
use super::outbound::{Ends, Frame};
use super::reactor::{Conn, Reactor, LISTENER};
use super::sealed::seals;
use super::session::{Context, Phase, Session, Shared};
use super::socket::Socket;
use crate::{CloseReason, ConnectionId, Event, FabricKind, Outcome};
use faro_secure::Protection;
use faro_wire::kind;
use std::io::{self, IoSliceMut};
use std::net::Shutdown;
use std::time::Instant;

/// A connection that has ended for the caller, while the peer may still receive our GOODBYE.
pub(crate) struct Lingering<D: TransportDriver> {
    socket: D::Socket,
    deadline: Instant,
    /// Bytes that may still be thrown away.
    left: usize,
    /// What the peer may use until it has ended its side.
    remains: Option<D::Remains>,
}

impl<D: TransportDriver> Reactor<D> {
    /// Ends every connection whose deadline is over.
    pub(crate) fn expire(&mut self) {
        let now = Instant::now();
        while let Some(&(deadline, id)) = self.deadlines.first() {
            if deadline > now {
                return;
            }
            self.deadlines.pop_first();
            if id == LISTENER.0 as u64 {
                self.accept_more = true;
            }
            self.end_linger(ConnectionId(id));
            let Some(conn) = self.conns.get(&id) else {
                continue;
            };
            if conn.session.phase != Phase::Open {
                let reason = match conn.session.expected {
                    Some(_) => CloseReason::Lost {
                        detail: "no answer before the deadline".to_owned(),
                    },
                    None => CloseReason::Bound {
                        what: "milliseconds of a connection that has not proven who it is",
                        limit: self.shared.bounds.hello_timeout.as_millis() as u64,
                    },
                };
                self.close(ConnectionId(id), reason);
            }
        }
    }

    /// Ends a connection: GOODBYE, flush, the pending operations' ends, `Closed`.
    pub(crate) fn close(&mut self, connection: ConnectionId, reason: CloseReason) {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return;
        };
        let mut told = false;
        let Shared {
            fabric, protection, ..
        } = self.shared;
        let says = says_goodbye(&conn.session, fabric, protection);
        if let (Some((code, text)), true) = (goodbye(&reason), says) {
            let body = Goodbye::encode(code, &text);
            let mut cx = Context {
                connection,
                session: &mut conn.session,
                shared: &mut self.shared,
            };
            cx.push_verdicts();
            cx.push(Frame::owned(kind::GOODBYE, 0, body, Ends::Nothing));
            told = self.send_all(connection);
        }
        let Some(conn) = self.conns.remove(&connection.0) else {
            return;
        };
        let Conn {
            mut socket,
            mut session,
            state,
            ..
        } = conn;
        self.deadlines.remove(&(session.deadline, connection.0));
        self.shared.strangers.left(connection);
        let remains = self.report_end(connection, &mut session, state, reason, told);
        let deadline = Instant::now() + self.shared.bounds.linger;
        let lingers = (told || remains.is_some())
            && match session.phase {
                Phase::Open => D::Path::end_sending(&socket),
                Phase::Connecting | Phase::Greeting | Phase::Pairing => {
                    socket.shutdown(Shutdown::Write).is_ok()
                }
                // Strangers cannot fill the table with ends.
                Phase::AwaitHello | Phase::AwaitProof => {
                    self.lingering.len() < STRANGERS_LINGERING
                        && socket.shutdown(Shutdown::Write).is_ok()
                }
            };
        if lingers {
            self.deadlines.insert((deadline, connection.0));
            let lingering = Lingering {
                socket,
                deadline,
                left: LINGER_BYTES,
                remains,
            };
            self.lingering.insert(connection.0, lingering);
            self.linger_on(connection);
        } else {
            if let Err(error) = self.poll.registry().deregister(&mut socket) {
                log::debug!("cannot unwatch a closed connection: {error}");
            }
            if let Some(remains) = remains {
                self.driver.on_gone(&mut self.shared, connection, remains);
            }
        }
    }

    /// Drops a lingering connection's socket and what it left behind.
    pub(crate) fn end_linger(&mut self, connection: ConnectionId) {
        let Some(lingering) = self.lingering.remove(&connection.0) else {
            return;
        };
        self.deadlines.remove(&(lingering.deadline, connection.0));
        if let Some(remains) = lingering.remains {
            self.driver.on_gone(&mut self.shared, connection, remains);
        }
    }

    /// Writes until the queue is empty (true) or the kernel takes no more.
    fn send_all(&mut self, connection: ConnectionId) -> bool {
        loop {
            if self.send_queued(connection).is_err() {
                return false;
            }
            match self.conns.get(&connection.0) {
                Some(conn) if !conn.has_unsent() => return true,
                Some(conn) if conn.writable => {}
                _ => return false,
            }
        }
    }

    /// Reports the end of every pending operation, and `Closed` if the caller knows the connection.
    fn report_end(
        &mut self,
        connection: ConnectionId,
        session: &mut Session,
        state: D::Connection,
        reason: CloseReason,
        told: bool,
    ) -> Option<D::Remains> {
        let counters = &mut self.shared.counters;
        counters.closed += 1;
        if matches!(
            reason,
            CloseReason::Protocol(_) | CloseReason::Tampered(_) | CloseReason::Bound { .. }
        ) {
            counters.protocol_errors += 1;
        }
        if session.phase != Phase::Open {
            counters.handshakes_failed += 1;
        }
        let mut cx = Context {
            connection,
            session,
            shared: &mut self.shared,
        };
        let abandoned = cx.session.outbound.abandon();
        // What the driver holds was sent before what is still queued.
        let remains = self.driver.on_closed(&mut cx, state, told);
        for ends in abandoned {
            cx.ended(ends, true);
        }
        let mut reads: Vec<_> = cx.session.reads.drain().collect();
        reads.sort_unstable_by_key(|(sequence, _)| *sequence);
        for (_, read) in reads {
            cx.read_ended(read, Outcome::Flushed);
        }
        let reason = match (&cx.session.phase, &cx.session.expected, reason) {
            (Phase::Open, _, reason) => reason,
            (_, None, reason) => {
                log::debug!("a connection ended before it had proven who it is: {reason}");
                return remains;
            }
            (_, Some((_, location)), CloseReason::Lost { detail }) => CloseReason::Unreachable {
                location: location.clone(),
                detail,
            },
            (_, Some(_), reason) => reason,
        };
        cx.event(Event::Closed { connection, reason });
        remains
    }

    /// A lingering connection is readable: discards what the peer still sends.
    pub(crate) fn linger_on(&mut self, connection: ConnectionId) {
        let Some(lingering) = self.lingering.get_mut(&connection.0) else {
            return;
        };
        let mut waste = [0; 4096];
        while lingering.left > 0 {
            self.shared.counters.receive_calls += 1;
            match lingering.socket.receive(&mut [IoSliceMut::new(&mut waste)]) {
                Ok(bytes) if bytes > 0 => lingering.left = lingering.left.saturating_sub(bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        self.end_linger(connection);
    }
}

/// Whether the peer could read a GOODBYE.
fn says_goodbye(session: &Session, fabric: FabricKind, protection: Protection) -> bool {
    match session.phase {
        Phase::Connecting => false,
        // The connector reads WELCOME before it takes records, and it takes nothing else from then on.
        Phase::AwaitProof => !seals(fabric, protection),
        Phase::Greeting | Phase::AwaitHello | Phase::Pairing | Phase::Open => true,
    }
}

/// The code and text of our GOODBYE; `None` if the peer is gone or sent its own.
fn goodbye(reason: &CloseReason) -> Option<(GoodbyeCode, String)> {
    let code = match reason {
        CloseReason::Local | CloseReason::Unable { .. } => GoodbyeCode::Closing,
        CloseReason::Protocol(_) | CloseReason::Tampered(_) => GoodbyeCode::Protocol,
        CloseReason::Unproven(_) | CloseReason::Protection { .. } => GoodbyeCode::Unproven,
        CloseReason::Bound { .. } => GoodbyeCode::Bound,
        CloseReason::Peer { .. } | CloseReason::Lost { .. } | CloseReason::Unreachable { .. } => {
            return None;
        }
    };
    let text = match reason {
        CloseReason::Local => "it is done".to_owned(),
        reason => reason.to_string(),
    };
    Some((code, text))
}
