//! Two endpoints have one connection, however they come by it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/scripted.rs"]
mod scripted;
mod support;
#[path = "support/turns.rs"]
mod turns;
#[path = "support/virtual_time.rs"]
mod virtual_time;

use faro_endpoint::{Config, Endpoint, FabricChoice};
use faro_fabric::verbs::{VerbsConfig, VerbsFabric, VerbsOptions};
use faro_fabric::{CloseReason, ConnectionId, Event, Fabric, Identity, OwnIdentity};
use faro_pool::Pool;
use faro_wire::message::Fetch;
use faro_wire::Card;
use scripted::ScriptedPeer;
use std::cmp::Ordering;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};
use support::{block, collect, config, counter, fetch, pattern, until, Server, TIMEOUT};
use turns::Turns;
use virtual_time::{EndpointDriver, VirtualServer};

fn servers(fabric: FabricChoice) -> [Server; 2] {
    [0, 1].map(|n| {
        let server = Server::start(config("server", fabric));
        server.put(0, n, &[pattern(n as u64, 700_000)]);
        server
    })
}

/// Fetches what the other one has.
fn fetch_from(client: &Endpoint, peer: u64, server: i64) {
    let bytes = fetch(client, peer, &[block(0, server, 0, 1)]).bytes();
    assert_eq!(bytes, [pattern(server as u64, 700_000)]);
}

fn one_connection_is_left(servers: &[Server; 2], name: &str) {
    let gauge = format!("connections.{name}");
    until("one connection is left", || {
        servers.iter().all(|o| counter(&o.endpoint, &gauge) == 1)
    });
}

fn nothing_went_wrong(servers: &[Server; 2]) {
    for server in servers {
        for name in ["retries", "routeBackoffs", "requestsFailed", "lateMessages"] {
            assert_eq!(counter(&server.endpoint, name), 0, "{name}");
        }
    }
}

fn who_comes_second_uses_what_is_there(fabric: FabricChoice, name: &str) {
    let servers = servers(fabric);
    let [one, two] = &servers;
    fetch_from(&one.endpoint, two.peer_of(&one.endpoint), 1);
    fetch_from(&two.endpoint, one.peer_of(&two.endpoint), 0);
    fetch_from(&one.endpoint, two.peer_of(&one.endpoint), 1);
    for server in &servers {
        assert_eq!(counter(&server.endpoint, &format!("connections.{name}")), 1);
        assert_eq!(counter(&server.endpoint, "duplicateConnections"), 0);
    }
    nothing_went_wrong(&servers);
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

/// Both sides start at once. Whether their connections cross is chance, and must not matter. A test
/// below, and the model beside `Links`, make them cross.
fn both_at_once(fabric: FabricChoice, name: &str) {
    for _ in 0..10 {
        let servers = servers(fabric);
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            for me in [0, 1] {
                let (servers, start) = (&servers, &start);
                scope.spawn(move || {
                    let client = &servers[me].endpoint;
                    let peer = servers[1 - me].peer_of(client);
                    start.wait();
                    let other = 1 - me as i64;
                    let blocks = [block(0, other, 0, 1)];
                    let requests = [0; 3].map(|_| client.fetch(peer, &blocks, TIMEOUT).unwrap());
                    for (_, fetched) in collect(client, &requests) {
                        assert_eq!(fetched.bytes(), [pattern(other as u64, 700_000)]);
                    }
                });
            }
        });
        one_connection_is_left(&servers, name);
        let [one, two] = &servers;
        fetch_from(&one.endpoint, two.peer_of(&one.endpoint), 1);
        fetch_from(&two.endpoint, one.peer_of(&two.endpoint), 0);
        nothing_went_wrong(&servers);
        let given_up = servers
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
    let server = Server::start(config("server", FabricChoice::Tcp));
    server.put(0, 0, &[pattern(0, 700_000)]);
    let peer = server.peer_of(&server.endpoint);
    for _ in 0..3 {
        fetch_from(&server.endpoint, peer, 0);
    }
    assert_eq!(counter(&server.endpoint, "duplicateConnections"), 0);
    assert_eq!(counter(&server.endpoint, "retries"), 0);
}

/// Returns the bytes of the arena that are leased, without those of the chunk cache.
fn beside_the_cache(server: &VirtualServer) -> u64 {
    let leased = counter(&server.endpoint, "pool.leasedBytes");
    leased.saturating_sub(counter(&server.endpoint, "region.cachedBytes"))
}

/// Every endpoint fetches from every other. When all requests have ended, no connection must be
/// left. Over RDMA their rings are returned with them.
fn an_idle_cluster_has_no_connections(fabric: FabricChoice, name: &str) {
    const MEMBERS: usize = 4;
    const IDLE: Duration = Duration::from_secs(60);
    let turns = Turns::over(fabric);
    let servers: Vec<VirtualServer> = (0..MEMBERS as i64)
        .map(|n| {
            let config = Config {
                connection_idle: IDLE,
                ..config("server", fabric)
            };
            let server = VirtualServer::start(&turns, config);
            server.put(0, n, &[pattern(n as u64, 20_000)]);
            server
        })
        .collect();
    let gauge = format!("connections.{name}");
    let connections = |server: &VirtualServer| counter(&server.endpoint, &gauge);
    let before: Vec<u64> = servers.iter().map(beside_the_cache).collect();
    // They come back when they are needed.
    for _ in 0..2 {
        for (me, client) in servers.iter().enumerate() {
            for (other, server) in servers.iter().enumerate().filter(|(at, _)| *at != me) {
                let peer = server.peer_of(&client.endpoint);
                let blocks = [block(0, other as i64, 0, 1)];
                let fetched = virtual_time::fetch(&turns, &client.endpoint, peer, &blocks);
                assert_eq!(fetched.bytes(), [pattern(other as u64, 20_000)]);
            }
        }
        turns.pass(IDLE / 2);
        for server in &servers {
            assert_eq!(connections(server), MEMBERS as u64 - 1, "closed too early");
        }
        turns.pass(IDLE);
        turns.until("all connections are closed", &mut || {
            servers.iter().all(|server| connections(server) == 0)
        });
        turns.until("what they held is back", &mut || {
            servers.iter().map(beside_the_cache).eq(before.clone())
        });
    }
    for server in &servers {
        assert_eq!(counter(&server.endpoint, "requestsFailed"), 0);
    }
}

#[test]
fn an_idle_cluster_has_no_connections_over_tcp() {
    an_idle_cluster_has_no_connections(FabricChoice::Tcp, "tcp");
}

#[test]
fn an_idle_cluster_has_no_connections_over_shm() {
    an_idle_cluster_has_no_connections(FabricChoice::Shm, "shm");
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn an_idle_cluster_has_no_connections_over_verbs() {
    an_idle_cluster_has_no_connections(FabricChoice::Verbs, "verbs");
}

/// An endpoint whose connections hold most of what they may closes the least recently used of them,
/// before it has to refuse one.
#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn idle_connections_make_room_for_new_ones_over_verbs() {
    // An eighth of it is room for 204 connections; from 154 on they are too many.
    const SMALL: u64 = 32 << 20;
    const ALL: usize = 300;
    let server = Server::start(Config {
        memory_limit: SMALL,
        connection_idle: Duration::ZERO,
        ..config("server", FabricChoice::Verbs)
    });
    let card = Card::decode(&server.endpoint.card()).unwrap();
    let location = &card.addresses[0].location;
    // One peer may have 64 of them.
    let client = |number| {
        VerbsFabric::new(VerbsConfig {
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise: String::new(),
            identity: OwnIdentity::public(number),
            protection: faro_secure::Protection::Clear,
            pool: Pool::new(64 << 20).unwrap(),
            options: VerbsOptions::default(),
        })
        .unwrap()
    };
    let mut clients: Vec<_> = (7..12).map(client).collect();
    let (mut begun, mut open, mut closed) = (0, Vec::new(), Vec::new());
    until("all connections were open", || {
        // Beyond 180, only as many as have been closed: the server is to make room by itself.
        if begun < ALL && begun - closed.len() < 180 {
            let deadline = Instant::now() + TIMEOUT;
            let next = begun % clients.len();
            clients[next]
                .connect(location, &support::identity(&card), deadline)
                .unwrap();
            begun += 1;
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let mut events = Vec::new();
            client.poll(&mut events, Duration::ZERO).unwrap();
            for event in events {
                match event {
                    Event::Connected { connection, .. } => open.push((number, connection)),
                    Event::Closed { connection, .. } => {
                        assert!(open.contains(&(number, connection)), "none is refused");
                        closed.push((number, connection));
                    }
                    _ => {}
                }
            }
        }
        open.len() == ALL
    });
    let place = |closed| open.iter().position(|open| open == closed).unwrap();
    let last = closed.iter().map(place).max().unwrap();
    assert!(last < ALL - 50, "{last} was among the last used");
    let idle = counter(&server.endpoint, "idleConnections") as usize;
    assert!(idle >= ALL - 180, "{idle} were closed");
    assert!(counter(&server.endpoint, "connectionBytes") <= SMALL / 8);
}

type AskedFetch = (ConnectionId, u64, Fetch);

/// Returns a scripted peer that does not answer the first fetch and connects on its own; at the
/// second fetch it answers both, the second one first. `order` is that of its id and the client's.
fn crossing(order: Ordering, client: &Endpoint) -> (ScriptedPeer, Arc<Mutex<Vec<ConnectionId>>>) {
    let asked_on = Arc::new(Mutex::new(Vec::new()));
    let (seen, card) = (Arc::clone(&asked_on), client.card());
    let own = Card::decode(&card).unwrap().endpoint;
    let is_so = |number: &u128| Identity::public(*number).endpoint.cmp(&own) == order;
    let number = (0..).find(is_so).unwrap();
    let mut asked: Vec<AskedFetch> = Vec::new();
    let server = ScriptedPeer::start_as(
        number,
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
    (server, asked_on)
}

/// Makes two requests, the second one when there are two connections; both are answered after it.
fn fetch_across(client: &Endpoint, peer: u64) {
    let blocks = [block(0, 0, 0, 1)];
    let first = client.fetch(peer, &blocks, TIMEOUT).unwrap();
    until("there are two", || counter(client, "connections.tcp") == 2);
    let second = client.fetch(peer, &blocks, TIMEOUT).unwrap();
    for (_, fetched) in collect(client, &[first, second]) {
        assert_eq!(fetched.bytes(), [b"0123456789".to_vec()]);
    }
    assert_eq!(
        counter(client, "retries") + counter(client, "routeBackoffs"),
        0
    );
}

#[test]
fn the_larger_id_gives_up_its_own_and_loses_no_fetch_on_it() {
    let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
    let (server, asked_on) = crossing(Ordering::Less, &client);
    fetch_across(&client, client.add_peer(&server.card).unwrap());
    let asked_on = asked_on.lock().unwrap().clone();
    assert_ne!(asked_on[0], asked_on[1], "the second fetch took the other");
    until("the first is given up", || {
        counter(&client, "connections.tcp") == 1 && server.closed.lock().unwrap().len() == 1
    });
    let reason = server.closed.lock().unwrap()[0].clone();
    assert!(matches!(reason, CloseReason::Peer { .. }), "{reason}");
    assert_eq!(counter(&client, "duplicateConnections"), 1);
}

#[test]
fn the_smaller_id_stays_with_its_own_as_long_as_it_is_there() {
    let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
    let (server, asked_on) = crossing(Ordering::Greater, &client);
    let peer = client.add_peer(&server.card).unwrap();
    fetch_across(&client, peer);
    // A third is hung up on; what follows takes the connection that is left.
    let third = fetch(&client, peer, &[block(0, 0, 0, 1)]);
    assert_eq!(
        third.failure.unwrap().code,
        faro_wire::codes::FetchErrorCode::ConnectionLost
    );
    let asked_on = asked_on.lock().unwrap().clone();
    assert_eq!(asked_on[..3], [asked_on[0]; 3], "its own, three times");
    assert_ne!(asked_on[3], asked_on[0], "then the one that is left");
    assert_eq!(counter(&client, "duplicateConnections"), 0);
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
    let servers = servers(FabricChoice::Tcp);
    let relays = servers.each_ref().map(|server| {
        let card = Card::decode(&server.endpoint.card()).unwrap();
        Relay::to(card.addresses[0].location.clone())
    });
    let peers = [0, 1].map(|me: usize| {
        let mut other = Card::decode(&servers[1 - me].endpoint.card()).unwrap();
        other.addresses[0].location = relays[1 - me].location.clone();
        servers[me].endpoint.add_peer(&other.encode()).unwrap()
    });
    // The side that needs it first after a loss makes it: once the one, once the other.
    for first in [0, 1, 0] {
        for me in [first, 1 - first] {
            fetch_from(&servers[me].endpoint, peers[me], 1 - me as i64);
        }
        one_connection_is_left(&servers, "tcp");
        let cut: usize = relays.iter().map(Relay::cut).sum();
        assert_eq!(cut, 2, "both ends of the one relayed connection");
        until("the loss is noticed", || {
            let left = servers
                .iter()
                .map(|o| counter(&o.endpoint, "connections.tcp"));
            left.sum::<u64>() == 0
        });
    }
    nothing_went_wrong(&servers);
}

/// The peer's card has an address at which no process listens; the host's name has one that
/// answers.
#[test]
fn addresses_that_the_client_knows_come_before_the_cards() {
    let nobody = IpAddr::from([127, 0, 0, 9]);
    let server = Server::start(Config {
        advertise: nobody,
        ..config("server", FabricChoice::Tcp)
    });
    server.put(0, 1, &[pattern(1, 700_000)]);
    let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
    let known_at = [IpAddr::from([127, 0, 0, 8]), IpAddr::from([127, 0, 0, 1])];
    let card = server.endpoint.card();
    let peer = client.add_peer_at(&card, &known_at).unwrap();
    fetch_from(&client, peer, 1);
    assert_eq!(
        counter(&client, "routeBackoffs"),
        0,
        "an address that fails is no route that fails"
    );
    client.close();
}

/// None of the known addresses answers, but the card's does.
#[test]
fn the_cards_address_is_tried_last() {
    let server = Server::start(config("server", FabricChoice::Tcp));
    server.put(0, 1, &[pattern(1, 700_000)]);
    let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
    let known_at = [8, 9].map(|last| IpAddr::from([127, 0, 0, last]));
    let card = server.endpoint.card();
    let peer = client.add_peer_at(&card, &known_at).unwrap();
    fetch_from(&client, peer, 1);
    client.close();
}
