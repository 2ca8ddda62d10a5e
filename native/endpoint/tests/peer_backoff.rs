//! Which ends of requests begin the back-off of their peer, and which end it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/scripted.rs"]
mod scripted;
mod support;
#[path = "support/virtual_time.rs"]
mod virtual_time;

use faro_endpoint::{Endpoint, FabricChoice};
use faro_fabric::FabricKind;
use faro_simulation::VirtualNetwork;
use faro_wire::codes::FetchErrorCode;
use scripted::{card, ScriptedPeer};
use std::sync::Arc;
use std::time::Duration;
use support::{block, config, pattern, FetchOutcome};
use virtual_time::{collect, endpoint, fetch, fetch_within, VirtualServer};

fn network() -> VirtualNetwork {
    VirtualNetwork::new(FabricKind::Tcp)
}

fn client(network: &VirtualNetwork) -> Arc<Endpoint> {
    endpoint(network, config("client", FabricChoice::Tcp))
}

fn code(fetched: &FetchOutcome) -> FetchErrorCode {
    fetched.failure.as_ref().expect("an error").code
}

#[test]
fn a_peer_that_is_not_there_is_backed_off_when_its_request_has_failed() {
    let network = network();
    let client = client(&network);
    let absent = client.add_peer(&card(77, "node-77:0")).unwrap();
    let other = client.add_peer(&card(78, "node-77:0")).unwrap();
    assert!(!client.is_backed_off(absent), "no request has failed");
    let fetched = fetch(&network, &client, absent, &[block(0, 0, 0, 1)]);
    assert_eq!(code(&fetched), FetchErrorCode::Unreachable);
    assert!(client.is_backed_off(absent));
    assert!(!client.is_backed_off(other), "one by one");
    assert!(!client.is_backed_off(999), "no such peer");
}

#[test]
fn a_silent_server_is_backed_off_at_the_first_deadline() {
    let network = network();
    let server = ScriptedPeer::start_in(&network, Box::new(|_, _, _, _, _| {}));
    let client = client(&network);
    let peer = client.add_peer(&server.card).unwrap();
    let short = Duration::from_millis(200);
    let fetched = fetch_within(&network, &client, peer, &[block(0, 0, 0, 1)], short);
    assert_eq!(code(&fetched), FetchErrorCode::TimedOut);
    assert!(client.is_backed_off(peer));
}

#[test]
fn a_server_of_corrupt_bytes_is_backed_off_after_the_last_try() {
    let network = network();
    let server = ScriptedPeer::start_in(
        &network,
        Box::new(|stage, peer, id, fetch, _| {
            if let Some(fetch) = fetch {
                stage.answer_corrupt(peer, id, &fetch, b"0123456789");
            }
        }),
    );
    let client = client(&network);
    let peer = client.add_peer(&server.card).unwrap();
    let fetched = fetch(&network, &client, peer, &[block(0, 0, 0, 1)]);
    assert_eq!(code(&fetched), FetchErrorCode::Corrupt);
    assert!(client.is_backed_off(peer));
}

#[test]
fn a_refusal_and_a_cancelled_request_blame_nobody() {
    let network = network();
    let server = ScriptedPeer::start_in(
        &network,
        Box::new(|stage, peer, id, fetch, _| {
            // Only the first block's request is answered.
            if fetch.is_some_and(|fetch| fetch.blocks[0] == block(0, 0, 0, 1)) {
                stage.refuse(peer, id, 0, "lunch");
            }
        }),
    );
    let client = client(&network);
    let peer = client.add_peer(&server.card).unwrap();
    let refused = fetch(&network, &client, peer, &[block(0, 0, 0, 1)]);
    assert_eq!(code(&refused), FetchErrorCode::Refused);
    let request = client
        .fetch(peer, &[block(0, 1, 0, 1)], support::TIMEOUT)
        .unwrap();
    client.cancel(request);
    let cancelled = collect(&network, &client, &[request])
        .remove(&request)
        .unwrap();
    assert_eq!(code(&cancelled), FetchErrorCode::Cancelled);
    assert!(!client.is_backed_off(peer));
}

#[test]
fn only_a_request_that_brought_all_its_blocks_ends_the_back_off() {
    let network = network();
    let client = client(&network);
    let server = VirtualServer::start(&network, config("server", FabricChoice::Tcp));
    server.put(0, 0, &[pattern(1, 10)]);
    let peer = server.peer_of(&client);
    client.blame(peer);
    client.blame(999);
    assert!(client.is_backed_off(peer));

    let (known, unknown) = (block(0, 0, 0, 1), block(0, 5, 0, 1));
    let fetched = fetch(&network, &client, peer, &[known, unknown]);
    assert!(fetched.failure.is_none(), "it was sent anyway");
    assert!(client.is_backed_off(peer), "a block is not there");
    assert_eq!(
        fetch(&network, &client, peer, &[known]).bytes(),
        [pattern(1, 10)]
    );
    assert!(!client.is_backed_off(peer));
}
