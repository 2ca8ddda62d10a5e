//! Peers that take no bytes cost their server a share of its arena, and the other peers nothing.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

#[macro_use]
mod support;
#[path = "support/stopped.rs"]
mod stopped;

use faro_endpoint::{Config, Endpoint, FabricChoice};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stopped::Stopped;
use support::{block, collect, config, counter, fetch, name_of, pattern, until, Server, MEMORY};

const MIB: usize = 1 << 20;
/// Longer than the test: no peer is disconnected before its end.
const LONG: Duration = Duration::from_secs(600);
/// Pages of the block that is asked for.
const PAGES: usize = 16;
/// Maximum that one peer may have of a server's arena.
const SHARE: u64 = MEMORY / 32;

fn server(fabric: FabricChoice, request_timeout: Duration) -> (Server, Vec<u8>) {
    let server = Server::start(Config {
        request_timeout,
        ..config("server", fabric)
    });
    let bytes = pattern(1, 4 * MIB);
    server.put(0, 0, std::slice::from_ref(&bytes));
    (server, bytes)
}

fn connections(server: &Server, fabric: FabricChoice) -> u64 {
    let name = format!("connections.{}", name_of(fabric));
    counter(&server.endpoint, &name)
}

/// Makes each of the peers ask for the block repeatedly, and then stop.
fn ask(server: &Server, fabric: FabricChoice, peers: &mut [Stopped]) {
    // A device writes as long as messages have room, which is long.
    let requests = match fabric {
        FabricChoice::Verbs => 16,
        _ => 4,
    };
    let before = counter(&server.endpoint, "servedRequests");
    for peer in peers.iter_mut() {
        for id in 0..requests {
            peer.ask(id, &[block(0, 0, 0, 1)], PAGES, u32::MAX);
        }
    }
    until("the requests are taken", || {
        if fabric == FabricChoice::Verbs {
            peers.iter_mut().for_each(Stopped::send_on);
        }
        counter(&server.endpoint, "servedRequests") - before == requests * peers.len() as u64
    });
}

/// Half of 16 peers have stopped, each with 16 MiB or more requested. The other half must get all
/// that they ask for while the stopped ones hold their memory.
fn peers_that_stop_starve_no_other(fabric: FabricChoice) {
    // Over TCP the kernel ends a connection whose peer takes nothing for 20 s. On a busy machine
    // that is too early for eight others, so that fewer ask for less.
    assert!(
        [8, 8, 4, 2, 1]
            .into_iter()
            .any(|others| others_are_served(fabric, others)),
        "the others had to wait until the stopped peers were disconnected"
    );
}

/// Returns false if the stopped peers were disconnected before the others had their blocks.
fn others_are_served(fabric: FabricChoice, others: usize) -> bool {
    let (server, bytes) = server(fabric, LONG);
    let card = server.endpoint.card();
    // They connect before the others stop: that leaves more of the 20 s.
    let clients: Vec<Arc<Endpoint>> = (0..others)
        .map(|_| Endpoint::start(config("client", fabric)).unwrap())
        .collect();
    let peers: Vec<u64> = clients
        .iter()
        .map(|client| server.peer_of(client))
        .collect();
    for (client, peer) in clients.iter().zip(&peers) {
        assert!(fetch(client, *peer, &[block(0, 0, 0, 1)]).bytes() == [bytes.clone()]);
    }
    let mut stopped: Vec<_> = (0..8)
        .map(|number| Stopped::connect(fabric, number, &card))
        .collect();
    ask(&server, fabric, &mut stopped);
    let rings = |server: &Server| counter(&server.endpoint, "connectionBytes");
    let held = |server: &Server| counter(&server.endpoint, "pool.leasedBytes") - rings(server);
    until("the stopped peers have what they may have", || {
        held(&server) >= 8 * SHARE
    });
    let asked: Vec<_> = clients
        .iter()
        .zip(&peers)
        .map(|(client, peer)| {
            let two = [0; 2].map(|_| client.fetch(*peer, &[block(0, 0, 0, 1)], LONG));
            two.map(Result::unwrap)
        })
        .collect();
    for (client, ids) in clients.iter().zip(&asked) {
        for fetched in collect(client, ids).into_values() {
            assert!(fetched.bytes() == [bytes.clone()]);
        }
    }
    if connections(&server, fabric) < 8 + others as u64 {
        return false;
    }
    until("all that is held is the stopped peers'", || {
        held(&server) <= 8 * SHARE
    });
    drop(stopped);
    true
}

/// A server waits for its peer as long as the server's own setting allows, whatever the peer asks
/// for.
fn a_peer_cannot_make_a_server_wait_longer(fabric: FabricChoice) {
    let (server, _) = server(fabric, Duration::from_millis(300));
    let mut peer = [Stopped::connect(fabric, 1, &server.endpoint.card())];
    ask(&server, fabric, &mut peer);
    until("the server closes the connection", || {
        connections(&server, fabric) == 0
    });
    support::until_leases_are_back(&server.endpoint);
}

/// A peer that offers buffers and takes no bytes makes no progress.
fn an_offer_is_no_progress(fabric: FabricChoice) {
    let (server, _) = server(fabric, Duration::from_millis(300));
    let mut peer = [Stopped::connect(fabric, 1, &server.endpoint.card())];
    ask(&server, fabric, &mut peer);
    let mut last = Instant::now();
    until("the server closes the connection", || {
        // Often enough for the timeout, and not so often that the number of buffers is an error.
        if last.elapsed() > Duration::from_millis(50) {
            last = Instant::now();
            (0..4).for_each(|id| peer[0].offer(id, 1));
        }
        connections(&server, fabric) == 0
    });
    support::until_leases_are_back(&server.endpoint);
}

over_every_fabric!(
    a_peer_cannot_make_a_server_wait_longer,
    an_offer_is_no_progress,
    peers_that_stop_starve_no_other,
);
