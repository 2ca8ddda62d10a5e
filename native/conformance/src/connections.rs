//! Connecting, identity, addresses, waking.

use crate::{Bench, Rig};
use faro_fabric::RemoteRange;
use faro_fabric::{
    CloseReason, ConnectionId, Event, Exposure, FabricError, Identity, Message, Read, RejectedPost,
    Write, WriteSource,
};
use faro_sync::clock::now;
use std::sync::Arc;
use std::time::Duration;

fn closed(rig: &mut Rig, station: usize, connection: ConnectionId) -> CloseReason {
    rig.wait(station, "Closed", |event| match event {
        Event::Closed {
            connection: got,
            reason,
        } if *got == connection => Some(reason.clone()),
        _ => None,
    })
}

/// Both ends learn the other's endpoint.
pub fn connects_and_names_both_ends(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 2);
    let (local, remote) = (rig.at(0).identity.endpoint, rig.at(1).identity.endpoint);
    let connection = rig.connect(0, 1);
    let named = rig.wait(0, "Connected", |event| match event {
        Event::Connected {
            connection,
            endpoint,
        } => Some((*connection, *endpoint)),
        _ => None,
    });
    assert_eq!(named, (connection, remote));
    let named = rig.wait(1, "Accepted", |event| match event {
        Event::Accepted { endpoint, .. } => Some(*endpoint),
        _ => None,
    });
    assert_eq!(named, local);
    assert_eq!(rig.counter(0, "connected"), 1);
    assert_eq!(rig.counter(1, "accepted"), 1);
}

/// The connector detects that another endpoint has the address; the acceptor reports nothing.
pub fn refuses_to_be_mistaken_for_another(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 2);
    let location = rig.fabric(1).location();
    let got = rig.at(1).identity.endpoint;
    let expected = Identity::public(got ^ 1);
    let connection = rig
        .fabric(0)
        .connect(&location, &expected, Rig::deadline())
        .expect("the location is good");
    let reason = closed(&mut rig, 0, connection);
    assert!(matches!(reason, CloseReason::Peer { .. }), "{reason}");
    let reason = reason.to_string();
    assert!(reason.contains("does not prove membership"), "{reason}");
    assert!(
        !reason.contains(&format!("{got:x}")),
        "unauthenticated peers learn no id"
    );
    assert!(rig.events(1).is_empty(), "never a peer of the other side");
}

/// No endpoint listens there.
pub fn no_endpoint_there_ends_in_unreachable(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 1);
    let location = bench.nowhere();
    let connection = rig
        .fabric(0)
        .connect(&location, &Identity::public(7), Rig::deadline())
        .expect("the location is of the right form");
    match closed(&mut rig, 0, connection) {
        CloseReason::Unreachable { location: got, .. } => assert_eq!(got, location),
        reason => panic!("expected Unreachable, got {reason}"),
    }
    assert!(rig.events(0).is_empty());
}

/// A process listens there but does not answer.
pub fn a_silent_place_ends_at_the_deadline(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 2);
    rig.sleep(1, true);
    let location = rig.fabric(1).location();
    let expected = rig.at(1).identity.clone();
    let deadline = now() + Duration::from_millis(20);
    let connection = rig
        .fabric(0)
        .connect(&location, &expected, deadline)
        .expect("the location is good");
    let reason = closed(&mut rig, 0, connection);
    assert!(
        matches!(reason, CloseReason::Unreachable { .. }),
        "{reason}"
    );
    assert!(now() >= deadline, "not before the deadline");
}

/// A location that cannot exist is an error of the call.
pub fn nonsense_is_no_location(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 1);
    for nonsense in ["", ":", "no such place", "example.invalid:1", "a/b/c\0"] {
        let result = rig
            .fabric(0)
            .connect(nonsense, &Identity::public(7), Rig::deadline());
        assert!(
            matches!(result, Err(FabricError::BadLocation { .. })),
            "{nonsense:?}: {result:?}"
        );
    }
}

/// Each side connects: two connections, each usable both ways.
pub fn both_connect_at_once(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 2);
    let (dialed, remote) = (rig.connect(0, 1), rig.connect(1, 0));
    for (station, connection) in [(0, dialed), (1, remote)] {
        rig.wait(station, "Connected", |event| match event {
            Event::Connected {
                connection: got, ..
            } if *got == connection => Some(()),
            _ => None,
        });
        let accepted = rig.wait(station, "Accepted", |event| match event {
            Event::Accepted { connection, .. } => Some(*connection),
            _ => None,
        });
        assert_ne!(accepted, connection);
        rig.say((station, accepted), 1, b"over the accepted one");
    }
    rig.say((0, dialed), 2, b"over ours");
    rig.say((1, remote), 2, b"over theirs");
    for end in [(0, dialed), (1, remote)] {
        assert_eq!(rig.hear(end).body, b"over the accepted one");
    }
}

/// A connection's number is never given to another.
pub fn peers_are_never_reused(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 2);
    let mut seen = Vec::new();
    for _ in 0..20 {
        let link = rig.link(0, 1);
        assert!(!seen.contains(&link.from.1));
        seen.push(link.from.1);
        rig.fabric(0).disconnect(link.from.1, CloseReason::Local);
        closed(&mut rig, 0, link.from.1);
        closed(&mut rig, 1, link.to.1);
    }
}

/// Operations without a connection are refused.
pub fn what_is_not_connected_is_handed_back(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let pending = rig.connect(0, 1);
    rig.fabric(0).disconnect(link.from.1, CloseReason::Local);
    for connection in [link.from.1, pending, ConnectionId(u64::MAX)] {
        let source = Arc::new(rig.lease(0, 64, 1));
        let target = RemoteRange {
            key: 1,
            offset: 0,
            length: 64,
        };
        let message = Message {
            kind: faro_wire::kind::FIRST_MESSAGE,
            id: 1,
            body: b"x".to_vec(),
        };
        match rig.fabric(0).send(connection, message.clone()) {
            Err(RejectedPost::NotConnected(got, named)) => {
                assert_eq!((got, named), (message, connection))
            }
            other => panic!("{other:?}"),
        }
        let write = Write {
            token: 5,
            source: WriteSource::part(source.clone(), 0, 64),
            target,
            immediate: None,
            last: false,
        };
        assert!(matches!(
            rig.fabric(0).write(connection, write),
            Err(RejectedPost::NotConnected(Write { token: 5, .. }, _))
        ));
        let read = Read {
            token: 6,
            source: target,
            target: rig.lease(0, 64, 1),
        };
        assert!(matches!(
            rig.fabric(0).read(connection, read),
            Err(RejectedPost::NotConnected(Read { token: 6, .. }, _))
        ));
        assert!(matches!(
            rig.fabric(0).expose(connection, Exposure::Readable(source)),
            Err(RejectedPost::NotConnected(Exposure::Readable(_), _))
        ));
    }
}

/// `poll` waits no longer than its timeout, and not at all once woken.
pub fn an_idle_poll_returns_and_a_waker_wakes_it(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 1);
    let mut events = Vec::new();
    let start = now();
    let timeout = Duration::from_millis(5);
    rig.fabric(0)
        .poll(&mut events, timeout)
        .expect("poll works");
    assert!(now() - start < Duration::from_secs(20));
    // If a wake-up were lost, these polls would take longer than the suite's deadline.
    let waker = rig.fabric(0).waker();
    for from_elsewhere in [false, true, false, true] {
        let start = now();
        if from_elsewhere {
            let waker = waker.clone();
            std::thread::spawn(move || waker())
                .join()
                .expect("the waker does not panic");
        } else {
            waker();
            waker();
        }
        rig.fabric(0)
            .poll(&mut events, Duration::from_secs(600))
            .expect("poll works");
        assert!(now() - start < Duration::from_secs(60));
    }
    assert!(events.is_empty());
}
