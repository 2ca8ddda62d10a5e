//! The shared-memory driver.

use super::connection::{ShmPeer, UnackedWrite, UnmappedRead, MAX_DESCRIPTORS};
use super::directory::SLOT_SHIFT;
use super::exported::ExportedFiles;
use super::location;
use super::operations::{advance_read, on_ack, on_write_ref, serve_wanted};
use super::socket::ShmSocket;
use crate::frame::bodies::{self, AckEntry, SlabReply, SlabRequest, WriteRef, MAX_ACKS};
use crate::frame::inbound::BodyShape;
use crate::frame::kinds::{frame_kinds, TransportKind};
use crate::frame::outgoing::Frame;
use crate::reactor::driver::Driver;
use crate::session::carrier::Carrier;
use crate::session::context::Context;
use crate::session::exposure::ByKey;
use crate::session::transport::{Datapath, ExposeError, Holder, Transport};
use crate::{
    CloseReason, ConnectionId, EndpointId, Event, Exposure, FabricError, FabricKind, Outcome,
    RemoteRange, RevokeStatus, Write, WriteSource, WriteSources,
};
use faro_pool::Pool;
use faro_wire::kind;
use mio::net::UnixListener;
use std::io;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// The driver of the same-host fabric.
pub struct Shm {
    endpoint: EndpointId,
    /// Identity of this host.
    host: String,
    files: ExportedFiles,
    /// Slot of each readable exposure.
    slots: ByKey<u32>,
}

impl Shm {
    pub(super) fn new(
        endpoint: EndpointId,
        host: String,
        pool: Arc<Pool>,
    ) -> Result<Self, FabricError> {
        Ok(Self {
            endpoint,
            host,
            files: ExportedFiles::new(pool)?,
            slots: ByKey::default(),
        })
    }
}

frame_kinds! {
    /// The frames that only shared memory has.
    ShmKind {
        WriteRef = WRITE_REF,
        WriteAck = WRITE_ACK,
        SlabRequest = SLAB_REQUEST,
        SlabReply = SLAB_REPLY,
    }
}

impl TransportKind for ShmKind {
    fn decode(byte: u8) -> Option<Self> {
        Self::from_byte(byte)
    }

    fn byte(self) -> u8 {
        self.to_byte()
    }

    fn shape(self) -> (BodyShape, u32) {
        let bytes = match self {
            Self::WriteRef => size_of::<WriteRef>(),
            Self::WriteAck => MAX_ACKS * size_of::<AckEntry>(),
            Self::SlabRequest => size_of::<SlabRequest>(),
            Self::SlabReply => size_of::<SlabReply>(),
        };
        (BodyShape::Whole, bytes as u32)
    }
}

impl Transport for Shm {
    const KIND: FabricKind = FabricKind::Shm;
    type Socket = ShmSocket;
    type State = ShmPeer;

    fn collect(socket: &mut ShmSocket, peer: &mut ShmPeer) -> Result<(), CloseReason> {
        peer.descriptors.extend(socket.received.drain(..));
        if peer.descriptors.len() > MAX_DESCRIPTORS {
            return Err(CloseReason::Bound {
                what: "descriptors without a frame",
                limit: MAX_DESCRIPTORS as u64,
            });
        }
        Ok(())
    }
}

impl Carrier for Shm {}

impl Driver for Shm {
    type Listener = UnixListener;
    type Completion = ();

    fn start(&mut self, location: &str) -> Result<io::Result<ShmSocket>, FabricError> {
        location::connect(&self.host, location)
    }
}

impl Datapath for Shm {
    type Kind = ShmKind;
    type CloseState = Vec<WriteSource>;
    /// Room for about 56 references, each to up to 256 KiB that are copied in one turn.
    const STAGING_BYTES: usize = 4 << 10;

    fn on_frame(
        &mut self,
        cx: &mut Context<'_>,
        peer: &mut ShmPeer,
        kind: ShmKind,
        id: u64,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        match kind {
            ShmKind::WriteRef => on_write_ref(cx, peer, id, body),
            ShmKind::SlabRequest => peer.on_slab_request(cx, &self.files, body),
            ShmKind::SlabReply => {
                peer.on_slab_reply(cx, body)?;
                serve_wanted(self.endpoint, cx, peer);
                Ok(())
            }
            ShmKind::WriteAck => bodies::acks(body)?
                .iter()
                .try_for_each(|ack| on_ack(cx, peer, ack)),
        }
    }

    fn on_closed(
        &mut self,
        cx: &mut Context<'_>,
        peer: ShmPeer,
        _told: bool,
    ) -> Option<Vec<WriteSource>> {
        let connection = cx.connection;
        let sources: Vec<_> = peer
            .unacked
            .into_iter()
            .map(|write| {
                cx.retire(write.bytes);
                cx.event(Event::WriteEnded {
                    connection,
                    token: write.token,
                    outcome: Outcome::Flushed,
                });
                write.source
            })
            .collect();
        (!sources.is_empty()).then_some(sources)
    }

    /// A reference names one place.
    fn write_sources(&self, _peer: &ShmPeer) -> WriteSources {
        WriteSources {
            parts: 1,
            ..WriteSources::FRAMES
        }
    }

    fn post_write(&mut self, cx: &mut Context<'_>, peer: &mut ShmPeer, write: Write) {
        let Some(part) = write.source.parts().first() else {
            return debug_assert!(false, "`write_sources` does not allow it");
        };
        let source = part.memory.lease();
        debug_assert!(self.files.has(source), "a lease of another pool");
        // Before the reference, so that the target has the slab when the reference comes.
        peer.announce(cx, &self.files, source.slab());
        let sequence = cx.next_sequence();
        let reference = WriteRef {
            key: write.target.key.into(),
            offset: write.target.offset.into(),
            immediate: u32::from(write.immediate.unwrap_or(0)).into(),
            has_immediate: u32::from(write.immediate.is_some()).into(),
            source_slab: source.slab().into(),
            source_offset: (source.offset() + part.offset as u32).into(),
            length: (part.length as u32).into(),
            reserved: 0.into(),
        };
        cx.push(Frame::small(
            kind::WRITE_REF,
            sequence,
            reference.as_bytes(),
        ));
        peer.unacked.push_back(UnackedWrite {
            sequence,
            token: write.token,
            bytes: part.length,
            source: write.source,
        });
    }

    fn post_read(
        &mut self,
        cx: &mut Context<'_>,
        peer: &mut ShmPeer,
        sequence: u64,
        source: RemoteRange,
    ) {
        let wanted = UnmappedRead {
            sequence,
            key: source.key,
            offset: source.offset,
        };
        advance_read(self.endpoint, cx, peer, wanted);
    }

    fn expose(
        &mut self,
        cx: &mut Context<'_>,
        _peer: &mut ShmPeer,
        key: u64,
        exposure: &Exposure,
    ) -> Result<u64, ExposeError> {
        let lease = match exposure {
            Exposure::Writable(_) => return Ok(0),
            Exposure::Readable(lease) => lease,
        };
        debug_assert!(self.files.has(lease), "a lease of another pool");
        let slot = self
            .files
            .directory
            .publish(key, cx.session.remote, lease)
            .ok_or(ExposeError::Full)?;
        self.slots.insert(key, slot);
        Ok(u64::from(slot) << SLOT_SHIFT)
    }

    fn revoke(
        &mut self,
        _holder: Holder<'_, ShmPeer>,
        _connection: ConnectionId,
        key: u64,
        exposure: Exposure,
    ) -> RevokeStatus {
        if let Some(slot) = self.slots.remove(&key) {
            self.files.directory.withdraw(slot);
        }
        RevokeStatus::Now(exposure)
    }
}
