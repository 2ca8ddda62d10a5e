//! While a device looks for one peer, the others are served.
//!
//! Needs a device that lets connecting wait, which `tests/softroce/nic.c` makes of any: the case
//! `connecting` of `tests/softroce/suite`.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_fabric::verbs::{VerbsConfig, VerbsFabric, VerbsOptions};
use faro_fabric::{CloseReason, ConnectionId, Event, Fabric, Identity, Message, OwnIdentity};
use faro_pool::Pool;
use faro_secure::Protection;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// As in the suite's case: connecting waits while this file is there, and the other one is made.
const HOLD: &str = "/tmp/faro-hold";
const HELD: &str = "/tmp/faro-hold.held";
/// Only a hang reaches it.
const TIMEOUT: Duration = Duration::from_secs(3_600);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The files are the same for all tests.
fn alone() -> MutexGuard<'static, ()> {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for file in [HOLD, HELD] {
        drop(fs::remove_file(file));
    }
    alone
}

fn fabric(endpoint: u128) -> VerbsFabric {
    VerbsFabric::new(VerbsConfig {
        bind: SocketAddr::from(([127, 0, 0, 1], 0)),
        advertise: String::new(),
        identity: OwnIdentity::public(endpoint),
        protection: Protection::Clear,
        pool: Pool::new(64 << 20).unwrap(),
        options: VerbsOptions::default(),
    })
    .unwrap()
}

/// One turn of every fabric, and its events.
fn poll(fabrics: &mut [VerbsFabric]) -> Vec<Event> {
    let mut events = Vec::new();
    for fabric in fabrics {
        fabric.poll(&mut events, Duration::ZERO).unwrap();
    }
    events
}

/// Returns the first event that `wanted` takes.
fn wait<T>(fabrics: &mut [VerbsFabric], wanted: impl Fn(&Event) -> Option<T>) -> T {
    loop {
        let events = poll(fabrics);
        for event in &events {
            if let Event::Closed { reason, .. } = event {
                panic!("{reason}");
            }
        }
        if let Some(found) = events.iter().find_map(&wanted) {
            return found;
        }
    }
}

fn connect(fabrics: &mut [VerbsFabric], to: usize) -> ConnectionId {
    let (location, deadline) = (fabrics[to].location(), Instant::now() + TIMEOUT);
    let expected = Identity::public(to as u128 + 1);
    fabrics[0].connect(&location, &expected, deadline).unwrap()
}

#[test]
#[ignore = "needs an RDMA device behind tests/softroce/nic.c: tests/softroce/suite connecting"]
fn a_peer_that_is_looked_for_holds_up_no_other() {
    let _alone = alone();
    let mut fabrics = [fabric(1), fabric(2), fabric(3)];
    let opened = |id: ConnectionId| {
        move |event: &Event| match event {
            Event::Connected { connection, .. } if *connection == id => Some(()),
            _ => None,
        }
    };
    let near = connect(&mut fabrics, 1);
    wait(&mut fabrics, opened(near));
    fs::write(HOLD, "").unwrap();
    let far = connect(&mut fabrics, 2);
    while !Path::new(HELD).exists() {
        assert!(poll(&mut fabrics)
            .iter()
            .all(|event| !matches!(event, Event::Closed { .. })));
    }
    let message = Message {
        kind: faro_wire::kind::FIRST_MESSAGE,
        id: 42,
        body: b"while another waits".to_vec(),
    };
    fabrics[0].send(near, message).map_err(drop).unwrap();
    let came = wait(&mut fabrics, |event| match event {
        Event::Message { message, .. } => Some(message.id),
        _ => None,
    });
    assert_eq!(came, 42);
    fs::remove_file(HOLD).unwrap();
    wait(&mut fabrics, opened(far));
}

/// The queue pair and its memory come back when the device has given up.
#[test]
#[ignore = "needs an RDMA device behind tests/softroce/nic.c: tests/softroce/suite connecting"]
fn a_connection_may_end_while_its_peer_is_looked_for() {
    let _alone = alone();
    let mut fabrics = [fabric(1), fabric(2)];
    let before = fabrics[0].connection_bytes();
    fs::write(HOLD, "").unwrap();
    let id = connect(&mut fabrics, 1);
    while !Path::new(HELD).exists() {
        poll(&mut fabrics);
    }
    fabrics[0].disconnect(id, CloseReason::Local);
    let is_closed =
        |event: &Event| matches!(event, Event::Closed { connection, .. } if *connection == id);
    while !poll(&mut fabrics).iter().any(is_closed) {}
    fs::remove_file(HOLD).unwrap();
    while fabrics
        .iter()
        .any(|fabric| fabric.connection_bytes() > before)
    {
        poll(&mut fabrics);
    }
    // The next connection works.
    let again = connect(&mut fabrics, 1);
    let opened = |event: &Event| match event {
        Event::Connected { connection, .. } if *connection == again => Some(()),
        _ => None,
    };
    wait(&mut fabrics, opened);
}
