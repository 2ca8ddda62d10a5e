//! Connections between InfiniBand ports: how they are addressed, what is refused, and a new LID.
//!
//! Needs a device that answers as InfiniBand's, which `tests/softroce/nic.c` makes of software RoCE
//! and `tests/softroce/infiniband` of its files: the case `infiniband` of `tests/softroce/suite`. The
//! port there takes only packets with a global header, of the third P_Key, with service level 3, to
//! a LID of now.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_fabric::verbs::{VerbsConfig, VerbsFabric, VerbsOptions};
use faro_fabric::{ConnectionId, Event, Fabric, Identity, Message, OwnIdentity};
use faro_pool::Pool;
use faro_secure::Protection;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// As in the suite's case.
const SERVICE_LEVEL: u8 = 3;
const PARTITION: [&str; 2] = ["2", "0x8005"];
/// The LID of the port; without the file, its host's number.
const LID: &str = "/tmp/faro-lid";
/// Only a hang reaches it.
const TIMEOUT: Duration = Duration::from_secs(3_600);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Returns the guard of the port's files, which are the same for all tests.
fn alone() -> MutexGuard<'static, ()> {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    drop(fs::remove_file(LID));
    put("link_layer", "InfiniBand");
    put(&format!("pkeys/{}", PARTITION[0]), PARTITION[1]);
    alone
}

/// Has sysfs show another value of the port.
fn put(file: &str, value: &str) {
    let directory = PathBuf::from(std::env::var_os("FARO_PORT").unwrap());
    fs::write(directory.join(file), value).unwrap();
}

fn run(command: &str) {
    let mut words = command.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status();
    assert!(status.unwrap().success(), "{command}");
}

fn fabric(endpoint: u128) -> VerbsFabric {
    VerbsFabric::new(VerbsConfig {
        bind: SocketAddr::from(([127, 0, 0, 1], 0)),
        advertise: String::new(),
        identity: OwnIdentity::public(endpoint),
        protection: Protection::Clear,
        pool: Pool::new(64 << 20).unwrap(),
        options: VerbsOptions {
            service_level: SERVICE_LEVEL,
            ..VerbsOptions::default()
        },
    })
    .unwrap()
}

/// Two fabrics, the first of which connects.
struct Pair {
    fabrics: [VerbsFabric; 2],
    /// The events of each.
    events: [Vec<Event>; 2],
}

impl Pair {
    fn of(fabrics: [VerbsFabric; 2]) -> Self {
        let events = [Vec::new(), Vec::new()];
        Self { fabrics, events }
    }

    fn connect(&mut self) -> ConnectionId {
        let (location, deadline) = (self.fabrics[1].location(), Instant::now() + TIMEOUT);
        let expected = Identity::public(2);
        self.fabrics[0]
            .connect(&location, &expected, deadline)
            .unwrap()
    }

    /// Drives both until `done`.
    fn until(&mut self, done: impl Fn(&[Vec<Event>; 2]) -> bool) {
        while !done(&self.events) {
            for (fabric, events) in self.fabrics.iter_mut().zip(&mut self.events) {
                fabric.poll(events, Duration::ZERO).unwrap();
            }
        }
    }

    /// Connects and passes a message.
    fn pass(&mut self, id: u64) {
        self.events = [Vec::new(), Vec::new()];
        let connection = self.connect();
        let opened = |event: &Event| matches!(event, Event::Connected { .. });
        self.until(|[own, peer]| {
            assert_eq!([own, peer].map(|events| closed(events)), [None, None]);
            own.iter().any(opened)
        });
        let message = Message {
            kind: faro_wire::kind::FIRST_MESSAGE,
            id,
            body: b"over InfiniBand".to_vec(),
        };
        let sent = self.fabrics[0].send(connection, message);
        sent.map_err(drop).unwrap();
        let came =
            |event: &Event| matches!(event, Event::Message { message, .. } if message.id == id);
        self.until(|[own, peer]| {
            assert_eq!([own, peer].map(|events| closed(events)), [None, None]);
            peer.iter().any(came)
        });
    }

    /// Waits until the first has given up to connect, and returns why. The other one never had a
    /// connection.
    fn refusal(&mut self) -> String {
        self.connect();
        self.until(|[own, _]| closed(own).is_some());
        closed(&self.events[0]).unwrap()
    }

    /// Waits until both have ended a connection, and returns why.
    fn reasons(&mut self) -> [String; 2] {
        self.until(|events| events.iter().all(|events| closed(events).is_some()));
        [0, 1].map(|at| closed(&self.events[at]).unwrap())
    }
}

fn closed(events: &[Event]) -> Option<String> {
    events.iter().find_map(|event| match event {
        Event::Closed { reason, .. } => Some(reason.to_string()),
        _ => None,
    })
}

#[test]
#[ignore = "needs an RDMA device behind tests/softroce/nic.c: tests/softroce/suite infiniband"]
fn packets_are_addressed_as_the_port_wants_them() {
    let _alone = alone();
    Pair::of([fabric(1), fabric(2)]).pass(42);
}

#[test]
#[ignore = "needs an RDMA device behind tests/softroce/nic.c: tests/softroce/suite infiniband"]
fn a_peer_on_ethernet_is_refused() {
    let _alone = alone();
    let own = fabric(1);
    put("link_layer", "Ethernet");
    let reason = Pair::of([own, fabric(2)]).refusal();
    let words = "the peer's RDMA port is of InfiniBand, this host's of Ethernet";
    assert!(reason.contains(words), "{reason}");
}

#[test]
#[ignore = "needs an RDMA device behind tests/softroce/nic.c: tests/softroce/suite infiniband"]
fn a_peer_in_another_partition_is_refused() {
    let _alone = alone();
    let own = fabric(1);
    put(&format!("pkeys/{}", PARTITION[0]), "0x8006");
    let reason = Pair::of([own, fabric(2)]).refusal();
    let words = "in the partition 0x8005 (P_Key), this host's in 0x8006";
    assert!(reason.contains(words), "{reason}");
}

/// The subnet manager gives the port another LID: connections to the old one end, new ones use the new
/// one, on the same device.
#[test]
#[ignore = "needs an RDMA device behind tests/softroce/nic.c: tests/softroce/suite infiniband"]
fn a_new_lid_ends_connections_and_makes_new_ones() {
    let _alone = alone();
    let mut pair = Pair::of([fabric(1), fabric(2)]);
    pair.pass(1);
    fs::write(LID, "257").unwrap();
    // Which the port tells as a change of its LID.
    run("ip addr add 10.77.9.1/24 dev eth0");
    let reasons = pair.reasons();
    run("ip addr del 10.77.9.1/24 dev eth0");
    let words = "the port's LID changed from 1 to 257 (";
    assert!(
        reasons.iter().any(|reason| reason.contains(words)),
        "{reasons:?}"
    );
    pair.pass(2);
}

/// Queue pairs name a place in the table, where another partition is now.
#[test]
#[ignore = "needs an RDMA device behind tests/softroce/nic.c: tests/softroce/suite infiniband"]
fn a_partition_that_is_taken_away_ends_connections() {
    let _alone = alone();
    let mut pair = Pair::of([fabric(1), fabric(2)]);
    pair.pass(1);
    put(&format!("pkeys/{}", PARTITION[0]), "0x0005");
    run("ip addr add 10.77.9.1/24 dev eth0");
    let reasons = pair.reasons();
    run("ip addr del 10.77.9.1/24 dev eth0");
    let words = "its partition (P_Key) changed";
    assert!(
        reasons.iter().any(|reason| reason.contains(words)),
        "{reasons:?}"
    );
}
