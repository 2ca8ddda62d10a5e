//! Raw sockets that say anything at all to a `TcpFabric`.
//!
//! Every check has the same shape: a well-behaved pair keeps exchanging messages and writes with
//! the fabric under attack, the attacker's connection ends with a reason that names what was
//! wrong, and what the fabric buffers stays bounded. Frames are built by hand from `wire`, so
//! that a mistake of the fabric's own encoder cannot hide in both ends.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

#[path = "hostile/stage.rs"]
mod stage;

use faro_conformance::{cases, Xorshift};
use faro_fabric::tcp::MAX_HANDSHAKE_BYTES;
use faro_fabric::{CloseReason, Exposure, RemoteRange};
use faro_wire::header::{MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES, OLDEST_VERSION, VERSION, VERSIONS};
use faro_wire::{crc32c, kind, FrameHeader, VersionGap, VersionRange, WireError};
use stage::{frame, hello, write_frame, Stage};
use std::io::Write as _;
use std::net::Shutdown;
use zerocopy::IntoBytes;

#[test]
fn ten_thousand_random_byte_strings() {
    let mut stage = Stage::new();
    let mut dice = Xorshift::new(0xfa20_0001);
    for round in 0..cases(10_000, 1_250) {
        let mut attacker = stage.dial();
        let length = 1 + dice.below(300);
        let mut bytes = dice.bytes(length);
        // Some look right at first.
        match dice.below(4) {
            0 if bytes.len() >= 32 => bytes[..4].copy_from_slice(b"FARO"),
            1 => bytes.splice(..0, hello(stage.endpoint)).for_each(drop),
            2 => {
                let kind = dice.roll() as u8;
                bytes = frame(kind, 0, &bytes);
            }
            _ => {}
        }
        // The fabric may close before it has all of it.
        let _ = attacker.write_all(&bytes);
        let _ = attacker.shutdown(Shutdown::Write);
        stage.until_gone(attacker);
        if round % 500 == 0 {
            stage.exchange();
        }
    }
    assert!(stage.counter("buffered_bytes") <= 64 << 10);
    stage.assert_only_the_good_pair_is_left();
}

#[test]
fn random_frames_after_a_good_hello() {
    let mut stage = Stage::new();
    let mut dice = Xorshift::new(0xfa20_0002);
    for round in 0..cases(2_000, 250) {
        let mut attacker = stage.authenticate();
        for _ in 0..1 + dice.below(4) {
            let kind = match dice.below(3) {
                0 => dice.roll() as u8,
                _ => dice.below(0x28) as u8,
            };
            let length = dice.below(80);
            let body = dice.bytes(length);
            let _ = attacker.write_all(&frame(kind, dice.roll(), &body));
        }
        let _ = attacker.shutdown(Shutdown::Write);
        stage.until_gone(attacker);
        if round % 200 == 0 {
            stage.exchange();
        }
    }
    stage.assert_only_the_good_pair_is_left();
}

#[test]
fn a_build_without_a_common_version_is_told_which_one_is_older() {
    let mut stage = Stage::new();
    let first = u16::from(OLDEST_VERSION);
    let next = u16::from(VERSION) + 1;
    for (oldest, newest) in [(first - 2, first - 1), (next, next), (next, next + 2)] {
        let mut other = stage.dial();
        let (_, hello) = stage.offering([oldest as u8, newest as u8]);
        other.write_all(&hello).unwrap();
        let peer = VersionRange::new(oldest, newest);
        let gap = VersionGap {
            own: VERSIONS,
            peer,
        };
        let text = stage.goodbye(other);
        assert_eq!(text, CloseReason::from(WireError::from(gap)).to_string());
        let older = match oldest < first {
            true => "upgrade the peer first",
            false => "upgrade this side first",
        };
        assert!(text.contains(older), "{text}");
    }
    stage.assert_only_the_good_pair_is_left();
}

#[test]
fn neighbouring_builds_speak_the_newest_version_that_both_have() {
    let mut stage = Stage::new();
    for versions in [
        [OLDEST_VERSION - 1, OLDEST_VERSION],
        [VERSION, VERSION + 1],
        [OLDEST_VERSION - 1, VERSION + 1],
    ] {
        let mut other = stage.dial();
        let (connector, hello) = stage.offering(versions);
        other.write_all(&hello).unwrap();
        let welcome = stage.welcome(&mut other);
        let common = versions[1].min(VERSION);
        assert_eq!(welcome[4], common, "the header of WELCOME");
        // It checks that the sealed version in WELCOME was offered.
        other.write_all(&connector.proof(&welcome).0).unwrap();
        stage.accepted();
        // A frame of another version than the connection's is no frame.
        let stray = FrameHeader::for_body(kind::FIRST_MESSAGE, 1, b"").in_version(common + 1);
        other.write_all(stray.as_bytes()).unwrap();
        let reason = stage.closed().to_string();
        assert!(reason.contains("protocol version"), "{reason}");
        stage.until_gone(other);
    }
    stage.exchange();
}

#[test]
fn a_hello_for_another_endpoint_learns_nothing() {
    let mut stage = Stage::new();
    let mut attacker = stage.dial();
    attacker.write_all(&hello(stage.endpoint ^ 1)).unwrap();
    let text = stage.goodbye(attacker);
    assert!(text.contains("HELLO does not prove membership"), "{text}");
    assert!(!text.contains(&format!("{:x}", stage.endpoint)), "{text}");
}

#[test]
fn lengths_are_judged_by_the_header_alone() {
    let mut stage = Stage::new();
    let too_long = |kind, length, crc| FrameHeader::sealed(kind, 0, 1, length, crc);
    // Before HELLO, 4 KiB; not one byte of the body is ever sent.
    let mut attacker = stage.dial();
    let header = too_long(kind::HELLO, MAX_HANDSHAKE_BYTES + 1, 0);
    attacker.write_all(header.as_bytes()).unwrap();
    let text = stage.goodbye(attacker);
    assert!(text.contains("at most 4096 is allowed"), "{text}");
    // After it, by kind.
    for (kind, limit) in [
        (kind::FIRST_MESSAGE, MAX_MESSAGE_BYTES),
        (0xff, MAX_MESSAGE_BYTES),
        (kind::GOODBYE, MAX_HANDSHAKE_BYTES),
        (kind::WRITE, MAX_PAYLOAD_BYTES + 24),
        (kind::READ_REPLY, MAX_PAYLOAD_BYTES + 8),
        (kind::READ, 24),
        (kind::WRITE_ACK, 4096),
    ] {
        for length in [limit + 1, u32::MAX] {
            let mut attacker = stage.authenticate();
            let header = too_long(kind, length, 0);
            attacker.write_all(header.as_bytes()).unwrap();
            let expected = WireError::TooLarge {
                what: "frame body",
                got: u64::from(length),
                limit: u64::from(limit),
            };
            assert_eq!(stage.closed(), CloseReason::Protocol(expected));
            stage.until_gone(attacker);
        }
    }
    assert_eq!(stage.counter("buffered_bytes"), 0);
    stage.exchange();
}

#[test]
fn kinds_are_judged_by_the_phase() {
    let mut stage = Stage::new();
    for early in [
        kind::WELCOME,
        kind::WRITE,
        kind::READ,
        0x00,
        0x7f,
        kind::FETCH,
    ] {
        let mut attacker = stage.dial();
        attacker.write_all(&frame(early, 0, &[0; 24])).unwrap();
        let text = stage.goodbye(attacker);
        assert!(text.contains("before the handshake"), "{early:#x}: {text}");
    }
    for never in [
        kind::HELLO,
        kind::WELCOME,
        kind::WRITE_REF,
        kind::SLAB_REPLY,
        0x00,
        0x1f,
    ] {
        let mut attacker = stage.authenticate();
        attacker.write_all(&frame(never, 0, &[0; 24])).unwrap();
        let expected = WireError::UnknownKind { got: never };
        assert_eq!(stage.closed(), CloseReason::Protocol(expected));
        stage.until_gone(attacker);
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let mut stage = Stage::new();
    let good = frame(kind::FIRST_MESSAGE, 77, b"sixteen bytes...");
    // The sample is one bit of each byte: 0, 9, 18, ...
    let chosen = |bit: &usize| cases(true, bit / 8 % 8 == bit % 8);
    for bit in (0..good.len() * 8).filter(chosen) {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut attacker = stage.authenticate();
        attacker.write_all(&bytes).unwrap();
        match stage.closed() {
            CloseReason::Protocol(WireError::BadMagic { .. }) => assert!(bit < 32),
            CloseReason::Protocol(WireError::UnsupportedVersion { .. }) => {
                assert!((32..40).contains(&bit));
            }
            CloseReason::Protocol(WireError::BadChecksum { what, .. }) => {
                let expected = if bit < 256 {
                    "frame header"
                } else {
                    "frame body"
                };
                assert_eq!(what, expected, "bit {bit}");
            }
            reason => panic!("bit {bit}: {reason}"),
        }
        stage.until_gone(attacker);
    }
    stage.exchange();
}

#[test]
fn a_flipped_bit_never_redirects_a_write() {
    let mut stage = Stage::new();
    for bit in 0..24 * 8 {
        let mut attacker = stage.authenticate();
        let range = stage.expose_to_attacker(4096);
        let mut bytes = write_frame(range, &[0xff; 64]);
        bytes[32 + bit / 8] ^= 1 << (bit % 8);
        attacker.write_all(&bytes).unwrap();
        assert!(
            matches!(
                stage.closed(),
                CloseReason::Protocol(WireError::BadChecksum { .. })
            ),
            "bit {bit}"
        );
        stage.assert_untouched(range.key);
        stage.until_gone(attacker);
    }
}

#[test]
fn unknown_header_bits_are_not_ignored() {
    let mut stage = Stage::new();
    let mut attacker = stage.authenticate();
    let header = FrameHeader::sealed(kind::FIRST_MESSAGE, 1, 0, 0, 0);
    attacker.write_all(header.as_bytes()).unwrap();
    let expected = WireError::BadValue {
        what: "header flags",
        got: 1,
    };
    assert_eq!(stage.closed(), CloseReason::Protocol(expected));
}

#[test]
fn bodies_that_never_come_hold_no_memory() {
    let mut stage = Stage::new();
    let mut attackers: Vec<_> = (0..50).map(|_| stage.authenticate()).collect();
    let header = FrameHeader::sealed(kind::FIRST_MESSAGE, 0, 1, MAX_MESSAGE_BYTES, 0);
    for attacker in &mut attackers {
        attacker.write_all(header.as_bytes()).unwrap();
        attacker.write_all(&[1; 100]).unwrap();
    }
    for _ in 0..20 {
        stage.exchange();
    }
    // The attacker promised 100 MiB.
    let buffered = stage.counter("buffered_bytes");
    assert!(buffered <= 50 * (64 << 10), "{buffered}");
    for attacker in attackers {
        attacker.shutdown(Shutdown::Write).unwrap();
        assert!(matches!(stage.closed(), CloseReason::Lost { .. }));
        stage.until_gone(attacker);
    }
    assert_eq!(stage.counter("buffered_bytes"), 0);
    stage.assert_only_the_good_pair_is_left();
}

#[test]
fn a_slow_hello_is_not_waited_for() {
    let mut stage = Stage::with_hello_timeout_ms(30);
    let mut attacker = stage.dial();
    let bytes = hello(stage.endpoint);
    stage.until("its connection", |stage| stage.counter("connections") == 2);
    // A byte in each millisecond does not win time.
    for byte in &bytes[..30] {
        assert_eq!(stage.counter("handshakes_failed"), 0, "too early");
        attacker.write_all(&[*byte]).unwrap();
        stage.exchange();
        stage.pass_a_millisecond();
    }
    let text = stage.goodbye(attacker);
    assert!(
        text.contains("has not proven who it is reached its bound of 30"),
        "{text}"
    );
    stage.assert_only_the_good_pair_is_left();
}

#[test]
fn strangers_that_say_nothing_keep_no_member_out() {
    let mut stage = Stage::new();
    let held: Vec<_> = (0..stage::CONNECTIONS + 20).map(|_| stage.dial()).collect();
    let displaced = (held.len() - stage::UNAUTHENTICATED) as u64;
    stage.until("the oldest to be closed", |stage| {
        stage.counter("connections_refused") == displaced
    });
    assert_eq!(
        stage.counter("connections"),
        stage::UNAUTHENTICATED as u64 + 1
    );
    stage.exchange();
    // It takes the place of one more.
    let member = stage.authenticate();
    assert_eq!(stage.counter("connections_refused"), displaced + 1);
    stage.exchange();
    drop((held, member));
    stage.assert_only_the_good_pair_is_left();
}

#[test]
fn more_members_than_bounded_are_turned_away() {
    let mut stage = Stage::new();
    let mut members: Vec<_> = (1..stage::CONNECTIONS)
        .map(|_| stage.authenticate())
        .collect();
    assert_eq!(stage.counter("connections"), stage::CONNECTIONS as u64);
    let late = stage.dial();
    stage.until_gone(late);
    assert_eq!(stage.counter("connections_refused"), 1);
    stage.exchange();
    members.pop();
    stage.until("room for one", |stage| {
        stage.counter("connections") < stage::CONNECTIONS as u64
    });
    let late = stage.authenticate();
    drop((late, members));
    stage.assert_only_the_good_pair_is_left();
}

#[test]
fn a_half_closed_peer_is_gone() {
    let mut stage = Stage::new();
    let attacker = stage.authenticate();
    attacker.shutdown(Shutdown::Write).unwrap();
    assert!(matches!(stage.closed(), CloseReason::Lost { .. }));
    stage.until_gone(attacker);
    stage.exchange();
}

#[test]
fn a_half_sent_frame_is_lost_with_its_connection() {
    let mut stage = Stage::new();
    let bytes = frame(kind::FIRST_MESSAGE, 1, &[7; 500]);
    for cut in [1, 31, 32, 33, 531] {
        let mut attacker = stage.authenticate();
        attacker.write_all(&bytes[..cut]).unwrap();
        attacker.shutdown(Shutdown::Write).unwrap();
        assert!(matches!(stage.closed(), CloseReason::Lost { .. }));
        stage.until_gone(attacker);
    }
}

#[test]
fn writes_with_absurd_fields_touch_nothing() {
    let mut stage = Stage::new();
    let mut attacker = stage.authenticate();
    let range = stage.expose_to_attacker(4096);
    let before = stage.counter("writes_refused");
    let absurd = [
        RemoteRange {
            offset: u64::MAX,
            ..range
        },
        RemoteRange {
            offset: u64::MAX - 63,
            ..range
        },
        RemoteRange {
            offset: 4096 - 63,
            ..range
        },
        RemoteRange {
            offset: 1 << 40,
            ..range
        },
        RemoteRange { key: 0, ..range },
        RemoteRange {
            key: !range.key,
            ..range
        },
    ];
    for range in absurd {
        attacker
            .write_all(&write_frame(range, &[0xff; 64]))
            .unwrap();
    }
    // The largest there is, drained without a buffer.
    let payload = vec![0xff; MAX_PAYLOAD_BYTES as usize];
    let bytes = write_frame(range, &payload);
    for part in bytes.chunks(1 << 20) {
        attacker.set_nonblocking(false).unwrap();
        stage.feed(&mut attacker, part);
        assert_eq!(stage.counter("buffered_bytes"), 0);
    }
    let expected = before + absurd.len() as u64 + 1;
    stage.until("all to be refused", |stage| {
        stage.counter("writes_refused") == expected
    });
    stage.exchange();
    stage.assert_untouched(range.key);
    // Shorter than its own head.
    let header = FrameHeader::sealed(kind::WRITE, 0, 1, 23, 0);
    attacker.write_all(header.as_bytes()).unwrap();
    let reason = stage.closed();
    assert!(
        matches!(
            reason,
            CloseReason::Protocol(WireError::Truncated { got: 23, .. })
        ),
        "{reason}"
    );
}

#[test]
fn refusals_that_a_peer_does_not_receive_are_bounded() {
    let mut stage = Stage::new();
    let mut attacker = stage.authenticate();
    let nowhere = RemoteRange {
        key: 5,
        offset: 0,
        length: 0,
    };
    let bytes = write_frame(nowhere, &[]).repeat(5_000);
    for _ in 0..40 {
        stage.feed(&mut attacker, &bytes);
        let queued = stage.counter("queued_frames");
        assert!(
            queued <= 2_100,
            "{queued} frames for a peer that reads none"
        );
    }
    stage.until("all to be refused", |stage| {
        stage.counter("writes_refused") == 200_000
    });
    stage.exchange();
}

#[test]
fn more_reads_than_are_served_at_once_close() {
    let mut stage = Stage::new();
    let mut attacker = stage.authenticate();
    let range = stage.expose_readable_to_attacker();
    let mut body = Vec::new();
    body.extend_from_slice(&range.key.to_le_bytes());
    body.extend_from_slice(&0u64.to_le_bytes());
    body.extend_from_slice(&range.length.to_le_bytes());
    body.extend_from_slice(&[0; 4]);
    // It reads no reply, so at some point the kernel takes no more of them.
    let bytes = frame(kind::READ, 1, &body).repeat(10_000);
    let _ = attacker.write_all(&bytes);
    let reason = stage.closed();
    assert!(matches!(reason, CloseReason::Bound { .. }), "{reason}");
    stage.exchange();
}

#[test]
fn answers_to_no_question_close() {
    let mut stage = Stage::new();
    let mut attacker = stage.authenticate();
    let head = [0; 8];
    let header = FrameHeader::sealed(kind::READ_REPLY, 0, 99, 8, crc32c(&head));
    attacker
        .write_all(&[header.as_bytes(), &head].concat())
        .unwrap();
    let expected = WireError::BadValue {
        what: "READ_REPLY's read",
        got: 99,
    };
    assert_eq!(stage.closed(), CloseReason::Protocol(expected));
    // A refusal of an unknown write is harmless: most refusals come after the write's end.
    let mut attacker = stage.authenticate();
    attacker
        .write_all(&frame(kind::WRITE_ACK, 0, &[1; 32]))
        .unwrap();
    stage.until("the refusal to be counted", |stage| {
        stage.counter("writes_refused_by_peer") == 2
    });
    assert!(matches!(
        stage.revoke_all().as_slice(),
        [] | [Exposure::Writable(_)]
    ));
}
