//! Memory goes to the requests of all fabrics of an endpoint by age.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/scripted.rs"]
mod scripted;
mod support;
#[path = "support/virtual_time.rs"]
mod virtual_time;

use faro_endpoint::{Completion, Endpoint, FabricChoice};
use faro_fabric::FabricKind;
use faro_simulation::VirtualNetwork;
use scripted::ScriptedPeer;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use support::{block, blocks_of, config, counter, TIMEOUT};
use virtual_time::VirtualServer;

const MIB: usize = 1 << 20;
/// Lengths of the blocks that each server has.
const LENGTHS: [usize; 4] = [20_000, MIB, 9 * MIB, 30 * MIB];
const SMALL: u32 = 1;
const LARGE: u32 = 3;

/// A client with two fabrics, a server on each, and a peer that follows a script on the second one.
struct TwoFabrics {
    _scripted: ScriptedPeer,
    _servers: [VirtualServer; 2],
    client: Arc<Endpoint>,
    peers: [u64; 3],
    parts: Vec<Vec<u8>>,
    network: VirtualNetwork,
}

impl TwoFabrics {
    fn beside(script: scripted::Script) -> Self {
        let network = VirtualNetwork::new(FabricKind::Tcp);
        let parts: Vec<_> = (0..).zip(LENGTHS).map(|(s, l)| vec![s; l]).collect();
        let scripted = ScriptedPeer::start_in(&network, script);
        let config = |name| config(name, FabricChoice::Auto);
        let servers = [FabricKind::Verbs, FabricKind::Tcp].map(|kind| {
            let server = VirtualServer::with(|resolver| {
                let server = network.endpoint_on(&[kind], config("server"), resolver);
                server.unwrap()
            });
            server.put(0, 0, &parts);
            server
        });
        let kinds = [FabricKind::Verbs, FabricKind::Tcp];
        let client = network.endpoint_on(&kinds, config("client"), Box::new(|_| None));
        let client = client.unwrap();
        let [first, second] = [0, 1].map(|n: usize| servers[n].peer_of(&client));
        let third = client.add_peer(&scripted.card).unwrap();
        Self {
            _scripted: scripted,
            _servers: servers,
            client,
            peers: [first, second, third],
            parts,
            network,
        }
    }

    fn ask(&self, peer: usize, part: u32) -> u64 {
        let wanted = [block(0, 0, part, part + 1)];
        self.client
            .fetch(self.peers[peer], &wanted, TIMEOUT)
            .unwrap()
    }

    /// Returns the next completions. They hold memory until they are dropped.
    fn next(&self) -> Vec<Completion> {
        let mut batch = Vec::new();
        self.network.until("a completion", || {
            self.client.completions(16, Duration::ZERO, &mut batch);
            !batch.is_empty()
        });
        batch
    }

    fn until_leased(&self, what: &str, bytes: usize) {
        self.network.until(what, || {
            counter(&self.client, "pool.leasedBytes") >= bytes as u64
        });
    }

    /// Fetches the largest block over each fabric, and returns the time that it takes.
    fn large_blocks_arrive(&self) -> Duration {
        let begun = self.network.now();
        for peer in [0, 1] {
            let request = self.ask(peer, LARGE);
            for completion in self.next() {
                assert_eq!(completion.request, request);
                let arrived = blocks_of(&completion);
                assert!(arrived == [(0, self.parts[LARGE as usize].clone())]);
            }
        }
        self.network.now() - begun
    }
}

fn silence() -> scripted::Script {
    Box::new(|_, _, _, _, _| {})
}

/// Small blocks take all memory over one fabric, and each that arrives is followed by a request for
/// another one. A large block over the other fabric must get memory before those that were asked for
/// after it.
#[test]
fn a_large_block_is_not_overtaken_by_small_ones_of_another_fabric() {
    const AT_ONCE: usize = 64;
    let stage = TwoFabrics::beside(silence());
    stage.large_blocks_arrive();
    let mut older: HashSet<u64> = (0..AT_ONCE).map(|_| stage.ask(0, SMALL)).collect();
    stage.until_leased("the small blocks have the memory", 40 * MIB);
    let large = stage.ask(1, LARGE);
    let mut younger = 0;
    let arrived = 'until_large: loop {
        for completion in stage.next() {
            assert!(completion.last);
            if completion.request == large {
                break 'until_large blocks_of(&completion);
            }
            if !older.remove(&completion.request) {
                younger += 1;
            }
            stage.ask(0, SMALL);
        }
        assert!(younger < 4 * AT_ONCE, "the large block is overtaken");
    };
    assert!(arrived == [(0, stage.parts[LARGE as usize].clone())]);
    assert_eq!(older.len(), 0, "the older ones came first");
}

/// A peer sends its block's length over one fabric and then nothing. The memory for it must go to
/// blocks of the other fabric that need it.
#[test]
fn a_silent_peer_keeps_no_memory_that_another_fabric_needs() {
    let stage = TwoFabrics::beside(Box::new(|stage, peer, id, fetch, _| {
        if fetch.is_some() {
            stage.respond(peer, id, &[40 * MIB as u64]);
        }
    }));
    let waits = stage.ask(2, 0);
    stage.until_leased("the silent peer has buffers for its block", 40 * MIB);
    let request = stage.ask(0, LARGE);
    let arrived = stage.next().pop().unwrap();
    assert_eq!(arrived.request, request);
    assert_eq!(blocks_of(&arrived)[0].1.len(), LENGTHS[LARGE as usize]);
    stage.client.cancel(waits);
}

/// Requests over both fabrics wait for memory, and end in all ways: they are cancelled, their
/// connection is lost, they arrive. None may hold others back afterwards.
#[test]
fn a_request_that_has_ended_holds_no_other_one_back() {
    for seed in 1..=12u64 {
        let mut state = seed;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % bound
        };
        let hangs_up_at = 1 + below(12);
        let mut fetches = 0;
        let stage = TwoFabrics::beside(Box::new(move |stage, peer, id, fetch, _| {
            if fetch.is_some() {
                fetches += 1;
                match fetches % hangs_up_at {
                    0 => stage.hang_up(peer),
                    _ => stage.respond(peer, id, &[(fetches % 40 + 1) * MIB as u64]),
                }
            }
        }));
        let mut open = HashSet::new();
        let mut kept = Vec::new();
        for _ in 0..below(30) + 10 {
            open.insert(stage.ask(below(3) as usize, below(4) as u32));
            stage.network.pass(Duration::from_micros(below(3_000)));
            if below(3) == 0 {
                let nth = below(open.len() as u64) as usize;
                let request = *open.iter().min_by_key(|id| **id ^ nth as u64).unwrap();
                stage.client.cancel(request);
            }
            // What arrives holds its memory for a while.
            stage.client.completions(4, Duration::ZERO, &mut kept);
            if below(4) == 0 {
                for completion in kept.drain(..).filter(|completion| completion.last) {
                    open.remove(&completion.request);
                }
            }
        }
        open.iter()
            .for_each(|request| stage.client.cancel(*request));
        stage.network.until("the end of all requests", || {
            stage.client.completions(16, Duration::ZERO, &mut kept);
            for completion in kept.drain(..).filter(|completion| completion.last) {
                open.remove(&completion.request);
            }
            open.is_empty()
        });
        stage.network.until("leases come back", || {
            counter(&stage.client, "pool.leasedBytes") == 0
        });
        let time = stage.large_blocks_arrive();
        assert!(time < Duration::from_millis(200), "seed {seed}: {time:?}");
    }
}
