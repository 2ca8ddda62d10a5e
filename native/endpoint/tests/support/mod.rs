//! Two endpoints in one process, with map outputs in a temporary directory.

#![allow(dead_code)] // Each test binary uses its own part.
#![allow(clippy::unwrap_used, clippy::expect_used)]

/// Runs a test over each fabric; over RDMA where `tests/softroce/run` gives it devices.
#[allow(unused_macros)]
macro_rules! over_every_fabric {
    ($($test:ident),* $(,)?) => {
        mod tcp {$(
            #[test]
            fn $test() { super::$test(super::FabricChoice::Tcp); }
        )*}
        mod shm {$(
            #[test]
            fn $test() { super::$test(super::FabricChoice::Shm); }
        )*}
        mod verbs {$(
            #[test]
            #[ignore = "needs an RDMA device: tests/softroce/run"]
            fn $test() { super::$test(super::FabricChoice::Verbs); }
        )*}
    };
}

use faro_endpoint::{Completion, Config, Endpoint, FabricChoice, FetchFailure, OutputFiles};
use faro_wire::{BlockId, OutputId};
use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Of requests whose timeout is not the subject: no machine is so slow.
pub const TIMEOUT: Duration = Duration::from_secs(3_600);
pub const MEMORY: u64 = 64 << 20;

pub fn config(name: &str, fabric: FabricChoice) -> Config {
    Config {
        name: name.to_owned(),
        fabric,
        memory_limit: MEMORY,
        idle_release: Duration::ZERO,
        request_timeout: TIMEOUT,
        ..Config::default()
    }
}

/// Returns the name of a fabric in counters.
pub fn name_of(fabric: FabricChoice) -> &'static str {
    let named = FabricChoice::ALL.iter().find(|(_, one)| *one == fabric);
    named.unwrap().0
}

/// Returns the identity that a fabric by hand needs to connect to the endpoint with that card.
pub fn identity(card: &faro_wire::Card) -> faro_fabric::Identity {
    faro_fabric::Identity::new(card.endpoint, &card.secret, None, "").unwrap()
}

pub fn block(shuffle: u32, map: i64, start: u32, end: u32) -> BlockId {
    BlockId {
        map_id: map.into(),
        shuffle_id: shuffle.into(),
        start_reduce: start.into(),
        end_reduce: end.into(),
        piece: 0.into(),
    }
}

/// A server: an endpoint, its files, and a thread that answers where they are.
pub struct Server {
    pub endpoint: Arc<Endpoint>,
    pub dir: tempfile::TempDir,
    files: Arc<Mutex<HashMap<OutputId, OutputFiles>>>,
    stop: Arc<AtomicBool>,
    resolver: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(config: Config) -> Self {
        let endpoint = Endpoint::start(config).unwrap();
        let files: Arc<Mutex<HashMap<OutputId, OutputFiles>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let resolver = std::thread::spawn({
            let (endpoint, files, stop) =
                (Arc::clone(&endpoint), Arc::clone(&files), Arc::clone(&stop));
            move || {
                while !stop.load(Ordering::Acquire) {
                    for id in endpoint.unresolved(64, Duration::from_millis(20)) {
                        let found = files.lock().unwrap().get(&id).cloned();
                        endpoint.resolve(id, found);
                    }
                }
            }
        });
        let dir = tempfile::tempdir().unwrap();
        Self {
            endpoint,
            dir,
            files,
            stop,
            resolver: Some(resolver),
        }
    }

    /// Writes a map output with the given partitions, as Spark would.
    pub fn put(&self, shuffle: u32, map: i64, partitions: &[Vec<u8>]) -> OutputFiles {
        let id = OutputId {
            shuffle_id: shuffle,
            map_id: map,
        };
        let files = write_output(self.dir.path(), id, partitions);
        self.put_files(id, files.clone());
        files
    }

    pub fn put_files(&self, id: OutputId, files: OutputFiles) {
        self.files.lock().unwrap().insert(id, files);
    }

    pub fn peer_of(&self, client: &Endpoint) -> u64 {
        client.add_peer(&self.endpoint.card()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(resolver) = self.resolver.take() {
            resolver.join().unwrap();
        }
        self.endpoint.close();
    }
}

pub fn write_output(dir: &Path, id: OutputId, partitions: &[Vec<u8>]) -> OutputFiles {
    let stem = format!("shuffle_{}_{}_0", id.shuffle_id, id.map_id);
    let files = OutputFiles {
        data: dir.join(format!("{stem}.data")),
        index: dir.join(format!("{stem}.index")),
    };
    let mut offset = 0u64;
    let mut index = offset.to_be_bytes().to_vec();
    for partition in partitions {
        offset += partition.len() as u64;
        index.extend_from_slice(&offset.to_be_bytes());
    }
    std::fs::write(&files.index, index).unwrap();
    std::fs::write(&files.data, partitions.concat()).unwrap();
    files
}

/// Returns `bytes` bytes that differ by seed and position.
pub fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

/// Results of all blocks of a request.
#[derive(Debug)]
pub struct FetchOutcome {
    /// Status and bytes of the delivered blocks, in order.
    pub blocks: Vec<(u32, Vec<u8>)>,
    pub failure: Option<FetchFailure>,
    pub completions: usize,
}

impl FetchOutcome {
    pub fn bytes(self) -> Vec<Vec<u8>> {
        assert_eq!(self.failure, None);
        self.blocks
            .into_iter()
            .map(|(status, bytes)| {
                assert_eq!(status, 0);
                bytes
            })
            .collect()
    }
}

/// Copies the bytes of each block out of a delivery.
pub fn blocks_of(completion: &Completion) -> Vec<(u32, Vec<u8>)> {
    let delivery = completion.outcome.as_ref().unwrap();
    let stream: Vec<u8> = delivery
        .slices
        .iter()
        .flat_map(|piece| {
            let from = piece.offset as usize;
            piece.lease.bytes()[from..from + piece.length as usize].to_vec()
        })
        .collect();
    let mut at = 0;
    let blocks = delivery
        .blocks
        .iter()
        .map(|entry| {
            let end = at + entry.length.get() as usize;
            let bytes = stream[at..end].to_vec();
            at = end;
            (entry.status.get(), bytes)
        })
        .collect();
    assert_eq!(at, stream.len(), "pieces hold exactly the blocks' bytes");
    blocks
}

/// What has come of requests.
pub struct CollectedBlocks {
    open: HashMap<u64, FetchOutcome>,
    pub done: HashMap<u64, FetchOutcome>,
}

impl CollectedBlocks {
    /// Nothing has come of these requests.
    pub fn of(requests: &[u64]) -> Self {
        let nothing = |id: &u64| {
            let fetched = FetchOutcome {
                blocks: Vec::new(),
                failure: None,
                completions: 0,
            };
            (*id, fetched)
        };
        Self {
            open: requests.iter().map(nothing).collect(),
            done: HashMap::new(),
        }
    }

    pub fn all_have_ended(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes the next completions, and waits up to that time for the first one.
    pub fn take(&mut self, client: &Endpoint, wait: Duration) {
        let mut batch = Vec::new();
        client.completions(64, wait, &mut batch);
        for completion in batch {
            let fetched = self
                .open
                .get_mut(&completion.request)
                .expect("a completion after the last");
            fetched.completions += 1;
            assert_eq!(
                completion.first_block as usize,
                fetched.blocks.len(),
                "in order, no gaps"
            );
            match &completion.outcome {
                Ok(_) => fetched.blocks.extend(blocks_of(&completion)),
                Err(failure) => {
                    assert!(completion.last, "an error is the last completion");
                    fetched.failure = Some(failure.clone());
                }
            }
            if completion.last {
                let id = completion.request;
                self.done.insert(id, self.open.remove(&id).unwrap());
            }
        }
    }
}

/// Collects the completions of `requests` until each has had its last one.
pub fn collect(client: &Endpoint, requests: &[u64]) -> HashMap<u64, FetchOutcome> {
    let mut collected = CollectedBlocks::of(requests);
    while !collected.all_have_ended() {
        collected.take(client, TIMEOUT);
    }
    collected.done
}

pub fn fetch(client: &Endpoint, peer: u64, blocks: &[BlockId]) -> FetchOutcome {
    fetch_within(client, peer, blocks, TIMEOUT)
}

pub fn fetch_within(
    client: &Endpoint,
    peer: u64,
    blocks: &[BlockId],
    timeout: Duration,
) -> FetchOutcome {
    let request = client.fetch(peer, blocks, timeout).unwrap();
    collect(client, &[request]).remove(&request).unwrap()
}

pub fn counter(endpoint: &Endpoint, name: &str) -> u64 {
    let counters = endpoint.counters();
    counters
        .iter()
        .find(|(n, _)| n == name)
        .unwrap_or_else(|| panic!("no counter {name}"))
        .1
}

/// Waits until no block and no offered buffer holds memory. What RDMA connections hold while they live
/// does not count, nor does the chunk cache.
pub fn until_leases_are_back(endpoint: &Endpoint) {
    until("leases come back", || leases_are_back(endpoint));
}

pub fn leases_are_back(endpoint: &Endpoint) -> bool {
    let rings = counter(endpoint, "connectionBytes");
    counter(endpoint, "pool.leasedBytes") == rings + counter(endpoint, "region.cachedBytes")
}

/// Waits for a condition that other threads bring about. It has no deadline, because a slow machine is no failure: a test
/// program that makes no progress is killed from outside.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let (begun, mut told) = (Instant::now(), false);
    while !condition() {
        if !told && begun.elapsed() > Duration::from_secs(60) {
            told = true;
            // The harness keeps what a macro prints, and who is killed shows nothing.
            let _ = writeln!(std::io::stderr(), "still waiting: {what}");
        }
        std::thread::yield_now();
    }
}
