//! The caller's operations on an open connection: messages, writes, reads and exposures.

use super::connection::{Common, FabricConnection};
use super::payload;
use super::state::PendingRead;
use super::transport::{Datapath, ExposeError};
use crate::frame::outgoing::{Frame, SendCompletion};
use crate::{
    CloseReason, ConnectionId, Exposure, Message, PipeWrite, Read, RejectedPost, RemoteRange, Write,
};
use faro_wire::header::{MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES};

/// An open connection with the state that it shares; `None` if it is not open.
pub(crate) type OpenConnection<'a, D> = Option<(&'a mut FabricConnection<D>, &'a mut Common<D>)>;

/// Reason why a lease is not exposed.
pub(crate) enum NotExposed {
    /// It is given back.
    Rejected(RejectedPost<Exposure>),
    /// It is given back, and the connection has to end.
    Broken(Exposure, CloseReason),
}

/// Returns the limit that a write exceeds: the protocol's, or the end of its source.
fn too_large(write: &Write) -> Option<u64> {
    let room = write.source.capacity().saturating_sub(write.offset);
    let limit = room.min(MAX_PAYLOAD_BYTES as usize);
    let starts_beyond = write.offset > write.source.capacity();
    (write.length > limit || starts_beyond).then_some(limit as u64)
}

/// See [`crate::Fabric::write`].
pub(crate) fn write<D: Datapath>(
    open: OpenConnection<'_, D>,
    connection: ConnectionId,
    write: Write,
) -> Result<(), RejectedPost<Write>> {
    if let Some(limit) = too_large(&write) {
        return Err(RejectedPost::TooLarge(write, limit));
    }
    let Some((open, common)) = open else {
        return Err(RejectedPost::NotConnected(write, connection));
    };
    let (mut cx, driver, state) = open.parts(common);
    if !cx.admit(write.length) {
        return Err(RejectedPost::Full(write));
    }
    driver.post_write(&mut cx, state, write);
    Ok(())
}

/// See [`crate::Fabric::takes_pipes`].
pub(crate) fn takes_pipes<D: Datapath>(open: OpenConnection<'_, D>) -> bool {
    open.is_some_and(|(open, _)| has_pipes(open))
}

fn has_pipes<D: Datapath>(connection: &FabricConnection<D>) -> bool {
    // Records are sealed in memory.
    D::TAKES_PIPES && !connection.sends_records()
}

/// See [`crate::Fabric::write_pipe`].
pub(crate) fn write_pipe<D: Datapath>(
    open: OpenConnection<'_, D>,
    connection: ConnectionId,
    write: PipeWrite,
) -> Result<(), RejectedPost<PipeWrite>> {
    let Some((open, common)) = open.filter(|(open, _)| has_pipes(open)) else {
        return Err(RejectedPost::NotConnected(write, connection));
    };
    let mut cx = open.context(&mut common.shared);
    if !cx.admit(write.pipe.held()) {
        return Err(RejectedPost::Full(write));
    }
    payload::post_pipe(&mut cx, write);
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
