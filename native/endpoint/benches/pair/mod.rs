//! Two endpoints of one process, with map outputs in a directory; for the drivers that measure.
#![allow(dead_code)] // Each driver uses its own part.

use faro_endpoint::{Config, Endpoint, FabricChoice, OutputFiles, RegionMode};
use faro_wire::{BlockId, OutputId};
use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub type Attempt<T> = Result<T, Box<dyn Error>>;

pub const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// A map output of equal blocks.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub blocks: u32,
    pub block_bytes: usize,
}

/// Settings with which the two are started.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub fabric: FabricChoice,
    /// The way in which a server sends outputs that it has cached as they were written; `None`: it caches what is asked
    /// for often.
    pub staged: Option<RegionMode>,
    /// Limit of the server's arena.
    pub memory_limit: u64,
}

pub fn fabric_named(name: &str) -> Attempt<FabricChoice> {
    match name {
        "shm" => Ok(FabricChoice::Shm),
        "tcp" => Ok(FabricChoice::Tcp),
        "verbs" => Ok(FabricChoice::Verbs),
        other => Err(format!("fabric '{other}', allowed: shm, tcp, verbs").into()),
    }
}

fn config(name: &str, setup: Setup, memory_limit: u64, staged: Option<RegionMode>) -> Config {
    Config {
        name: name.to_owned(),
        fabric: setup.fabric,
        memory_limit,
        idle_release: Duration::ZERO,
        stages_outputs: staged.is_some(),
        regions: staged.unwrap_or_default(),
        request_timeout: TIMEOUT,
        ..Config::default()
    }
}

/// A server of map outputs 0, 1, ... of shuffle 0, and a client.
pub struct Pair {
    pub server: Arc<Endpoint>,
    pub client: Arc<Endpoint>,
    peer: u64,
    pub files: Vec<OutputFiles>,
    stop: Arc<AtomicBool>,
}

impl Pair {
    pub fn new(setup: Setup, files: Vec<OutputFiles>) -> Attempt<Self> {
        let server = Endpoint::start(config("server", setup, setup.memory_limit, setup.staged))?;
        let client = Endpoint::start(config("client", setup, 512 << 20, None))?;
        let peer = client.add_peer(&server.card())?;
        let stop = Arc::new(AtomicBool::new(false));
        let answers = (Arc::clone(&server), Arc::clone(&stop), files.clone());
        std::thread::spawn(move || {
            let (server, stop, files) = answers;
            while !stop.load(Ordering::Acquire) {
                for id in server.unresolved(8, Duration::from_millis(50)) {
                    server.resolve(id, files.get(id.map_id as usize).cloned());
                }
            }
        });
        Ok(Self {
            server,
            client,
            peer,
            files,
            stop,
        })
    }

    /// Asks for one block of each of these (map, block).
    pub fn request(&self, blocks: &[(usize, u32)]) -> Attempt<u64> {
        let ids: Vec<BlockId> = blocks
            .iter()
            .map(|(map, block)| BlockId {
                map_id: (*map as i64).into(),
                shuffle_id: 0.into(),
                start_reduce: (*block).into(),
                end_reduce: (block + 1).into(),
                piece: 0.into(),
            })
            .collect();
        Ok(self.client.fetch(self.peer, &ids, TIMEOUT)?)
    }

    /// Makes a request of each list of blocks, at most `at_once` at a time, and waits for all.
    pub fn request_all<'a>(
        &self,
        lists: impl Iterator<Item = &'a [(usize, u32)]>,
        at_once: usize,
    ) -> Attempt<()> {
        let mut under_way = 0;
        for blocks in lists {
            if under_way == at_once {
                under_way -= self.settle(1)?;
            }
            self.request(blocks)?;
            under_way += 1;
        }
        self.settle(under_way)?;
        Ok(())
    }

    /// Waits until at least `requests` requests have ended. Returns how many did.
    pub fn settle(&self, requests: usize) -> Attempt<usize> {
        let (mut ended, mut completions) = (0, Vec::with_capacity(64));
        while ended < requests {
            self.client.completions(64, TIMEOUT, &mut completions);
            for completion in completions.drain(..) {
                completion.outcome.map_err(|failure| failure.detail)?;
                ended += usize::from(completion.last);
            }
        }
        Ok(ended)
    }

    /// Returns how long one block takes.
    pub fn fetch(&self, map: usize, block: u32) -> Attempt<Duration> {
        let start = Instant::now();
        self.request(&[(map, block)])?;
        self.settle(1)?;
        Ok(start.elapsed())
    }

    /// Returns a counter of the server.
    pub fn count(&self, name: &str) -> u64 {
        let counters = self.server.counters();
        let found = counters.iter().find(|(n, _)| n == name);
        found.map_or(0, |(_, value)| *value)
    }

    /// Drops the shuffle from the cache, and opens that map output again.
    pub fn reopen(&self, map: usize) {
        self.server.forget_shuffle(0);
        self.server.resolve(id(map), Some(self.files[map].clone()));
    }

    /// Brings all outputs into the chunk cache, and waits for it.
    pub fn stage(&self, chunks: usize) -> Attempt<()> {
        for (map, files) in self.files.iter().enumerate() {
            self.server.committed(id(map), files, None);
        }
        let deadline = Instant::now() + TIMEOUT;
        while (self.count("region.cachedChunks") as usize) < chunks {
            if Instant::now() > deadline {
                return Err("the map outputs were not cached".into());
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.server.close();
        self.client.close();
    }
}

fn id(map: usize) -> OutputId {
    OutputId {
        shuffle_id: 0,
        map_id: map as i64,
    }
}

/// Writes map output `map`, down to the medium: only clean pages leave the page cache on demand.
pub fn write(directory: &Path, map: usize, shape: Shape) -> Attempt<OutputFiles> {
    std::fs::create_dir_all(directory)?;
    let files = OutputFiles {
        data: directory.join(format!("{map}.data")),
        index: directory.join(format!("{map}.index")),
    };
    let index: Vec<u8> = (0..=u64::from(shape.blocks))
        .flat_map(|block| (block * shape.block_bytes as u64).to_be_bytes())
        .collect();
    std::fs::write(&files.index, index)?;
    let mut data = File::create(&files.data)?;
    let block: Vec<u8> = (0..shape.block_bytes)
        .map(|i| (i / 7 + i * i / 311 + map) as u8)
        .collect();
    for _ in 0..shape.blocks {
        data.write_all(&block)?;
    }
    data.sync_all()?;
    Ok(files)
}
