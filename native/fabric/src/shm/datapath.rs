//! Writes by reference, one-sided reads.

use super::connection::{Peer, Unacked, Wanted, DIRECTORY, MAX_DESCRIPTORS};
use super::directory::Directory;
use super::setup;
use super::socket::ShmSocket;
use crate::stream::exposure::ByKey;
use crate::stream::frames::{
    self, AckEntry, Layout, SlabReply, SlabRequest, WriteRef, DONE, MAX_ACKS, REFUSED,
};
use crate::stream::hub::Hub;
use crate::stream::inbound::Shape;
use crate::stream::outbound::Frame;
use crate::stream::session::{Carrier, Context};
use crate::{
    CloseReason, ConnectionId, EndpointId, Event, Exposure, FabricError, FabricKind, Outcome,
    Rejected, RemoteRange, Revoked, Write,
};
use faro_pool::{Lease, Pool};
use faro_wire::{kind, FrameHeader, WireError};
use mio::net::UnixListener;
use std::io;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// Where an exposure's slot stands in its offset.
const SLOT_SHIFT: u32 = 32;

/// What the same-host fabric adds to the stream.
pub(crate) struct Shm {
    endpoint: EndpointId,
    /// This host; peers on another have another.
    host: String,
    /// Whose slabs peers may map.
    pub(super) pool: Arc<Pool>,
    pub(super) directory: Directory,
    /// Slot of each readable exposure.
    slots: ByKey<u32>,
}

/// How a read goes on.
enum Attempt {
    Ended(Outcome),
    /// This file of the peer is not mapped yet.
    Needs(u32),
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
            pool,
            directory: Directory::new()?,
            slots: ByKey::default(),
        })
    }

    /// Whether a lease is of the pool whose slabs peers map; the caller's duty.
    fn is_ours(&self, lease: &Lease) -> bool {
        self.pool.slab(lease.slab()).is_some_and(|slab| {
            let start = slab.base().as_ptr() as usize + lease.offset() as usize;
            start == lease.bytes().as_ptr() as usize
        })
    }

    fn on_write_ref(
        &mut self,
        cx: &mut Context<'_, Self>,
        sequence: u64,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let write = WriteRef::decode(body)?;
        let immediate = frames::immediate(write.immediate, write.has_immediate)?;
        let (key, length) = (write.key.get(), write.length.get() as usize);
        let Some(slab) = cx.session.carrier.slabs.get(&write.source_slab.get()) else {
            return Err(WireError::BadValue {
                what: "WRITE_REF's slab",
                got: u64::from(write.source_slab.get()),
            }
            .into());
        };
        let connection = cx.connection;
        let slot = cx
            .shared
            .exposures
            .writable(connection, key, write.offset.get(), length);
        let mut taken = None;
        if let Some(slot) = slot {
            if !slab.copy_to(write.source_offset.get() as usize, slot) {
                return Err(WireError::BadValue {
                    what: "end of WRITE_REF's source in its slab",
                    got: u64::from(write.source_offset.get()) + length as u64,
                }
                .into());
            }
            taken = Some(length);
        }
        cx.shared.work += length;
        cx.shared.counters.bytes_in += taken.unwrap_or(0) as u64;
        cx.write_came(key, immediate, taken);
        cx.verdict(sequence, if taken.is_some() { DONE } else { REFUSED });
        Ok(())
    }

    fn on_ack(&mut self, cx: &mut Context<'_, Self>, ack: &AckEntry) -> Result<(), CloseReason> {
        let wrong = |what, got| Err(WireError::BadValue { what, got }.into());
        // Writes are taken, and so acknowledged, in their order.
        let sequence = ack.sequence.get();
        let write = match cx.session.carrier.unacked.pop_front() {
            Some(write) if write.sequence == sequence => write,
            other => {
                // Back to the others, whose end the close reports.
                if let Some(write) = other {
                    cx.session.carrier.unacked.push_front(write);
                }
                return wrong("WRITE_ACK's write", sequence);
            }
        };
        let outcome = match ack.verdict.get() {
            DONE => {
                cx.shared.counters.bytes_out += write.bytes as u64;
                Outcome::Done
            }
            REFUSED => {
                cx.shared.counters.writes_refused_by_peer += 1;
                Outcome::Refused
            }
            got => {
                cx.session.carrier.unacked.push_front(write);
                return wrong("WRITE_ACK's verdict", u64::from(got));
            }
        };
        cx.retire(write.bytes);
        let connection = cx.connection;
        cx.event(Event::WriteEnded {
            connection,
            token: write.token,
            outcome,
        });
        Ok(())
    }

    /// Goes on with the reads whose mappings are there now.
    pub(super) fn serve_wanted(&mut self, cx: &mut Context<'_, Self>) {
        for wanted in std::mem::take(&mut cx.session.carrier.wanted) {
            self.advance_read(cx, wanted);
        }
    }

    fn advance_read(&mut self, cx: &mut Context<'_, Self>, wanted: Wanted) {
        let Some(mut read) = cx.session.reads.remove(&wanted.sequence) else {
            return;
        };
        let target = &mut read.target.bytes_mut()[..read.length];
        match attempt(self.endpoint, &cx.session.carrier, wanted, target) {
            Attempt::Ended(outcome) => {
                if outcome == Outcome::Done {
                    cx.shared.work += read.length;
                    cx.shared.counters.bytes_in += read.length as u64;
                }
                cx.read_ended(read, outcome);
            }
            Attempt::Needs(slab) => {
                cx.session.reads.insert(wanted.sequence, read);
                cx.session.carrier.wanted.push_back(wanted);
                self.request(cx, slab);
            }
        }
    }
}

/// Copies what the peer's directory says that we may read, if it still says so afterwards.
fn attempt(reader: EndpointId, connection: &Peer, wanted: Wanted, target: &mut [u8]) -> Attempt {
    let refused = Attempt::Ended(Outcome::Refused);
    let needs = |slab| match connection.missing.contains(&slab) {
        true => Attempt::Ended(Outcome::Refused),
        false => Attempt::Needs(slab),
    };
    let Some(directory) = &connection.directory else {
        return needs(DIRECTORY);
    };
    let slot = (wanted.offset >> SLOT_SHIFT) as u32;
    let Some(place) = directory.find(slot, wanted.key, reader) else {
        return refused;
    };
    let inside = wanted.offset & ((1 << SLOT_SHIFT) - 1);
    if inside + target.len() as u64 > u64::from(place.length) {
        return refused;
    }
    let Some(slab) = connection.slabs.get(&place.slab) else {
        return needs(place.slab);
    };
    let copied = slab.copy_to(place.offset as usize + inside as usize, target);
    if copied && directory.still(slot, wanted.key) {
        return Attempt::Ended(Outcome::Done);
    }
    refused
}

impl Carrier for Shm {
    const KIND: FabricKind = FabricKind::Shm;
    type Socket = ShmSocket;
    type Listener = UnixListener;
    type Peer = Peer;
    type Remains = Vec<Arc<Lease>>;
    /// About 56 references, each to up to 256 KiB that we have to copy: a peer's turn.
    const STAGING: usize = 4 << 10;
    const SHORT_MEANS_DRAINED: bool = false;

    fn shape(kind: u8) -> Option<(Shape, u32)> {
        let bytes = match kind {
            kind::WRITE_REF => size_of::<WriteRef>(),
            kind::WRITE_ACK => MAX_ACKS * size_of::<AckEntry>(),
            kind::SLAB_REQUEST => size_of::<SlabRequest>(),
            kind::SLAB_REPLY => size_of::<SlabReply>(),
            _ => return None,
        };
        Some((Shape::Whole, bytes as u32))
    }

    fn collect(socket: &mut ShmSocket, connection: &mut Peer) -> Result<(), CloseReason> {
        connection.descriptors.extend(socket.received.drain(..));
        if connection.descriptors.len() > MAX_DESCRIPTORS {
            return Err(CloseReason::Bound {
                what: "descriptors without a frame",
                limit: MAX_DESCRIPTORS as u64,
            });
        }
        Ok(())
    }

    fn on_frame(
        &mut self,
        cx: &mut Context<'_, Self>,
        header: &FrameHeader,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        match header.kind {
            kind::WRITE_REF => self.on_write_ref(cx, header.id.get(), body),
            kind::SLAB_REQUEST => self.on_slab_request(cx, body),
            kind::SLAB_REPLY => self.on_slab_reply(cx, body),
            _ => frames::acks(body)?
                .iter()
                .try_for_each(|ack| self.on_ack(cx, ack)),
        }
    }

    fn on_closed(&mut self, cx: &mut Context<'_, Self>, _told: bool) -> Option<Vec<Arc<Lease>>> {
        let unacked = std::mem::take(&mut cx.session.carrier.unacked);
        let connection = cx.connection;
        let sources: Vec<_> = unacked
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

    fn start(&mut self, location: &str) -> Result<io::Result<ShmSocket>, FabricError> {
        setup::connect(&self.host, location)
    }

    fn post_write(&mut self, cx: &mut Context<'_, Self>, write: Write) {
        debug_assert!(self.is_ours(&write.source), "a lease of another pool");
        // Before the reference, so that the target never has to ask and wait.
        self.announce(cx, write.source.slab());
        let sequence = cx.next_sequence();
        let reference = WriteRef {
            key: write.target.key.into(),
            offset: write.target.offset.into(),
            immediate: u32::from(write.immediate.unwrap_or(0)).into(),
            has_immediate: u32::from(write.immediate.is_some()).into(),
            source_slab: write.source.slab().into(),
            source_offset: (write.source.offset() + write.offset as u32).into(),
            length: (write.length as u32).into(),
            reserved: 0.into(),
        };
        cx.push(Frame::small(
            kind::WRITE_REF,
            sequence,
            reference.as_bytes(),
        ));
        cx.session.carrier.unacked.push_back(Unacked {
            sequence,
            token: write.token,
            bytes: write.length,
            source: write.source,
        });
    }

    fn post_read(&mut self, cx: &mut Context<'_, Self>, sequence: u64, source: RemoteRange) {
        let wanted = Wanted {
            sequence,
            key: source.key,
            offset: source.offset,
        };
        self.advance_read(cx, wanted);
    }

    fn expose(
        hub: &mut Hub<Self>,
        connection: ConnectionId,
        exposure: Exposure,
    ) -> Result<RemoteRange, Rejected<Exposure>> {
        let lease = match &exposure {
            Exposure::Writable(_) => return hub.expose(connection, exposure),
            Exposure::Readable(lease) => lease.clone(),
        };
        let grantee = match hub.open(connection) {
            None => return Err(Rejected::NotConnected(exposure, connection)),
            Some((_, shm)) if !shm.directory.has_room() => return Err(Rejected::Full(exposure)),
            Some((cx, _)) => cx.session.remote,
        };
        let mut range = hub.expose(connection, exposure)?;
        let shm = &mut hub.carrier;
        debug_assert!(shm.is_ours(&lease), "a lease of another pool");
        if let Some(slot) = shm.directory.publish(range.key, grantee, &lease) {
            shm.slots.insert(range.key, slot);
            range.offset = u64::from(slot) << SLOT_SHIFT;
        }
        Ok(range)
    }

    fn revoke(hub: &mut Hub<Self>, key: u64) -> Revoked {
        if let Some(slot) = hub.carrier.slots.remove(&key) {
            hub.carrier.directory.withdraw(slot);
        }
        match hub.revoke(key) {
            Some(exposure) => Revoked::Now(exposure),
            None => Revoked::Unknown,
        }
    }
}
