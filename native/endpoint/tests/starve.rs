//! Peers that take no bytes cost their server a share of its arena, and the other peers nothing.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

#[macro_use]
mod support;
#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/stopped.rs"]
mod stopped;
#[path = "support/turns.rs"]
mod turns;
#[path = "support/virtual_time.rs"]
mod virtual_time;

use faro_endpoint::{Config, Endpoint, FabricChoice};
use std::sync::Arc;
use std::time::Duration;
use stopped::StoppedPeer;
use support::{block, config, counter, name_of, pattern, MEMORY, TIMEOUT};
use turns::Turns;
use virtual_time::{collect, fetch, EndpointDriver, VirtualServer};

const MIB: usize = 1 << 20;
/// Of the servers that are to disconnect a peer.
const SHORT: Duration = Duration::from_secs(30);
/// Pages of the block that is asked for.
const PAGES: usize = 16;
/// Maximum that one peer may have of a server's arena.
const SHARE: u64 = MEMORY / 32;

fn server(
    turns: &Turns,
    fabric: FabricChoice,
    request_timeout: Duration,
) -> (VirtualServer, Vec<u8>) {
    let config = Config {
        request_timeout,
        ..config("server", fabric)
    };
    let server = VirtualServer::start(turns, config);
    let bytes = pattern(1, 4 * MIB);
    server.put(0, 0, std::slice::from_ref(&bytes));
    (server, bytes)
}

fn connections(server: &VirtualServer, fabric: FabricChoice) -> u64 {
    let name = format!("connections.{}", name_of(fabric));
    counter(&server.endpoint, &name)
}

fn connect(
    turns: &Turns,
    fabric: FabricChoice,
    number: u128,
    server: &VirtualServer,
) -> StoppedPeer {
    StoppedPeer::connect(fabric, number, &server.endpoint.card(), || turns.round())
}

/// Makes each of the peers ask for the block repeatedly, and then stop.
fn ask(turns: &Turns, server: &VirtualServer, fabric: FabricChoice, peers: &mut [StoppedPeer]) {
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
    turns.until("the requests are taken", &mut || {
        if fabric == FabricChoice::Verbs {
            peers.iter_mut().for_each(StoppedPeer::send_on);
        }
        counter(&server.endpoint, "servedRequests") - before == requests * peers.len() as u64
    });
}

fn until_leases_are_back(turns: &Turns, server: &VirtualServer) {
    turns.until("leases come back", &mut || {
        support::leases_are_back(&server.endpoint)
    });
}

/// Half of 16 peers have stopped, each with 16 MiB or more requested. The other half must get all
/// that they ask for while the stopped ones hold their memory.
fn peers_that_stop_starve_no_other(fabric: FabricChoice) {
    const OTHERS: u64 = 8;
    let turns = Turns::over(fabric);
    let (server, bytes) = server(&turns, fabric, TIMEOUT);
    let clients: Vec<Arc<Endpoint>> = (0..OTHERS)
        .map(|_| virtual_time::endpoint(&turns, config("client", fabric)))
        .collect();
    let peers: Vec<u64> = clients
        .iter()
        .map(|client| server.peer_of(client))
        .collect();
    for (client, peer) in clients.iter().zip(&peers) {
        let fetched = fetch(&turns, client, *peer, &[block(0, 0, 0, 1)]);
        assert!(fetched.bytes() == [bytes.clone()]);
    }
    let mut stopped: Vec<_> = (0..8)
        .map(|number| connect(&turns, fabric, number, &server))
        .collect();
    let_the_kernel_wait();
    ask(&turns, &server, fabric, &mut stopped);
    let rings = |server: &VirtualServer| counter(&server.endpoint, "connectionBytes");
    let held =
        |server: &VirtualServer| counter(&server.endpoint, "pool.leasedBytes") - rings(server);
    turns.until("the stopped peers have what they may have", &mut || {
        held(&server) >= 8 * SHARE
    });
    let asked: Vec<_> = clients
        .iter()
        .zip(&peers)
        .map(|(client, peer)| {
            let two = [0; 2].map(|_| client.fetch(*peer, &[block(0, 0, 0, 1)], TIMEOUT));
            two.map(Result::unwrap)
        })
        .collect();
    for (client, ids) in clients.iter().zip(&asked) {
        for fetched in collect(&turns, client, ids).into_values() {
            assert!(fetched.bytes() == [bytes.clone()]);
        }
    }
    assert_eq!(
        connections(&server, fabric),
        8 + OTHERS,
        "the others did not wait until the stopped peers were disconnected"
    );
    turns.until("all that is held is the stopped peers'", &mut || {
        held(&server) <= 8 * SHARE
    });
    drop(stopped);
}

/// Lets TCP's connections of this process wait for a peer that takes nothing as long as it takes. Faro has the kernel
/// end them after 20 s, which is the kernel's own time, and too little for a slow machine.
fn let_the_kernel_wait() {
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let Ok(fd) = entry.unwrap().file_name().to_str().unwrap().parse() else {
            continue;
        };
        let never: libc::c_uint = 0;
        // SAFETY: the pointer is to a number of the length that is given. What is no TCP socket, and a number that is
        // no descriptor any more, is an error that changes nothing.
        unsafe {
            libc::setsockopt(
                fd,
                libc::IPPROTO_TCP,
                libc::TCP_USER_TIMEOUT,
                (&raw const never).cast(),
                size_of_val(&never) as libc::socklen_t,
            );
        }
    }
}

/// Lets the server's timeout pass, and a little more for its next look at deadlines.
fn is_closed_in_time(
    turns: &Turns,
    server: &VirtualServer,
    fabric: FabricChoice,
    mut meanwhile: impl FnMut(),
) {
    let (step, mut passed) = (SHORT / 10, Duration::ZERO);
    while passed < SHORT - step {
        assert_eq!(connections(server, fabric), 1, "closed after {passed:?}");
        meanwhile();
        turns.pass(step);
        passed += step;
    }
    turns.pass(2 * step);
    assert_eq!(connections(server, fabric), 0);
    // What has ended may linger for a while.
    turns.pass(SHORT);
    until_leases_are_back(turns, server);
}

/// A server waits for its peer as long as the server's own setting allows, whatever the peer asks
/// for.
fn a_peer_cannot_make_a_server_wait_longer(fabric: FabricChoice) {
    let turns = Turns::over(fabric);
    let (server, _) = server(&turns, fabric, SHORT);
    let mut peer = [connect(&turns, fabric, 1, &server)];
    ask(&turns, &server, fabric, &mut peer);
    is_closed_in_time(&turns, &server, fabric, || {});
}

/// A peer that offers buffers and takes no bytes makes no progress.
fn an_offer_is_no_progress(fabric: FabricChoice) {
    let turns = Turns::over(fabric);
    let (server, _) = server(&turns, fabric, SHORT);
    let mut peer = [connect(&turns, fabric, 1, &server)];
    ask(&turns, &server, fabric, &mut peer);
    is_closed_in_time(&turns, &server, fabric, || {
        (0..4).for_each(|id| peer[0].offer(id, 1));
    });
}

/// A peer that cancels and takes no bytes keeps none of the server's pages beyond the deadline.
fn a_cancel_ends_no_deadline(fabric: FabricChoice) {
    let turns = Turns::over(fabric);
    let (server, _) = server(&turns, fabric, SHORT);
    let mut peer = [connect(&turns, fabric, 1, &server)];
    let_the_kernel_wait();
    ask(&turns, &server, fabric, &mut peer);
    let held = |name| counter(&server.endpoint, name);
    turns.until("writes are under way", &mut || {
        held("pool.leasedBytes") > held("connectionBytes")
    });
    (0..16).for_each(|id| peer[0].cancel(id));
    turns.pass(3 * SHORT);
    until_leases_are_back(&turns, &server);
}

over_every_fabric!(
    a_cancel_ends_no_deadline,
    a_peer_cannot_make_a_server_wait_longer,
    an_offer_is_no_progress,
    peers_that_stop_starve_no_other,
);
