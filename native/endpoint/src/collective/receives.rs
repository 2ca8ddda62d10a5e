//! Memory that partners of members here may write, until their DATA_READY says that it is full.

use super::pending::ReceiveBuffer;
use crate::net::Net;
use faro_fabric::{ConnectionId, Exposure, RevokeStatus};
use faro_pool::Lease;
use faro_sync::HashMap;
use faro_wire::message::{ClearToSendHead, DataReady, RemoteBuffer, WrittenBuffer};
use faro_wire::WireError;

/// One chunk's memory.
struct PostedReceive {
    connection: ConnectionId,
    key: u64,
    bytes: u32,
    round: u64,
    step: u32,
}

/// The chunks that are expected, by member, rank of the writer and chunk.
#[derive(Default)]
pub(super) struct PostedReceives(HashMap<(u64, u32, u32), PostedReceive>);

impl PostedReceives {
    /// Exposes memory for the chunks of a partner, from the first one of `head` on. Returns the
    /// buffers of its CLEAR_TO_SEND; `None`: no more can be exposed to that peer.
    pub(super) fn post(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        (member, rank): (u64, u32),
        head: &ClearToSendHead,
        leases: Vec<ReceiveBuffer>,
    ) -> Option<Vec<RemoteBuffer>> {
        let mut buffers = Vec::with_capacity(leases.len());
        for ((lease, bytes), chunk) in leases.into_iter().zip(head.first_chunk.get()..) {
            let range = net.expose(connection, Exposure::Writable(lease))?;
            let receive = PostedReceive {
                connection,
                key: range.key,
                bytes,
                round: head.round.get(),
                step: head.step.get(),
            };
            self.0.insert((member, rank, chunk), receive);
            buffers.push(RemoteBuffer {
                key: range.key.into(),
                offset: range.offset.into(),
                length: bytes.into(),
                reserved: 0.into(),
            });
        }
        Some(buffers)
    }

    /// Takes the memory of one chunk of `ready`, which is full.
    ///
    /// # Errors
    /// Nothing of that kind is expected of the connection.
    pub(super) fn take(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        member: u64,
        ready: &DataReady,
        buffer: &WrittenBuffer,
    ) -> Result<Lease, WireError> {
        let chunk = buffer.buffer.get();
        let bad = |what, got| WireError::BadValue { what, got };
        let place = (member, ready.from_rank, chunk);
        let receive = self
            .0
            .get(&place)
            .ok_or(bad("chunk of DATA_READY", u64::from(chunk)))?;
        // Checked before the receive is touched: it may be another member's.
        let step = (ready.round, ready.step);
        if receive.connection != connection || (receive.round, receive.step) != step {
            return Err(bad("round of DATA_READY", ready.round));
        }
        if receive.bytes != buffer.length.get() {
            let length = u64::from(buffer.length.get());
            return Err(bad("length of a chunk", length));
        }
        let key = receive.key;
        self.0.remove(&place);
        match net.revoke(key) {
            RevokeStatus::Now(Exposure::Writable(lease)) => Ok(lease),
            _ => Err(bad("key of a posted receive", key)),
        }
    }

    /// Ends what a member expects.
    pub(super) fn leave(&mut self, net: &mut Net, member: u64) {
        self.0.retain(|(own, _, _), receive| {
            if *own == member {
                // If the result is `RevokeStatus::Later`, the fabric keeps the lease until no write can
                // reach it.
                drop(net.revoke(receive.key));
            }
            *own != member
        });
    }

    /// Ends what is expected of a connection. Calls `lost` for each chunk with its member and the
    /// rank of the writer.
    pub(super) fn lose(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        mut lost: impl FnMut(u64, u32),
    ) {
        self.0.retain(|(member, rank, _), receive| {
            if receive.connection == connection {
                drop(net.revoke(receive.key));
                lost(*member, *rank);
            }
            receive.connection != connection
        });
    }

    /// Returns whether something is expected of the connection.
    pub(super) fn use_connection(&self, connection: ConnectionId) -> bool {
        let mut receives = self.0.values();
        receives.any(|receive| receive.connection == connection)
    }
}
