//! Two endpoints have one connection, however they come by it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/scripted.rs"]
mod scripted;
mod support;

use faro_endpoint::{Endpoint, FabricChoice};
use faro_fabric::{CloseReason, ConnectionId};
use faro_wire::message::Fetch;
use faro_wire::Card;
use scripted::{card, Scripted};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Barrier, Mutex};
use support::{block, collect, config, counter, fetch, pattern, until, Owner, PATIENCE};

fn owners(fabric: FabricChoice) -> [Owner; 2] {
    [0, 1].map(|n| {
        let owner = Owner::start(config("owner", fabric));
        owner.put(0, n, &[pattern(n as u64, 700_000)]);
        owner
    })
}

/// Fetches what the other one has.
fn fetch_from(reader: &Endpoint, peer: u64, owner: i64) {
    let bytes = fetch(reader, peer, &[block(0, owner, 0, 1)]).bytes();
    assert_eq!(bytes, [pattern(owner as u64, 700_000)]);
}

fn one_connection_is_left(owners: &[Owner; 2], name: &str) {
    let gauge = format!("connections.{name}");
    until("one connection is left", || {
        owners.iter().all(|o| counter(&o.endpoint, &gauge) == 1)
    });
}

fn nothing_went_wrong(owners: &[Owner; 2]) {
    for owner in owners {
        for name in ["retries", "routeBackoffs", "requestsFailed", "lateMessages"] {
            assert_eq!(counter(&owner.endpoint, name), 0, "{name}");
        }
    }
}

fn who_comes_second_uses_what_is_there(fabric: FabricChoice, name: &str) {
    let owners = owners(fabric);
    let [one, two] = &owners;
    fetch_from(&one.endpoint, two.peer_of(&one.endpoint), 1);
    fetch_from(&two.endpoint, one.peer_of(&two.endpoint), 0);
    fetch_from(&one.endpoint, two.peer_of(&one.endpoint), 1);
    for owner in &owners {
        assert_eq!(counter(&owner.endpoint, &format!("connections.{name}")), 1);
        assert_eq!(counter(&owner.endpoint, "duplicateConnections"), 0);
    }
    nothing_went_wrong(&owners);
}

#[test]
fn who_comes_second_uses_what_is_there_over_tcp() {
    who_comes_second_uses_what_is_there(FabricChoice::Tcp, "tcp");
}

#[test]
fn who_comes_second_uses_what_is_there_over_shm() {
    who_comes_second_uses_what_is_there(FabricChoice::Shm, "shm");
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn who_comes_second_uses_what_is_there_over_verbs() {
    who_comes_second_uses_what_is_there(FabricChoice::Verbs, "verbs");
}

/// Both start at once; whether they cross is chance, and must not matter. That they cross for sure
/// is below, and in the model beside `Links`.
fn both_at_once(fabric: FabricChoice, name: &str) {
    for _ in 0..10 {
        let owners = owners(fabric);
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            for me in [0, 1] {
                let (owners, start) = (&owners, &start);
                scope.spawn(move || {
                    let reader = &owners[me].endpoint;
                    let peer = owners[1 - me].peer_of(reader);
                    start.wait();
                    let other = 1 - me as i64;
                    let blocks = [block(0, other, 0, 1)];
                    let requests = [0; 3].map(|_| reader.fetch(peer, &blocks, PATIENCE).unwrap());
                    for (_, fetched) in collect(reader, &requests) {
                        assert_eq!(fetched.bytes(), [pattern(other as u64, 700_000)]);
                    }
                });
            }
        });
        one_connection_is_left(&owners, name);
        let [one, two] = &owners;
        fetch_from(&one.endpoint, two.peer_of(&one.endpoint), 1);
        fetch_from(&two.endpoint, one.peer_of(&two.endpoint), 0);
        nothing_went_wrong(&owners);
        let given_up = owners
            .iter()
            .map(|o| counter(&o.endpoint, "duplicateConnections"));
        let given_up: u64 = given_up.sum();
        assert!(given_up <= 1, "only the larger id gives up, once");
    }
}

#[test]
fn both_at_once_over_tcp() {
    both_at_once(FabricChoice::Tcp, "tcp");
}

#[test]
fn both_at_once_over_shm() {
    both_at_once(FabricChoice::Shm, "shm");
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn both_at_once_over_verbs() {
    both_at_once(FabricChoice::Verbs, "verbs");
}

#[test]
fn an_endpoint_may_fetch_from_itself() {
    let owner = Owner::start(config("owner", FabricChoice::Tcp));
    owner.put(0, 0, &[pattern(0, 700_000)]);
    let peer = owner.peer_of(&owner.endpoint);
    for _ in 0..3 {
        fetch_from(&owner.endpoint, peer, 0);
    }
    assert_eq!(counter(&owner.endpoint, "duplicateConnections"), 0);
    assert_eq!(counter(&owner.endpoint, "retries"), 0);
}

type Asked = (ConnectionId, u64, Fetch);

/// A scripted peer that answers nothing at first and connects on its own at the first fetch; at the
/// second it answers both, the second one first.
fn crossing(id: u128, reader: &Endpoint) -> (Scripted, Arc<Mutex<Vec<ConnectionId>>>) {
    let asked_on = Arc::new(Mutex::new(Vec::new()));
    let (seen, card) = (Arc::clone(&asked_on), reader.card());
    let mut asked: Vec<Asked> = Vec::new();
    let owner = Scripted::start_as(
        id,
        Box::new(move |stage, peer, id, fetch, _| {
            let Some(fetch) = fetch else { return };
            seen.lock().unwrap().push(peer);
            asked.push((peer, id, fetch));
            match asked.len() {
                1 => drop(stage.connect(&card)),
                2 => {
                    for (peer, id, fetch) in asked.iter().rev() {
                        stage.answer(*peer, *id, fetch, b"0123456789");
                    }
                }
                _ => stage.hang_up(peer),
            }
        }),
    );
    (owner, asked_on)
}

/// Two requests, the second one when there are two connections; both are answered after it.
fn fetch_across(reader: &Endpoint, peer: u64) {
    let blocks = [block(0, 0, 0, 1)];
    let first = reader.fetch(peer, &blocks, PATIENCE).unwrap();
    until("there are two", || counter(reader, "connections.tcp") == 2);
    let second = reader.fetch(peer, &blocks, PATIENCE).unwrap();
    for (_, fetched) in collect(reader, &[first, second]) {
        assert_eq!(fetched.bytes(), [b"0123456789".to_vec()]);
    }
    assert_eq!(
        counter(reader, "retries") + counter(reader, "routeBackoffs"),
        0
    );
}

#[test]
fn the_larger_id_gives_up_its_own_and_loses_no_fetch_on_it() {
    let reader = Endpoint::start(config("reader", FabricChoice::Tcp)).unwrap();
    let (owner, asked_on) = crossing(1, &reader);
    fetch_across(&reader, reader.add_peer(&owner.card).unwrap());
    let asked_on = asked_on.lock().unwrap().clone();
    assert_ne!(asked_on[0], asked_on[1], "the second fetch took the other");
    until("the first is given up", || {
        counter(&reader, "connections.tcp") == 1 && owner.closed.lock().unwrap().len() == 1
    });
    let reason = owner.closed.lock().unwrap()[0].clone();
    assert!(matches!(reason, CloseReason::Peer { .. }), "{reason}");
    assert_eq!(counter(&reader, "duplicateConnections"), 1);
}

#[test]
fn the_smaller_id_stays_with_its_own_as_long_as_it_is_there() {
    let reader = Endpoint::start(config("reader", FabricChoice::Tcp)).unwrap();
    let (owner, asked_on) = crossing(u128::MAX, &reader);
    let peer = reader.add_peer(&owner.card).unwrap();
    fetch_across(&reader, peer);
    // A third is hung up on; what follows takes the connection that is left.
    let third = fetch(&reader, peer, &[block(0, 0, 0, 1)]);
    assert_eq!(
        third.failure.unwrap().code,
        faro_wire::codes::FetchErrorCode::ConnectionLost
    );
    let asked_on = asked_on.lock().unwrap().clone();
    assert_eq!(asked_on[..3], [asked_on[0]; 3], "its own, three times");
    assert_ne!(asked_on[3], asked_on[0], "then the one that is left");
    assert_eq!(counter(&reader, "duplicateConnections"), 0);
}

/// Passes bytes on to `location`, until it is cut.
struct Relay {
    location: String,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn to(location: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap().to_string();
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let held = Arc::clone(&streams);
        // Ends with the test's process.
        std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let far = TcpStream::connect(&location).unwrap();
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                held.lock().unwrap().extend([near, far]);
            }
        });
        Self {
            location: here,
            streams,
        }
    }

    /// Says how many streams it had.
    fn cut(&self) -> usize {
        let streams: Vec<TcpStream> = self.streams.lock().unwrap().drain(..).collect();
        for stream in &streams {
            // An error: the one behind it was first and has ended it already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        streams.len()
    }
}

#[test]
fn a_connection_that_was_lost_is_made_anew_and_is_one_again() {
    let owners = owners(FabricChoice::Tcp);
    let relays = owners.each_ref().map(|owner| {
        let card = Card::decode(&owner.endpoint.card()).unwrap();
        Relay::to(card.addresses[0].location.clone())
    });
    let peers = [0, 1].map(|me: usize| {
        let other = Card::decode(&owners[1 - me].endpoint.card()).unwrap();
        let card = card(other.endpoint, &relays[1 - me].location);
        owners[me].endpoint.add_peer(&card).unwrap()
    });
    // Who needs it first after a loss makes it: once the one, once the other.
    for first in [0, 1, 0] {
        for me in [first, 1 - first] {
            fetch_from(&owners[me].endpoint, peers[me], 1 - me as i64);
        }
        one_connection_is_left(&owners, "tcp");
        let cut: usize = relays.iter().map(Relay::cut).sum();
        assert_eq!(cut, 2, "both ends of the one relayed connection");
        until("the loss is noticed", || {
            let left = owners
                .iter()
                .map(|o| counter(&o.endpoint, "connections.tcp"));
            left.sum::<u64>() == 0
        });
    }
    nothing_went_wrong(&owners);
}
