//! Queues that are full, and recover.

use crate::{Bench, Rig};
use faro_fabric::{Event, Message, Outcome, RejectedPost, Write, WriteSource};
use faro_pool::PAGE_BYTES;
use faro_sync::clock::now;
use std::sync::Arc;
use std::time::Duration;

/// More than any fabric may queue.
const PLENTY: u64 = 100_000;

fn message(id: u64) -> Message {
    Message {
        kind: faro_wire::kind::FIRST_MESSAGE,
        id,
        body: id.to_le_bytes().to_vec(),
    }
}

/// Fills the queue of messages to a peer: how many went in.
fn stuff(rig: &mut Rig, end: (usize, faro_fabric::ConnectionId)) -> u64 {
    for id in 0..PLENTY {
        match rig.fabric(end.0).send(end.1, message(id)) {
            Ok(()) => {}
            Err(RejectedPost::Full(rejected)) => {
                assert_eq!(rejected, message(id), "handed back as it was");
                return id;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("the queue has no bound");
}

/// An operation that does not fit is returned unchanged; after the peer has taken some, there is
/// room again, and nothing was lost or reordered.
pub fn a_full_queue_hands_back_and_recovers(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let mut next = stuff(&mut rig, link.from);
    assert!(next > 0);
    let end = next + 500;
    let mut heard = 0;
    rig.drive_until("all messages", |rig| {
        while next < end {
            match rig.fabric(0).send(link.from.1, message(next)) {
                Ok(()) => next += 1,
                Err(RejectedPost::Full(_)) => break,
                Err(other) => panic!("{other:?}"),
            }
        }
        let got = |event: &Event| match event {
            Event::Message { message, .. } => Some(message.id),
            _ => None,
        };
        while let Some((id, _)) = rig.take(1, got) {
            assert_eq!(id, heard);
            heard += 1;
        }
        (heard == end).then_some(())
    });
    assert!(rig.counter(0, "rejected_full") > 0);
}

/// A caller that got `Full` and waits in `poll` must be woken when room comes without an event:
/// messages have none.
pub fn room_ends_the_next_poll(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let id = stuff(&mut rig, link.from);
    let mut events = Vec::new();
    let start = now();
    loop {
        // One peer has no room until the other side takes some of its messages.
        rig.step(1);
        rig.fabric(0)
            .poll(&mut events, Duration::from_secs(600))
            .expect("poll works");
        assert!(now() - start < Duration::from_secs(60), "left waiting");
        match rig.fabric(0).send(link.from.1, message(id)) {
            Ok(()) => break,
            Err(RejectedPost::Full(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    for expected in 0..=id {
        assert_eq!(rig.hear(link.to).id, expected);
    }
}

/// Bytes are bounded as well as operations.
pub fn a_full_queue_of_bytes_hands_back_and_recovers(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.writable(link.to, PAGE_BYTES, 0);
    let source = Arc::new(rig.lease(0, PAGE_BYTES, 5));
    let write = |token| Write {
        token,
        source: WriteSource::part(source.clone(), 0, PAGE_BYTES),
        target: range,
        immediate: None,
        last: false,
    };
    let mut posted = 0;
    loop {
        assert!(posted * PAGE_BYTES as u64 <= 1 << 30, "no bound on bytes");
        match rig.fabric(0).write(link.from.1, write(posted)) {
            Ok(()) => posted += 1,
            Err(RejectedPost::Full(rejected)) => {
                assert_eq!(rejected.token, posted);
                break;
            }
            Err(other) => panic!("{:?}", drop(other)),
        }
    }
    for token in 0..posted {
        assert_eq!(rig.write_end(link.from, token), Outcome::Done);
    }
    rig.write(link.from, write(posted));
    assert_eq!(rig.write_end(link.from, posted), Outcome::Done);
    rig.fence(link);
    assert_eq!(rig.counter(1, "writes_in"), posted + 1);
    assert_eq!(Arc::strong_count(&source), 1, "the source is free again");
}

/// A peer that takes nothing must not affect others.
pub fn one_full_peer_stops_no_other(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 3);
    let (hung, good) = (rig.link(0, 1), rig.link(0, 2));
    rig.sleep(1, true);
    let body = vec![7; 1 << 20];
    let mut full = false;
    for id in 0..200 {
        let message = Message {
            body: body.clone(),
            ..message(id)
        };
        match rig.fabric(0).send(hung.from.1, message) {
            Ok(()) => rig.step(0),
            Err(RejectedPost::Full(_)) => {
                full = true;
                break;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(full, "200 MiB went to a peer that takes none");
    for _ in 0..50 {
        rig.fence(good);
    }
    rig.sleep(1, false);
    assert_eq!(rig.hear(hung.to).id, 0);
}
