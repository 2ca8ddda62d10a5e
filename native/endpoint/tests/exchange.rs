//! Nine endpoints read from each other at once, under each policy.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use faro_endpoint::{ExchangeConfig, ExchangePolicy, FabricChoice};
use std::time::Duration;
use support::{block, collect, config, counter, pattern, Server, TIMEOUT};

const ENDPOINTS: usize = 9;
/// Permits of nine members: 2 in a group beside oneself, and never fewer than these.
const PERMITS: u64 = 4;
/// With this slice no peer is a straggler, however slow the machine is.
const LONG: Duration = Duration::from_secs(3_600);
/// With this slice every peer is a straggler from time to time.
const SHORT: Duration = Duration::from_millis(1);

fn servers(fabric: FabricChoice, policy: ExchangePolicy, slice: Duration) -> Vec<Server> {
    let start = |n| {
        let mut config = config("server", fabric);
        config.exchange = ExchangeConfig { policy, slice };
        // A connection once made stays.
        config.connection_idle = Duration::ZERO;
        let server = Server::start(config);
        // Two partitions for each client: a small one, and one of several pages.
        let partition =
            |p: usize| pattern((n * 100 + p) as u64, if p % 2 == 0 { 700 } else { 300_000 });
        let partitions: Vec<Vec<u8>> = (0..2 * ENDPOINTS).map(partition).collect();
        server.put(0, n as i64, &partitions);
        server
    };
    (0..ENDPOINTS).map(start).collect()
}

/// Every endpoint reads its partitions from all others, one request for each, and checks them.
fn all_to_all(servers: &[Server]) {
    let start = std::sync::Barrier::new(servers.len());
    std::thread::scope(|scope| {
        for (me, client) in servers.iter().enumerate() {
            let start = &start;
            scope.spawn(move || {
                let endpoint = &client.endpoint;
                let others = (0..servers.len()).filter(|n| *n != me);
                let peers: Vec<_> = others.map(|n| (n, servers[n].peer_of(endpoint))).collect();
                start.wait();
                let mut wanted = Vec::new();
                for partition in [2 * me, 2 * me + 1] {
                    for (n, peer) in &peers {
                        let blocks = [block(0, *n as i64, partition as u32, partition as u32 + 1)];
                        let request = endpoint.fetch(*peer, &blocks, TIMEOUT).unwrap();
                        wanted.push((request, *n, partition));
                    }
                }
                let requests: Vec<u64> = wanted.iter().map(|(request, ..)| *request).collect();
                let mut fetched = collect(endpoint, &requests);
                for (request, n, partition) in wanted {
                    let bytes = fetched.remove(&request).unwrap().bytes();
                    let size = if partition % 2 == 0 { 700 } else { 300_000 };
                    assert_eq!(bytes, [pattern((n * 100 + partition) as u64, size)]);
                }
            });
        }
    });
}

/// Counters of requests that were not answered at once, by name.
type Failures = [(&'static str, u64); 4];

const NO_FAILURES: Failures = [
    ("retries", 0),
    ("routeBackoffs", 0),
    ("requestsFailed", 0),
    ("timeouts", 0),
];

fn failures(server: &Server) -> Failures {
    NO_FAILURES.map(|(name, _)| (name, counter(&server.endpoint, name)))
}

/// Connects each endpoint with all others, one after another. A connection has 10 s, which it can
/// miss on a guest with a small share of a processor; it is made again then, because the tests that
/// call this are about what follows.
fn connect(servers: &[Server]) {
    for (me, client) in servers.iter().enumerate() {
        for (n, other) in servers.iter().enumerate().filter(|(n, _)| *n != me) {
            let peer = other.peer_of(&client.endpoint);
            support::until("connected", || {
                let fetched = support::fetch(&client.endpoint, peer, &[block(0, n as i64, 0, 1)]);
                fetched.failure.is_none()
            });
        }
    }
}

/// No place of the exchange is taken, and nothing has failed since `before`, its `failures` then.
fn nothing_is_left(server: &Server, before: Failures) {
    support::until("all places are given back", || {
        ["activePeers", "fanIn", "pairsInUse"]
            .iter()
            .all(|name| counter(&server.endpoint, &format!("exchange.{name}")) == 0)
    });
    assert_eq!(failures(server), before);
}

fn bounded(fabric: FabricChoice, policy: ExchangePolicy) {
    let servers = servers(fabric, policy, LONG);
    connect(&servers);
    let before: Vec<Failures> = servers.iter().map(failures).collect();
    all_to_all(&servers);
    let of = |server: &Server, name| counter(&server.endpoint, &format!("exchange.{name}"));
    for (me, server) in servers.iter().enumerate() {
        // A change of members is taken up by whatever comes next.
        let (other, client) = ((me + 1) % ENDPOINTS, &server.endpoint);
        support::until("all are members", || {
            let blocks = [block(0, other as i64, 0, 1)];
            support::fetch(client, servers[other].peer_of(client), &blocks).bytes();
            of(server, "members") == ENDPOINTS as u64
        });
        for name in ["activePeersHighWater", "fanInHighWater"] {
            let max = of(server, name);
            assert!((1..=PERMITS).contains(&max), "{name}: {max}");
        }
        assert!(of(server, "pairsInUseHighWater") <= 2 * PERMITS);
        nothing_is_left(server, before[me]);
    }
    // Eight were asked for at once, by nine: one of them at least came up to the bound.
    let sum = |name| servers.iter().map(|server| of(server, name)).sum::<u64>();
    assert!(sum("waits") > 0 && sum("rounds") > 0);
    let max = servers
        .iter()
        .map(|server| of(server, "activePeersHighWater"))
        .max();
    assert_eq!(max, Some(PERMITS));
}

#[test]
fn grouped_is_bounded_over_tcp() {
    bounded(FabricChoice::Tcp, ExchangePolicy::Grouped);
}

#[test]
fn grouped_is_bounded_over_shm() {
    bounded(FabricChoice::Shm, ExchangePolicy::Grouped);
}

#[test]
fn rotated_is_bounded_over_tcp() {
    bounded(FabricChoice::Tcp, ExchangePolicy::Rotated);
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn grouped_is_bounded_over_verbs() {
    bounded(FabricChoice::Verbs, ExchangePolicy::Grouped);
}

#[test]
fn random_has_all_peers_at_once() {
    let servers = servers(FabricChoice::Shm, ExchangePolicy::Random, SHORT);
    all_to_all(&servers);
    let max = servers
        .iter()
        .map(|o| counter(&o.endpoint, "exchange.activePeersHighWater"));
    assert!(max.max() > Some(PERMITS), "no client was bounded");
    for server in &servers {
        let of = |name: &str| counter(&server.endpoint, &format!("exchange.{name}"));
        assert!(of("activePeersHighWater") >= 1);
        assert_eq!((of("policy"), of("waits"), of("rounds")), (1, 0, 0));
        nothing_is_left(server, NO_FAILURES);
    }
}

#[test]
fn slices_that_are_always_over_lose_nothing() {
    for policy in [ExchangePolicy::Grouped, ExchangePolicy::Rotated] {
        let servers = servers(FabricChoice::Tcp, policy, SHORT);
        all_to_all(&servers);
        for server in &servers {
            let max = counter(&server.endpoint, "exchange.activePeersHighWater");
            assert!(max <= 2 * PERMITS, "{max}");
            nothing_is_left(server, NO_FAILURES);
        }
    }
}

#[test]
fn requests_that_wait_are_cancelled_and_closed_like_others() {
    let servers = servers(FabricChoice::Tcp, ExchangePolicy::Grouped, LONG);
    let client = &servers[0].endpoint;
    // No server answers: these hold all permits.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let location = silent.local_addr().unwrap().to_string();
    let ask = |id: u128| {
        let card = faro_wire::Card {
            endpoint: id,
            name: "silent".to_owned(),
            addresses: vec![faro_wire::CardAddress {
                scheme: "tcp".to_owned(),
                location: location.clone(),
            }],
            secret: faro_secure::Secret::new([0; 32]),
        };
        let peer = client.add_peer(&card.encode()).unwrap();
        client.fetch(peer, &[block(0, 0, 0, 1)], TIMEOUT).unwrap()
    };
    let held: Vec<u64> = (1..=u128::from(PERMITS)).map(ask).collect();
    let waiting = [10, 11].map(ask);
    assert_eq!(counter(client, "exchange.waits"), 2);
    client.cancel(waiting[0]);
    let cancelled = collect(client, &waiting[..1]).remove(&waiting[0]).unwrap();
    let code = |fetched: support::FetchOutcome| fetched.failure.unwrap().code;
    assert_eq!(code(cancelled), faro_wire::codes::FetchErrorCode::Cancelled);
    assert_eq!(counter(client, "exchange.activePeers"), PERMITS);
    client.close();
    for (_, fetched) in collect(client, &[&held[..], &waiting[1..]].concat()) {
        assert_eq!(code(fetched), faro_wire::codes::FetchErrorCode::Closing);
    }
}

#[test]
fn who_dies_takes_no_others_with_it() {
    let servers = servers(FabricChoice::Tcp, ExchangePolicy::Grouped, SHORT);
    let (client, dying) = (&servers[0].endpoint, &servers[5].endpoint);
    let peers: Vec<u64> = servers[1..]
        .iter()
        .map(|server| server.peer_of(client))
        .collect();
    let mut requests = Vec::new();
    for round in 0..4 {
        for (n, peer) in (1i64..).zip(&peers) {
            requests.push((
                n,
                client.fetch(*peer, &[block(0, n, 1, 2)], TIMEOUT).unwrap(),
            ));
        }
        if round == 1 {
            dying.close();
        }
    }
    let ids: Vec<u64> = requests.iter().map(|(_, id)| *id).collect();
    let mut fetched = collect(client, &ids);
    for (n, id) in requests {
        let fetched = fetched.remove(&id).unwrap();
        if n != 5 || fetched.failure.is_none() {
            assert_eq!(fetched.bytes(), [pattern(n as u64 * 100 + 1, 300_000)]);
        }
    }
    support::until("all places are given back", || {
        counter(client, "exchange.activePeers") == 0
    });
}
