//! The caller's side that all stream fabrics share: messages and exposures.

use super::hub::Hub;
use super::outbound::{Ends, Frame};
use super::session::{Carrier, PendingRead};
use crate::{ConnectionId, Exposure, Message, Read, Rejected, RemoteRange, Write};
use faro_pool::Lease;
use faro_wire::header::{MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES};

impl Exposure {
    /// The memory.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        match self {
            Self::Writable(lease) => lease,
            Self::Readable(lease) => lease,
        }
    }
}

/// The limit that a write exceeds: the protocol's, or the end of its source.
fn too_large(write: &Write) -> Option<u64> {
    let room = write.source.capacity().saturating_sub(write.offset);
    let limit = room.min(MAX_PAYLOAD_BYTES as usize);
    let starts_beyond = write.offset > write.source.capacity();
    (write.length > limit || starts_beyond).then_some(limit as u64)
}

impl<C: Carrier> Hub<C> {
    /// See [`crate::Fabric::write`].
    pub(crate) fn post_write(
        &mut self,
        connection: ConnectionId,
        write: Write,
    ) -> Result<(), Rejected<Write>> {
        if let Some(limit) = too_large(&write) {
            return Err(Rejected::TooLarge(write, limit));
        }
        let Some((mut cx, carrier)) = self.open(connection) else {
            return Err(Rejected::NotConnected(write, connection));
        };
        if !cx.admit(write.length) {
            return Err(Rejected::Full(write));
        }
        carrier.post_write(&mut cx, write);
        Ok(())
    }

    /// See [`crate::Fabric::read`].
    pub(crate) fn post_read(
        &mut self,
        connection: ConnectionId,
        read: Read,
    ) -> Result<(), Rejected<Read>> {
        let capacity = read.target.capacity();
        if read.source.length as usize > capacity {
            return Err(Rejected::TooLarge(read, capacity as u64));
        }
        let Some((mut cx, carrier)) = self.open(connection) else {
            return Err(Rejected::NotConnected(read, connection));
        };
        if !cx.admit(0) {
            return Err(Rejected::Full(read));
        }
        let sequence = cx.next_sequence();
        let pending = PendingRead {
            token: read.token,
            length: read.source.length as usize,
            target: read.target,
        };
        cx.session.reads.insert(sequence, pending);
        carrier.post_read(&mut cx, sequence, read.source);
        Ok(())
    }

    /// See [`crate::Fabric::send`].
    pub(crate) fn send(
        &mut self,
        connection: ConnectionId,
        message: Message,
    ) -> Result<(), Rejected<Message>> {
        let bytes = message.body.len();
        if bytes > MAX_MESSAGE_BYTES as usize {
            return Err(Rejected::TooLarge(message, u64::from(MAX_MESSAGE_BYTES)));
        }
        let Some((mut cx, _)) = self.open(connection) else {
            return Err(Rejected::NotConnected(message, connection));
        };
        if !cx.admit(bytes) {
            return Err(Rejected::Full(message));
        }
        let ends = Ends::Message { bytes };
        cx.push(Frame::owned(message.kind, message.id, message.body, ends));
        Ok(())
    }

    /// See [`crate::Fabric::expose`].
    pub(crate) fn expose(
        &mut self,
        connection: ConnectionId,
        exposure: Exposure,
    ) -> Result<RemoteRange, Rejected<Exposure>> {
        let Some((cx, _)) = self.open(connection) else {
            return Err(Rejected::NotConnected(exposure, connection));
        };
        if cx.session.exposures >= cx.shared.bounds.exposures {
            cx.shared.counters.rejected_full += 1;
            return Err(Rejected::Full(exposure));
        }
        cx.session.exposures += 1;
        let key = cx.shared.exposures.new_key();
        let length = exposure.lease().capacity() as u32;
        cx.shared.exposures.insert(key, connection, exposure);
        Ok(RemoteRange {
            key,
            offset: 0,
            length,
        })
    }

    /// Takes an exposure back, from one instant to the next: the table is the only way in.
    pub(crate) fn revoke(&mut self, key: u64) -> Option<Exposure> {
        let (connection, exposure) = self.shared.exposures.remove(key)?;
        if let Some(conn) = self.conns.get_mut(&connection.0) {
            conn.session.exposures -= 1;
        }
        Some(exposure)
    }
}
