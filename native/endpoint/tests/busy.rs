//! A server without room for a request: those that it refuses keep their order.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/scripted.rs"]
mod scripted;
mod support;
#[path = "support/virtual_time.rs"]
mod virtual_time;

use faro_endpoint::FabricChoice;
use faro_fabric::FabricKind;
use faro_simulation::VirtualNetwork;
use faro_wire::message::Fetch;
use scripted::{ScriptedPeer, Stage};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{block, config, counter, TIMEOUT};
use virtual_time::{collect, endpoint};

const FIRST: i64 = 20;
const LATER: i64 = 5;

/// A server has room for one request for a while, and then for all. The refused requests must come
/// in the order in which they were made, and later requests after them.
#[test]
fn refused_requests_keep_their_order() {
    let (taken, refused) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(Mutex::new(Vec::new())),
    );
    let has_room = Arc::new(AtomicBool::new(false));
    let mut first = None;
    let network = VirtualNetwork::new(FabricKind::Tcp);
    let script = Box::new({
        let (taken, refused) = (Arc::clone(&taken), Arc::clone(&refused));
        let has_room = Arc::clone(&has_room);
        move |stage: &mut Stage, peer, id, fetch: Option<Fetch>, _: &_| {
            let Some(fetch) = fetch else {
                return;
            };
            let map = fetch.blocks[0].map_id.get();
            if taken.lock().unwrap().is_empty() {
                taken.lock().unwrap().push(map);
                first = Some((id, fetch));
                return;
            }
            if !has_room.load(Ordering::Acquire) {
                refused.lock().unwrap().push(map);
                return stage.refuse(peer, id, 1, "");
            }
            taken.lock().unwrap().push(map);
            if let Some((id, fetch)) = first.take() {
                stage.answer(peer, id, &fetch, &[0; 10]);
            }
            stage.answer(peer, id, &fetch, &[map as u8; 10]);
        }
    });
    let server = ScriptedPeer::start_in(&network, script);
    let client = endpoint(&network, config("client", FabricChoice::Tcp));
    let peer = client.add_peer(&server.card).unwrap();
    let fetch = |map| client.fetch(peer, &[block(0, map, 0, 1)], TIMEOUT).unwrap();
    let mut ids: Vec<u64> = (0..FIRST).map(fetch).collect();
    // Long after all were refused once, only the first one asks.
    let many = 3 * FIRST as usize;
    network.until("requests are refused", || {
        refused.lock().unwrap().len() >= many
    });
    ids.extend((FIRST..FIRST + LATER).map(fetch));
    let more = many + 3;
    network.until("one is refused again", || {
        refused.lock().unwrap().len() >= more
    });
    has_room.store(true, Ordering::Release);
    let mut fetched = collect(&network, &client, &ids);
    for (map, id) in ids.iter().enumerate() {
        let bytes = fetched.remove(id).unwrap().bytes();
        assert_eq!(bytes, [vec![map as u8; 10]]);
    }
    let refused = refused.lock().unwrap();
    assert_eq!(refused[..FIRST as usize - 1], Vec::from_iter(1..FIRST));
    assert!(
        refused[FIRST as usize - 1..].iter().all(|map| *map == 1),
        "{refused:?}"
    );
    assert_eq!(*taken.lock().unwrap(), Vec::from_iter(0..FIRST + LATER));
    assert_eq!(counter(&client, "requestsFailed"), 0);
}

/// A request that a server refuses for its whole timeout fails, and so do those behind it.
#[test]
fn a_server_that_never_has_room_ends_the_wait() {
    let network = VirtualNetwork::new(FabricKind::Tcp);
    let script = Box::new(|stage: &mut Stage, peer, id, fetch: Option<Fetch>, _: &_| {
        if fetch.is_some() {
            stage.refuse(peer, id, 1, "");
        }
    });
    let server = ScriptedPeer::start_in(&network, script);
    let client = endpoint(&network, config("client", FabricChoice::Tcp));
    let peer = client.add_peer(&server.card).unwrap();
    let short = Duration::from_millis(300);
    let fetch = |map| client.fetch(peer, &[block(0, map, 0, 1)], short).unwrap();
    let ids: Vec<u64> = (0..5).map(fetch).collect();
    for (_, fetched) in collect(&network, &client, &ids) {
        let failure = fetched.failure.unwrap();
        assert_eq!(failure.code, faro_wire::codes::FetchErrorCode::Refused);
    }
    let id = fetch(5);
    assert!(collect(&network, &client, &[id])
        .remove(&id)
        .unwrap()
        .failure
        .is_some());
}
