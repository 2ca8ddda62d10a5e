//! A connection on which a server owes something, or that a peer reads from, is in use, however long it is silent.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/scripted.rs"]
mod scripted;
mod support;
#[path = "support/virtual_time.rs"]
mod virtual_time;

use faro_endpoint::{Config, FabricChoice, RegionMode};
use faro_fabric::FabricKind;
use faro_simulation::VirtualNetwork;
use faro_wire::message::Fetch;
use faro_wire::{kind, OutputId};
use scripted::{ScriptedPeer, Stage};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use support::{block, config, counter, pattern, TIMEOUT};
use virtual_time::{fetch, VirtualServer};

/// Returns a server that closes the connections that it has made as soon as they are idle.
fn impatient(network: &VirtualNetwork) -> VirtualServer {
    let config = Config {
        stages_outputs: true,
        regions: RegionMode::Optimistic,
        connection_idle: Duration::from_millis(200),
        ..config("server", FabricChoice::Tcp)
    };
    VirtualServer::start(network, config)
}

/// Returns a peer that the server connects to. It answers the server's first fetch, and asks for
/// `map` on the same connection; at the second fetch it says that it needs nothing more. `answered`
/// becomes true when the server has answered it.
fn asking(network: &VirtualNetwork, map: i64, answered: &Arc<AtomicBool>) -> ScriptedPeer {
    let (answered, mut fetches) = (Arc::clone(answered), 0);
    let script = move |stage: &mut Stage, peer, id, fetch: Option<Fetch>, message: &_| {
        let message: &faro_fabric::Message = message;
        if message.kind == kind::FETCH_RESPONSE {
            answered.store(true, Ordering::Release);
        }
        let Some(fetch) = fetch else { return };
        stage.answer(peer, id, &fetch, b"0123456789");
        fetches += 1;
        match fetches {
            1 => {
                let asked = Fetch {
                    deadline_ms: TIMEOUT.as_millis() as u32,
                    writes_only: false,
                    reader_verifies: false,
                    buffers: Vec::new(),
                    blocks: vec![block(0, map, 0, 1)],
                };
                stage.send(peer, kind::FETCH, 1, asked.encode());
            }
            _ => stage.send(peer, kind::CANCEL, 1, Vec::new()),
        }
    };
    ScriptedPeer::start_in_as(network, 0xfa50_0000_0000_0001, Box::new(script))
}

fn is_in_use_until_it_is_cancelled(network: &VirtualNetwork, server: &VirtualServer, map: i64) {
    let answered = Arc::new(AtomicBool::new(false));
    let asking = asking(network, map, &answered);
    let (one, block) = (
        server.endpoint.add_peer(&asking.card).unwrap(),
        [block(0, 0, 0, 1)],
    );
    assert_eq!(
        fetch(network, &server.endpoint, one, &block).bytes(),
        [b"0123456789"]
    );
    network.until("the server has answered", || {
        answered.load(Ordering::Acquire)
    });
    // It was used after the other one, and what is idle for longer is closed first.
    let answer = |stage: &mut Stage, peer, id, fetch: Option<Fetch>, _: &_| {
        if let Some(fetch) = fetch {
            stage.answer(peer, id, &fetch, b"0123456789");
        }
    };
    let unused = ScriptedPeer::start_in_as(network, 0xfa50_0000_0000_0002, Box::new(answer));
    let two = server.endpoint.add_peer(&unused.card).unwrap();
    assert_eq!(
        fetch(network, &server.endpoint, two, &block).bytes(),
        [b"0123456789"]
    );
    network.until("the unused connection is closed", || {
        counter(&server.endpoint, "connections.tcp") < 2
    });
    network.until("its peer knows", || {
        !unused.closed.lock().unwrap().is_empty()
    });
    assert_eq!(asking.closed.lock().unwrap().len(), 0);
    assert_eq!(counter(&server.endpoint, "idleConnections"), 1);
    assert_eq!(
        fetch(network, &server.endpoint, one, &block).bytes(),
        [b"0123456789"]
    );
    network.until("it is idle in its turn", || {
        counter(&server.endpoint, "connections.tcp") == 0
    });
}

#[test]
fn a_connection_that_is_only_read_from_is_in_use() {
    let network = VirtualNetwork::new(FabricKind::Tcp);
    let server = impatient(&network);
    let files = server.put(0, 1, &[pattern(1, 600_000)]);
    let id = OutputId {
        shuffle_id: 0,
        map_id: 1,
    };
    server.endpoint.committed(id, &files, None);
    network.until("staging", || {
        counter(&server.endpoint, "region.cachedChunks") == 3
    });
    is_in_use_until_it_is_cancelled(&network, &server, 1);
    assert_eq!(counter(&server.endpoint, "readOffers"), 1);
}

#[test]
fn a_connection_with_a_request_that_waits_for_buffers_is_in_use() {
    let network = VirtualNetwork::new(FabricKind::Tcp);
    let server = impatient(&network);
    server.put(0, 1, &[pattern(1, 600_000)]);
    is_in_use_until_it_is_cancelled(&network, &server, 1);
    assert_eq!(counter(&server.endpoint, "readOffers"), 0);
}
