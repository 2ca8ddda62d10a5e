//! The caller's side that all stream fabrics share: messages and exposures.

use super::driver::{Holder, TransportDriver, Unexposed};
use super::outbound::{Ends, Frame};
use super::reactor::{Open, Reactor};
use super::session::{Context, PendingRead, Phase};
use crate::{ConnectionId, Exposure, Message, Read, Rejected, RemoteRange, Revoked, Write};
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

impl<D: TransportDriver> Reactor<D> {
    /// See [`crate::Fabric::write`].
    pub(crate) fn post_write(
        &mut self,
        connection: ConnectionId,
        write: Write,
    ) -> Result<(), Rejected<Write>> {
        if let Some(limit) = too_large(&write) {
            return Err(Rejected::TooLarge(write, limit));
        }
        let Some(Open {
            mut cx,
            driver,
            state,
        }) = self.open(connection)
        else {
            return Err(Rejected::NotConnected(write, connection));
        };
        if !cx.admit(write.length) {
            return Err(Rejected::Full(write));
        }
        driver.post_write(&mut cx, state, write);
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
        let Some(Open {
            mut cx,
            driver,
            state,
        }) = self.open(connection)
        else {
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
        driver.post_read(&mut cx, state, sequence, read.source);
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
        let Some(Open { mut cx, .. }) = self.open(connection) else {
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
        let Some(Open {
            mut cx,
            driver,
            state,
        }) = self.open(connection)
        else {
            return Err(Rejected::NotConnected(exposure, connection));
        };
        if cx.session.exposures >= cx.shared.bounds.exposures {
            cx.shared.counters.rejected_full += 1;
            return Err(Rejected::Full(exposure));
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
            Err(Unexposed::Full) => Err(Rejected::Full(exposure)),
            Err(Unexposed::Broken(reason)) => {
                self.close(connection, reason);
                Err(Rejected::NotConnected(exposure, connection))
            }
        }
    }

    /// See [`crate::Fabric::revoke`]. Without the table's entry no frame leads to the memory.
    pub(crate) fn revoke(&mut self, key: u64) -> Revoked {
        let Some((connection, exposure)) = self.shared.exposures.remove(key) else {
            return Revoked::Unknown;
        };
        let holder = match self.conns.get_mut(&connection.0) {
            Some(conn) => {
                conn.session.exposures -= 1;
                debug_assert_eq!(
                    conn.session.phase,
                    Phase::Open,
                    "only then it has exposures"
                );
                let cx = Context {
                    connection,
                    session: &mut conn.session,
                    shared: &mut self.shared,
                };
                Holder::Open(cx, &mut conn.state)
            }
            None if self.lingering.contains_key(&connection.0) => Holder::Lingering,
            None => Holder::Gone,
        };
        self.driver.revoke(holder, connection, key, exposure)
    }
}
