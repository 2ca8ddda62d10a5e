//! Tests the ends of connections.

use crate::{assert_filled, Bench, Rig};
use faro_fabric::{
    CloseReason, ConnectionId, Event, Message, Outcome, Read, RejectedPost, Write, WriteSource,
};
use faro_pool::PAGE_BYTES;
use std::collections::BTreeMap;
use std::sync::Arc;

const WRITES: u64 = 40;
const READS: u64 = 5;

/// Posts writes and reads that cannot all be over at once.
fn post(rig: &mut Rig, link: super::ConnectedPair) -> Arc<faro_pool::Lease> {
    let range = rig.writable(link.to, PAGE_BYTES, 0);
    let readable = rig.readable(link.to, PAGE_BYTES, 0);
    let source = Arc::new(rig.lease(link.from.0, PAGE_BYTES, 1));
    for token in 0..WRITES {
        let write = Write {
            token,
            source: WriteSource::part(source.clone(), 0, PAGE_BYTES),
            target: range,
            immediate: Some(token as u16),
            last: false,
        };
        rig.write(link.from, write);
    }
    for token in WRITES..WRITES + READS {
        let read = Read {
            token,
            source: readable,
            target: rig.lease(link.from.0, PAGE_BYTES, 0),
        };
        rig.fabric(link.from.0)
            .read(link.from.1, read)
            .map_err(drop)
            .expect("there is room");
    }
    rig.say(link.from, 1, b"the last word");
    source
}

/// Checks that every operation ended once, and that `Closed` was the last event.
fn all_ended(
    rig: &mut Rig,
    station: usize,
    connection: ConnectionId,
) -> (BTreeMap<u64, Outcome>, CloseReason) {
    rig.drive_until("Closed", |rig| {
        rig.pending(station)
            .iter()
            .any(|event| matches!(event, Event::Closed { connection: got, .. } if *got == connection))
            .then_some(())
    });
    let mut outcomes = BTreeMap::new();
    let mut closed = None;
    for event in rig.events(station) {
        assert!(closed.is_none(), "an event after Closed");
        match event {
            Event::WriteEnded { token, outcome, .. } | Event::ReadEnded { token, outcome, .. } => {
                assert!(outcomes.insert(token, outcome).is_none(), "ended twice");
            }
            Event::Closed { reason, .. } => closed = Some(reason),
            _ => {}
        }
    }
    assert_eq!(outcomes.len() as u64, WRITES + READS, "each ended");
    (outcomes, closed.expect("waited for above"))
}

/// An operation that is pending at a disconnect ends as `Flushed` (or was done before).
pub fn disconnect_flushes_and_closes_last(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    rig.sleep(1, true);
    let source = post(&mut rig, link);
    rig.fabric(0).disconnect(link.from.1, CloseReason::Local);
    let (outcomes, reason) = all_ended(&mut rig, 0, link.from.1);
    assert_eq!(reason, CloseReason::Local);
    assert!(outcomes
        .values()
        .all(|outcome| *outcome != Outcome::Refused));
    let message = Message {
        kind: 0x20,
        id: 1,
        body: Vec::new(),
    };
    assert!(matches!(
        rig.fabric(0).send(link.from.1, message),
        Err(RejectedPost::NotConnected(..))
    ));
    rig.fabric(0).disconnect(link.from.1, CloseReason::Local);
    rig.sleep(1, false);
    all_closed(&mut rig, 1, link.to.1);
    rig.drive_until("the source to be free", |_| {
        (Arc::strong_count(&source) == 1).then_some(())
    });
    assert!(rig.events(0).is_empty(), "closing twice says nothing new");
}

fn all_closed(rig: &mut Rig, station: usize, connection: ConnectionId) -> CloseReason {
    rig.wait(station, "Closed", |event| match event {
        Event::Closed {
            connection: got,
            reason,
        } if *got == connection => Some(reason.clone()),
        _ => None,
    })
}

/// Messages sent before the goodbye arrive before it, and the goodbye says why.
pub fn the_peer_learns_why(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    rig.say(link.from, 4, b"before");
    let reason = CloseReason::Bound {
        what: "patience",
        limit: 42,
    };
    rig.fabric(0).disconnect(link.from.1, reason.clone());
    assert_eq!(rig.hear(link.to).body, b"before");
    match all_closed(&mut rig, 1, link.to.1) {
        CloseReason::Peer { detail } => assert_eq!(detail, reason.to_string()),
        other => panic!("expected the peer's words, got {other}"),
    }
    assert_eq!(all_closed(&mut rig, 0, link.from.1), reason);
}

/// A peer that vanishes ends all operations.
pub fn a_killed_peer_flushes_everything(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    rig.sleep(1, true);
    let source = post(&mut rig, link);
    rig.step(0);
    rig.kill(1);
    let (outcomes, reason) = all_ended(&mut rig, 0, link.from.1);
    assert!(matches!(reason, CloseReason::Lost { .. }), "{reason}");
    assert!(outcomes
        .values()
        .all(|outcome| *outcome != Outcome::Refused));
    rig.drive_until("the source to be free", |_| {
        (Arc::strong_count(&source) == 1).then_some(())
    });
}

/// A writer that dies half-way may leave bytes, but causes no event, no hang and no other harm.
pub fn a_peer_killed_in_mid_write_harms_nothing(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 3);
    let (dying, good) = (rig.link(0, 1), rig.link(2, 1));
    let source = post(&mut rig, dying);
    for _ in 0..2 {
        rig.step(0);
        rig.step(1);
    }
    drop(source);
    rig.kill(0);
    let reason = all_closed(&mut rig, 1, dying.to.1);
    assert!(matches!(reason, CloseReason::Lost { .. }), "{reason}");
    let range = rig.writable(good.to, 4096, 0);
    let source = Arc::new(rig.lease(2, 4096, 0x5a));
    let write = Write {
        token: 1,
        source: WriteSource::part(source, 0, 4096),
        target: range,
        immediate: None,
        last: false,
    };
    rig.write(good.from, write);
    rig.fence(good);
    assert_filled(
        rig.revoke(1, range.key).lease().bytes(),
        0x5a,
        "the good peer",
    );
    let written = rig
        .events(1)
        .iter()
        .filter(|event| matches!(event, Event::Written { .. }))
        .count() as u64;
    assert_eq!(
        written + 1,
        rig.counter(1, "writes_in"),
        "whole writes only"
    );
}

/// Memory exposed to a vanished peer must still be revoked, and can be.
pub fn exposures_outlive_their_peer(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let ranges = [
        rig.writable(link.to, 4096, 6),
        rig.readable(link.to, 4096, 6),
    ];
    rig.kill(0);
    all_closed(&mut rig, 1, link.to.1);
    assert_eq!(rig.counter(1, "exposures"), 2);
    for range in ranges {
        assert_filled(rig.revoke(1, range.key).lease().bytes(), 6, range);
    }
    assert_eq!(rig.counter(1, "exposures"), 0);
}

/// Each side's counters must match the other's.
pub fn counters_add_up(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.writable(link.to, PAGE_BYTES, 0);
    let source = Arc::new(rig.lease(0, PAGE_BYTES, 1));
    for token in 0..10 {
        let write = Write {
            token,
            source: WriteSource::part(source.clone(), 0, 1000 * token as usize),
            target: range,
            immediate: None,
            last: false,
        };
        rig.write(link.from, write);
        rig.say(link.from, token, &[1; 100]);
    }
    rig.fence(link);
    rig.say(link.to, 1, b"answer");
    rig.hear(link.from);
    for token in 0..10 {
        assert_eq!(rig.write_end(link.from, token), Outcome::Done);
    }
    assert_eq!(rig.counter(1, "writes_in"), 10);
    assert_eq!(rig.counter(1, "write_bytes_in"), 45_000);
    assert_eq!(rig.counter(1, "messages_in"), 11);
    assert_eq!(rig.counter(0, "messages_in"), 1);
    for (a, b) in [(0, 1), (1, 0)] {
        rig.drive_until("counters that agree", |rig| {
            (rig.counter(a, "bytes_out") == rig.counter(b, "bytes_in")
                && rig.counter(a, "frames_out") == rig.counter(b, "frames_in"))
            .then_some(())
        });
    }
    rig.fabric(0).disconnect(link.from.1, CloseReason::Local);
    all_closed(&mut rig, 1, link.to.1);
    assert_eq!((rig.counter(0, "closed"), rig.counter(1, "closed")), (1, 1));
}
