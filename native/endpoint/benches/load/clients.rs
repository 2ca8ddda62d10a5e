//! The clients' process: one endpoint for each peer, one thread that asks and takes for each.

use super::options::{Options, LONG};
use super::stopped::StoppedPeer;
use faro_endpoint::Endpoint;
use faro_wire::BlockId;
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Results of one client in a pass.
#[derive(Default, Clone, Copy)]
struct ClientTotals {
    blocks: u64,
    bytes: u64,
    failures: u64,
    longest: Duration,
    whole: Duration,
}

struct Client {
    endpoint: Arc<Endpoint>,
    server: u64,
    number: u64,
}

impl Client {
    /// Returns request `n` of this client: a partition of several outputs, as a reduce task asks
    /// for it.
    fn wanted(&self, options: &Options, n: u64) -> Vec<BlockId> {
        let place = |i: u64| (n * options.peers + self.number) * options.blocks + i;
        let id = |i: u64| BlockId {
            map_id: ((place(i) % options.outputs) as i64).into(),
            shuffle_id: 0.into(),
            start_reduce: ((place(i) / options.outputs % options.partitions) as u32).into(),
            end_reduce: ((place(i) / options.outputs % options.partitions) as u32 + 1).into(),
            piece: 0.into(),
        };
        (0..options.blocks).map(id).collect()
    }

    /// Makes this client's share of the requests, as many at once as its readers do.
    fn pass(&self, options: &Options) -> ClientTotals {
        let total = options.requests.div_ceil(options.peers);
        let at_once = (options.readers * options.window) as usize;
        let (mut next, mut open, mut seen) = (0, HashMap::new(), ClientTotals::default());
        let (mut batch, began) = (Vec::new(), Instant::now());
        while next < total || !open.is_empty() {
            while next < total && open.len() < at_once {
                let wanted = self.wanted(options, next);
                let id = self.endpoint.fetch(self.server, &wanted, LONG).unwrap();
                open.insert(id, Instant::now());
                next += 1;
            }
            self.endpoint.completions(64, LONG, &mut batch);
            assert!(!batch.is_empty(), "{} requests without an end", open.len());
            for completion in batch.drain(..) {
                match &completion.outcome {
                    Ok(delivery) => {
                        let lengths = delivery.blocks.iter().map(|b| b.length.get());
                        seen.bytes += lengths.sum::<u64>();
                        let found = delivery.blocks.iter().filter(|b| b.status.get() == 0);
                        seen.blocks += found.count() as u64;
                    }
                    Err(failure) => {
                        seen.failures += 1;
                        eprintln!("client {}: {failure:?}", self.number);
                    }
                }
                if completion.last {
                    let began: Option<Instant> = open.remove(&completion.request);
                    seen.longest = seen.longest.max(began.unwrap().elapsed());
                }
            }
        }
        seen.whole = began.elapsed();
        seen
    }
}

/// Returns the time of the slowest client as a multiple of the clients' mean.
fn slowest_client(seen: &[ClientTotals]) -> f64 {
    let seconds = |totals: &ClientTotals| totals.whole.as_secs_f64();
    let mean = seen.iter().map(seconds).sum::<f64>() / seen.len() as f64;
    seen.iter().map(seconds).fold(0.0, f64::max) / mean
}

/// Runs the clients and prints what they saw in the second pass.
pub fn run(options: &Options, card: &str) {
    let digits = |at: usize| u8::from_str_radix(&card[at..at + 2], 16).unwrap();
    let card: Vec<u8> = (0..card.len()).step_by(2).map(digits).collect();
    let start = |number| {
        let endpoint = Endpoint::start(options.config(format!("client-{number}"))).unwrap();
        let server = endpoint.add_peer(&card).unwrap();
        Client {
            endpoint,
            server,
            number,
        }
    };
    let clients: Vec<Client> = (0..options.peers).map(start).collect();
    let stopped: Vec<StoppedPeer> = (0..options.stopped)
        .map(|number| {
            let mut peer = StoppedPeer::connect(options.fabric, u128::from(number), &card, || {});
            let pages = (options.block * options.blocks).div_ceil(256 << 10) as usize;
            for id in 0..(64 << 20) / (options.block * options.blocks) {
                let wanted = clients[0].wanted(options, id);
                peer.ask(id, &wanted, pages, u32::MAX);
            }
            peer
        })
        .collect();
    let barrier = Barrier::new(clients.len() + 1);
    let (mut cpu, mut wall) = (0, Duration::ZERO);
    let seen: Vec<ClientTotals> = std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter()
            .map(|client| {
                scope.spawn(|| {
                    let first = client.pass(options);
                    barrier.wait();
                    barrier.wait();
                    let second = client.pass(options);
                    ClientTotals {
                        failures: first.failures + second.failures,
                        ..second
                    }
                })
            })
            .collect();
        barrier.wait();
        println!("ready");
        let go = std::io::stdin().lock().lines().next();
        assert_eq!(go.unwrap().unwrap(), "go");
        let (began, before) = (Instant::now(), super::cpu_nanos());
        barrier.wait();
        let seen = threads.into_iter().map(|t| t.join().unwrap()).collect();
        (wall, cpu) = (began.elapsed(), super::cpu_nanos() - before);
        seen
    });
    let high = |client: &Client| {
        let counters = client.endpoint.counters();
        let high = counters.iter().find(|(n, _)| n == "pool.highWaterBytes");
        high.map_or(0, |(_, value)| *value)
    };
    let sum = |of: fn(&ClientTotals) -> u64| seen.iter().map(of).sum::<u64>();
    println!(
        "{{\"seconds\":{},\"blocks\":{},\"bytes\":{},\"failures\":{},\"longest_ms\":{},\
         \"slowest_client\":{},\"client_cpu_ns\":{cpu},\"client_high_bytes\":{}}}",
        wall.as_secs_f64(),
        sum(|s| s.blocks),
        sum(|s| s.bytes),
        sum(|s| s.failures),
        seen.iter().map(|s| s.longest).max().unwrap().as_millis(),
        slowest_client(&seen),
        clients.iter().map(high).max().unwrap(),
    );
    drop(stopped);
    for client in &clients {
        client.endpoint.close();
    }
}
