//! One-sided reads.

use crate::{assert_filled, fill, Bench, ConnectedPair, Rig};
use faro_fabric::{Event, Outcome, Read, RejectedPost, RemoteRange};
use faro_pool::{Lease, PAGE_BYTES, SLAB_BYTES};

fn read(
    rig: &mut Rig,
    link: ConnectedPair,
    source: RemoteRange,
    target: Lease,
) -> (Lease, Outcome) {
    let read = Read {
        token: 7,
        source,
        target,
    };
    rig.fabric(link.from.0)
        .read(link.from.1, read)
        .map_err(drop)
        .expect("there is room for a read");
    let ended = |event: &Event| matches!(event, Event::ReadEnded { .. }).then_some(());
    let (_, event) = rig.drive_until("ReadEnded", |rig| rig.take(link.from.0, ended));
    match event {
        Event::ReadEnded {
            connection,
            token,
            target,
            outcome,
        } => {
            assert_eq!((connection, token), (link.from.1, 7));
            (target, outcome)
        }
        _ => unreachable!("picked above"),
    }
}

/// Reads from any offset, of any length, to the target's start.
pub fn bring_the_bytes(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.readable(link.to, PAGE_BYTES, 0x21);
    let mut expected = vec![0; PAGE_BYTES];
    fill(&mut expected, 0x21);
    for (offset, length) in [
        (0, 0),
        (0, 1),
        (1, 4095),
        (100, 70_000),
        (PAGE_BYTES - 1, 1),
        (PAGE_BYTES, 0),
        (0, PAGE_BYTES),
    ] {
        let target = rig.lease(0, length.max(1), 0xff);
        let source = RemoteRange {
            key: range.key,
            offset: range.offset + offset as u64,
            length: length as u32,
        };
        let (target, outcome) = read(&mut rig, link, source, target);
        assert_eq!(outcome, Outcome::Done);
        assert!(
            target.bytes()[..length] == expected[offset..offset + length],
            "{length} bytes from {offset}"
        );
        let mut untouched = vec![0; target.capacity()];
        fill(&mut untouched, 0xff);
        assert!(target.bytes()[length..] == untouched[length..]);
    }
    rig.revoke(1, range.key);
    assert_eq!(rig.counter(1, "exposures"), 0);
}

fn refused(rig: &mut Rig, link: ConnectedPair, source: RemoteRange) {
    let target = rig.lease(link.from.0, 4096, 0xff);
    let (_, outcome) = read(rig, link, source, target);
    assert_eq!(outcome, Outcome::Refused, "{source:?}");
}

/// No byte may be read, not even those within the bounds.
pub fn out_of_bounds_are_refused(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.readable(link.to, 4096, 1);
    for (offset, length) in [
        (1, 4096),
        (4096, 1),
        (u64::MAX, 1),
        (u64::MAX, 0),
        (1 << 32, 1),
        (1 << 63, 4096),
    ] {
        let source = RemoteRange {
            key: range.key,
            offset: range.offset.wrapping_add(offset),
            length,
        };
        refused(&mut rig, link, source);
    }
    rig.fence(link);
}

/// Keys that were never given out.
pub fn under_an_unknown_key_are_refused(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.readable(link.to, 4096, 1);
    for key in [0, 1, u64::MAX, range.key ^ 1, range.key.wrapping_add(1)] {
        refused(&mut rig, link, RemoteRange { key, ..range });
    }
}

/// A key works only for the peer that it was given to.
pub fn under_anothers_key_are_refused(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 3);
    let (friend, outsider) = (rig.link(0, 1), rig.link(2, 1));
    let range = rig.readable(friend.to, 4096, 1);
    refused(&mut rig, outsider, range);
    let target = rig.lease(0, 4096, 0);
    let (target, outcome) = read(&mut rig, friend, range, target);
    assert_eq!(outcome, Outcome::Done);
    assert_filled(target.bytes(), 1, "the friend's read");
}

/// Writable memory is not readable.
pub fn of_what_may_only_be_written_are_refused(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.writable(link.to, 4096, 1);
    refused(&mut rig, link, range);
}

/// Revoked memory is not readable, not even for a peer that has read under the key before.
pub fn after_revocation_are_refused(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.readable(link.to, 4096, 1);
    let target = rig.lease(0, 4096, 0);
    let (target, outcome) = read(&mut rig, link, range, target);
    assert_eq!(outcome, Outcome::Done);
    assert_filled(target.bytes(), 1, "before");
    drop(rig.revoke(1, range.key));
    refused(&mut rig, link, range);
    let again = rig.readable(link.to, 4096, 2);
    assert_ne!(again.key, range.key);
    refused(&mut rig, link, range);
    let (target, outcome) = read(&mut rig, link, again, target);
    assert_eq!(outcome, Outcome::Done);
    assert_filled(target.bytes(), 2, "the new key");
}

/// The caller learns of its own mistake.
pub fn larger_than_their_target_are_handed_back(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.readable(link.to, PAGE_BYTES, 1);
    let read = Read {
        token: 3,
        source: range,
        target: rig.lease(0, 4096, 0),
    };
    match rig.fabric(0).read(link.from.1, read) {
        Err(RejectedPost::TooLarge(read, limit)) => assert_eq!((read.token, limit), (3, 4096)),
        other => panic!("{:?}", other.map_err(drop)),
    }
}

/// Sources in every slab there is, with reads of several of them on their way at once.
pub fn use_slabs_beyond_the_first(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let frames = SLAB_BYTES / PAGE_BYTES + 3;
    let ranges: Vec<_> = (0..frames)
        .map(|seed| rig.readable(link.to, PAGE_BYTES, seed as u8))
        .collect();
    for (token, range) in ranges.iter().enumerate() {
        let read = Read {
            token: token as u64,
            source: RemoteRange {
                length: 4096,
                ..*range
            },
            target: rig.lease(0, 4096, 0),
        };
        rig.fabric(0)
            .read(link.from.1, read)
            .map_err(drop)
            .expect("there is room for a read");
    }
    let mut left = ranges.len();
    let ended = |event: &Event| matches!(event, Event::ReadEnded { .. }).then_some(());
    while left > 0 {
        let (_, event) = rig.drive_until("ReadEnded", |rig| rig.take(0, ended));
        if let Event::ReadEnded {
            token,
            target,
            outcome,
            ..
        } = event
        {
            assert_eq!(outcome, Outcome::Done);
            assert_filled(&target.bytes()[..4096], token as u8, token);
            left -= 1;
        }
    }
}
