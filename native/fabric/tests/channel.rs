//! A sealed pair, and somebody between the two who changes, drops, repeats, reorders and mixes what they send. Neither
//! side ever sees a byte that the other did not send, and nothing on the way shows what was sent.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

mod middle;

use faro_fabric::{
    CloseReason, Event, Exposure, OwnIdentity, RemoteRange, RevokeStatus, Write as PostedWrite,
    WriteSource,
};
use faro_pool::Purpose;
use faro_secure::Protection;
use faro_wire::header::{HEADER_BYTES, VERSION};
use faro_wire::{kind, FrameHeader};
use middle::{identity, pass, Side, Stage, Way, TIMEOUT};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;
use zerocopy::IntoBytes as _;

const ROW: &[u8] = b"a row that nobody else may read ";

/// Takes a unit of the connector's and its number; returns the units that are sent on instead.
type Tamper<'t> = dyn FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + 't;

fn untouched(_: usize, unit: Vec<u8>) -> Vec<Vec<u8>> {
    vec![unit]
}

/// HELLO, the proof, and then one record for each of three messages.
const MESSAGES: [&[u8]; 3] = [b"one row", b"another one", b"the last"];

/// HELLO, the proof, and the messages.
const UNITS: usize = 2 + MESSAGES.len();

/// Connects two sides whose units are tampered with, and returns the reason if the connection
/// ended. The acceptor's bytes must be a beginning of those that were sent.
fn tampered(tamper: &mut Tamper<'_>) -> (Stage, Option<CloseReason>) {
    let mut stage = Stage::sealed();
    let mut said = 0;
    while stage.acceptor.messages().len() < MESSAGES.len() && stage.told().is_none() {
        stage.step(&mut |way, number, unit| match way {
            Way::Up => tamper(number, unit),
            Way::Down => vec![unit],
        });
        let open = stage.connector.connection.is_some() && stage.connector.closed().is_none();
        if open && said < MESSAGES.len() {
            stage.connector.say(MESSAGES[said]);
            said += 1;
        }
        // A record that seems longer than it is waits for bytes that never come.
        if stage.middle.up.seen.len() == UNITS {
            stage.middle.end(Way::Up);
        }
    }
    let got = stage.acceptor.messages();
    assert_eq!(got, MESSAGES[..got.len()]);
    let told = stage.told();
    (stage, told)
}

#[test]
fn what_is_not_touched_arrives() {
    let (stage, _) = tampered(&mut untouched);
    assert_eq!(stage.acceptor.messages(), MESSAGES);
}

#[test]
fn no_flipped_bit_is_taken_for_what_was_sent() {
    for unit in 0..5 {
        // Places in a record: its length, its ciphertext, its tag. In a frame: its header, HELLO's versions and its
        // handshake.
        for place in [0, 3, 4, 40, usize::MAX] {
            let (stage, told) = tampered(&mut |number, mut bytes: Vec<u8>| {
                if number == unit {
                    let at = place.min(bytes.len() - 1);
                    bytes[at] ^= 0x10;
                }
                vec![bytes]
            });
            let got = stage.acceptor.messages().len();
            assert!(
                got <= unit.saturating_sub(2),
                "unit {unit}, byte {place}: {got}"
            );
            assert!(told.is_some(), "unit {unit}, byte {place}");
        }
    }
}

/// HELLO offers another range of versions, under correct checksums, so the acceptor's part of the
/// handshake differs.
#[test]
fn the_versions_on_offer_cannot_be_changed() {
    for (at, version) in [(0, VERSION - 1), (1, VERSION + 1)] {
        let (stage, told) = tampered(&mut |number, unit: Vec<u8>| {
            if number > 0 {
                return vec![unit];
            }
            let mut body = unit[HEADER_BYTES..].to_vec();
            body[at] = version;
            let header = FrameHeader::for_body(kind::HELLO, 0, &body);
            vec![[header.as_bytes(), &body].concat()]
        });
        assert!(stage.acceptor.messages().is_empty());
        let text = told.unwrap().to_string();
        assert!(text.contains("HELLO does not prove membership"), "{text}");
    }
}

#[test]
fn what_is_dropped_repeated_or_swapped_ends_the_connection() {
    for unit in 1..4 {
        let mut held = Vec::new();
        let drop_it = |number, bytes| if number == unit { vec![] } else { vec![bytes] };
        let twice = |number, bytes: Vec<u8>| vec![bytes; if number == unit { 2 } else { 1 }];
        let swap = |number, bytes: Vec<u8>| {
            if number == unit {
                held = bytes;
                return vec![];
            }
            let mut units = vec![bytes];
            if number == unit + 1 {
                units.push(std::mem::take(&mut held));
            }
            units
        };
        let cases: [(&str, Box<Tamper<'_>>); 3] = [
            ("dropped", Box::new(drop_it)),
            ("repeated", Box::new(twice)),
            ("swapped", Box::new(swap)),
        ];
        for (what, mut tamper) in cases {
            let (stage, told) = tampered(&mut *tamper);
            let got = stage.acceptor.messages().len();
            // The first copy of a repeated unit is good.
            let good = (unit - 1).saturating_sub(usize::from(what != "repeated"));
            assert!(got <= good, "{what} {unit}: {got} messages");
            let text = told.unwrap_or_else(|| panic!("{what} {unit}")).to_string();
            assert!(is_right(&text, unit), "{what} {unit}: {text}");
        }
    }
}

/// Checks the acceptor's reason after the proof (unit 1) has come. A second proof is taken for a
/// record.
fn is_right(reason: &str, unit: usize) -> bool {
    reason.contains("changed, left out or repeated")
        || unit == 1 && reason.contains("the peer ended the stream")
        || unit == 1 && reason.contains("it has from 17 to 65552")
}

#[test]
fn records_of_another_connection_are_refused() {
    let (other, _) = tampered(&mut untouched);
    let acceptor_policy = other.middle.up.seen;
    for (unit, other) in acceptor_policy.iter().enumerate().skip(1) {
        let (stage, told) =
            tampered(&mut |number, bytes| vec![if number == unit { other.clone() } else { bytes }]);
        assert!(stage.acceptor.messages().len() < MESSAGES.len());
        let text = told.unwrap().to_string();
        assert!(is_right(&text, unit), "unit {unit}: {text}");
    }
}

#[test]
fn a_recorded_connection_cannot_be_played_again() {
    let (mut stage, _) = tampered(&mut untouched);
    let recorded = stage.middle.up.seen.concat();
    stage.acceptor.events.clear();
    let mut replay = TcpStream::connect(stage.acceptor.fabric.location()).unwrap();
    replay.write_all(&recorded).unwrap();
    replay.set_nonblocking(true).unwrap();
    let mut answer = Vec::new();
    loop {
        stage.acceptor.poll();
        match replay.read_to_end(&mut answer) {
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    assert!(stage.acceptor.events.is_empty(), "it is never a peer");
}

#[test]
fn nothing_on_the_way_shows_what_was_sent() {
    let mut stage = Stage::sealed();
    stage.open();
    let plain: Vec<u8> = ROW.iter().copied().cycle().take(300_000).collect();
    let lease = stage
        .acceptor
        .pool
        .try_lease(256 << 10, Purpose::Read)
        .unwrap();
    let accepted = stage.acceptor.connection.unwrap();
    let exposed = stage
        .acceptor
        .fabric
        .expose(accepted, Exposure::Writable(lease));
    let range: RemoteRange = exposed.map_err(drop).unwrap();
    let mut source = stage
        .connector
        .pool
        .try_lease(256 << 10, Purpose::Serve)
        .unwrap();
    source.bytes_mut().copy_from_slice(&plain[..256 << 10]);
    let write = PostedWrite {
        token: 1,
        source: WriteSource::part(Arc::new(source), 0, 256 << 10),
        target: range,
        immediate: None,
        last: false,
    };
    let connection = stage.connector.connection.unwrap();
    stage
        .connector
        .fabric
        .write(connection, write)
        .map_err(drop)
        .unwrap();
    stage.connector.say(&plain);
    stage.until("the message", &mut pass, |stage| {
        !stage.acceptor.messages().is_empty()
    });
    assert_eq!(stage.acceptor.messages(), [&plain[..]]);
    match stage.acceptor.fabric.revoke(range.key) {
        RevokeStatus::Now(exposure) => assert!(exposure.lease().bytes() == &plain[..256 << 10]),
        _ => panic!("not revoked at once"),
    }
    let seen = stage.middle.up.seen.concat();
    assert!(seen.len() > 556_000);
    let key = range.key.to_le_bytes();
    assert!(!seen.windows(12).any(|bytes| bytes == &ROW[..12]));
    assert!(
        !seen.windows(8).any(|bytes| bytes == key),
        "nor what names memory"
    );
    for side in [&stage.connector, &stage.acceptor] {
        let id = side.identity.endpoint.to_le_bytes();
        assert!(!seen.windows(16).any(|bytes| bytes == id), "nor who it is");
    }
}

#[test]
fn who_is_not_of_the_application_is_refused_by_name_of_the_cause() {
    let member = || identity(20, "spark's");
    let sealed = Protection::Sealed;
    let unproven = "HELLO does not prove membership in this application";
    let differ = "the security settings differ";
    let cases = [
        (identity(20, "another"), sealed, unproven),
        (identity(21, "spark's"), sealed, unproven),
        (OwnIdentity::public(20), sealed, unproven),
        (member(), Protection::Clear, differ),
    ];
    for (expected, protection, cause) in cases {
        let mut stage = Stage::new(
            Side::new(identity(10, "spark's"), protection),
            Side::sealed(20),
        );
        stage.acceptor.identity = member();
        let deadline = Instant::now() + TIMEOUT;
        let location = stage.acceptor.fabric.location();
        let connection = stage
            .connector
            .fabric
            .connect(&location, &expected, deadline)
            .unwrap();
        stage.until("a refusal", &mut pass, |stage| {
            stage.connector.events.iter().any(
                |event| matches!(event, Event::Closed { connection: got, .. } if *got == connection),
            )
        });
        let reason = stage.connector.events.iter().find_map(|event| match event {
            Event::Closed {
                connection: got,
                reason,
            } if *got == connection => Some(reason.to_string()),
            _ => None,
        });
        let reason = reason.unwrap();
        assert!(reason.contains(cause), "{reason}");
        assert!(
            !reason.contains("spark's") && !reason.contains("another secret s"),
            "{reason}"
        );
    }
    // The other way round: the acceptor has its bytes in the clear.
    let clear = Side::new(member(), Protection::Clear);
    let mut stage = Stage::new(Side::sealed(10), clear);
    stage.until("a refusal", &mut pass, |stage| {
        stage.connector.closed().is_some()
    });
    assert!(stage
        .connector
        .closed()
        .unwrap()
        .to_string()
        .contains(differ));
    assert!(stage.acceptor.events.is_empty());
}

/// Shared memory's bytes are the same in both cases, but each side must refuse one with other
/// settings.
#[test]
fn shm_refuses_a_peer_that_is_protected_in_the_other_way() {
    use Protection::{Clear, Sealed};
    for (connector_policy, acceptor_policy) in [
        (Clear, Clear),
        (Sealed, Sealed),
        (Clear, Sealed),
        (Sealed, Clear),
    ] {
        let mut connector = Side::shm(identity(10, "spark's"), connector_policy);
        let mut acceptor = Side::shm(identity(20, "spark's"), acceptor_policy);
        let (location, deadline) = (acceptor.fabric.location(), Instant::now() + TIMEOUT);
        let expected = acceptor.identity.clone();
        connector
            .fabric
            .connect(&location, &expected, deadline)
            .unwrap();
        while connector.connection.is_none() && connector.closed().is_none() {
            connector.poll();
            acceptor.poll();
        }
        if connector_policy != acceptor_policy {
            let reason = connector.closed().unwrap().to_string();
            assert!(
                reason.contains("the security settings differ"),
                "{connector_policy:?}: {reason}"
            );
            assert!(acceptor.events.is_empty());
            continue;
        }
        connector.say(ROW);
        while acceptor.messages().is_empty() {
            assert!(connector.closed().is_none(), "{:?}", connector.closed());
            connector.poll();
            acceptor.poll();
        }
        assert_eq!(acceptor.messages(), [ROW]);
    }
}
