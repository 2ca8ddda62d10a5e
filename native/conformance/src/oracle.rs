//! Thousands of operations in a seeded random order, against a model of what must come of them.
//!
//! Rounds: within one, writes go to disjoint ranges (the contract orders writes and messages,
//! not overlapping writes); at its end a fence, and every byte is compared.

use crate::{Bench, Rig, Xorshift};
use faro_fabric::{
    Event, Exposure, Message, Outcome, Read, RejectedPost, RemoteRange, Write, WritePart,
    WriteSource,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const ROUNDS: usize = 40;
const OPERATIONS: usize = 120;
const TARGETS: usize = 6;
const TARGET_BYTES: usize = 64 << 10;

/// One direction of a connection.
struct Way {
    link: super::ConnectedPair,
    /// Memory that the receiver exposes for writes, with the bytes that it must hold.
    targets: Vec<(RemoteRange, Vec<u8>)>,
    /// First byte of each target that this round has not written.
    free: Vec<usize>,
    /// Memory that the receiver exposes for reads.
    readable: RemoteRange,
    /// Tokens of operations that have not ended, and how they may end.
    open: BTreeMap<u64, Vec<Outcome>>,
    next: u64,
    /// Ids of the messages and immediates of the writes the receiver must see, in order.
    expected: Vec<(bool, u64)>,
}

/// Both sides must agree with the oracle, whatever the order.
pub fn agrees_in_any_order(bench: &dyn Bench) {
    for seed in [1, 0xfa20, 0xdead_beef] {
        run(bench, seed);
    }
}

fn run(bench: &dyn Bench, seed: u64) {
    let (mut rig, link) = Rig::pair(bench);
    let back = super::ConnectedPair {
        from: link.to,
        to: link.from,
    };
    let mut dice = Xorshift::new(seed);
    let mut ways = [link, back].map(|link| Way {
        link,
        targets: (0..TARGETS)
            .map(|_| {
                let range = rig.writable(link.to, TARGET_BYTES, 0);
                let mut bytes = vec![0; TARGET_BYTES];
                super::fill(&mut bytes, 0);
                (range, bytes)
            })
            .collect(),
        free: vec![0; TARGETS],
        readable: rig.readable(link.to, TARGET_BYTES, 0x99),
        open: BTreeMap::new(),
        next: 0,
        expected: Vec::new(),
    });
    for round in 0..ROUNDS {
        for _ in 0..OPERATIONS {
            let way = &mut ways[dice.below(2)];
            match dice.below(10) {
                0..4 => write(&mut rig, way, &mut dice, bench),
                4..6 => message(&mut rig, way, &mut dice),
                6 => read(&mut rig, way, &mut dice),
                7 => replace(&mut rig, way, &mut dice),
                _ => {
                    let station = dice.below(2);
                    rig.step(station);
                }
            }
        }
        settle(&mut rig, &mut ways, seed, round);
    }
}

fn token(way: &mut Way, outcomes: &[Outcome]) -> u64 {
    way.next += 1;
    way.open.insert(way.next, outcomes.to_vec());
    way.next
}

fn write(rig: &mut Rig, way: &mut Way, dice: &mut Xorshift, bench: &dyn Bench) {
    let at = dice.below(TARGETS);
    let room = TARGET_BYTES - way.free[at];
    if room == 0 {
        return;
    }
    let max = 1 << dice.below(17);
    // A write has bytes, because `free` also tells which targets have writes on their way.
    let length = 1 + dice.below(room.min(max));
    let offset = way.free[at];
    let bad = dice.below(12) == 0;
    let source = Arc::new(rig.lease(way.link.from.0, length.max(1), dice.roll() as u8));
    let (range, bytes) = &mut way.targets[at];
    let mut target = RemoteRange {
        key: range.key,
        offset: range.offset + offset as u64,
        length: length as u32,
    };
    if bad {
        target.key = dice.roll();
    } else {
        bytes[offset..offset + length].copy_from_slice(&source.bytes()[..length]);
        way.free[at] += length;
    }
    let outcomes: &[Outcome] = match (bad, bench.learns_refusals()) {
        (false, _) => &[Outcome::Done],
        (true, true) => &[Outcome::Refused],
        (true, false) => &[Outcome::Done, Outcome::Refused],
    };
    let token = token(way, outcomes);
    let immediate = (dice.below(3) == 0).then_some(token as u16);
    if let (Some(immediate), false) = (immediate, bad) {
        way.expected.push((true, u64::from(immediate)));
    }
    let max = rig
        .fabric(way.link.from.0)
        .write_sources(way.link.from.1)
        .parts;
    let mut cuts: Vec<usize> = (1..max).map(|_| dice.below(length + 1)).collect();
    cuts.sort_unstable();
    let ends = cuts.into_iter().chain([length]);
    let parts = ends.scan(0, |start, end| {
        let at = std::mem::replace(start, end);
        Some(WritePart {
            memory: source.clone(),
            offset: at,
            length: end - at,
        })
    });
    let parts = parts.collect();
    rig.write(
        way.link.from,
        Write {
            token,
            source: WriteSource::Parts(parts),
            target,
            immediate,
            last: false,
        },
    );
}

fn message(rig: &mut Rig, way: &mut Way, dice: &mut Xorshift) {
    way.next += 1;
    let max = 1 << dice.below(18);
    let message = Message {
        kind: faro_wire::kind::FIRST_MESSAGE,
        id: way.next,
        body: vec![way.next as u8; dice.below(max)],
    };
    match rig.fabric(way.link.from.0).send(way.link.from.1, message) {
        Ok(()) => way.expected.push((false, way.next)),
        Err(RejectedPost::Full(_)) => {}
        Err(other) => panic!("{other:?}"),
    }
}

fn read(rig: &mut Rig, way: &mut Way, dice: &mut Xorshift) {
    let offset = dice.below(TARGET_BYTES);
    let length = dice.below(TARGET_BYTES - offset + 1);
    let good = dice.below(5) > 0;
    let token = token(
        way,
        &[if good {
            Outcome::Done
        } else {
            Outcome::Refused
        }],
    );
    let source = RemoteRange {
        key: way.readable.key ^ u64::from(!good),
        offset: way.readable.offset + offset as u64,
        length: length as u32,
    };
    let target = rig.lease(way.link.from.0, length.max(1), 0);
    let read = Read {
        token,
        source,
        target,
    };
    rig.fabric(way.link.from.0)
        .read(way.link.from.1, read)
        .map_err(drop)
        .expect("there is room for a read");
}

/// Revokes a target that nothing was written to in this round, and exposes the memory again.
fn replace(rig: &mut Rig, way: &mut Way, dice: &mut Xorshift) {
    let at = dice.below(TARGETS);
    if way.free[at] > 0 {
        return;
    }
    let to = way.link.to;
    let old = way.targets[at].0.key;
    let exposure = rig.revoke(to.0, old);
    assert!(exposure.lease().bytes() == way.targets[at].1);
    let range = rig
        .fabric(to.0)
        .expose(to.1, exposure)
        .map_err(drop)
        .expect("there is room for an exposure");
    assert_ne!(range.key, old);
    way.targets[at].0 = range;
}

fn settle(rig: &mut Rig, ways: &mut [Way; 2], seed: u64, round: usize) {
    let place = format!("seed {seed:#x}, round {round}");
    for way in ways.iter_mut() {
        way.next += 1;
        way.expected.push((false, way.next));
        rig.say(way.link.from, way.next, b"end of round");
    }
    rig.drive_until("the end of the round", |rig| {
        for station in 0..2 {
            for event in rig.events(station) {
                took(station, event, ways, &place);
            }
        }
        ways.iter()
            .all(|way| way.open.is_empty() && way.expected.is_empty())
            .then_some(())
    });
    for way in ways {
        way.free = vec![0; TARGETS];
        for (range, bytes) in &way.targets {
            let exposure = rig.revoke(way.link.to.0, range.key);
            assert!(exposure.lease().bytes() == bytes, "{place}: {range:?}");
            assert!(matches!(exposure, Exposure::Writable(_)));
            drop(exposure);
        }
        way.targets = (0..TARGETS)
            .map(|_| {
                let range = rig.writable(way.link.to, TARGET_BYTES, round as u8);
                let mut bytes = vec![0; TARGET_BYTES];
                super::fill(&mut bytes, round as u8);
                (range, bytes)
            })
            .collect();
    }
}

fn took(station: usize, event: Event, ways: &mut [Way; 2], place: &str) {
    let [from, to] = match station {
        0 => [0, 1],
        _ => [1, 0],
    };
    let mut seen = |what: (bool, u64)| {
        let way = &mut ways[to];
        assert_eq!(way.expected.first(), Some(&what), "{place}");
        way.expected.remove(0);
    };
    match event {
        Event::Message { message, .. } => seen((false, message.id)),
        Event::Written { immediate, .. } => seen((true, u64::from(immediate))),
        Event::WriteEnded { token, outcome, .. } => {
            let allowed = ways[from].open.remove(&token);
            assert!(
                allowed.is_some_and(|may| may.contains(&outcome)),
                "{place}: {token} {outcome:?}"
            );
        }
        Event::ReadEnded {
            token,
            target,
            outcome,
            ..
        } => {
            let allowed = ways[from].open.remove(&token);
            assert!(
                allowed.is_some_and(|may| may.contains(&outcome)),
                "{place}: {token} {outcome:?}"
            );
            drop(target);
        }
        _ => panic!("{place}: an event without a cause"),
    }
}
