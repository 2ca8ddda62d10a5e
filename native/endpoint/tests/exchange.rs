//! Nine endpoints read from each other at once, under each policy.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use faro_endpoint::{ExchangeConfig, ExchangePolicy, FabricChoice};
use std::time::Duration;
use support::{block, collect, config, counter, pattern, Owner, PATIENCE};

const ENDPOINTS: usize = 9;
/// Of nine members: 2 in a group beside oneself, and never fewer than these.
const PLACES: u64 = 4;
/// So long that nobody is a straggler, however slow the machine.
const LONG: Duration = Duration::from_secs(3_600);
/// So short that everybody is one now and then.
const SHORT: Duration = Duration::from_millis(1);

fn owners(fabric: FabricChoice, policy: ExchangePolicy, slice: Duration) -> Vec<Owner> {
    let start = |n| {
        let mut config = config("owner", fabric);
        config.exchange = ExchangeConfig { policy, slice };
        let owner = Owner::start(config);
        // Two partitions for each reader: a small one, and one of several frames.
        let partition =
            |p: usize| pattern((n * 100 + p) as u64, if p % 2 == 0 { 700 } else { 300_000 });
        let partitions: Vec<Vec<u8>> = (0..2 * ENDPOINTS).map(partition).collect();
        owner.put(0, n as i64, &partitions);
        owner
    };
    (0..ENDPOINTS).map(start).collect()
}

/// Every endpoint reads its partitions from all others, one request for each, and checks them.
fn all_to_all(owners: &[Owner]) {
    let start = std::sync::Barrier::new(owners.len());
    std::thread::scope(|scope| {
        for (me, reader) in owners.iter().enumerate() {
            let start = &start;
            scope.spawn(move || {
                let endpoint = &reader.endpoint;
                let others = (0..owners.len()).filter(|n| *n != me);
                let peers: Vec<_> = others.map(|n| (n, owners[n].peer_of(endpoint))).collect();
                start.wait();
                let mut wanted = Vec::new();
                for partition in [2 * me, 2 * me + 1] {
                    for (n, peer) in &peers {
                        let blocks = [block(0, *n as i64, partition as u32, partition as u32 + 1)];
                        let request = endpoint.fetch(*peer, &blocks, PATIENCE).unwrap();
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

fn nothing_is_left(owner: &Owner) {
    support::until("all places are given back", || {
        ["activePeers", "fanIn", "pairsInUse"]
            .iter()
            .all(|name| counter(&owner.endpoint, &format!("exchange.{name}")) == 0)
    });
    for name in ["retries", "routeBackoffs", "requestsFailed", "timeouts"] {
        assert_eq!(counter(&owner.endpoint, name), 0, "{name}");
    }
}

fn bounded(fabric: FabricChoice, policy: ExchangePolicy) {
    let owners = owners(fabric, policy, LONG);
    all_to_all(&owners);
    let of = |owner: &Owner, name| counter(&owner.endpoint, &format!("exchange.{name}"));
    for (me, owner) in owners.iter().enumerate() {
        // A change of members is taken up by whatever comes next.
        let (other, reader) = ((me + 1) % ENDPOINTS, &owner.endpoint);
        support::until("all are members", || {
            let blocks = [block(0, other as i64, 0, 1)];
            support::fetch(reader, owners[other].peer_of(reader), &blocks).bytes();
            of(owner, "members") == ENDPOINTS as u64
        });
        for name in ["activePeersHighWater", "fanInHighWater"] {
            let most = of(owner, name);
            assert!((1..=PLACES).contains(&most), "{name}: {most}");
        }
        assert!(of(owner, "pairsInUseHighWater") <= 2 * PLACES);
        nothing_is_left(owner);
    }
    // Eight were asked for at once, by nine: one of them at least came up to the bound.
    let sum = |name| owners.iter().map(|owner| of(owner, name)).sum::<u64>();
    assert!(sum("waits") > 0 && sum("rounds") > 0);
    let most = owners
        .iter()
        .map(|owner| of(owner, "activePeersHighWater"))
        .max();
    assert_eq!(most, Some(PLACES));
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
    let owners = owners(FabricChoice::Shm, ExchangePolicy::Random, SHORT);
    all_to_all(&owners);
    let most = owners
        .iter()
        .map(|o| counter(&o.endpoint, "exchange.activePeersHighWater"));
    assert!(most.max() > Some(PLACES), "nobody was bounded");
    for owner in &owners {
        let of = |name: &str| counter(&owner.endpoint, &format!("exchange.{name}"));
        assert!(of("activePeersHighWater") >= 1);
        assert_eq!((of("waits"), of("rounds")), (0, 0));
        nothing_is_left(owner);
    }
}

#[test]
fn slices_that_are_always_over_lose_nothing() {
    for policy in [ExchangePolicy::Grouped, ExchangePolicy::Rotated] {
        let owners = owners(FabricChoice::Tcp, policy, SHORT);
        all_to_all(&owners);
        for owner in &owners {
            let most = counter(&owner.endpoint, "exchange.activePeersHighWater");
            assert!(most <= 2 * PLACES, "{most}");
            nothing_is_left(owner);
        }
    }
}

#[test]
fn requests_that_wait_are_cancelled_and_closed_like_others() {
    let owners = owners(FabricChoice::Tcp, ExchangePolicy::Grouped, LONG);
    let reader = &owners[0].endpoint;
    // Nobody answers: these hold all places.
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
        };
        let peer = reader.add_peer(&card.encode()).unwrap();
        reader.fetch(peer, &[block(0, 0, 0, 1)], PATIENCE).unwrap()
    };
    let held: Vec<u64> = (1..=u128::from(PLACES)).map(ask).collect();
    let waiting = [10, 11].map(ask);
    assert_eq!(counter(reader, "exchange.waits"), 2);
    reader.cancel(waiting[0]);
    let cancelled = collect(reader, &waiting[..1]).remove(&waiting[0]).unwrap();
    let code = |fetched: support::Fetched| fetched.failure.unwrap().code;
    assert_eq!(code(cancelled), faro_wire::codes::FetchErrorCode::Cancelled);
    assert_eq!(counter(reader, "exchange.activePeers"), PLACES);
    reader.close();
    for (_, fetched) in collect(reader, &[&held[..], &waiting[1..]].concat()) {
        assert_eq!(code(fetched), faro_wire::codes::FetchErrorCode::Closing);
    }
}

#[test]
fn who_dies_takes_no_others_with_it() {
    let owners = owners(FabricChoice::Tcp, ExchangePolicy::Grouped, SHORT);
    let (reader, dying) = (&owners[0].endpoint, &owners[5].endpoint);
    let peers: Vec<u64> = owners[1..]
        .iter()
        .map(|owner| owner.peer_of(reader))
        .collect();
    let mut requests = Vec::new();
    for round in 0..4 {
        for (n, peer) in (1i64..).zip(&peers) {
            requests.push((
                n,
                reader.fetch(*peer, &[block(0, n, 1, 2)], PATIENCE).unwrap(),
            ));
        }
        if round == 1 {
            dying.close();
        }
    }
    let ids: Vec<u64> = requests.iter().map(|(_, id)| *id).collect();
    let mut fetched = collect(reader, &ids);
    for (n, id) in requests {
        let fetched = fetched.remove(&id).unwrap();
        if n != 5 || fetched.failure.is_none() {
            assert_eq!(fetched.bytes(), [pattern(n as u64 * 100 + 1, 300_000)]);
        }
    }
    support::until("all places are given back", || {
        counter(reader, "exchange.activePeers") == 0
    });
}
