//! The caller's operations on an open connection: messages, writes, reads and exposures.

use super::connection::{Common, FabricConnection};
use super::state::PendingRead;
use super::transport::{Datapath, ExposeError};
use crate::frame::outgoing::{Frame, SendCompletion};
use crate::{
    CloseReason, ConnectionId, Exposure, Message, Read, RejectedPost, RemoteRange, Write,
    WriteSources,
};
use faro_wire::header::MAX_MESSAGE_BYTES;

/// An open connection with the state that it shares; `None` if it is not open.
pub(crate) type OpenConnection<'a, D> = Option<(&'a mut FabricConnection<D>, &'a mut Common<D>)>;

/// Reason why a lease is not exposed.
pub(crate) enum NotExposed {
    /// It is given back.
    Rejected(RejectedPost<Exposure>),
    /// It is given back, and the connection has to end.
    Broken(Exposure, CloseReason),
}

/// See [`crate::Fabric::write_sources`].
pub(crate) fn write_sources<D: Datapath>(open: OpenConnection<'_, D>) -> WriteSources {
    match open {
        Some((open, common)) => sources(open, common),
        // No write goes there.
        None => WriteSources::FRAMES,
    }
}

fn sources<D: Datapath>(open: &mut FabricConnection<D>, common: &mut Common<D>) -> WriteSources {
    // Records are sealed in memory.
    if open.sends_records() {
        return WriteSources::FRAMES;
    }
    let (_, driver, state) = open.parts(common);
    driver.write_sources(state)
}

/// See [`crate::Fabric::write`].
pub(crate) fn write<D: Datapath>(
    open: OpenConnection<'_, D>,
    connection: ConnectionId,
    write: Write,
) -> Result<(), RejectedPost<Write>> {
    let Some((open, common)) = open else {
        return Err(RejectedPost::NotConnected(write, connection));
    };
    if let Err(limit) = sources(open, common).check(&write.source) {
        return Err(RejectedPost::TooLarge(write, limit));
    }
    let (mut cx, driver, state) = open.parts(common);
    if !cx.admit(write.source.length()) {
        return Err(RejectedPost::Full(write));
    }
    driver.post_write(&mut cx, state, write);
    Ok(())
}

/// See [`crate::Fabric::read`].
pub(crate) fn read<D: Datapath>(
    open: OpenConnection<'_, D>,
    connection: ConnectionId,
    read: Read,
) -> Result<(), RejectedPost<Read>> {
    let capacity = read.target.capacity();
    if read.source.length as usize > capacity {
        return Err(RejectedPost::TooLarge(read, capacity as u64));
    }
    let Some((open, common)) = open else {
        return Err(RejectedPost::NotConnected(read, connection));
    };
    let (mut cx, driver, state) = open.parts(common);
    if !cx.admit(0) {
        return Err(RejectedPost::Full(read));
    }
    let sequence = cx.next_sequence();
    let pending = PendingRead {
        token: read.token,
        length: read.source.length as usize,
        target: read.target,
    };
    cx.session.reads.insert(sequence, pending);
    driver.post_read(&mut cx, state, sequence, read.source);
    Ok(())
}

/// See [`crate::Fabric::send`].
pub(crate) fn send<D: Datapath>(
    open: OpenConnection<'_, D>,
    connection: ConnectionId,
    message: Message,
) -> Result<(), RejectedPost<Message>> {
    let bytes = message.body.len();
    if bytes > MAX_MESSAGE_BYTES as usize {
        return Err(RejectedPost::TooLarge(
            message,
            u64::from(MAX_MESSAGE_BYTES),
        ));
    }
    let Some((open, common)) = open else {
        return Err(RejectedPost::NotConnected(message, connection));
    };
    let mut cx = open.context(&mut common.shared);
    if !cx.admit(bytes) {
        return Err(RejectedPost::Full(message));
    }
    let ends = SendCompletion::Message { bytes };
    cx.push(Frame::owned(message.kind, message.id, message.body, ends));
    Ok(())
}

/// See [`crate::Fabric::expose`].
pub(crate) fn expose<D: Datapath>(
    open: OpenConnection<'_, D>,
    connection: ConnectionId,
    exposure: Exposure,
) -> Result<RemoteRange, NotExposed> {
    let rejected = |rejected| Err(NotExposed::Rejected(rejected));
    let Some((open, common)) = open else {
        return rejected(RejectedPost::NotConnected(exposure, connection));
    };
    let (mut cx, driver, state) = open.parts(common);
    if cx.session.exposures >= cx.shared.bounds.exposures {
        cx.shared.counters.rejected_full += 1;
        return rejected(RejectedPost::Full(exposure));
    }
    let key = cx.shared.exposures.new_key();
    match driver.expose(&mut cx, state, key, &exposure) {
        Ok(offset) => {
            let length = exposure.lease().capacity() as u32;
            cx.session.exposures += 1;
            cx.shared.exposures.insert(key, connection, exposure);
            Ok(RemoteRange {
                key,
                offset,
                length,
            })
        }
        Err(ExposeError::Full) => rejected(RejectedPost::Full(exposure)),
        Err(ExposeError::Broken(reason)) => Err(NotExposed::Broken(exposure, reason)),
    }
}
