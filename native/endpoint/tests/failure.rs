//! Every failure ends in a clear error or in a second try, never in a wrong or a double byte.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/scripted.rs"]
mod scripted;
mod support;
#[path = "support/virtual_time.rs"]
mod virtual_time;

use faro_endpoint::{Endpoint, EndpointError, FabricChoice};
use faro_fabric::FabricKind;
use faro_simulation::VirtualNetwork;
use faro_wire::codes::FetchErrorCode;
use faro_wire::{kind, Card};
use scripted::{card, Script, ScriptedPeer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;
use support::{block, collect, config, counter, fetch, pattern, until, Server};
use virtual_time::VirtualServer;

fn client() -> Arc<Endpoint> {
    Endpoint::start(config("client", FabricChoice::Tcp)).unwrap()
}

/// Starts a peer, and a client whose time is virtual.
fn virtual_pair(script: Script) -> (VirtualNetwork, ScriptedPeer, Arc<Endpoint>) {
    let network = VirtualNetwork::new(FabricKind::Tcp);
    let server = ScriptedPeer::start_in(&network, script);
    let client = virtual_time::endpoint(&network, config("client", FabricChoice::Tcp));
    (network, server, client)
}

fn code(fetched: &support::FetchOutcome) -> FetchErrorCode {
    fetched.failure.as_ref().expect("an error").code
}

#[test]
fn corrupt_bytes_are_asked_for_again_once() {
    let server = ScriptedPeer::start(Box::new(|stage, peer, id, fetch, _| {
        if let Some(fetch) = fetch {
            stage.answer_corrupt(peer, id, &fetch, b"0123456789");
        }
    }));
    let client = client();
    let peer = client.add_peer(&server.card).unwrap();
    let fetched = fetch(&client, peer, &[block(0, 0, 0, 1)]);
    assert_eq!(code(&fetched), FetchErrorCode::Corrupt);
    assert!(fetched.blocks.is_empty());
    assert_eq!(counter(&client, "crcErrors"), 2);
    assert_eq!(counter(&client, "retries"), 1);
    until("leases come back", || {
        counter(&client, "pool.leasedBytes") == 0
    });
}

#[test]
fn a_second_try_gets_only_what_is_missing() {
    let frame = pattern(4, 256 << 10);
    let bytes = frame.clone();
    let mut tries = 0;
    let server = ScriptedPeer::start(Box::new(move |stage, peer, id, fetch, _| {
        let Some(fetch) = fetch else { return };
        tries += 1;
        if tries == 1 {
            assert_eq!(fetch.blocks.len(), 2);
            stage.write(peer, &fetch.buffers[0], &bytes);
            stage.respond(peer, id, &[bytes.len() as u64, 5]);
            stage.written(peer, id, &[(0, &bytes, 0)], false);
            stage.hang_up(peer);
        } else {
            assert_eq!(
                fetch.blocks,
                [block(0, 1, 0, 1)],
                "the first block came already"
            );
            stage.write(peer, &fetch.buffers[0], b"after");
            stage.respond(peer, id, &[5]);
            stage.written(peer, id, &[(0, b"after", 0)], true);
        }
    }));
    let client = client();
    let peer = client.add_peer(&server.card).unwrap();
    let fetched = fetch(&client, peer, &[block(0, 0, 0, 1), block(0, 1, 0, 1)]);
    assert_eq!(fetched.bytes(), [frame, b"after".to_vec()]);
    assert_eq!(counter(&client, "retries"), 1);
}

#[test]
fn a_silent_server_loses_its_connection_at_the_first_deadline() {
    let (network, server, client) = virtual_pair(Box::new(|_, _, _, _, _| {}));
    let peer = client.add_peer(&server.card).unwrap();
    let (blocks, short) = ([block(0, 0, 0, 1)], Duration::from_millis(200));
    let fetched = virtual_time::fetch_within(&network, &client, peer, &blocks, short);
    assert_eq!(code(&fetched), FetchErrorCode::TimedOut);
    network.until("the connection is closed", || {
        server.closed.lock().unwrap().len() == 1
    });
    // The route is in back-off: no later request waits for a deadline of its own.
    let fetched = virtual_time::fetch(&network, &client, peer, &blocks);
    assert_eq!(code(&fetched), FetchErrorCode::Unreachable);
    let detail = fetched.failure.unwrap().detail;
    assert!(detail.contains("no progress for 200 ms"), "{detail}");
    assert_eq!(counter(&client, "timeouts"), 1);
    assert_eq!(counter(&client, "routeBackoffs"), 1);
}

#[test]
fn a_request_without_an_answer_runs_into_the_deadline() {
    let cancelled = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&cancelled);
    let (network, server, client) =
        virtual_pair(Box::new(move |stage, peer, id, fetch, message| {
            if let Some(fetch) = &fetch {
                if fetch.blocks[0] == block(0, 9, 0, 1) {
                    // The connection is alive.
                    stage.answer(peer, id, fetch, b"here");
                }
            }
            if fetch.is_none() && message.kind == kind::CANCEL {
                // Too late: the client has given this up.
                stage.respond(peer, id, &[3]);
                stage.written(peer, id, &[(0, b"abc", 0)], true);
                seen.fetch_add(1, Ordering::SeqCst);
            }
        }));
    let peer = client.add_peer(&server.card).unwrap();
    // A connection that is silent for this long counts as lost, so answers must come more often.
    let short = Duration::from_secs(1);
    let silent = client.fetch(peer, &[block(0, 0, 0, 1)], short).unwrap();
    let mut failure = None;
    while failure.is_none() {
        // Other requests are answered meanwhile, so that the connection is not silent.
        network.pass(Duration::from_millis(100));
        let alive = client
            .fetch(peer, &[block(0, 9, 0, 1)], support::TIMEOUT)
            .unwrap();
        let mut answered = false;
        while !answered {
            let mut batch = Vec::new();
            network.until("an answer", || {
                client.completions(16, Duration::ZERO, &mut batch);
                !batch.is_empty()
            });
            for completion in batch {
                answered |= completion.request == alive;
                match completion.outcome {
                    Ok(_) => assert_ne!(completion.request, silent),
                    Err(ended) if completion.request == silent => failure = Some(ended),
                    Err(ended) => panic!("{ended:?}"),
                }
            }
        }
    }
    let failure = failure.unwrap();
    assert_eq!(failure.code, FetchErrorCode::TimedOut);
    assert!(failure.detail.contains("no progress for 1000 ms"));
    network.until("late messages are dropped", || {
        counter(&client, "lateMessages") == 2
    });
    assert_eq!(cancelled.load(Ordering::SeqCst), 1);
    assert_eq!(counter(&client, "timeouts"), 1);
    network.until("leases come back", || {
        counter(&client, "pool.leasedBytes") == 0
    });
}

#[test]
fn an_owner_that_breaks_the_protocol_is_cut_off() {
    type Breach = fn(&mut scripted::Stage, faro_fabric::ConnectionId, u64);
    let breaches: [(&str, Breach); 8] = [
        ("FETCH_RESPONSE", |s, p, id| s.respond(p, id, &[1, 2])),
        ("FETCH_RESPONSE", |s, p, id| s.respond(p, id, &[])),
        ("DATA_WRITTEN before FETCH_RESPONSE", |s, p, id| {
            s.written(p, id, &[(0, b"abc", 0)], true)
        }),
        ("number of a written buffer", |s, p, id| {
            s.respond(p, id, &[3]);
            s.written(p, id, &[(1, b"abc", 0)], true);
        }),
        ("length of a written buffer", |s, p, id| {
            s.respond(p, id, &[3]);
            s.written(p, id, &[(0, b"abcd", 0)], true);
        }),
        ("length of a written buffer", |s, p, id| {
            s.respond(p, id, &[3]);
            s.written(p, id, &[(0, b"ab", 0)], true);
        }),
        ("last of DATA_WRITTEN", |s, p, id| {
            s.respond(p, id, &[3]);
            s.written(p, id, &[], true);
        }),
        ("unknown frame kind", |s, p, id| {
            s.send(p, 0x7f, id, Vec::new())
        }),
    ];
    for (what, breach) in breaches {
        let server = ScriptedPeer::start(Box::new(move |stage, peer, id, fetch, _| {
            if fetch.is_some() {
                breach(stage, peer, id);
            }
        }));
        let client = client();
        let peer = client.add_peer(&server.card).unwrap();
        let fetched = fetch(&client, peer, &[block(0, 0, 0, 1)]);
        assert_eq!(code(&fetched), FetchErrorCode::Protocol, "{what}");
        let detail = &fetched.failure.as_ref().unwrap().detail;
        assert!(detail.contains(what), "{what}: {detail}");
        until("both connections are closed", || {
            server.closed.lock().unwrap().len() == 2
        });
        until("leases come back", || {
            counter(&client, "pool.leasedBytes") == 0
        });
    }
}

#[test]
fn a_route_that_failed_rests() {
    let network = VirtualNetwork::new(FabricKind::Tcp);
    let server = VirtualServer::start(&network, config("server", FabricChoice::Tcp));
    let client = virtual_time::endpoint(&network, config("client", FabricChoice::Tcp));
    server.put(0, 0, &[pattern(1, 10)]);
    let right = Card::decode(&server.endpoint.card()).unwrap();
    let location = &right.addresses[0].location;
    let other = card(right.endpoint ^ 1, location);
    let other = client.add_peer(&other).unwrap();
    let absent = client.add_peer(&card(77, "node-77:0")).unwrap();
    let blocks = [block(0, 0, 0, 1)];
    for (peer, why) in [(other, "does not prove membership"), (absent, "node-77:0")] {
        for _ in 0..3 {
            let fetched = virtual_time::fetch(&network, &client, peer, &blocks);
            assert_eq!(code(&fetched), FetchErrorCode::Unreachable);
            let detail = fetched.failure.unwrap().detail;
            assert!(detail.contains(why), "{detail}");
        }
    }
    assert_eq!(counter(&client, "routeBackoffs"), 2, "one of each");
    let peer = server.peer_of(&client);
    let fetched = virtual_time::fetch(&network, &client, peer, &blocks);
    assert_eq!(fetched.bytes(), [pattern(1, 10)]);
}

#[test]
fn nobody_there_and_somebody_else_there() {
    let client = client();
    let server = Server::start(config("server", FabricChoice::Tcp));
    server.put(0, 0, &[pattern(1, 10)]);
    let right = Card::decode(&server.endpoint.card()).unwrap();
    let location = right.addresses[0].location.clone();
    let other = client
        .add_peer(&card(right.endpoint ^ 1, &location))
        .unwrap();
    let fetched = fetch(&client, other, &[block(0, 0, 0, 1)]);
    assert_eq!(code(&fetched), FetchErrorCode::Unreachable);
    let detail = fetched.failure.unwrap().detail;
    assert!(detail.contains("does not prove membership"), "{detail}");
    assert!(
        !detail.contains(&format!("{:x}", right.endpoint)),
        "unauthenticated peers learn no id: {detail}"
    );

    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let location = unused.local_addr().unwrap().to_string();
    drop(unused);
    let absent = client.add_peer(&card(77, &location)).unwrap();
    let fetched = fetch(&client, absent, &[block(0, 0, 0, 1)]);
    assert_eq!(code(&fetched), FetchErrorCode::Unreachable);
    assert!(fetched.failure.unwrap().detail.contains(&location));
    // A further one would tell whether the route rests, which is for a while only.
    assert_eq!(counter(&client, "routeBackoffs"), 2);
    let peer = server.peer_of(&client);
    assert_eq!(
        fetch(&client, peer, &[block(0, 0, 0, 1)]).bytes(),
        [pattern(1, 10)]
    );
}

#[test]
fn an_owner_that_dies_in_mid_fetch() {
    let server = Server::start(config("server", FabricChoice::Tcp));
    let big = pattern(1, 30 << 20);
    server.put(0, 0, &[pattern(2, 1000), big]);
    let client = client();
    let peer = server.peer_of(&client);
    let request = client
        .fetch(
            peer,
            &[block(0, 0, 0, 1), block(0, 0, 1, 2)],
            support::TIMEOUT,
        )
        .unwrap();
    until("bytes are on their way", || {
        counter(&client, "pool.leasedBytes") > 1 << 20
    });
    drop(server);
    let fetched = collect(&client, &[request]).remove(&request).unwrap();
    assert!(matches!(
        code(&fetched),
        FetchErrorCode::Unreachable | FetchErrorCode::ConnectionLost | FetchErrorCode::Refused
    ));
    for (_, bytes) in &fetched.blocks {
        assert_eq!(*bytes, pattern(2, 1000));
    }
    until("leases come back", || {
        counter(&client, "pool.leasedBytes") == 0
    });
}

#[test]
fn refusals_of_the_owner_are_told() {
    let server = ScriptedPeer::start(Box::new(|stage, peer, id, fetch, _| {
        if fetch.is_some() {
            stage.refuse(peer, id, 0, "lunch");
        }
    }));
    let client = client();
    let peer = client.add_peer(&server.card).unwrap();
    let fetched = fetch(&client, peer, &[block(0, 0, 0, 1)]);
    assert_eq!(code(&fetched), FetchErrorCode::Refused);
    let detail = fetched.failure.unwrap().detail;
    assert!(
        detail.contains("Busy") && detail.contains("lunch"),
        "{detail}"
    );
}

#[test]
fn a_server_without_room_is_asked_again_until_it_has_some() {
    let mut times = 0;
    let server = ScriptedPeer::start(Box::new(move |stage, peer, id, fetch, _| {
        let Some(fetch) = fetch else { return };
        times += 1;
        if times < 4 {
            return stage.refuse(peer, id, 1, "no room");
        }
        stage.answer(peer, id, &fetch, b"0123456789");
    }));
    let client = client();
    let peer = client.add_peer(&server.card).unwrap();
    let fetched = fetch(&client, peer, &[block(0, 0, 0, 1)]);
    assert_eq!(fetched.bytes(), [b"0123456789".to_vec()]);
    assert_eq!(counter(&client, "retries"), 0, "it was no fault");
}

#[test]
fn a_server_that_never_has_room_ends_the_request_at_its_timeout() {
    let (network, server, client) = virtual_pair(Box::new(move |stage, peer, id, fetch, _| {
        if fetch.is_some() {
            // Longer than any client waits for one refusal.
            stage.refuse(peer, id, u32::MAX, "no room");
        }
    }));
    let peer = client.add_peer(&server.card).unwrap();
    let fetched = virtual_time::fetch_within(
        &network,
        &client,
        peer,
        &[block(0, 0, 0, 1)],
        Duration::from_millis(300),
    );
    assert_eq!(code(&fetched), FetchErrorCode::Refused);
}

#[test]
fn blocks_that_fill_the_arena_and_are_never_released_end_the_others() {
    let network = VirtualNetwork::new(FabricKind::Tcp);
    let server = VirtualServer::start(&network, config("server", FabricChoice::Tcp));
    let client = virtual_time::endpoint(&network, config("client", FabricChoice::Tcp));
    let peer = server.peer_of(&client);
    let part = pattern(3, 10 << 20);
    server.put(0, 0, &vec![part.clone(); 8]);
    // All of 80 MB at once, with nothing released, does not fit into 64 MB.
    let requests: Vec<u64> = (0..8)
        .map(|r| {
            client
                .fetch(peer, &[block(0, 0, r, r + 1)], support::TIMEOUT)
                .unwrap()
        })
        .collect();
    let (mut held, mut exhausted, mut ended) = (Vec::new(), 0, 0);
    network.until("the end of all", || {
        let mut batch = Vec::new();
        client.completions(16, Duration::ZERO, &mut batch);
        for completion in batch {
            ended += usize::from(completion.last);
            match &completion.outcome {
                Ok(_) => held.push(completion),
                Err(failure) => {
                    assert_eq!(failure.code, FetchErrorCode::PoolExhausted);
                    exhausted += 1;
                }
            }
        }
        ended == requests.len()
    });
    assert!(exhausted >= 1 && !held.is_empty(), "{exhausted} of 8");
    for completion in held.drain(..) {
        assert_eq!(support::blocks_of(&completion), [(0, part.clone())]);
    }
    let fetched = virtual_time::fetch(&network, &client, peer, &[block(0, 0, 0, 1)]);
    assert_eq!(fetched.bytes(), [part]);
}

#[test]
fn a_block_larger_than_the_arena_is_refused_at_once() {
    let server = Server::start(config("server", FabricChoice::Tcp));
    let client = client();
    let peer = server.peer_of(&client);
    let files = server.put(0, 0, &[pattern(1, 10)]);
    std::fs::File::options()
        .write(true)
        .open(&files.data)
        .unwrap()
        .set_len(support::MEMORY)
        .unwrap();
    std::fs::write(
        &files.index,
        [0, support::MEMORY].map(u64::to_be_bytes).concat(),
    )
    .unwrap();
    let fetched = fetch(&client, peer, &[block(0, 0, 0, 1)]);
    assert_eq!(code(&fetched), FetchErrorCode::PoolExhausted);
    assert!(fetched
        .failure
        .unwrap()
        .detail
        .contains(&support::MEMORY.to_string()));
    until("leases come back", || {
        counter(&client, "pool.leasedBytes") == 0
    });
}

#[test]
fn closing_ends_all_requests() {
    let server = ScriptedPeer::start(Box::new(|_, _, _, _, _| {}));
    let client = client();
    let peer = client.add_peer(&server.card).unwrap();
    let requests: Vec<u64> = (0..5)
        .map(|_| {
            client
                .fetch(peer, &[block(0, 0, 0, 1)], support::TIMEOUT)
                .unwrap()
        })
        .collect();
    client.close();
    for (_, fetched) in collect(&client, &requests) {
        assert_eq!(code(&fetched), FetchErrorCode::Closing);
    }
    let refused = client.fetch(peer, &[block(0, 0, 0, 1)], support::TIMEOUT);
    assert!(matches!(refused, Err(EndpointError::Closed)));
    client.close();
}

#[test]
fn cancelled_requests_end_once() {
    let server = ScriptedPeer::start(Box::new(|_, _, _, _, _| {}));
    let client = client();
    let peer = client.add_peer(&server.card).unwrap();
    let request = client
        .fetch(peer, &[block(0, 0, 0, 1)], support::TIMEOUT)
        .unwrap();
    client.cancel(request);
    client.cancel(request);
    let fetched = collect(&client, &[request]).remove(&request).unwrap();
    assert_eq!(code(&fetched), FetchErrorCode::Cancelled);
}

#[test]
fn requests_out_of_bounds_are_refused_at_once() {
    let client = client();
    let none = client.fetch(1, &[], support::TIMEOUT);
    assert!(matches!(
        none,
        Err(EndpointError::BadRequest {
            got: 0,
            max: 32_768
        })
    ));
    let many = vec![block(0, 0, 0, 1); 32_769];
    let many = client.fetch(1, &many, support::TIMEOUT);
    assert!(matches!(
        many,
        Err(EndpointError::BadRequest { got: 32_769, .. })
    ));
    let unknown = client.fetch(123_456, &[block(0, 0, 0, 1)], support::TIMEOUT);
    assert!(matches!(unknown, Err(EndpointError::UnknownPeer(123_456))));
    assert!(matches!(
        client.add_peer(b"no card"),
        Err(EndpointError::Card(_))
    ));
}

#[test]
fn configurations_that_cannot_be() {
    let mut small = config("small", FabricChoice::Tcp);
    small.memory_limit = 1 << 20;
    let error = Endpoint::start(small).err().unwrap().to_string();
    assert!(error.contains("1048576"), "{error}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut busy = config("busy", FabricChoice::Tcp);
    busy.port = taken.local_addr().unwrap().port();
    let error = Endpoint::start(busy).err().unwrap().to_string();
    assert!(error.contains("tcp fabric"), "{error}");
}

/// No host has the device: with `verbs` alone it is an error with the reason, with `auto` one
/// fabric less.
#[test]
fn rdma_that_cannot_be_used() {
    for choice in [FabricChoice::Verbs, FabricChoice::Auto] {
        let mut config = config("verbs", choice);
        config.verbs.device = Some("nobody_has_this_0".parse().unwrap());
        match (choice, Endpoint::start(config)) {
            (FabricChoice::Verbs, Err(error)) => {
                let error = error.to_string();
                assert!(
                    error.contains("verbs fabric: verbs is not available"),
                    "{error}"
                );
            }
            (_, Ok(endpoint)) => {
                assert_eq!(choice, FabricChoice::Auto);
                let card = Card::decode(&endpoint.card()).unwrap();
                let schemes: Vec<&str> = card.addresses.iter().map(|a| &*a.scheme).collect();
                assert_eq!(schemes, ["shm", "tcp"]);
            }
            (_, Err(error)) => panic!("{error}"),
        }
    }
}

/// A question that waits for Java's answer refers to all memory of an endpoint.
#[test]
fn an_endpoint_that_closes_with_open_questions_keeps_no_memory() {
    let server = Endpoint::start(config("server", FabricChoice::Tcp)).unwrap();
    let client = client();
    let peer = client.add_peer(&server.card()).unwrap();
    let request = client
        .fetch(peer, &[block(0, 0, 0, 1)], support::TIMEOUT)
        .unwrap();
    until("the server asks where the map output is", || {
        !server.unresolved(1, Duration::ZERO).is_empty()
    });
    let arena = Arc::downgrade(server.pool());
    server.close();
    drop(server);
    assert!(arena.upgrade().is_none(), "its arena is returned");
    collect(&client, &[request]);
}
