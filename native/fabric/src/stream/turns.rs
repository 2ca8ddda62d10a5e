//! Turns: what is received from, and sent to, one connection before the next has its turn.
//!
//! A turn ends when the kernel has (or takes) no more, or when its budget is used up; the budget
//! counts bytes of the stream and, where payload does not come through it, the copying done.

use super::bounds::{SLICES, TAIL_BYTES};
use super::dispatch::Receiver;
use super::hub::Hub;
use super::session::{Carrier, Context, Phase};
use super::socket::Socket;
use crate::{CloseReason, ConnectionId};
use std::io::{self, IoSlice, IoSliceMut};

/// Turns in which the last words of a connection that takes no more are looked for.
const LAST_TURNS: usize = 8;

/// How far a turn got.
enum Turn {
    /// Until the kernel had nothing more.
    Drained,
    /// Until the budget was used up.
    CutOff,
}

impl<C: Carrier> Hub<C> {
    /// Reads one connection until it is drained or its turn is over.
    pub(crate) fn read_turn(&mut self, connection: ConnectionId) {
        match self.read(connection) {
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

    fn read(&mut self, connection: ConnectionId) -> Result<Turn, CloseReason> {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(Turn::Drained);
        };
        if C::OWN_DATAPATH && conn.session.phase == Phase::Open {
            return lifeline(&mut conn.socket);
        }
        let mut budget = self.shared.bounds.turn_bytes;
        let mut receiver = Receiver {
            cx: Context {
                connection,
                session: &mut conn.session,
                shared: &mut self.shared,
            },
            carrier: &mut self.carrier,
        };
        loop {
            if budget == 0 {
                return Ok(Turn::CutOff);
            }
            receiver.cx.shared.counters.receive_calls += 1;
            let (offered, landed, staged) = {
                let place = conn.inbound.direct(&mut receiver).unwrap_or_default();
                let tail = if place.is_empty() {
                    C::STAGING
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
                (offered, landed, result.map(|bytes| bytes - landed))
            };
            // Even if nothing came: the framing takes its buffer back.
            conn.inbound.landed(landed, &mut receiver)?;
            let staged = match staged {
                Ok(0) if landed == 0 => {
                    let detail = "the peer ended the stream".to_owned();
                    return Err(CloseReason::Lost { detail });
                }
                Ok(staged) => staged,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Turn::Drained)
                }
                Err(error) => {
                    let detail = format!("cannot receive: {error}");
                    return Err(CloseReason::Lost { detail });
                }
            };
            C::collect(&mut conn.socket, &mut receiver.cx.session.carrier)?;
            let bytes = landed + staged;
            receiver.cx.shared.counters.bytes_in += bytes as u64;
            budget = budget.saturating_sub(bytes);
            conn.inbound.feed(&self.staging[..staged], &mut receiver)?;
            let work = std::mem::take(&mut receiver.cx.shared.work);
            budget = budget.saturating_sub(work);
            if C::SHORT_MEANS_DRAINED && bytes < offered && !conn.ending {
                return Ok(Turn::Drained);
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
            if let Err(error) = self.write(connection) {
                self.write_failed(connection, &error);
            }
        }
    }

    /// Sends what a connection has queued, as far as the kernel takes it in one turn.
    pub(crate) fn write(&mut self, connection: ConnectionId) -> io::Result<()> {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(());
        };
        let mut cx = Context::<C> {
            connection,
            session: &mut conn.session,
            shared: &mut self.shared,
        };
        cx.push_verdicts();
        if C::OWN_DATAPATH && cx.session.phase == Phase::Open {
            conn.writable = self.carrier.transmit(&mut cx)?;
            return Ok(());
        }
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
                    let mut outbound = std::mem::take(&mut cx.session.outbound);
                    outbound.advance(sent, |ends| {
                        cx.shared.counters.frames_out += 1;
                        cx.ended(ends, false);
                    });
                    cx.session.outbound = outbound;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => conn.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What the peer said last explains a broken connection better than our send's error. Some
    /// turns only: a peer that takes nothing may still talk without end.
    fn write_failed(&mut self, connection: ConnectionId, error: &io::Error) {
        for _ in 0..LAST_TURNS {
            match self.read(connection) {
                Ok(Turn::CutOff) => {}
                Ok(Turn::Drained) => break,
                Err(reason) => return self.close(connection, reason),
            }
        }
        let detail = format!("cannot send: {error}");
        self.close(connection, CloseReason::Lost { detail });
    }
}

/// A socket that carries nothing any more: it is quiet, or the peer is gone.
fn lifeline(socket: &mut impl Socket) -> Result<Turn, CloseReason> {
    let mut nothing = [0; 1];
    let detail = match socket.receive(&mut [IoSliceMut::new(&mut nothing)]) {
        Ok(0) => "the peer ended the control connection".to_owned(),
        Ok(_) => "bytes on the control connection of an open pair".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Turn::Drained),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Turn::CutOff),
        Err(error) => format!("control connection: {error}"),
    };
    Err(CloseReason::Lost { detail })
}
