//! Writes by reference, one-sided reads.

use super::connection::{Peer, Unacked, Wanted, DIRECTORY, MAX_DESCRIPTORS};
use super::directory::Directory;
use super::setup;
use super::socket::ShmSocket;
use crate::stream::driver::{
    ControlChannel, Datapath, Holder, Transport, TransportDriver, Unexposed,
};
use crate::stream::exposure::ByKey;
use crate::stream::frames::{
    self, AckEntry, Layout, SlabReply, SlabRequest, WriteRef, DONE, MAX_ACKS, REFUSED,
};
use crate::stream::inbound::Shape;
use crate::stream::kinds::{frame_kinds, TransportKind};
use crate::stream::outbound::Frame;
use crate::stream::session::{Context, Phase};
use crate::stream::turns::OverSocket;
use crate::{
    CloseReason, ConnectionId, EndpointId, Event, Exposure, FabricError, FabricKind, Outcome,
    RemoteRange, Revoked, Write,
};
use faro_pool::{Lease, Pool};
use faro_wire::{kind, WireError};
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

    /// Goes on with the reads whose mappings are there now.
    pub(super) fn serve_wanted(&mut self, cx: &mut Context<'_>, peer: &mut Peer) {
        // Each one once: those that still wait go to the back.
        for _ in 0..peer.wanted.len() {
            if let Some(wanted) = peer.wanted.pop_front() {
                self.advance_read(cx, peer, wanted);
            }
        }
    }

    fn advance_read(&mut self, cx: &mut Context<'_>, peer: &mut Peer, wanted: Wanted) {
        let Some(read) = cx.session.reads.get_mut(&wanted.sequence) else {
            return;
        };
        let target = &mut read.target.bytes_mut()[..read.length];
        match attempt(self.endpoint, peer, wanted, target) {
            Attempt::Ended(outcome) => {
                let Some(read) = cx.session.reads.remove(&wanted.sequence) else {
                    return;
                };
                if outcome == Outcome::Done {
                    cx.shared.work += read.length;
                    cx.shared.counters.bytes_in += read.length as u64;
                }
                cx.read_ended(read, outcome);
            }
            Attempt::Needs(slab) => {
                peer.wanted.push_back(wanted);
                self.request(cx, peer, slab);
            }
        }
    }
}

fn on_write_ref(
    cx: &mut Context<'_>,
    peer: &Peer,
    sequence: u64,
    body: &[u8],
) -> Result<(), CloseReason> {
    let write = WriteRef::decode(body)?;
    let immediate = frames::immediate(write.immediate, write.has_immediate)?;
    let (key, length) = (write.key.get(), write.length.get() as usize);
    let Some(slab) = peer.slabs.get(&write.source_slab.get()) else {
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

fn on_ack(cx: &mut Context<'_>, peer: &mut Peer, ack: &AckEntry) -> Result<(), CloseReason> {
    let wrong = |what, got| Err(WireError::BadValue { what, got }.into());
    // Writes are taken, and so acknowledged, in their order.
    let sequence = ack.sequence.get();
    let first = peer.unacked.front().map(|write| write.sequence);
    if first != Some(sequence) {
        return wrong("WRITE_ACK's write", sequence);
    }
    let outcome = match ack.verdict.get() {
        DONE => Outcome::Done,
        REFUSED => Outcome::Refused,
        got => return wrong("WRITE_ACK's verdict", u64::from(got)),
    };
    let Some(write) = peer.unacked.pop_front() else {
        return wrong("WRITE_ACK's write", sequence);
    };
    if outcome == Outcome::Done {
        cx.shared.counters.bytes_out += write.bytes as u64;
    } else {
        cx.shared.counters.writes_refused_by_peer += 1;
    }
    cx.retire(write.bytes);
    let connection = cx.connection;
    cx.event(Event::WriteEnded {
        connection,
        token: write.token,
        outcome,
    });
    Ok(())
}

/// Copies what the peer's directory says that we may read, if it still says so afterwards.
fn attempt(reader: EndpointId, peer: &Peer, wanted: Wanted, target: &mut [u8]) -> Attempt {
    let refused = Attempt::Ended(Outcome::Refused);
    let needs = |slab| match peer.missing.contains(&slab) {
        true => Attempt::Ended(Outcome::Refused),
        false => Attempt::Needs(slab),
    };
    let Some(directory) = &peer.directory else {
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
    let Some(slab) = peer.slabs.get(&place.slab) else {
        return needs(place.slab);
    };
    let copied = slab.copy_to(place.offset as usize + inside as usize, target);
    if copied && directory.still(slot, wanted.key) {
        return Attempt::Ended(Outcome::Done);
    }
    refused
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

    fn phase(self) -> Phase {
        Phase::Open
    }

    fn shape(self) -> (Shape, u32) {
        let bytes = match self {
            Self::WriteRef => size_of::<WriteRef>(),
            Self::WriteAck => MAX_ACKS * size_of::<AckEntry>(),
            Self::SlabRequest => size_of::<SlabRequest>(),
            Self::SlabReply => size_of::<SlabReply>(),
        };
        (Shape::Whole, bytes as u32)
    }
}

impl Transport for Shm {
    const KIND: FabricKind = FabricKind::Shm;
    type Connection = Peer;
}

impl ControlChannel for Shm {
    type Socket = ShmSocket;
    type Listener = UnixListener;

    fn start(&mut self, location: &str) -> Result<io::Result<ShmSocket>, FabricError> {
        setup::connect(&self.host, location)
    }

    fn collect(socket: &mut ShmSocket, peer: &mut Peer) -> Result<(), CloseReason> {
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

impl TransportDriver for Shm {
    type Path = OverSocket;
}

impl Datapath for Shm {
    type Kind = ShmKind;
    type Remains = Vec<Arc<Lease>>;
    /// About 56 references, each to up to 256 KiB that we have to copy: a peer's turn.
    const STAGING_BYTES: usize = 4 << 10;

    fn on_frame(
        &mut self,
        cx: &mut Context<'_>,
        peer: &mut Peer,
        kind: ShmKind,
        id: u64,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        match kind {
            ShmKind::WriteRef => on_write_ref(cx, peer, id, body),
            ShmKind::SlabRequest => self.on_slab_request(cx, peer, body),
            ShmKind::SlabReply => self.on_slab_reply(cx, peer, body),
            ShmKind::WriteAck => frames::acks(body)?
                .iter()
                .try_for_each(|ack| on_ack(cx, peer, ack)),
        }
    }

    fn on_closed(
        &mut self,
        cx: &mut Context<'_>,
        peer: Peer,
        _told: bool,
    ) -> Option<Vec<Arc<Lease>>> {
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

    fn post_write(&mut self, cx: &mut Context<'_>, peer: &mut Peer, write: Write) {
        debug_assert!(self.is_ours(&write.source), "a lease of another pool");
        // Before the reference, so that the target never has to ask and wait.
        self.announce(cx, peer, write.source.slab());
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
        peer.unacked.push_back(Unacked {
            sequence,
            token: write.token,
            bytes: write.length,
            source: write.source,
        });
    }

    fn post_read(
        &mut self,
        cx: &mut Context<'_>,
        peer: &mut Peer,
        sequence: u64,
        source: RemoteRange,
    ) {
        let wanted = Wanted {
            sequence,
            key: source.key,
            offset: source.offset,
        };
        self.advance_read(cx, peer, wanted);
    }

    fn expose(
        &mut self,
        cx: &mut Context<'_>,
        _peer: &mut Peer,
        key: u64,
        exposure: &Exposure,
    ) -> Result<u64, Unexposed> {
        let lease = match exposure {
            Exposure::Writable(_) => return Ok(0),
            Exposure::Readable(lease) => lease,
        };
        debug_assert!(self.is_ours(lease), "a lease of another pool");
        let slot = self
            .directory
            .publish(key, cx.session.remote, lease)
            .ok_or(Unexposed::Full)?;
        self.slots.insert(key, slot);
        Ok(u64::from(slot) << SLOT_SHIFT)
    }

    fn revoke(
        &mut self,
        _holder: Holder<'_, Peer>,
        _connection: ConnectionId,
        key: u64,
        exposure: Exposure,
    ) -> Revoked {
        if let Some(slot) = self.slots.remove(&key) {
            self.directory.withdraw(slot);
        }
        Revoked::Now(exposure)
    }
}
