//! One-sided writes.

use crate::{assert_filled, Bench, Rig};
use faro_fabric::{
    ConnectionId, Event, Exposure, Outcome, RejectedPost, RemoteRange, RevokeStatus, Write,
    WritePart, WriteSource, MAX_PARTS,
};
use faro_pool::{PAGE_BYTES, SLAB_BYTES};
use std::sync::Arc;

/// Returns a write of all of `target` from the start of `source`, without an immediate.
pub(crate) fn writing(source: &Arc<faro_pool::Lease>, token: u64, target: RemoteRange) -> Write {
    Write {
        token,
        source: WriteSource::part(source.clone(), 0, target.length as usize),
        target,
        immediate: None,
        last: false,
    }
}

fn written(rig: &mut Rig, end: (usize, ConnectionId)) -> (u64, u16, u32) {
    rig.wait(end.0, "Written", |event| match event {
        Event::Written {
            connection,
            key,
            immediate,
            length,
        } if *connection == end.1 => Some((*key, *immediate, *length)),
        _ => None,
    })
}

/// Writes from any offset to any offset must change no other byte.
pub fn land_where_they_should(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.writable(link.to, 4096, 0xaa);
    let source = Arc::new(rig.lease(0, 4096, 0x55));
    for (token, (from, to, length)) in [(0, 0, 1), (17, 100, 900), (1, 4095, 1), (5, 2000, 1500)]
        .into_iter()
        .enumerate()
    {
        let write = Write {
            token: token as u64,
            source: WriteSource::part(source.clone(), from, length),
            target: RemoteRange {
                offset: range.offset + to as u64,
                length: length as u32,
                ..range
            },
            immediate: None,
            last: false,
        };
        rig.write(link.from, write);
        assert_eq!(rig.write_end(link.from, token as u64), Outcome::Done);
    }
    rig.fence(link);
    let exposure = rig.revoke(1, range.key);
    let mut expected = vec![0; 4096];
    super::fill(&mut expected, 0xaa);
    for (from, to, length) in [(0, 0, 1), (17, 100, 900), (1, 4095, 1), (5, 2000, 1500)] {
        expected[to..to + length].copy_from_slice(&source.bytes()[from..from + length]);
    }
    assert!(exposure.lease().bytes() == expected);
}

/// `Written` comes if and only if there is an immediate, and names key and length.
pub fn with_and_without_immediate(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.writable(link.to, 4096, 0);
    let source = Arc::new(rig.lease(0, 4096, 9));
    for immediate in [Some(0), None, Some(u16::MAX), None] {
        let length = 100;
        let target = RemoteRange { length, ..range };
        let write = Write {
            immediate,
            ..writing(&source, 1, target)
        };
        rig.write(link.from, write);
        assert_eq!(rig.write_end(link.from, 1), Outcome::Done);
        if let Some(immediate) = immediate {
            assert_eq!(written(&mut rig, link.to), (range.key, immediate, length));
        }
    }
    rig.fence(link);
    let more = |event: &Event| matches!(event, Event::Written { .. }).then_some(());
    assert!(rig.take(1, more).is_none());
}

/// When a message is there, so are the bytes of all writes posted before it, and their events.
pub fn precede_the_message_after_them(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let sizes = [1, 4096, PAGE_BYTES, 70_000, 33, PAGE_BYTES];
    let ranges: Vec<_> = sizes
        .iter()
        .map(|bytes| rig.writable(link.to, *bytes, 0))
        .collect();
    let source = Arc::new(rig.lease(0, PAGE_BYTES, 0x77));
    for (range, (token, bytes)) in ranges.iter().zip(sizes.iter().enumerate()) {
        let target = RemoteRange {
            length: *bytes as u32,
            ..*range
        };
        let write = Write {
            immediate: Some(token as u16),
            ..writing(&source, token as u64, target)
        };
        rig.write(link.from, write);
    }
    rig.fence(link);
    let immediates: Vec<_> = rig
        .events(1)
        .iter()
        .filter_map(|event| match event {
            Event::Written { immediate, .. } => Some(*immediate),
            _ => None,
        })
        .collect();
    assert_eq!(immediates, (0..sizes.len() as u16).collect::<Vec<_>>());
    for (range, bytes) in ranges.iter().zip(sizes) {
        let exposure = rig.revoke(1, range.key);
        assert_filled(&exposure.lease().bytes()[..bytes], 0x77, bytes);
    }
}

/// Writes many small pieces into many leases at once.
pub fn scattered_by_the_hundred(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let ranges: Vec<_> = (0..400).map(|_| rig.writable(link.to, 4096, 0)).collect();
    let sources: Vec<_> = (0..4).map(|i| Arc::new(rig.lease(0, 4096, i))).collect();
    for (token, range) in ranges.iter().enumerate() {
        let length = 1 + (token * 37 % 4096) as u32;
        let target = RemoteRange { length, ..*range };
        rig.write(
            link.from,
            writing(&sources[token % 4], token as u64, target),
        );
    }
    for token in 0..ranges.len() as u64 {
        assert_eq!(rig.write_end(link.from, token), Outcome::Done);
    }
    rig.fence(link);
    for (token, range) in ranges.iter().enumerate() {
        let exposure = rig.revoke(1, range.key);
        let length = 1 + (token * 37 % 4096);
        assert_filled(&exposure.lease().bytes()[..length], token as u8 % 4, token);
    }
}

/// A write of no bytes still has an event.
pub fn of_nothing(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.writable(link.to, 4096, 3);
    let source = Arc::new(rig.lease(0, 4096, 1));
    for offset in [0, 4096] {
        let target = RemoteRange {
            key: range.key,
            offset: range.offset + offset,
            length: 0,
        };
        let write = Write {
            immediate: Some(8),
            ..writing(&source, 1, target)
        };
        rig.write(link.from, write);
        assert_eq!(rig.write_end(link.from, 1), Outcome::Done);
        assert_eq!(written(&mut rig, link.to), (range.key, 8, 0));
    }
    assert_filled(rig.revoke(1, range.key).lease().bytes(), 3, "target");
}

/// A write has its bytes from as many places as the connection takes, in their order, and no more.
pub fn come_from_many_parts(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let max = rig.fabric(0).write_sources(link.from.1).parts;
    assert!((1..=MAX_PARTS).contains(&max));
    let sources: Vec<_> = (0..=max as u8)
        .map(|seed| Arc::new(rig.lease(0, PAGE_BYTES, seed)))
        .collect();
    let lengths = [1, 4096, 0, 70_001, 33, 8_192, 1, 5_000];
    for count in 1..=max {
        let range = rig.writable(link.to, PAGE_BYTES, 0xaa);
        let (mut parts, mut expected) = (Vec::new(), Vec::new());
        for (source, length) in sources.iter().zip(lengths).take(count) {
            let offset = 100 * count;
            expected.extend_from_slice(&source.bytes()[offset..offset + length]);
            parts.push(WritePart {
                memory: source.clone(),
                offset,
                length,
            });
        }
        let length = expected.len() as u32;
        let write = Write {
            source: WriteSource::Parts(parts),
            immediate: Some(count as u16),
            ..writing(&sources[0], 1, RemoteRange { length, ..range })
        };
        rig.write(link.from, write);
        assert_eq!(
            written(&mut rig, link.to),
            (range.key, count as u16, length)
        );
        assert_eq!(rig.write_end(link.from, 1), Outcome::Done);
        let exposure = rig.revoke(1, range.key);
        let (landed, rest) = exposure.lease().bytes().split_at(expected.len());
        assert!(landed == expected, "{count} parts");
        let mut untouched = vec![0; PAGE_BYTES];
        super::fill(&mut untouched, 0xaa);
        assert!(rest == &untouched[expected.len()..PAGE_BYTES]);
    }
    let is_free = |source: &Arc<_>| Arc::strong_count(source) == 1;
    assert!(
        sources.iter().all(is_free),
        "a write that ended holds nothing"
    );
    let range = rig.writable(link.to, PAGE_BYTES, 0);
    let parts = sources.iter().map(|source| WritePart {
        memory: source.clone(),
        offset: 0,
        length: 1,
    });
    let too_many = WriteSource::Parts(parts.collect());
    for source in [too_many, WriteSource::Parts(Vec::new())] {
        let write = Write {
            source,
            ..writing(&sources[0], 1, range)
        };
        match rig.fabric(0).write(link.from.1, write) {
            Err(RejectedPost::TooLarge(_, limit)) => assert_eq!(limit, max as u64),
            other => panic!("{:?}", other.map_err(drop)),
        }
    }
}

/// A source shorter than the write is an error of the call.
pub fn beyond_their_source_are_handed_back(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.writable(link.to, PAGE_BYTES, 0);
    let source = Arc::new(rig.lease(0, 4096, 1));
    for (offset, length, limit) in [(0, 4097, 4096), (4000, 97, 96), (5000, 0, 0)] {
        let write = Write {
            source: WriteSource::part(source.clone(), offset, length),
            ..writing(&source, 1, range)
        };
        match rig.fabric(0).write(link.from.1, write) {
            Err(RejectedPost::TooLarge(write, got)) => assert_eq!((write.token, got), (1, limit)),
            other => panic!("{:?}", other.map_err(drop)),
        }
    }
    rig.fence(link);
}

/// A writer that marks its last write gives up the memory with it: no fabric has to ask it.
pub fn the_last_lets_go(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let source = Arc::new(rig.lease(0, PAGE_BYTES, 0x66));
    for immediate in [Some(7), None] {
        for bytes in [1, 4096, PAGE_BYTES] {
            let range = rig.writable(link.to, bytes, 0);
            let length = bytes as u32;
            let write = Write {
                immediate,
                last: true,
                ..writing(&source, 1, RemoteRange { length, ..range })
            };
            rig.write(link.from, write);
            match immediate {
                Some(_) => assert_eq!(written(&mut rig, link.to), (range.key, 7, length)),
                None => rig.fence(link),
            }
            match rig.fabric(1).revoke(range.key) {
                RevokeStatus::Now(exposure) => {
                    assert_filled(&exposure.lease().bytes()[..bytes], 0x66, bytes);
                }
                _ => panic!("{bytes} bytes, immediate {immediate:?}: expected at once"),
            }
            assert_eq!(rig.write_end(link.from, 1), Outcome::Done);
        }
    }
}

/// Sources and targets in every slab there is.
pub fn use_slabs_beyond_the_first(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let frames = SLAB_BYTES / PAGE_BYTES + 3;
    let ballast: Vec<_> = (0..frames)
        .map(|_| (rig.lease(0, PAGE_BYTES, 0), rig.lease(1, PAGE_BYTES, 0)))
        .collect();
    let range = rig.writable(link.to, PAGE_BYTES, 0);
    let source = Arc::new(rig.lease(0, PAGE_BYTES, 0x42));
    let slabs: std::collections::HashSet<_> = ballast
        .iter()
        .map(|(lease, _)| lease.slab())
        .chain([source.slab()])
        .collect();
    assert!(slabs.len() > 1, "the ballast fills more than a slab");
    rig.write(link.from, writing(&source, 1, range));
    let early = Arc::new(rig.lease(0, 4096, 0x24));
    rig.write(
        link.from,
        Write {
            source: WriteSource::part(early.clone(), 0, 4096),
            ..writing(&early, 2, range)
        },
    );
    for token in [1, 2] {
        assert_eq!(rig.write_end(link.from, token), Outcome::Done);
    }
    rig.fence(link);
    let exposure = rig.revoke(1, range.key);
    assert_filled(&exposure.lease().bytes()[..4096], 0x24, "the later write");
    assert!(exposure.lease().bytes()[4096..] == source.bytes()[4096..]);
    assert!(matches!(exposure, Exposure::Writable(_)));
}
