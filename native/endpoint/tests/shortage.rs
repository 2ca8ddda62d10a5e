//! More is asked for at once than the arena holds: every block arrives, and no request fails.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

#[macro_use]
mod support;

use faro_endpoint::{Config, Endpoint, FabricChoice, Staging};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use support::{block, config, counter, pattern, Server, MEMORY};

const MIB: usize = 1 << 20;
/// Most that a client may hold, less what `FetchService` keeps off for a block's ends.
const LARGEST: usize = (MEMORY as usize - 16 * MIB) - 2 * (256 << 10);
/// Longer than any request waits for its memory here.
const LONG: Duration = Duration::from_secs(120);

/// Fetches each list of blocks with a request of its own, all at once. Every completion is dropped as
/// soon as it was looked at, as a task does that reads block after block.
fn all_at_once(client: &Arc<Endpoint>, peer: u64, requests: &[Vec<(u32, u64, usize)>]) {
    let mut open = HashSet::new();
    let mut wanted = std::collections::HashMap::new();
    for blocks in requests {
        let ids: Vec<_> = blocks
            .iter()
            .map(|(r, ..)| block(0, 0, *r, r + 1))
            .collect();
        let id = client.fetch(peer, &ids, LONG).unwrap();
        open.insert(id);
        wanted.insert(id, blocks.clone());
    }
    while !open.is_empty() {
        let mut batch = Vec::new();
        client.completions(16, LONG, &mut batch);
        assert!(!batch.is_empty(), "{} requests without an end", open.len());
        for completion in batch {
            if let Err(failure) = &completion.outcome {
                panic!("request {}: {failure:?}", completion.request);
            }
            let blocks = &wanted[&completion.request];
            let first = completion.first_block as usize;
            for (n, (status, bytes)) in support::blocks_of(&completion).into_iter().enumerate() {
                let (_, seed, length) = blocks[first + n];
                assert_eq!(status, 0);
                assert!(bytes == pattern(seed, length), "block {}", first + n);
            }
            if completion.last {
                open.remove(&completion.request);
            }
        }
    }
    support::until_leases_are_back(client);
    assert_eq!(counter(client, "requestsFailed"), 0);
    assert_eq!(counter(client, "timeouts"), 0);
}

fn pair(fabric: FabricChoice) -> (Server, Arc<Endpoint>) {
    let roomy = |name| Config {
        request_timeout: LONG,
        ..config(name, fabric)
    };
    let server = Server::start(roomy("server"));
    let client = Endpoint::start(roomy("client")).unwrap();
    (server, client)
}

/// A map output of `parts` and one request for each partition.
fn each_by_itself(server: &Server, lengths: &[usize]) -> Vec<Vec<(u32, u64, usize)>> {
    let parts: Vec<_> = (0u64..).zip(lengths).collect();
    let bytes: Vec<_> = parts.iter().map(|(s, l)| pattern(*s, **l)).collect();
    server.put(0, 0, &bytes);
    let one = |(seed, length): &(u64, &usize)| vec![(*seed as u32, *seed, **length)];
    parts.iter().map(one).collect()
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
        request_timeout: LONG,
        staging: Staging::OnCommit,
        memory_limit: 4 * MEMORY,
        ..config("server", fabric)
    });
    let client = Endpoint::start(Config {
        request_timeout: LONG,
        ..config("client", fabric)
    })
    .unwrap();
    let lengths = [3 * MIB; 36];
    let bytes: Vec<_> = (0u64..).zip(lengths).map(|(s, l)| pattern(s, l)).collect();
    let files = server.put(0, 0, &bytes);
    let output = faro_wire::OutputId {
        shuffle_id: 0,
        map_id: 0,
    };
    server.endpoint.committed(output, &files);
    support::until("the map output is cached", || {
        counter(&server.endpoint, "region.cachedChunks") >= 36 * 12
    });
    let requests: Vec<_> = (0u32..36)
        .map(|n| vec![(n, u64::from(n), 3 * MIB)])
        .collect();
    all_at_once(&client, server.peer_of(&client), &requests);
    assert!(counter(&client, "remoteReads") > 0, "some were pulled");
}

over_every_fabric!(
    large_blocks,
    many_blocks,
    blocks_as_large_as_the_arena,
    large_and_small_blocks,
    blocks_that_are_pulled,
);
