//! The TCP port that all applications of a service share.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../endpoint/tests/support/mod.rs"]
#[macro_use]
mod support;
#[path = "support/executors.rs"]
mod executors;
#[path = "support/host.rs"]
mod host;

use executors::{read, reader};
use faro_service::{Options, Service};
use faro_wire::Card;
use host::{options, Host};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use support::{block, fetch, until};

#[test]
fn all_applications_are_behind_one_port() {
    let host = Host::new();
    let clients = [1, 2].map(|application| host.client(application).unwrap());
    let readers = [1, 2].map(reader);
    for (client, text) in clients.iter().zip(["of the first", "of the second"]) {
        host.handed(client, 5, text).unwrap();
        let address = host.service.address().to_string();
        let card = Card::decode(client.card()).unwrap();
        assert!(card.addresses.iter().all(|one| one.location == address));
    }
    let blocks = [0, 1].map(|at| read(&readers[at], clients[at].card(), 5));
    assert_eq!(blocks[0][0].1, b"of the first");
    assert_eq!(blocks[1][0].1, b"of the second");
    // One has connected and said nothing when the first application ends.
    let mut newcomer = TcpStream::connect(host.service.address()).unwrap();
    clients[0].end().unwrap();
    let card = clients[0].card();
    let late = reader(1);
    let peer = late.add_peer(card).unwrap();
    assert!(fetch(&late, peer, &[block(1, 5, 0, 1)]).failure.is_some());
    assert_eq!(
        read(&readers[1], clients[1].card(), 5)[0].1,
        b"of the second"
    );
    // It is refused as all are that prove nothing.
    newcomer.write_all(&[b'x'; 32]).unwrap();
    let mut told = Vec::new();
    newcomer.read_to_end(&mut told).unwrap();
    assert!(told.starts_with(b"FARO"), "{told:?}");
    // Each of the two readers came once; the late one and the newcomer were told why not.
    assert_eq!(host.figure("connections_passed_on_total"), 2);
    until("both are counted", || {
        host.figure("handshakes_failed_total") == 2
    });
    assert_eq!(host.figure("connections_refused_total"), 0);
    for endpoint in [&readers[0], &readers[1], &late] {
        endpoint.close();
    }
}

#[test]
fn a_restart_takes_the_same_port_and_no_old_card() {
    let host = Host::new();
    let client = host.client(1).unwrap();
    host.handed(&client, 5, "before").unwrap();
    let (port, before) = (host.service.address().port(), client.card().to_vec());
    let host = Host::small(host.stop(), |options| options.port = port);
    assert_eq!(host.service.address().port(), port);
    let client = host.client(1).unwrap();
    let reader = reader(1);
    let old = reader.add_peer(&before).unwrap();
    let failure = fetch(&reader, old, &[block(1, 5, 0, 1)]).failure.unwrap();
    let failure = failure.detail;
    assert!(failure.contains("does not prove membership"), "{failure}");
    assert_eq!(read(&reader, client.card(), 5)[0].1, b"before");
    reader.close();
}

#[test]
fn a_port_that_is_taken_is_named() {
    let host = Host::new();
    let address = host.service.address();
    let dir = tempfile::tempdir().unwrap();
    let same = Options {
        port: address.port(),
        ..options(dir.path())
    };
    let error = Service::open(same).err().unwrap().to_string();
    for part in [&address.to_string(), "in use", "--port"] {
        assert!(error.contains(part), "{part} in {error}");
    }
}
