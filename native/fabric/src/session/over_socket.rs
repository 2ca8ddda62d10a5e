//! Moves a connection's bytes over its socket. A turn receives or sends for one connection before
//! the next is served.
//!
//! A turn ends when the kernel has (or takes) no more, or when its budget is used up. The budget
//! counts bytes of the stream, and bytes copied outside it.

use super::bounds::TAIL_BYTES;
use super::connection::{Common, FabricConnection};
use super::context::Context;
use super::dispatch::Receiver;
use super::socket::Socket;
use super::state::ConnectionPhase;
use super::transport::Datapath;
use crate::frame::outbound::SLICES;
use crate::frame::records::Records;
use crate::CloseReason;
use faro_secure::OVERHEAD_BYTES;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::AsFd as _;

/// Result of a turn.
pub(crate) enum SocketTurn {
    /// Until the kernel had nothing more.
    Drained,
    /// Until the budget was used up.
    CutOff,
}

/// Result of a turn of frames in the clear.
enum Frames {
    SocketTurn(SocketTurn),
    /// Records follow. The first bytes of them are in this part of the staging buffer.
    Records(Range<usize>),
}

/// Result of a receive from a socket.
enum ReceiveResult {
    /// This many bytes, at least one.
    Bytes(usize),
    /// A signal came first.
    Again,
    /// The kernel has nothing more for now.
    Nothing,
}

/// Reads the result of a receive that had room.
///
/// # Errors
/// Returns `Lost` if the stream ended or the socket failed.
fn received(result: io::Result<usize>) -> Result<ReceiveResult, CloseReason> {
    let detail = match result {
        Ok(0) => "the peer ended the stream".to_owned(),
        Ok(bytes) => return Ok(ReceiveResult::Bytes(bytes)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            return Ok(ReceiveResult::Again)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Ok(ReceiveResult::Nothing)
        }
        Err(error) => format!("cannot receive: {error}"),
    };
    Err(CloseReason::Lost { detail })
}

/// Receives from one connection until it is drained or its turn is over.
pub(crate) fn receive<D: Datapath>(
    connection: &mut FabricConnection<D>,
    common: &mut Common<D>,
) -> Result<SocketTurn, CloseReason> {
    if connection.records.is_none() {
        match receive_frames(connection, common)? {
            Frames::SocketTurn(turn) => return Ok(turn),
            Frames::Records(staged) => open_staged(connection, common, staged)?,
        }
    }
    receive_records(connection, common)
}

/// Receives frames in the clear.
fn receive_frames<D: Datapath>(
    connection: &mut FabricConnection<D>,
    common: &mut Common<D>,
) -> Result<Frames, CloseReason> {
    let mut budget = common.shared.bounds.turn_bytes;
    let cx = Context::new(&mut connection.session, &mut common.shared);
    let mut receiver = Receiver::new(cx, &mut common.driver, &mut connection.state, false);
    loop {
        if budget == 0 {
            return Ok(Frames::SocketTurn(SocketTurn::CutOff));
        }
        receiver.cx.shared.counters.receive_calls += 1;
        let (offered, landed, result) = {
            // Only a little during the handshake: records may follow, which are staged elsewhere.
            let open = receiver.cx.session.phase == ConnectionPhase::OpenConnection;
            let place = connection.inbound.direct(&mut receiver).unwrap_or_default();
            let tail = if place.is_empty() && open {
                D::STAGING_BYTES
            } else {
                TAIL_BYTES
            };
            let (place_bytes, offered) = (place.len(), place.len() + tail);
            let slices = &mut [
                IoSliceMut::new(place),
                IoSliceMut::new(&mut common.staging[..tail]),
            ];
            let result = connection
                .socket
                .receive(&mut slices[usize::from(place_bytes == 0)..]);
            let landed = result.as_ref().map_or(0, |bytes| place_bytes.min(*bytes));
            (offered, landed, result)
        };
        // Called even without bytes, so that the framing truncates its buffer.
        connection.inbound.landed(landed, &mut receiver)?;
        let bytes = match received(result)? {
            ReceiveResult::Bytes(bytes) => bytes,
            ReceiveResult::Again => continue,
            ReceiveResult::Nothing => return Ok(Frames::SocketTurn(SocketTurn::Drained)),
        };
        let staged = bytes - landed;
        D::collect(&mut connection.socket, receiver.state)?;
        receiver.cx.shared.counters.bytes_in += bytes as u64;
        budget = budget.saturating_sub(bytes);
        let left = connection
            .inbound
            .feed(&common.staging[..staged], &mut receiver)?;
        if let Some(keys) = receiver.cx.session.keys.take() {
            connection.records = Some(Box::new(Records::new(keys)));
            return Ok(Frames::Records(staged - left..staged));
        }
        let work = std::mem::take(&mut receiver.cx.shared.work);
        budget = budget.saturating_sub(work);
        if D::Socket::SHORT_MEANS_DRAINED && bytes < offered && !connection.ending {
            return Ok(Frames::SocketTurn(SocketTurn::Drained));
        }
    }
}

/// Opens the records whose first bytes came after the last clear frame.
fn open_staged<D: Datapath>(
    connection: &mut FabricConnection<D>,
    common: &mut Common<D>,
    staged: Range<usize>,
) -> Result<(), CloseReason> {
    let Some(records) = &mut connection.records else {
        return Ok(());
    };
    let cx = Context::new(&mut connection.session, &mut common.shared);
    let mut receiver = Receiver::new(cx, &mut common.driver, &mut connection.state, true);
    let batch = &mut common.records[..staged.len()];
    batch.copy_from_slice(&common.staging[staged]);
    let inbound = &mut connection.inbound;
    records.open_all(batch, |frames| {
        inbound.feed(frames, &mut receiver).map(drop)
    })
}

/// Receives records until the kernel has no more or the turn is over.
fn receive_records<D: Datapath>(
    connection: &mut FabricConnection<D>,
    common: &mut Common<D>,
) -> Result<SocketTurn, CloseReason> {
    let Some(records) = &mut connection.records else {
        return Ok(SocketTurn::Drained);
    };
    let mut budget = common.shared.bounds.turn_bytes;
    let cx = Context::new(&mut connection.session, &mut common.shared);
    let mut receiver = Receiver::new(cx, &mut common.driver, &mut connection.state, true);
    let inbound = &mut connection.inbound;
    while budget > 0 {
        receiver.cx.shared.counters.receive_calls += 1;
        let held = records.held();
        let place = &mut common.records[held..];
        let offered = place.len();
        let result = connection.socket.receive(&mut [IoSliceMut::new(place)]);
        let bytes = match received(result)? {
            ReceiveResult::Bytes(bytes) => bytes,
            ReceiveResult::Again => continue,
            ReceiveResult::Nothing => return Ok(SocketTurn::Drained),
        };
        D::collect(&mut connection.socket, receiver.state)?;
        records.move_held(&mut common.records);
        receiver.cx.shared.counters.bytes_in += bytes as u64;
        budget = budget.saturating_sub(bytes);
        records.open_all(&mut common.records[..held + bytes], |frames| {
            inbound.feed(frames, &mut receiver).map(drop)
        })?;
        let work = std::mem::take(&mut receiver.cx.shared.work);
        budget = budget.saturating_sub(work);
        if D::Socket::SHORT_MEANS_DRAINED && bytes < offered && !connection.ending {
            return Ok(SocketTurn::Drained);
        }
    }
    Ok(SocketTurn::CutOff)
}

/// Sends a connection's queue, as far as the kernel takes it in one turn.
pub(crate) fn send<D: Datapath>(
    connection: &mut FabricConnection<D>,
    common: &mut Common<D>,
) -> io::Result<()> {
    if connection.sends_records() {
        return send_records(connection, common);
    }
    let mut cx = Context::new(&mut connection.session, &mut common.shared);
    let mut budget = cx.shared.bounds.turn_bytes;
    while connection.writable && !cx.session.outbound.is_empty() {
        if budget == 0 {
            cx.touch();
            return Ok(());
        }
        cx.shared.counters.send_calls += 1;
        let (taken, all) = if let Some(pipe) = cx.session.outbound.next_pipe() {
            let taken = pipe.send(connection.socket.as_fd());
            cx.shared.counters.piped_bytes += *taken.as_ref().unwrap_or(&0) as u64;
            // A short one has more reasons than a full socket.
            (taken, None)
        } else {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let next = cx.session.outbound.gather(&mut slices);
            let (slices, socket) = (&slices[..next.used], &mut connection.socket);
            let taken = match next.before_pipe {
                true => socket.send_before_pipe(slices),
                false => socket.send(slices, next.descriptor.map(|descriptor| descriptor.as_fd())),
            };
            (taken, Some(next.bytes))
        };
        match taken {
            Ok(sent) => {
                budget = budget.saturating_sub(sent);
                cx.shared.counters.bytes_out += sent as u64;
                connection.writable = all.is_none_or(|all| sent == all);
                cx.sent(sent);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => connection.writable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Seals and sends a connection's queue, as far as the kernel takes it in one turn.
fn send_records<D: Datapath>(
    connection: &mut FabricConnection<D>,
    common: &mut Common<D>,
) -> io::Result<()> {
    let Some(records) = &mut connection.records else {
        return Ok(());
    };
    let mut cx = Context::new(&mut connection.session, &mut common.shared);
    let mut budget = cx.shared.bounds.turn_bytes;
    while connection.writable {
        if budget == 0 {
            cx.touch();
            return Ok(());
        }
        let filled = if records.is_sent() {
            fill(&mut cx, records, &mut common.records).map_err(io::Error::other)?
        } else {
            0
        };
        let batch = &common.records[..filled];
        let bytes = if filled > 0 { batch } else { records.unsent() };
        if bytes.is_empty() {
            return Ok(());
        }
        cx.shared.counters.send_calls += 1;
        let taken = match connection.socket.send(&[IoSlice::new(bytes)], None) {
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                records.taken(batch, 0);
                continue;
            }
            Err(error) => return Err(error),
        };
        connection.writable = taken == bytes.len();
        cx.shared.counters.bytes_out += taken as u64;
        budget = budget.saturating_sub(taken);
        records.taken(batch, taken);
    }
    Ok(())
}

/// Fills `batch` with a record of the queue's next bytes, or with the clear bytes before the first
/// record. Returns its bytes.
fn fill(
    cx: &mut Context<'_>,
    records: &mut Records,
    batch: &mut [u8],
) -> Result<usize, CloseReason> {
    let in_clear = std::mem::take(&mut cx.session.in_clear);
    if in_clear > 0 {
        let bytes = cx.session.outbound.copy_into(&mut batch[..in_clear]);
        cx.sent(bytes);
        return Ok(bytes);
    }
    match records.seal_next(&cx.session.outbound, batch)? {
        0 => Ok(0),
        bytes => {
            cx.sent(bytes);
            Ok(bytes + OVERHEAD_BYTES)
        }
    }
}
