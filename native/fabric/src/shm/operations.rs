//! Writes by reference, and one-sided reads.

use super::connection::{ShmPeer, UnmappedRead};
use super::directory::SLOT_SHIFT;
use super::exported::DIRECTORY;
use crate::frame::bodies::{self, AckEntry, Layout, WriteRef, DONE, REFUSED};
use crate::session::context::Context;
use crate::{CloseReason, EndpointId, Event, Outcome};
use faro_wire::WireError;

/// Result of one try at a read.
enum ReadAttempt {
    Ended(Outcome),
    /// This file of the peer is not mapped yet.
    Needs(u32),
}

/// Goes on with the reads whose mappings are there now.
pub(super) fn serve_wanted(reader: EndpointId, cx: &mut Context<'_>, peer: &mut ShmPeer) {
    // Each one once: those that still wait go to the back.
    for _ in 0..peer.wanted.len() {
        if let Some(wanted) = peer.wanted.pop_front() {
            advance_read(reader, cx, peer, wanted);
        }
    }
}

/// Copies the bytes of a read, or asks the peer for the file that is missing for it.
pub(super) fn advance_read(
    reader: EndpointId,
    cx: &mut Context<'_>,
    peer: &mut ShmPeer,
    wanted: UnmappedRead,
) {
    let Some(read) = cx.session.reads.get_mut(&wanted.sequence) else {
        return;
    };
    let target = &mut read.target.bytes_mut()[..read.length];
    match attempt(reader, peer, wanted, target) {
        ReadAttempt::Ended(outcome) => {
            let Some(read) = cx.session.reads.remove(&wanted.sequence) else {
                return;
            };
            if outcome == Outcome::Done {
                cx.shared.work += read.length;
                cx.shared.counters.bytes_in += read.length as u64;
            }
            cx.read_ended(read, outcome);
        }
        ReadAttempt::Needs(slab) => {
            peer.wanted.push_back(wanted);
            peer.request(cx, slab);
        }
    }
}

/// Copies the bytes of a peer's write by reference, if the target is exposed to the peer.
pub(super) fn on_write_ref(
    cx: &mut Context<'_>,
    peer: &ShmPeer,
    sequence: u64,
    body: &[u8],
) -> Result<(), CloseReason> {
    let write = WriteRef::decode(body)?;
    let immediate = bodies::immediate(write.immediate, write.has_immediate)?;
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

/// Handles the result of a write that this side posted.
pub(super) fn on_ack(
    cx: &mut Context<'_>,
    peer: &mut ShmPeer,
    ack: &AckEntry,
) -> Result<(), CloseReason> {
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

/// Copies what the peer's directory lets this side read; `Done` if it still does afterwards.
fn attempt(
    reader: EndpointId,
    peer: &ShmPeer,
    wanted: UnmappedRead,
    target: &mut [u8],
) -> ReadAttempt {
    let refused = ReadAttempt::Ended(Outcome::Refused);
    let needs = |slab| match peer.missing.contains(&slab) {
        true => ReadAttempt::Ended(Outcome::Refused),
        false => ReadAttempt::Needs(slab),
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
        return ReadAttempt::Ended(Outcome::Done);
    }
    refused
}
