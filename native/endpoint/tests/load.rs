//! Many requests at once: what each holds while its caller has it, and a server that has no room for more.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

#[macro_use]
mod support;

use faro_endpoint::{Config, Endpoint, FabricChoice};
use faro_pool::{Purpose, PAGE_BYTES};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use support::{block, collect, config, counter, pattern, Server};

const KIB: usize = 1 << 10;
const LONG: Duration = Duration::from_secs(120);

/// The memory of deliveries that their callers keep is at most one and a half times their bytes.
fn replies_hold_little_more_than_their_bytes(fabric: FabricChoice) {
    let server = Server::start(config("server", fabric));
    let client = Endpoint::start(Config {
        memory_limit: 256 << 20,
        ..config("client", fabric)
    })
    .unwrap();
    let peer = server.peer_of(&client);
    let lengths = [4, 5, 9, 20, 43, 48, 70, 100, 140, 171, 257, 300, 331].map(|n| n * KIB + 1);
    let parts: Vec<_> = (0u64..).zip(lengths).map(|(s, l)| pattern(s, l)).collect();
    server.put(0, 0, &parts);
    let mut ids = HashSet::new();
    for _ in 0..20 {
        for part in 0..lengths.len() as u32 {
            let wanted = [block(0, 0, part, part + 1)];
            ids.insert(client.fetch(peer, &wanted, LONG).unwrap());
        }
    }
    let mut kept = Vec::new();
    while !ids.is_empty() {
        let mut batch = Vec::new();
        client.completions(16, LONG, &mut batch);
        assert!(!batch.is_empty(), "{} requests without an end", ids.len());
        for completion in batch {
            if completion.last {
                ids.remove(&completion.request);
            }
            kept.push(completion.outcome.unwrap());
        }
    }
    let (mut bytes, mut held, mut leases) = (0, 0, HashSet::new());
    for slice in kept.iter().flat_map(|delivery| &delivery.slices) {
        bytes += slice.length as usize;
        if leases.insert(Arc::as_ptr(&slice.lease)) {
            held += slice.lease.capacity();
        }
    }
    assert_eq!(bytes, 20 * lengths.iter().sum::<usize>());
    assert!(held <= bytes + bytes / 2, "{held} bytes for {bytes}");
    drop(kept);
    support::until_leases_are_back(&client);
}

/// Several clients ask for more at once than their server keeps in memory. It refuses, they ask again.
fn a_server_without_room_serves_all_in_the_end(fabric: FabricChoice) {
    let small = |name: &str| Config {
        memory_limit: 32 << 20,
        request_timeout: LONG,
        ..config(name, fabric)
    };
    let server = Server::start(small("server"));
    let parts: Vec<_> = (0..400).map(|n| pattern(n, 10)).collect();
    server.put(0, 0, &parts);
    let wanted: Vec<_> = (0..400u32).map(|n| block(0, 0, n, n + 1)).collect();
    let clients: Vec<_> = (0..4)
        .map(|n| Endpoint::start(small(&format!("client-{n}"))).unwrap())
        .collect();
    let requests: Vec<Vec<u64>> = clients
        .iter()
        .map(|client| {
            let peer = server.peer_of(client);
            let fetch = |_| client.fetch(peer, &wanted, LONG).unwrap();
            (0..150).map(fetch).collect()
        })
        .collect();
    for (client, requests) in clients.iter().zip(&requests) {
        for (_, fetched) in collect(client, requests) {
            assert_eq!(fetched.bytes(), parts);
        }
        assert_eq!(counter(client, "requestsFailed"), 0);
    }
    assert!(
        counter(&server.endpoint, "busyRefusals") > 0,
        "no bound was reached"
    );
}

/// Many requests of many peers wait for the few pages of their server. A page that returns goes to
/// one of them, and the others do not ask for it.
fn a_page_that_returns_wakes_one(fabric: FabricChoice) {
    const CLIENTS: usize = 4;
    const REQUESTS: usize = 25;
    const FREE_PAGES: u64 = 12;
    let server = Server::start(Config {
        request_timeout: LONG,
        ..config("server", fabric)
    });
    let bytes = pattern(1, 1 << 20);
    server.put(0, 0, std::slice::from_ref(&bytes));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| Endpoint::start(config("client", fabric)).unwrap())
        .collect();
    // Connections first: those of RDMA take memory.
    for client in &clients {
        let peer = server.peer_of(client);
        let first = support::fetch_within(client, peer, &[block(0, 0, 0, 1)], LONG);
        assert!(first.bytes() == [bytes.clone()]);
    }
    let pool = server.endpoint.pool();
    let mut taken = Vec::new();
    let limit = pool.share_bytes(Purpose::Serve);
    while pool.counters().held_bytes + FREE_PAGES * PAGE_BYTES as u64 <= limit {
        taken.push(pool.try_lease(PAGE_BYTES, Purpose::Serve).unwrap());
    }
    let before = counter(&server.endpoint, "pool.exhausted");
    let asked: Vec<Vec<u64>> = clients
        .iter()
        .map(|client| {
            let peer = server.peer_of(client);
            let fetch = |_| client.fetch(peer, &[block(0, 0, 0, 1)], LONG).unwrap();
            (0..REQUESTS).map(fetch).collect()
        })
        .collect();
    for (client, ids) in clients.iter().zip(&asked) {
        for (_, fetched) in collect(client, ids) {
            assert!(fetched.bytes() == [bytes.clone()]);
        }
    }
    let refused = counter(&server.endpoint, "pool.exhausted") - before;
    // Four pages each; a page that returns leads to one look at most that finds none.
    let max = (CLIENTS * REQUESTS * 8) as u64;
    assert!(refused <= max, "{refused} refused leases, at most {max}");
}

over_every_fabric!(
    a_page_that_returns_wakes_one,
    replies_hold_little_more_than_their_bytes,
    a_server_without_room_serves_all_in_the_end,
);
