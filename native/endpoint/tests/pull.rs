//! Chunks in the cache are pulled, and whatever happens to them meanwhile, the bytes are right.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[macro_use]
mod support;
#[path = "support/by_hand.rs"]
mod by_hand;
#[cfg(feature = "research")]
#[path = "pull/regions.rs"]
mod regions;
#[path = "support/scripted.rs"]
mod scripted;

use faro_conformance::cases;
use faro_endpoint::{Config, Endpoint, FabricChoice, OutputFiles, RegionMode};
use faro_fabric::Exposure;
use faro_pool::{Purpose, PAGE_BYTES};
use faro_wire::message::{BlockEntry, FetchResponse, OfferedSlice, ReadOffer, RemoteBuffer};
use faro_wire::{crc32c, kind, OutputId};
use scripted::{ScriptedPeer, Stage};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use support::{
    block, collect, config, counter, fetch, pattern, until, until_leases_are_back, Server,
};

over_every_fabric!(
    what_is_cached_is_pulled,
    what_is_partly_cached_is_written,
    what_is_cached_is_written_from_its_pages,
    what_is_overwritten_meanwhile_is_never_accepted,
    what_is_overwritten_meanwhile_is_never_sent,
    a_forgotten_shuffle_is_not_accepted,
    exposed_pages_return_when_the_arena_is_short,
    forgotten_shuffles_leave_no_page_behind,
);

/// Outputs are cached as they are written, and peers read what is cached.
fn on_commit(fabric: FabricChoice) -> Config {
    Config {
        regions: RegionMode::Optimistic,
        ..written(fabric)
    }
}

/// Outputs are cached as they are written, and the server writes what is cached.
fn written(fabric: FabricChoice) -> Config {
    Config {
        stages_outputs: true,
        ..config("server", fabric)
    }
}

fn commit(server: &Server, map: i64, files: &OutputFiles) {
    let id = OutputId {
        shuffle_id: 0,
        map_id: map,
    };
    server.endpoint.committed(id, files, None);
}

/// Commits and waits until `chunks` are cached.
fn stage(server: &Server, map: i64, files: &OutputFiles, chunks: u64) {
    commit(server, map, files);
    until("staging", || {
        counter(&server.endpoint, "region.cachedChunks") == chunks
    });
}

/// Shuffle after shuffle is staged by its writer, pulled and forgotten. All pages that the server holds at the end are
/// those of its chunk cache, and the last shuffle was staged like the first.
fn forgotten_shuffles_leave_no_page_behind(fabric: FabricChoice) {
    const CHUNKS: usize = 16;
    let server = Server::start(on_commit(fabric));
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    for shuffle in 0..8 {
        let bytes = pattern(shuffle, CHUNKS * PAGE_BYTES);
        let shuffle = shuffle as u32;
        let files = server.put(shuffle, 0, std::slice::from_ref(&bytes));
        let mut staged = server.endpoint.stage().unwrap();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let room = staged.room();
            let now = room.len().min(rest.len());
            assert!(now > 0, "shuffle {shuffle}: staging has stopped");
            room[..now].copy_from_slice(&rest[..now]);
            staged.filled(now);
            rest = &rest[now..];
        }
        let id = OutputId {
            shuffle_id: shuffle,
            map_id: 0,
        };
        server.endpoint.committed(id, &files, Some(staged));
        assert_eq!(
            counter(&server.endpoint, "region.cachedChunks"),
            CHUNKS as u64
        );
        let got = fetch(&client, peer, &[block(shuffle, 0, 0, 1)]).bytes();
        assert!(got == [bytes], "shuffle {shuffle}");
        assert_eq!(counter(&client, "remoteReads"), u64::from(shuffle) + 1);
        server.endpoint.forget_shuffle(shuffle);
    }
    until_leases_are_back(&server.endpoint);
}

fn what_is_cached_is_pulled(fabric: FabricChoice) {
    let server = Server::start(on_commit(fabric));
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    // More than one window, parts that begin and end in mid-chunk, and nothing.
    let parts: Vec<Vec<u8>> = [300_000, 0, 5_000_001, 17, 700_000]
        .iter()
        .enumerate()
        .map(|(seed, bytes)| pattern(seed as u64, *bytes))
        .collect();
    let files = server.put(0, 1, &parts);
    stage(&server, 1, &files, 23);
    let minor = counter(&server.endpoint, "region.minorFaults");
    for _ in 0..3 {
        let all: Vec<_> = (0..5).map(|r| block(0, 1, r, r + 1)).collect();
        assert_eq!(fetch(&client, peer, &all).bytes(), parts);
    }
    assert_eq!(counter(&client, "remoteReads"), 3);
    assert_eq!(counter(&client, "remoteReadsStale"), 0);
    assert_eq!(
        counter(&server.endpoint, "region.minorFaults"),
        minor,
        "no file was read"
    );
    // Too little for a round trip more.
    assert_eq!(
        fetch(&client, peer, &[block(0, 1, 3, 4)]).bytes(),
        [pattern(3, 17)]
    );
    assert_eq!(counter(&client, "remoteReads"), 3);
    until_leases_are_back(&client);
}

fn what_is_partly_cached_is_written(fabric: FabricChoice) {
    let server = Server::start(on_commit(fabric));
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    let files = server.put(0, 1, &[pattern(1, 600_000)]);
    stage(&server, 1, &files, 3);
    server.put(0, 2, &[pattern(2, 600_000)]);
    let both = [block(0, 1, 0, 1), block(0, 2, 0, 1)];
    let expected = [pattern(1, 600_000), pattern(2, 600_000)];
    assert_eq!(fetch(&client, peer, &both).bytes(), expected);
    assert_eq!(counter(&client, "remoteReads"), 0);
}

/// What is cached, what is not, and both in one buffer; the reader verifies the bytes, or not. No peer gets a right to
/// read memory, and all of it comes back.
fn what_is_cached_is_written_from_its_pages(fabric: FabricChoice) {
    let server = Server::start(Config {
        memory_limit: 256 << 20,
        ..written(fabric)
    });
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    let sizes = [300_000, 0, 3_000_001, 17, 70_000, 9_000];
    let parts: Vec<Vec<u8>> = (0..)
        .zip(sizes)
        .map(|(seed, bytes)| pattern(seed, bytes))
        .collect();
    let files = server.put(0, 1, &parts);
    stage(&server, 1, &files, 13);
    server.put(0, 2, &parts);
    let faults = || counter(&server.endpoint, "region.minorFaults");
    let before = faults();
    let of = |map| (0..6).map(move |r| block(0, map, r, r + 1));
    let cached: Vec<_> = of(1).collect();
    let verified = |blocks: &[_]| {
        let request = client
            .fetch_to_verify(peer, blocks, support::TIMEOUT)
            .unwrap();
        collect(&client, &[request])
            .remove(&request)
            .unwrap()
            .bytes()
    };
    let leases = counter(&server.endpoint, "pool.acquisitions");
    assert!(fetch(&client, peer, &cached).bytes() == parts);
    // Connections of a device have leases, too, and a write of shared memory has one part.
    if fabric == FabricChoice::Tcp {
        assert_eq!(
            counter(&server.endpoint, "pool.acquisitions"),
            leases,
            "nothing was copied"
        );
    }
    for _ in 0..3 {
        assert!(fetch(&client, peer, &cached).bytes() == parts);
        assert!(verified(&cached) == parts);
    }
    assert_eq!(faults(), before, "no file was read");
    let mixed: Vec<_> = of(1)
        .zip(of(2))
        .flat_map(|(one, other)| [other, one])
        .collect();
    let twice: Vec<_> = parts
        .iter()
        .flat_map(|part| [part.clone(), part.clone()])
        .collect();
    assert!(fetch(&client, peer, &mixed).bytes() == twice);
    assert!(verified(&mixed) == twice);
    assert!(faults() > before);
    assert_eq!(counter(&server.endpoint, "readOffers"), 0);
    assert_eq!(counter(&client, "crcErrors"), 0);
    until_leases_are_back(&server.endpoint);
    until_leases_are_back(&client);
}

fn what_is_overwritten_meanwhile_is_never_accepted(fabric: FabricChoice) {
    slots_change_hands(fabric, on_commit(fabric));
}

fn what_is_overwritten_meanwhile_is_never_sent(fabric: FabricChoice) {
    slots_change_hands(fabric, written(fabric));
}

/// Slots change hands all the time while several requests are served from them.
fn slots_change_hands(fabric: FabricChoice, config_of_server: Config) {
    let server = Server::start(Config {
        memory_limit: 32 << 20,
        ..config_of_server
    });
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    // 64 slots at most; each output has 20 chunks, and ten of them do not fit.
    let bytes = 20 * (256 << 10) - 100;
    for map in 0..10 {
        let files = server.put(
            0,
            map,
            &[pattern(map as u64, 100), pattern(50 + map as u64, bytes)],
        );
        commit(&server, map, &files);
    }
    for round in 0..cases(3u64, 1) {
        // Small pieces of everything, often enough to be cached in place of what is there.
        let mut requests = Vec::new();
        for map in 0..10 {
            let large = client
                .fetch(peer, &[block(0, map, 1, 2)], support::TIMEOUT)
                .unwrap();
            requests.push((large, 50 + map as u64, bytes));
            for _ in 0..2 {
                let small = client
                    .fetch(peer, &[block(0, map, 0, 1)], support::TIMEOUT)
                    .unwrap();
                requests.push((small, map as u64, 100));
            }
            if requests.len() >= 9 {
                settle(&client, &mut requests, round);
            }
        }
        settle(&client, &mut requests, round);
    }
    assert_eq!(
        counter(&client, "crcErrors"),
        0,
        "stale is noticed before it is wrong"
    );
    until_leases_are_back(&client);
}

fn settle(client: &Endpoint, requests: &mut Vec<(u64, u64, usize)>, round: u64) {
    let ids: Vec<u64> = requests.iter().map(|(id, ..)| *id).collect();
    let mut done = collect(client, &ids);
    for (id, seed, bytes) in requests.drain(..) {
        let got = done.remove(&id).unwrap().bytes();
        assert!(got == [pattern(seed, bytes)], "round {round}, seed {seed}");
    }
}

fn a_forgotten_shuffle_is_not_accepted(fabric: FabricChoice) {
    let server = Server::start(on_commit(fabric));
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    let files = server.put(0, 1, &[pattern(1, 600_000)]);
    stage(&server, 1, &files, 3);
    assert_eq!(
        fetch(&client, peer, &[block(0, 1, 0, 1)]).bytes(),
        [pattern(1, 600_000)]
    );
    server.endpoint.forget_shuffle(0);
    assert_eq!(counter(&server.endpoint, "region.cachedChunks"), 0);
    // The same name gets other bytes, which Spark never does.
    server.put(0, 1, &[pattern(9, 600_000)]);
    assert_eq!(
        fetch(&client, peer, &[block(0, 1, 0, 1)]).bytes(),
        [pattern(9, 600_000)]
    );
}

fn exposed_pages_return_when_the_arena_is_short(fabric: FabricChoice) {
    let server = Server::start(Config {
        memory_limit: 32 << 20,
        ..on_commit(fabric)
    });
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    let bytes = 15 << 20;
    let files = server.put(0, 1, &[pattern(1, bytes)]);
    stage(&server, 1, &files, 60);
    assert_eq!(
        fetch(&client, peer, &[block(0, 1, 0, 1)]).bytes(),
        [pattern(1, bytes)]
    );
    assert_eq!(counter(&client, "remoteReads"), 1);
    // The server's own fetches need the pages of its cache: 30 MiB of 32 at once.
    let pool = server.endpoint.pool();
    let mut held = Vec::new();
    until("the server gets its pages back", || {
        // This refusal is the one that a fetch by the server would meet.
        let other = server.endpoint.add_peer(&client.card()).unwrap();
        if let Ok(lease) = pool.try_lease(256 << 10, Purpose::Serve) {
            held.push(lease);
        } else {
            let request = server
                .endpoint
                .fetch(other, &[block(5, 5, 0, 1)], support::TIMEOUT);
            server.endpoint.cancel(request.unwrap());
        }
        held.len() > 100
    });
    drop(held);
    assert_eq!(
        fetch(&client, peer, &[block(0, 1, 0, 1)]).bytes(),
        [pattern(1, bytes)]
    );
}

/// A scripted server's description of one page.
#[derive(Clone, Copy)]
struct Lie {
    told: u64,
    found: u64,
    crc: u32,
}

/// Returns a server that offers one page of 100,000 bytes with that lie, and writes when it is
/// asked to.
fn liar(lie: Lie, asked: Arc<AtomicUsize>, ended: Arc<AtomicUsize>) -> ScriptedPeer {
    ScriptedPeer::start(Box::new(move |stage, peer, id, fetch, message| {
        if message.kind == kind::CANCEL {
            ended.fetch_add(1, Ordering::SeqCst);
        }
        let Some(fetch) = fetch else { return };
        asked.fetch_add(1, Ordering::SeqCst);
        let bytes = pattern(4, 100_000);
        if fetch.writes_only {
            return stage.answer(peer, id, &fetch, &bytes);
        }
        let frame = show(stage, peer, &bytes);
        let mut word = vec![0; 4_096];
        word[8..16].copy_from_slice(&lie.found.to_le_bytes());
        let versions = show(stage, peer, &word);
        let extent = OfferedSlice {
            key: frame.key,
            offset: frame.offset,
            length: 100_000.into(),
            slot: 1.into(),
            version: lie.told.into(),
            crc: (crc32c(&bytes) ^ lie.crc).into(),
            reserved: 0.into(),
        };
        let located = ReadOffer {
            versions,
            slices: vec![extent],
        };
        stage.send(peer, kind::READ_OFFER, id, located.encode());
        let blocks = vec![BlockEntry::found(100_000)];
        stage.send(
            peer,
            kind::FETCH_RESPONSE,
            id,
            FetchResponse { blocks }.encode(),
        );
    }))
}

fn show(stage: &mut Stage, peer: faro_fabric::ConnectionId, bytes: &[u8]) -> RemoteBuffer {
    let mut lease = stage.pool.try_lease(bytes.len(), Purpose::Serve).unwrap();
    lease.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
    let exposure = Exposure::Readable(Arc::new(lease));
    let range = stage.fabric.expose(peer, exposure).ok().unwrap();
    RemoteBuffer {
        key: range.key.into(),
        offset: range.offset.into(),
        length: range.length.into(),
        reserved: 0.into(),
    }
}

fn fetch_from_a_liar(lie: Lie) -> (Arc<Endpoint>, support::FetchOutcome, usize) {
    let (asked, ended): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
    let server = liar(lie, Arc::clone(&asked), Arc::clone(&ended));
    let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
    let peer = client.add_peer(&server.card).unwrap();
    let fetched = fetch(&client, peer, &[block(0, 0, 0, 1)]);
    until_leases_are_back(&client);
    // However a pull ends, its server hears of it once.
    until("the server hears of its end", || {
        ended.load(Ordering::SeqCst) == 1
    });
    let asked = asked.load(Ordering::SeqCst);
    (client, fetched, asked)
}

#[test]
fn a_version_that_moved_on_is_noticed_though_the_bytes_are_right() {
    let lie = Lie {
        told: 2,
        found: 4,
        crc: 0,
    };
    let (client, fetched, asked) = fetch_from_a_liar(lie);
    assert_eq!(fetched.bytes(), [pattern(4, 100_000)]);
    assert_eq!((asked, counter(&client, "remoteReadsStale")), (2, 1));
    assert_eq!(counter(&client, "retries"), 0, "no fault");
}

#[test]
fn a_version_in_change_is_not_believed() {
    let lie = Lie {
        told: 2,
        found: 3,
        crc: 0,
    };
    let (client, fetched, asked) = fetch_from_a_liar(lie);
    assert_eq!(fetched.bytes(), [pattern(4, 100_000)]);
    assert_eq!((asked, counter(&client, "remoteReadsStale")), (2, 1));
}

#[test]
fn the_right_version_of_the_wrong_bytes_ends_pulling() {
    let asked = Arc::new(AtomicUsize::new(0));
    let lie = Lie {
        told: 2,
        found: 2,
        crc: 1,
    };
    let server = liar(lie, Arc::clone(&asked), Arc::default());
    let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
    let peer = client.add_peer(&server.card).unwrap();
    for round in 0..3 {
        let fetched = fetch(&client, peer, &[block(0, 0, 0, 1)]);
        assert_eq!(fetched.bytes(), [pattern(4, 100_000)]);
        let asked = asked.load(Ordering::SeqCst);
        assert_eq!(asked, 2 + round, "once by a pull, then by pushes");
        assert_eq!(counter(&client, "crcErrors"), 1);
    }
    assert_eq!(counter(&client, "remoteReads"), 0);
    assert_eq!(counter(&client, "remoteReadsStale"), 0);
    assert_eq!(counter(&client, "retries"), 0);
    until_leases_are_back(&client);
}

#[test]
fn the_truth_is_believed() {
    let lie = Lie {
        told: 2,
        found: 2,
        crc: 0,
    };
    let (client, fetched, asked) = fetch_from_a_liar(lie);
    assert_eq!(fetched.bytes(), [pattern(4, 100_000)]);
    assert_eq!((asked, counter(&client, "remoteReads")), (1, 1));
}
