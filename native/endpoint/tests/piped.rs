//! Blocks that their reader verifies: their bytes go from the page cache to the socket, and nobody sums them on the way.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use faro_endpoint::{Config, Endpoint, FabricChoice, Protection, Security};
use faro_wire::codes::FetchErrorCode;
use faro_wire::{BlockId, OutputId};
use std::fs::File;
use support::{
    block, collect, config, fetch, pattern, until_leases_are_back, FetchOutcome, Server, TIMEOUT,
};

const SIZES: [usize; 9] = [
    0, 1, 65_535, 65_536, 65_537, 262_144, 300_007, 1_048_576, 5_000_011,
];

fn fetch_to_verify(client: &Endpoint, peer: u64, blocks: &[BlockId]) -> FetchOutcome {
    let request = client.fetch_to_verify(peer, blocks, TIMEOUT).unwrap();
    collect(client, &[request]).remove(&request).unwrap()
}

/// Large and small blocks, alone and together, of several outputs.
fn arrive_as_they_are(with: &dyn Fn(&str) -> Config) {
    let server = Server::start(with("server"));
    let outputs: Vec<Vec<Vec<u8>>> = (0..3)
        .map(|map| {
            SIZES
                .iter()
                .map(|bytes| pattern(map * 100 + *bytes as u64, *bytes))
                .collect()
        })
        .collect();
    for (map, partitions) in outputs.iter().enumerate() {
        server.put(0, map as i64, partitions);
    }
    let client = Endpoint::start(with("client")).unwrap();
    let peer = server.peer_of(&client);
    let count = SIZES.len() as u32;
    for reduce in 0..count {
        let fetched = fetch_to_verify(&client, peer, &[block(0, 1, reduce, reduce + 1)]);
        assert!(
            fetched.bytes() == [outputs[1][reduce as usize].clone()],
            "{reduce}"
        );
    }
    let all: Vec<BlockId> = (0..3)
        .flat_map(|map| (0..count).map(move |r| block(0, map, r, r + 1)))
        .collect();
    let requests: Vec<u64> = (0..8)
        .map(|_| client.fetch_to_verify(peer, &all, TIMEOUT).unwrap())
        .collect();
    for fetched in collect(&client, &requests).into_values() {
        assert!(fetched.bytes() == outputs.concat());
    }
    until_leases_are_back(&client);
    until_leases_are_back(&server.endpoint);
    client.close();
}

#[test]
fn over_tcp() {
    arrive_as_they_are(&|name| config(name, FabricChoice::Tcp));
}

#[test]
fn over_shm() {
    arrive_as_they_are(&|name| config(name, FabricChoice::Shm));
}

#[test]
fn over_sealed_tcp() {
    arrive_as_they_are(&|name| Config {
        security: Security {
            protection: Protection::Sealed,
            ..Security::default()
        },
        ..config(name, FabricChoice::Tcp)
    });
}

/// What a file lacks is noticed before anything of it is sent: the connection stays.
#[test]
fn a_file_that_became_shorter_is_an_error_of_the_request() {
    let server = Server::start(config("server", FabricChoice::Tcp));
    let whole = pattern(1, 1 << 20);
    let files = server.put(0, 0, std::slice::from_ref(&whole));
    server.put(0, 1, &[pattern(2, 1 << 20)]);
    let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
    let peer = server.peer_of(&client);
    assert!(fetch_to_verify(&client, peer, &[block(0, 0, 0, 1)]).bytes() == [whole]);
    let file = File::options().write(true).open(&files.data).unwrap();
    file.set_len(300_000).unwrap();
    let cut = fetch_to_verify(&client, peer, &[block(0, 0, 0, 1)]);
    let has_status = cut.blocks.iter().any(|(status, _)| *status != 0);
    let code = cut.failure.as_ref().map(|failure| failure.code);
    assert!(
        has_status || code.is_some_and(|code| code != FetchErrorCode::ConnectionLost),
        "{code:?}"
    );
    assert!(cut.blocks.iter().all(|(status, _)| *status != 0));
    let other = fetch_to_verify(&client, peer, &[block(0, 1, 0, 1)]);
    assert!(other.bytes() == [pattern(2, 1 << 20)]);
    client.close();
}

/// A file that takes the place of another one is found, by either way.
#[test]
fn a_replaced_file_is_found() {
    let server = Server::start(config("server", FabricChoice::Tcp));
    let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
    let peer = server.peer_of(&client);
    let place = server.put(0, 0, &[pattern(9, 500_000)]);
    for generation in 0..4 {
        let bytes = pattern(generation, 600_000 + generation as usize);
        let new = tempfile::tempdir_in(server.dir.path()).unwrap();
        let id = OutputId {
            shuffle_id: 0,
            map_id: 0,
        };
        let made = support::write_output(new.path(), id, std::slice::from_ref(&bytes));
        std::fs::rename(&made.index, &place.index).unwrap();
        std::fs::rename(&made.data, &place.data).unwrap();
        let wanted = [block(0, 0, 0, 1)];
        assert!(fetch_to_verify(&client, peer, &wanted).bytes() == [bytes.clone()]);
        assert!(fetch(&client, peer, &wanted).bytes() == [bytes]);
    }
    client.close();
}
