//! Turns: what is received from, and sent to, one connection before the next one is served.
//!
//! A turn ends when the kernel has (or takes) no more, or when its budget is used up. The budget
//! counts bytes of the stream and, where payload does not come through it, the bytes copied.

use super::bounds::{SLICES, TAIL_BYTES};
use super::dispatch::Receiver;
use super::driver::{FramePath, TransportDriver};
use super::reactor::Reactor;
use super::sealed::Sealed;
use super::session::{Context, Phase};
use super::socket::Socket;
use crate::{CloseReason, ConnectionId};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::ops::Range;

/// After a failed send, turns in which we still receive to find the peer's GOODBYE.
const LAST_TURNS: usize = 8;

/// How far a turn got.
pub(crate) enum Turn {
    /// Until the kernel had nothing more.
    Drained,
    /// Until the budget was used up.
    CutOff,
}

/// What a turn of frames in the clear came to.
enum Frames {
    Turn(Turn),
    /// Records follow. The first bytes of them are in this part of the staging buffer.
    Records(Range<usize>),
}

/// What a receive from a socket came to.
pub(crate) enum Received {
    /// At least one.
    Bytes(usize),
    /// A signal came first.
    Again,
    /// The kernel has nothing more for now.
    Nothing,
}

/// Reads the result of a receive that had room.
///
/// # Errors
/// `Lost`: the stream ended, or the socket failed.
pub(crate) fn received(result: io::Result<usize>) -> Result<Received, CloseReason> {
    let detail = match result {
        Ok(0) => "the peer ended the stream".to_owned(),
        Ok(bytes) => return Ok(Received::Bytes(bytes)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Received::Again),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Nothing),
        Err(error) => format!("cannot receive: {error}"),
    };
    Err(CloseReason::Lost { detail })
}

/// The frames of an open connection travel over its socket, as those of the greeting do.
pub(crate) struct OverSocket;

impl<D: TransportDriver> FramePath<D> for OverSocket {
    fn receive(reactor: &mut Reactor<D>, connection: ConnectionId) -> Result<Turn, CloseReason> {
        reactor.receive_from_socket(connection)
    }

    fn send(reactor: &mut Reactor<D>, connection: ConnectionId) -> io::Result<()> {
        reactor.send_to_socket(connection)
    }

    fn end_sending(socket: &D::Socket) -> bool {
        socket.shutdown(Shutdown::Write).is_ok()
    }
}

impl<D: TransportDriver> Reactor<D> {
    /// Receives from one connection until it is drained or its turn is over.
    pub(crate) fn read_turn(&mut self, connection: ConnectionId) {
        match self.receive(connection) {
            Ok(Turn::Drained) => {}
            Ok(Turn::CutOff) => {
                if let Some(conn) = self.conns.get_mut(&connection.0) {
                    conn.unread = true;
                    self.unread.push(connection);
                }
            }
            Err(reason) => self.close(connection, reason),
        }
    }

    fn receive(&mut self, connection: ConnectionId) -> Result<Turn, CloseReason> {
        match self.conns.get(&connection.0) {
            None => Ok(Turn::Drained),
            Some(conn) if conn.session.phase == Phase::Open => D::Path::receive(self, connection),
            Some(_) => self.receive_from_socket(connection),
        }
    }

    fn receive_from_socket(&mut self, connection: ConnectionId) -> Result<Turn, CloseReason> {
        let sealed = self
            .conns
            .get(&connection.0)
            .is_some_and(|conn| conn.sealed.is_some());
        if !sealed {
            match self.receive_frames(connection)? {
                Frames::Turn(turn) => return Ok(turn),
                Frames::Records(staged) => self.open_staged(connection, staged)?,
            }
        }
        self.receive_records(connection)
    }

    /// Frames in the clear.
    fn receive_frames(&mut self, connection: ConnectionId) -> Result<Frames, CloseReason> {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(Frames::Turn(Turn::Drained));
        };
        let mut budget = self.shared.bounds.turn_bytes;
        let mut receiver = Receiver {
            cx: Context {
                connection,
                session: &mut conn.session,
                shared: &mut self.shared,
            },
            driver: &mut self.driver,
            state: &mut conn.state,
            opened: false,
        };
        loop {
            if budget == 0 {
                return Ok(Frames::Turn(Turn::CutOff));
            }
            receiver.cx.shared.counters.receive_calls += 1;
            let (offered, landed, result) = {
                // Little before the greeting is over: what is behind it may be records, which go elsewhere.
                let open = receiver.cx.session.phase == Phase::Open;
                let place = conn.inbound.direct(&mut receiver).unwrap_or_default();
                let tail = if place.is_empty() && open {
                    D::STAGING_BYTES
                } else {
                    TAIL_BYTES
                };
                let (place_bytes, offered) = (place.len(), place.len() + tail);
                let slices = &mut [
                    IoSliceMut::new(place),
                    IoSliceMut::new(&mut self.staging[..tail]),
                ];
                let result = conn
                    .socket
                    .receive(&mut slices[usize::from(place_bytes == 0)..]);
                let landed = result.as_ref().map_or(0, |bytes| place_bytes.min(*bytes));
                (offered, landed, result)
            };
            // Even if nothing came: the framing takes its buffer back.
            conn.inbound.landed(landed, &mut receiver)?;
            let bytes = match received(result)? {
                Received::Bytes(bytes) => bytes,
                Received::Again => continue,
                Received::Nothing => return Ok(Frames::Turn(Turn::Drained)),
            };
            let staged = bytes - landed;
            D::collect(&mut conn.socket, receiver.state)?;
            receiver.cx.shared.counters.bytes_in += bytes as u64;
            budget = budget.saturating_sub(bytes);
            let left = conn.inbound.feed(&self.staging[..staged], &mut receiver)?;
            if let Some(keys) = receiver.cx.session.keys.take() {
                conn.sealed = Some(Box::new(Sealed::new(keys)));
                return Ok(Frames::Records(staged - left..staged));
            }
            let work = std::mem::take(&mut receiver.cx.shared.work);
            budget = budget.saturating_sub(work);
            if D::Socket::SHORT_MEANS_DRAINED && bytes < offered && !conn.ending {
                return Ok(Frames::Turn(Turn::Drained));
            }
        }
    }

    /// See [`crate::Fabric::flush`].
    pub(crate) fn flush(&mut self) {
        for connection in std::mem::take(&mut self.shared.dirty) {
            let Some(conn) = self.conns.get_mut(&connection.0) else {
                continue;
            };
            conn.session.dirty = false;
            if let Err(error) = self.send_queued(connection) {
                self.send_failed(connection, &error);
            }
        }
    }

    /// Sends what a connection has queued, as far as the kernel takes it in one turn.
    pub(crate) fn send_queued(&mut self, connection: ConnectionId) -> io::Result<()> {
        let Some((mut cx, phase)) = self.context(connection) else {
            return Ok(());
        };
        cx.push_verdicts();
        match phase {
            Phase::Open => D::Path::send(self, connection),
            Phase::Connecting
            | Phase::Greeting
            | Phase::AwaitHello
            | Phase::AwaitProof
            | Phase::Pairing => self.send_to_socket(connection),
        }
    }

    fn send_to_socket(&mut self, connection: ConnectionId) -> io::Result<()> {
        if self.sends_records(connection) {
            return self.send_records(connection);
        }
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(());
        };
        let mut cx = Context {
            connection,
            session: &mut conn.session,
            shared: &mut self.shared,
        };
        let mut budget = cx.shared.bounds.turn_bytes;
        while conn.writable && !cx.session.outbound.is_empty() {
            if budget == 0 {
                cx.touch();
                return Ok(());
            }
            cx.shared.counters.send_calls += 1;
            let mut slices = [IoSlice::new(&[]); SLICES];
            let (used, total, descriptor) = cx.session.outbound.gather(&mut slices);
            let descriptor = descriptor.map(|descriptor| descriptor.as_fd());
            match conn.socket.send(&slices[..used], descriptor) {
                Ok(sent) => {
                    budget = budget.saturating_sub(sent);
                    cx.shared.counters.bytes_out += sent as u64;
                    conn.writable = sent == total;
                    cx.sent(sent);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => conn.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The peer's GOODBYE explains a broken connection better than the error of our send, so the
    /// socket is read first; for a few turns only, because a peer may send without end.
    fn send_failed(&mut self, connection: ConnectionId, error: &io::Error) {
        for _ in 0..LAST_TURNS {
            match self.receive(connection) {
                Ok(Turn::CutOff) => {}
                Ok(Turn::Drained) => break,
                Err(reason) => return self.close(connection, reason),
            }
        }
        let detail = format!("cannot send: {error}");
        self.close(connection, CloseReason::Lost { detail });
    }
}
