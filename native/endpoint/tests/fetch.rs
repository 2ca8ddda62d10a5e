//! Bytes that come are the bytes that were written, over every fabric.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[macro_use]
mod support;

use faro_endpoint::{Endpoint, FabricChoice};
use faro_wire::block::PIECE_BYTES;
use faro_wire::{BlockId, BlockStatus};
use support::{
    block, collect, config, counter, fetch, name_of, pattern, until_leases_are_back, Server,
};

over_every_fabric!(
    one_block,
    a_thousand_tiny_blocks_are_one_message,
    blocks_across_many_frames,
    more_than_the_credit_window,
    a_block_by_pieces,
    what_is_not_there,
    empty_blocks_and_batches,
    many_requests_at_once,
    both_directions_of_one_pair,
    forgotten_shuffles,
    a_file_that_shrinks_after_the_layout,
    memory_comes_back,
);

fn pair(fabric: FabricChoice) -> (Server, std::sync::Arc<Endpoint>, u64) {
    let server = Server::start(config("server", fabric));
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    (server, client, peer)
}

fn one_block(fabric: FabricChoice) {
    let name = name_of(fabric);
    let (server, client, peer) = pair(fabric);
    server.put(0, 7, &[pattern(1, 100), pattern(2, 5_000)]);
    let fetched = fetch(&client, peer, &[block(0, 7, 1, 2)]);
    assert_eq!(fetched.bytes(), [pattern(2, 5_000)]);
    assert_eq!(counter(&client, &format!("remoteBlocks.{name}")), 1);
    assert_eq!(counter(&client, &format!("remoteBytes.{name}")), 5_000);
    assert_eq!(
        counter(&server.endpoint, &format!("servedBytes.{name}")),
        5_000
    );
}

fn a_thousand_tiny_blocks_are_one_message(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    let expected: Vec<Vec<u8>> = (0..1000)
        .map(|i| pattern(i, 37 + i as usize % 50))
        .collect();
    for map in 0..10 {
        server.put(3, map, &expected[map as usize * 100..][..100]);
    }
    let blocks: Vec<_> = (0..1000)
        .map(|i| block(3, i / 100, i as u32 % 100, i as u32 % 100 + 1))
        .collect();
    let fetched = fetch(&client, peer, &blocks);
    assert_eq!(fetched.completions, 1);
    assert_eq!(fetched.bytes(), expected);
    assert_eq!(counter(&server.endpoint, "servedRequests"), 1);
    assert_eq!(
        counter(&server.endpoint, "region.minorFaults")
            + counter(&server.endpoint, "region.majorFaults"),
        10,
        "adjacent blocks are read together"
    );
}

fn blocks_across_many_frames(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    let sizes = [1, 262_143, 262_144, 262_145, 1_000_003, 0, 3, 4_000_000];
    let parts: Vec<Vec<u8>> = sizes
        .iter()
        .enumerate()
        .map(|(i, n)| pattern(i as u64, *n))
        .collect();
    server.put(0, 1, &parts);
    let blocks: Vec<_> = (0..sizes.len() as u32)
        .map(|r| block(0, 1, r, r + 1))
        .collect();
    assert_eq!(fetch(&client, peer, &blocks).bytes(), parts);
    let backwards: Vec<_> = blocks.iter().rev().copied().collect();
    let expected: Vec<_> = parts.into_iter().rev().collect();
    assert_eq!(fetch(&client, peer, &backwards).bytes(), expected);
}

fn more_than_the_credit_window(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    let part = pattern(9, 20 << 20);
    server.put(0, 1, std::slice::from_ref(&part));
    assert_eq!(fetch(&client, peer, &[block(0, 1, 0, 1)]).bytes(), [part]);
}

fn a_block_by_pieces(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    let whole = PIECE_BYTES as usize;
    let parts = [
        pattern(1, 100),
        pattern(2, 2 * whole + 5),
        pattern(3, whole),
        vec![],
    ];
    server.put(0, 1, &parts);
    let piece = |start, end, piece: u32| BlockId {
        piece: piece.into(),
        ..block(0, 1, start, end)
    };
    let wanted = [
        piece(1, 2, 1),
        piece(1, 2, 2),
        piece(1, 2, 3),
        piece(1, 2, 4),
        piece(1, 2, u32::MAX),
        piece(2, 3, 1),
        piece(2, 3, 2),
        piece(3, 4, 1),
        // A batch of partitions has pieces as well.
        piece(1, 3, 3),
    ];
    let large = &parts[1];
    let batch = [&large[2 * whole..], &parts[2][..whole - 5]].concat();
    let expected: [&[u8]; 9] = [
        &large[..whole],
        &large[whole..2 * whole],
        &large[2 * whole..],
        &[],
        &[],
        &parts[2],
        &[],
        &[],
        &batch,
    ];
    assert_eq!(fetch(&client, peer, &wanted).bytes(), expected);
}

fn what_is_not_there(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    server.put(0, 1, &[pattern(1, 10), pattern(2, 20)]);
    let truncated = server.put(0, 2, &[pattern(1, 10)]);
    std::fs::write(&truncated.index, [0; 13]).unwrap();
    let beyond = server.put(0, 3, &[pattern(1, 10), pattern(2, 1000)]);
    std::fs::File::options()
        .write(true)
        .open(&beyond.data)
        .unwrap()
        .set_len(500)
        .unwrap();
    let blocks = [
        block(0, 1, 0, 1),
        block(0, 99, 0, 1),
        block(0, 1, 2, 3),
        block(0, 1, 1, 1),
        block(0, 2, 0, 1),
        block(0, 3, 0, 1),
        block(0, 3, 1, 2),
        block(0, 1, 1, 2),
    ];
    let fetched = fetch(&client, peer, &blocks);
    assert_eq!(fetched.failure, None);
    let statuses: Vec<u32> = fetched.blocks.iter().map(|(status, _)| *status).collect();
    let status = |status: BlockStatus| status as u32;
    assert_eq!(
        statuses,
        [
            0,
            status(BlockStatus::UnknownOutput),
            status(BlockStatus::BadRange),
            status(BlockStatus::BadRange),
            status(BlockStatus::BadIndex),
            0,
            status(BlockStatus::BadIndex),
            0,
        ]
    );
    assert_eq!(fetched.blocks[7].1, pattern(2, 20));
    assert_eq!(counter(&server.endpoint, "blocksRefused"), 5);
}

fn empty_blocks_and_batches(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    server.put(
        0,
        1,
        &[vec![], pattern(1, 300), vec![], pattern(2, 400), vec![]],
    );
    let blocks = [
        block(0, 1, 0, 1),
        block(0, 1, 0, 5),
        block(0, 1, 1, 3),
        block(0, 1, 4, 5),
    ];
    let whole = [pattern(1, 300), pattern(2, 400)].concat();
    assert_eq!(
        fetch(&client, peer, &blocks).bytes(),
        [vec![], whole, pattern(1, 300), vec![]]
    );
    assert_eq!(
        fetch(&client, peer, &[block(0, 1, 0, 1)]).bytes(),
        [vec![]],
        "nothing at all"
    );
}

fn many_requests_at_once(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    for map in 0..20 {
        let parts: Vec<Vec<u8>> = (0..20)
            .map(|r| pattern(map * 100 + r, 3_000 * r as usize))
            .collect();
        server.put(5, map as i64, &parts);
    }
    let requests: Vec<u64> = (0..20u32)
        .map(|r| {
            let blocks: Vec<_> = (0..20).map(|map| block(5, map, r, r + 1)).collect();
            client.fetch(peer, &blocks, support::TIMEOUT).unwrap()
        })
        .collect();
    let mut fetched = collect(&client, &requests);
    for (r, request) in requests.iter().enumerate() {
        let expected: Vec<_> = (0..20)
            .map(|map| pattern(map * 100 + r as u64, 3_000 * r))
            .collect();
        assert_eq!(fetched.remove(request).unwrap().bytes(), expected);
    }
}

fn both_directions_of_one_pair(fabric: FabricChoice) {
    let (one, two) = (
        Server::start(config("one", fabric)),
        Server::start(config("two", fabric)),
    );
    one.put(0, 1, &[pattern(1, 700_000)]);
    two.put(0, 2, &[pattern(2, 700_000)]);
    let (to_two, to_one) = (two.peer_of(&one.endpoint), one.peer_of(&two.endpoint));
    let first = one
        .endpoint
        .fetch(to_two, &[block(0, 2, 0, 1)], support::TIMEOUT)
        .unwrap();
    let second = two
        .endpoint
        .fetch(to_one, &[block(0, 1, 0, 1)], support::TIMEOUT)
        .unwrap();
    assert_eq!(
        collect(&one.endpoint, &[first])
            .remove(&first)
            .unwrap()
            .bytes(),
        [pattern(2, 700_000)]
    );
    assert_eq!(
        collect(&two.endpoint, &[second])
            .remove(&second)
            .unwrap()
            .bytes(),
        [pattern(1, 700_000)]
    );
}

fn forgotten_shuffles(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    server.put(8, 1, &[pattern(1, 10)]);
    fetch(&client, peer, &[block(8, 1, 0, 1)]);
    assert_eq!(counter(&server.endpoint, "openOutputs"), 1);
    server.endpoint.forget_shuffle(8);
    assert_eq!(counter(&server.endpoint, "openOutputs"), 0);
}

fn a_file_that_shrinks_after_the_layout(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    let files = server.put(0, 1, &[pattern(1, 1000), pattern(2, 1000)]);
    fetch(&client, peer, &[block(0, 1, 0, 1)]);
    std::fs::File::options()
        .write(true)
        .open(&files.data)
        .unwrap()
        .set_len(1500)
        .unwrap();
    let fetched = fetch(&client, peer, &[block(0, 1, 1, 2), block(0, 1, 0, 1)]);
    assert_eq!(fetched.failure, None, "the cut is that block's status");
    assert_eq!(fetched.blocks[0].0, BlockStatus::BadIndex as u32);
    assert_eq!(fetched.blocks[1], (0, pattern(1, 1000)), "others come");
    assert_eq!(counter(&client, "retries"), 0);
}

fn memory_comes_back(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    server.put(0, 1, &[pattern(1, 3_000_000), pattern(2, 100)]);
    for _ in 0..50 {
        fetch(&client, peer, &[block(0, 1, 0, 1), block(0, 1, 1, 2)]).bytes();
    }
    for endpoint in [&client, &server.endpoint] {
        until_leases_are_back(endpoint);
        assert!(counter(endpoint, "pool.mappedBytes") <= support::MEMORY);
    }
}
