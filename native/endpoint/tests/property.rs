//! Random map outputs and random requests against an oracle that holds the same bytes in memory.
//! The seed is printed on failure; `FARO_SEED` runs that one alone.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use faro_endpoint::{Endpoint, FabricChoice};
use faro_wire::{BlockId, BlockStatus};
use std::collections::HashMap;
use support::{block, collect, config, pattern, until_leases_are_back, Server, TIMEOUT};

/// Vigna's xorshift64*, enough to choose test cases.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
    /// Returns a length that is mostly tiny, sometimes zero, and sometimes more than a page.
    fn block_bytes(&mut self) -> usize {
        match self.below(20) {
            0..=3 => 0,
            4..=14 => 1 + self.below(500) as usize,
            15..=18 => self.below(60_000) as usize,
            _ => self.below(900_000) as usize,
        }
    }
}

type Outputs = HashMap<(u32, i64), Vec<Vec<u8>>>;

/// Returns the expected answer for `id`: bytes, or that it has none.
fn oracle(outputs: &Outputs, id: &BlockId) -> Result<Vec<u8>, u32> {
    let parts = outputs
        .get(&(id.shuffle_id.get(), id.map_id.get()))
        .ok_or(BlockStatus::UnknownOutput as u32)?;
    let (start, end) = (id.start_reduce.get() as usize, id.end_reduce.get() as usize);
    if start >= end || end > parts.len() {
        return Err(BlockStatus::BadRange as u32);
    }
    Ok(parts[start..end].concat())
}

fn random_block(random: &mut Random) -> BlockId {
    let (shuffle, map) = (random.below(3) as u32, random.below(9) as i64);
    let start = random.below(12) as u32;
    let end = match random.below(10) {
        0 => start + random.below(14) as u32,
        _ => start + 1,
    };
    block(shuffle, map, start, end)
}

fn run(seed: u64, fabric: FabricChoice) {
    let mut random = Random(seed | 1);
    let server = Server::start(config("server", fabric));
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    let mut outputs = Outputs::new();
    for shuffle in 0..2 {
        for map in 0..8 {
            let parts: Vec<Vec<u8>> = (0..12)
                .map(|_| pattern(random.next(), random.block_bytes()))
                .collect();
            server.put(shuffle, map, &parts);
            outputs.insert((shuffle, map), parts);
        }
    }
    for _ in 0..6 {
        let wanted: Vec<Vec<BlockId>> = (0..1 + random.below(8))
            .map(|_| {
                (0..1 + random.below(40))
                    .map(|_| random_block(&mut random))
                    .collect()
            })
            .collect();
        let requests: Vec<u64> = wanted
            .iter()
            .map(|blocks| client.fetch(peer, blocks, TIMEOUT).unwrap())
            .collect();
        let mut fetched = collect(&client, &requests);
        for (request, blocks) in requests.iter().zip(&wanted) {
            let got = fetched.remove(request).unwrap();
            assert_eq!(got.failure, None, "seed {seed}");
            assert_eq!(got.blocks.len(), blocks.len(), "seed {seed}");
            for (id, (status, bytes)) in blocks.iter().zip(&got.blocks) {
                match oracle(&outputs, id) {
                    Ok(expected) => {
                        assert!(*status == 0 && *bytes == expected, "seed {seed}: {id:?}")
                    }
                    Err(expected) => assert_eq!(*status, expected, "seed {seed}: {id:?}"),
                }
            }
        }
    }
    until_leases_are_back(&client);
}

fn seeds() -> Vec<u64> {
    match std::env::var("FARO_SEED") {
        Ok(seed) => vec![seed.parse().expect("FARO_SEED is a number")],
        Err(_) => (1..=15).map(|n| n * 7919).collect(),
    }
}

#[test]
fn random_requests_over_tcp() {
    seeds()
        .into_iter()
        .for_each(|seed| run(seed, FabricChoice::Tcp));
}

#[test]
fn random_requests_over_shm() {
    seeds()
        .into_iter()
        .for_each(|seed| run(seed, FabricChoice::Shm));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn random_requests_over_verbs() {
    seeds()
        .into_iter()
        .for_each(|seed| run(seed, FabricChoice::Verbs));
}
