//! More is asked for at once than the arena holds: every block arrives, and no request fails.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

#[macro_use]
mod support;
#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/scripted.rs"]
mod scripted;
#[path = "support/virtual_time.rs"]
mod virtual_time;

use faro_endpoint::{Completion, Config, Delivery, Endpoint, FabricChoice, RegionMode};
use faro_fabric::FabricKind;
use faro_simulation::VirtualNetwork;
use faro_wire::codes::FetchErrorCode;
use faro_wire::message::{OfferedSlice, ReadOffer, RemoteBuffer};
use faro_wire::{crc32c, kind};
use scripted::ScriptedPeer;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use support::{block, config, counter, Server, MEMORY, TIMEOUT};
use virtual_time::VirtualServer;

const MIB: usize = 1 << 20;
/// Maximum that a client may hold, minus the pages that `FetchService` reserves for a block's ends.
const LARGEST: usize = (MEMORY as usize - 16 * MIB) - 2 * (256 << 10);

/// Returns `length` bytes that differ by seed and, in steps of 4 KiB, by position. They are quick
/// to make and to compare without optimisation, because there are many.
fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![seed as u8; length];
    for (n, step) in bytes.chunks_mut(4 << 10).enumerate() {
        let stamp = (seed << 32 | n as u64).to_le_bytes();
        let room = step.len().min(stamp.len());
        step[..room].copy_from_slice(&stamp[..room]);
    }
    bytes
}

/// Returns the bytes of a delivery, one block after the other.
fn bytes_of(delivery: &Delivery) -> Vec<u8> {
    let mut bytes = Vec::new();
    for slice in &delivery.slices {
        let from = slice.offset as usize;
        bytes.extend_from_slice(&slice.lease.bytes()[from..from + slice.length as usize]);
    }
    bytes
}

/// Fetches each list of blocks with a request of its own, all at once, and nothing else is left of them then.
fn all_at_once(client: &Arc<Endpoint>, peer: u64, requests: &[Vec<(u32, u64, usize)>]) {
    arrive(client, peer, requests, |batch| {
        client.completions(16, TIMEOUT, batch);
    });
    support::until_leases_are_back(client);
    assert_eq!(counter(client, "requestsFailed"), 0);
    assert_eq!(counter(client, "timeouts"), 0);
}

/// Fetches each list of blocks with a request of its own, all at once. Every completion is dropped as
/// soon as it was looked at, as a task does that reads block after block. `next` waits for the next
/// ones of the client. No request of the client may fail.
fn arrive(
    client: &Endpoint,
    peer: u64,
    requests: &[Vec<(u32, u64, usize)>],
    mut next: impl FnMut(&mut Vec<Completion>),
) {
    let mut open = HashSet::new();
    let mut wanted = std::collections::HashMap::new();
    for blocks in requests {
        let ids: Vec<_> = blocks
            .iter()
            .map(|(r, ..)| block(0, 0, *r, r + 1))
            .collect();
        let id = client.fetch(peer, &ids, TIMEOUT).unwrap();
        open.insert(id);
        wanted.insert(id, blocks.clone());
    }
    while !open.is_empty() {
        let mut batch = Vec::new();
        next(&mut batch);
        for completion in batch {
            let request = completion.request;
            let delivery = completion
                .outcome
                .unwrap_or_else(|failure| panic!("request {request}: {failure:?}"));
            let (stream, mut at) = (bytes_of(&delivery), 0);
            let blocks = &wanted[&request][completion.first_block as usize..];
            for ((_, seed, length), entry) in blocks.iter().zip(&delivery.blocks) {
                assert_eq!(
                    (entry.status.get(), entry.length.get()),
                    (0, *length as u64)
                );
                assert!(
                    stream[at..at + length] == pattern(*seed, *length),
                    "block {seed}"
                );
                at += length;
            }
            assert_eq!(at, stream.len());
            if completion.last {
                open.remove(&request);
            }
        }
    }
}

fn pair(fabric: FabricChoice) -> (Server, Arc<Endpoint>) {
    let server = Server::start(config("server", fabric));
    let client = Endpoint::start(config("client", fabric)).unwrap();
    (server, client)
}

/// A server and a client whose time is virtual, beside a peer that follows a script.
struct Virtual {
    silent: ScriptedPeer,
    server: VirtualServer,
    client: Arc<Endpoint>,
    network: VirtualNetwork,
}

impl Virtual {
    fn beside(script: scripted::Script) -> Self {
        let network = VirtualNetwork::new(FabricKind::Tcp);
        let config = |name| config(name, FabricChoice::Tcp);
        Self {
            silent: ScriptedPeer::start_in(&network, script),
            server: VirtualServer::start(&network, config("server")),
            client: virtual_time::endpoint(&network, config("client")),
            network,
        }
    }

    /// Asks the silent peer for a block.
    fn ask_silent(&self, timeout: Duration) -> u64 {
        let to = self.client.add_peer(&self.silent.card).unwrap();
        let wanted = [block(9, 9, 0, 1)];
        self.client.fetch(to, &wanted, timeout).unwrap()
    }

    fn until_leased(&self, what: &str, bytes: usize) {
        self.network.until(what, || {
            counter(&self.client, "pool.leasedBytes") >= bytes as u64
        });
    }

    fn next(&self, client: &Endpoint, batch: &mut Vec<Completion>) {
        self.network.until("a completion", || {
            client.completions(16, Duration::ZERO, batch);
            !batch.is_empty()
        });
    }

    /// Fetches blocks of these lengths from the server, all at once. No request of the client may fail.
    fn blocks_arrive(&self, lengths: &[usize]) {
        let (bytes, requests) = one_request_each(lengths);
        self.server.put(0, 0, &bytes);
        let (client, peer) = (&self.client, self.server.peer_of(&self.client));
        arrive(client, peer, &requests, |batch| self.next(client, batch));
        assert_eq!(counter(client, "requestsFailed"), 0);
    }
}

/// Returns blocks of `lengths`, and one request for each.
#[allow(clippy::type_complexity)]
fn one_request_each(lengths: &[usize]) -> (Vec<Vec<u8>>, Vec<Vec<(u32, u64, usize)>>) {
    let parts: Vec<_> = (0u64..).zip(lengths).collect();
    let bytes = parts.iter().map(|(s, l)| pattern(*s, **l)).collect();
    let one = |(seed, length): &(u64, &usize)| vec![(*seed as u32, *seed, **length)];
    (bytes, parts.iter().map(one).collect())
}

/// Puts a map output of `lengths`, and returns one request for each partition.
fn each_by_itself(server: &Server, lengths: &[usize]) -> Vec<Vec<(u32, u64, usize)>> {
    let (bytes, requests) = one_request_each(lengths);
    server.put(0, 0, &bytes);
    requests
}

fn large_blocks(fabric: FabricChoice) {
    let (server, client) = pair(fabric);
    let requests = each_by_itself(&server, &[20 * MIB; 8]);
    all_at_once(&client, server.peer_of(&client), &requests);
}

fn many_blocks(fabric: FabricChoice) {
    let (server, client) = pair(fabric);
    let requests = each_by_itself(&server, &[MIB; 300]);
    all_at_once(&client, server.peer_of(&client), &requests);
}

fn blocks_as_large_as_the_arena(fabric: FabricChoice) {
    let (server, client) = pair(fabric);
    let requests = each_by_itself(&server, &[LARGEST; 4]);
    all_at_once(&client, server.peer_of(&client), &requests);
}

fn large_and_small_blocks(fabric: FabricChoice) {
    let (server, client) = pair(fabric);
    let lengths: Vec<usize> = (0..240)
        .map(|n| match n % 12 {
            0 => 9 * MIB + 77,
            1 | 2 => MIB + n,
            3 => 0,
            _ => 300 + 61 * n,
        })
        .collect();
    let single = each_by_itself(&server, &lengths);
    let requests: Vec<_> = single.chunks(7).map(|seven| seven.concat()).collect();
    all_at_once(&client, server.peer_of(&client), &requests);
}

fn blocks_that_are_pulled(fabric: FabricChoice) {
    let server = Server::start(Config {
        stages_outputs: true,
        regions: RegionMode::Optimistic,
        memory_limit: 4 * MEMORY,
        ..config("server", fabric)
    });
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let lengths = [3 * MIB; 36];
    let bytes: Vec<_> = (0u64..).zip(lengths).map(|(s, l)| pattern(s, l)).collect();
    let files = server.put(0, 0, &bytes);
    let output = faro_wire::OutputId {
        shuffle_id: 0,
        map_id: 0,
    };
    server.endpoint.committed(output, &files, None);
    support::until("the map output is cached", || {
        counter(&server.endpoint, "region.cachedChunks") >= 36 * 12
    });
    let requests: Vec<_> = (0u32..36)
        .map(|n| vec![(n, u64::from(n), 3 * MIB)])
        .collect();
    all_at_once(&client, server.peer_of(&client), &requests);
    assert!(counter(&client, "remoteReads") > 0, "some were pulled");
}

/// A block that the arena cannot hold gets an error, which names its size and the limit; the blocks around
/// it arrive.
fn a_block_beyond_the_arena_fails_alone(fabric: FabricChoice) {
    let (server, client) = pair(fabric);
    let lengths = [1_000, LARGEST + 1, 300_000, 7, LARGEST + 9, LARGEST + 2, 50];
    let parts: Vec<_> = (0u64..)
        .zip(lengths)
        .map(|(seed, length)| pattern(seed, length))
        .collect();
    server.put(0, 0, &parts);
    let blocks: Vec<_> = (0..7).map(|r| block(0, 0, r, r + 1)).collect();
    let request = client
        .fetch(server.peer_of(&client), &blocks, TIMEOUT)
        .unwrap();
    let (mut arrived, mut failed, mut next, mut last) = (Vec::new(), Vec::new(), 0, false);
    while !last {
        let mut batch = Vec::new();
        client.completions(16, TIMEOUT, &mut batch);
        for completion in batch {
            assert_eq!(
                (completion.request, completion.first_block),
                (request, next)
            );
            next += completion.block_count;
            last |= completion.last;
            match &completion.outcome {
                Ok(_) => arrived.extend(support::blocks_of(&completion)),
                Err(failure) => failed.push((completion.first_block, failure.detail.clone())),
            }
        }
    }
    let small = [0, 2, 3, 6].map(|n: usize| (0, parts[n].clone()));
    assert!(arrived == small, "the others arrive");
    let beyond = [(1, 1), (4, 9), (5, 2)].map(|(at, more)| {
        let bytes = LARGEST + more;
        (
            at,
            format!("a block of {bytes} bytes, the arena has room for {LARGEST}"),
        )
    });
    assert_eq!(failed, beyond);
    assert_eq!(next, 7);
    support::until_leases_are_back(&client);
}

/// One request waits for a silent peer. Blocks that each need nearly all of the arena, and hold
/// parts of it while they wait for each other, must arrive nevertheless.
#[test]
fn a_silent_peer_beside_blocks_that_wait_for_each_other() {
    let stage = Virtual::beside(Box::new(|_, _, _, _, _| {}));
    let waits = stage.ask_silent(TIMEOUT);
    stage.until_leased("the silent peer has a buffer", 1);
    stage.blocks_arrive(&[LARGEST; 4]);
    stage.client.cancel(waits);
}

/// A peer sends its block's length and then nothing. The memory for it must go to others that need
/// it.
#[test]
fn a_silent_peer_keeps_no_memory_that_others_need() {
    let stage = Virtual::beside(Box::new(|stage, peer, id, fetch, _| {
        if fetch.is_some() {
            stage.respond(peer, id, &[40 * MIB as u64]);
        }
    }));
    let waits = stage.ask_silent(TIMEOUT);
    stage.until_leased("the silent peer has buffers for its block", 40 * MIB);
    stage.blocks_arrive(&[20 * MIB; 4]);
    stage.client.cancel(waits);
}

/// A request whose buffers were taken, and that was asked again, must end at its original deadline:
/// before a request of another endpoint that has a sixth more time and lost nothing.
#[test]
fn a_request_that_is_asked_again_keeps_its_deadline() {
    let timeout = Duration::from_secs(6);
    let mut answers = 0;
    let stage = Virtual::beside(Box::new(move |stage, peer, id, fetch, _| {
        // Not when it is asked again: an answer moves a deadline.
        if fetch.is_some() && answers < 2 {
            answers += 1;
            stage.respond(peer, id, &[40 * MIB as u64]);
        }
    }));
    let config = config("patient", FabricChoice::Tcp);
    let patient = virtual_time::endpoint(&stage.network, config);
    let taken = stage.ask_silent(timeout);
    let to = patient.add_peer(&stage.silent.card).unwrap();
    let more = timeout + timeout / 6;
    patient.fetch(to, &[block(9, 9, 0, 1)], more).unwrap();
    stage.until_leased("the silent peer has buffers for its block", 40 * MIB);
    stage.blocks_arrive(&[20 * MIB; 4]);
    let client = &stage.client;
    assert!(counter(client, "putBack") > 0, "its buffers were taken");

    let mut batch = Vec::new();
    stage.next(&patient, &mut batch);
    let last = batch.pop().unwrap();
    assert_eq!(last.outcome.err().unwrap().code, FetchErrorCode::TimedOut);
    client.completions(1, Duration::ZERO, &mut batch);
    let first = batch.pop().expect("the request has a new deadline");
    assert_eq!(first.request, taken);
    assert_eq!(first.outcome.err().unwrap().code, FetchErrorCode::TimedOut);
}

/// A peer sends the lengths of several requests' blocks, and then nothing. Those of its requests
/// that wait for memory must come after all others, although they are older: memory that one gives
/// up must not go to the next.
#[test]
fn requests_to_a_silent_peer_wait_behind_the_others() {
    const REQUESTS: usize = 6;
    let mut answers = 0;
    let stage = Virtual::beside(Box::new(move |stage, peer, id, fetch, _| {
        if fetch.is_some() && answers < REQUESTS {
            answers += 1;
            stage.respond(peer, id, &[20 * MIB as u64]);
        }
    }));
    let waiting = [0; REQUESTS].map(|_| stage.ask_silent(TIMEOUT));
    stage.until_leased("the silent peer has buffers for two blocks", 40 * MIB);
    stage.blocks_arrive(&[20 * MIB; 4]);
    let client = &stage.client;
    assert!(
        counter(client, "putBack") <= REQUESTS as u64,
        "a request that had given its memory up had some again"
    );
    for request in waiting {
        client.cancel(request);
    }
    stage.network.until("leases come back", || {
        counter(client, "pool.leasedBytes") == 0
    });
}

/// A peer offers more slices to read than its connection's queue holds, and then stops. Requests to
/// another peer must not wait for room there. When the peer continues, all that it offered is read.
#[test]
fn a_full_queue_to_one_peer_is_no_shortage() {
    const REQUESTS: usize = 20;
    const SLICES: usize = 64;
    const SLICE: usize = 1 << 10;
    let (go, gone_on) = std::sync::mpsc::channel();
    let stopped = Arc::new(AtomicBool::new(false));
    let mut asked = Vec::new();
    let slow = ScriptedPeer::start(Box::new({
        let stopped = Arc::clone(&stopped);
        move |stage, peer, id, fetch, _| {
            asked.extend(fetch.map(|_| id));
            if asked.len() < REQUESTS {
                return;
            }
            // All requests have come, so that nothing is read before all is offered.
            let page = stage.page(peer, |bytes| bytes.fill(0));
            let versions = stage.page(peer, |bytes| {
                bytes[..8].copy_from_slice(&2u64.to_le_bytes())
            });
            for id in asked.drain(..) {
                let slice = OfferedSlice {
                    key: page.key.into(),
                    offset: page.offset.into(),
                    length: (SLICE as u32).into(),
                    slot: 0.into(),
                    version: 2.into(),
                    crc: crc32c(&[0; SLICE]).into(),
                    reserved: 0.into(),
                };
                let versions = RemoteBuffer {
                    key: versions.key.into(),
                    offset: versions.offset.into(),
                    length: 8.into(),
                    reserved: 0.into(),
                };
                let offer = ReadOffer {
                    versions,
                    slices: vec![slice; SLICES],
                };
                stage.send(peer, kind::READ_OFFER, id, offer.encode());
                stage.respond(peer, id, &[(SLICES * SLICE) as u64]);
            }
            stage.flush();
            stopped.store(true, Ordering::Release);
            // An error: the test has ended.
            let _: Result<(), _> = gone_on.recv();
        }
    }));
    let go: std::sync::mpsc::Sender<()> = go;
    let (server, client) = pair(FabricChoice::Tcp);
    let to = client.add_peer(&slow.card).unwrap();
    let wanted = [block(9, 9, 0, 1)];
    let mut waiting: HashSet<u64> = (0..REQUESTS)
        .map(|_| client.fetch(to, &wanted, TIMEOUT).unwrap())
        .collect();
    support::until("the peer has stopped", || stopped.load(Ordering::Acquire));
    let requests = each_by_itself(&server, &[MIB; 8]);
    arrive(&client, server.peer_of(&client), &requests, |batch| {
        client.completions(16, TIMEOUT, batch);
    });
    go.send(()).unwrap();
    while !waiting.is_empty() {
        let mut batch = Vec::new();
        client.completions(16, TIMEOUT, &mut batch);
        for completion in batch {
            let delivery = completion.outcome.as_ref().unwrap();
            assert_eq!(bytes_of(delivery), vec![0; SLICES * SLICE]);
            assert!(waiting.remove(&completion.request));
        }
    }
    support::until_leases_are_back(&client);
    assert_eq!(counter(&client, "remoteReads"), REQUESTS as u64);
    assert_eq!(counter(&client, "requestsFailed"), 0);
}

over_every_fabric!(
    a_block_beyond_the_arena_fails_alone,
    large_blocks,
    many_blocks,
    blocks_as_large_as_the_arena,
    large_and_small_blocks,
    blocks_that_are_pulled,
);
