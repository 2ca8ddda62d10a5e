//! What each exit of a read costs: one block between two endpoints of this process, by the place where
//! its bytes are, in turn; and a plain one-sided READ of a fabric, for comparison. Prints one line of
//! JSON for each size and exit: medians of the rounds, microseconds.
//!
//! `cargo run --release -p faro-endpoint --example exits -- shm|tcp|verbs DIRECTORY [ROUNDS [OPERATIONS]]`
//!
//! DIRECTORY has to be on a file system with a medium, or nothing there is ever a major fault.

use faro_endpoint::{Config, Endpoint, FabricChoice, OutputFiles, RegionMode, Staging};
use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{TcpConfig, TcpFabric};
use faro_fabric::verbs::{VerbsConfig, VerbsFabric};
use faro_fabric::{Event, Exposure, Fabric, Outcome, PeerId, Read, RemoteRange};
use faro_pool::{Pool, Purpose};
use faro_wire::{BlockId, OutputId};
use std::error::Error;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Attempt<T> = Result<T, Box<dyn Error>>;

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PATIENCE: Duration = Duration::from_secs(30);
const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
/// Blocks of one map output; each operation takes the next one.
const BLOCKS: u32 = 64;
/// Visits after which a chunk is resident, with some to spare.
const WARM: u32 = 4;

fn config(name: &str, fabric: FabricChoice, staging: Staging) -> Config {
    Config {
        name: name.to_owned(),
        fabric,
        bind: LOCALHOST,
        advertise: LOCALHOST,
        port: 0,
        verbs: faro_endpoint::Wishes::default(),
        memory_limit: 512 << 20,
        staging,
        regions: RegionMode::Unpinned,
        request_timeout: PATIENCE,
    }
}

/// An owner with one map output of `BLOCKS` blocks for each size, and a reader.
struct Pair {
    owner: Arc<Endpoint>,
    reader: Arc<Endpoint>,
    peer: u64,
    files: Vec<OutputFiles>,
    stop: Arc<AtomicBool>,
}

impl Pair {
    fn new(fabric: FabricChoice, staging: Staging, directory: &Path) -> Attempt<Self> {
        let owner = Endpoint::start(config("owner", fabric, staging))?;
        let reader = Endpoint::start(config("reader", fabric, Staging::OnDemand))?;
        let peer = reader.add_peer(&owner.card())?;
        let mut files = Vec::new();
        for (map, size) in SIZES.iter().enumerate() {
            files.push(write(directory, map, *size)?);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let answers = (Arc::clone(&owner), Arc::clone(&stop), files.clone());
        std::thread::spawn(move || {
            let (owner, stop, files) = answers;
            while !stop.load(Ordering::Acquire) {
                for id in owner.unresolved(8, Duration::from_millis(50)) {
                    owner.resolve(id, files.get(id.map_id as usize).cloned());
                }
            }
        });
        Ok(Self {
            owner,
            reader,
            peer,
            files,
            stop,
        })
    }

    fn fetch(&self, map: usize, block: u32) -> Attempt<Duration> {
        let id = BlockId {
            map_id: (map as i64).into(),
            shuffle_id: 0.into(),
            start_reduce: block.into(),
            end_reduce: (block + 1).into(),
            reserved: 0.into(),
        };
        let mut completions = Vec::with_capacity(4);
        let start = Instant::now();
        self.reader.fetch(self.peer, &[id], PATIENCE)?;
        loop {
            self.reader.completions(4, PATIENCE, &mut completions);
            for completion in completions.drain(..) {
                completion.outcome.map_err(|failure| failure.detail)?;
                if completion.last {
                    return Ok(start.elapsed());
                }
            }
        }
    }

    fn count(&self, name: &str) -> u64 {
        let counters = self.owner.counters();
        counters
            .iter()
            .find(|(n, _)| n == name)
            .map_or(0, |(_, value)| *value)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.owner.close();
        self.reader.close();
    }
}

fn write(directory: &Path, map: usize, size: usize) -> Attempt<OutputFiles> {
    let files = OutputFiles {
        data: directory.join(format!("{map}.data")),
        index: directory.join(format!("{map}.index")),
    };
    let data: Vec<u8> = (0..size * BLOCKS as usize)
        .map(|i| (i / 7 + i * i / 311) as u8)
        .collect();
    let index: Vec<u8> = (0..=u64::from(BLOCKS))
        .flat_map(|block| (block * size as u64).to_be_bytes())
        .collect();
    std::fs::write(&files.index, index)?;
    std::fs::write(&files.data, data)?;
    // Only clean pages leave the page cache when they are asked to.
    File::open(&files.data)?.sync_all()?;
    Ok(files)
}

fn chill(path: &Path) -> Attempt<File> {
    let file = File::open(path)?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(file)
}

/// Two fabrics driven by this thread, one with a lease of the other's to read.
struct Plain {
    fabrics: [Box<dyn Fabric>; 2],
    pool: Arc<Pool>,
    peer: PeerId,
    range: RemoteRange,
}

impl Plain {
    fn new(kind: FabricChoice, size: usize) -> Attempt<Self> {
        let site = |endpoint: u128| -> Attempt<(Box<dyn Fabric>, Arc<Pool>)> {
            let pool = Pool::new(64 << 20)?;
            let (bind, advertise) = ((LOCALHOST, 0).into(), "127.0.0.1".to_owned());
            let shared = Arc::clone(&pool);
            let fabric: Box<dyn Fabric> = match kind {
                FabricChoice::Shm => Box::new(ShmFabric::new(ShmConfig {
                    endpoint,
                    pool: shared,
                })?),
                FabricChoice::Verbs => Box::new(VerbsFabric::new(VerbsConfig {
                    bind,
                    advertise,
                    endpoint,
                    pool: shared,
                    wishes: faro_endpoint::Wishes::default(),
                })?),
                _ => Box::new(TcpFabric::new(TcpConfig {
                    bind,
                    advertise,
                    endpoint,
                    pool: shared,
                })?),
            };
            Ok((fabric, pool))
        };
        let ((mut reader, pool), (mut owner, owners)) = (site(1)?, site(2)?);
        let peer = reader.connect(&owner.location(), 2, Instant::now() + PATIENCE)?;
        let (mut events, mut accepted, mut connected) = (Vec::new(), None, false);
        while accepted.is_none() || !connected {
            for fabric in [&mut reader, &mut owner] {
                fabric.poll(&mut events, Duration::from_millis(1))?;
                for event in events.drain(..) {
                    match event {
                        Event::Accepted { peer, .. } => accepted = Some(peer),
                        Event::Connected { .. } => connected = true,
                        Event::Closed { reason, .. } => return Err(reason.to_string().into()),
                        _ => {}
                    }
                }
            }
        }
        let lease = Arc::new(owners.try_lease(size.min(256 << 10), Purpose::Serve)?);
        let range = owner
            .expose(accepted.ok_or("nobody came")?, Exposure::Readable(lease))
            .map_err(|_| "not exposed")?;
        Ok(Self {
            fabrics: [reader, owner],
            pool,
            peer,
            range,
        })
    }

    /// One READ; both ends are polled by this thread, so that no thread has to be woken.
    fn read(&mut self) -> Attempt<Duration> {
        let target = self
            .pool
            .try_lease(self.range.length as usize, Purpose::Read)?;
        let mut events = Vec::new();
        let start = Instant::now();
        let read = Read {
            token: 1,
            source: self.range,
            target,
        };
        self.fabrics[0]
            .read(self.peer, read)
            .map_err(|_| "not read")?;
        loop {
            for fabric in &mut self.fabrics {
                fabric.poll(&mut events, Duration::ZERO)?;
                for event in events.drain(..) {
                    if let Event::ReadEnded { outcome, .. } = event {
                        return match outcome {
                            Outcome::Done => Ok(start.elapsed()),
                            other => Err(format!("a read ended {other:?}").into()),
                        };
                    }
                }
            }
        }
    }

    /// The same, and then the 8 bytes of a version, as a pull does.
    fn read_and_check(&mut self) -> Attempt<Duration> {
        let whole = self.range;
        let first = self.read()?;
        self.range.length = 8;
        let second = self.read();
        self.range = whole;
        Ok(first + second?)
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn main() -> Attempt<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "exits shm|tcp|verbs DIRECTORY [ROUNDS [OPERATIONS]]";
    let (kind, directory) = match arguments.as_slice() {
        [kind, directory, ..] => (kind.as_str(), PathBuf::from(directory)),
        _ => return Err(usage.into()),
    };
    let fabric = match kind {
        "shm" => FabricChoice::Shm,
        "tcp" => FabricChoice::Tcp,
        "verbs" => FabricChoice::Verbs,
        _ => return Err(usage.into()),
    };
    let number = |at: usize, or: u32| arguments.get(at).map_or(Ok(or), |text| text.parse());
    let (rounds, operations) = (number(2, 5)?, number(3, 200)?);
    let directories = ["resident", "minor", "major"].map(|name| directory.join(name));
    for directory in &directories {
        std::fs::create_dir_all(directory)?;
    }
    let resident = Pair::new(fabric, Staging::OnCommit, &directories[0])?;
    for (map, files) in resident.files.iter().enumerate() {
        let id = OutputId {
            shuffle_id: 0,
            map_id: map as i64,
        };
        resident.owner.committed(id, files);
    }
    let deadline = Instant::now() + PATIENCE;
    let chunks: usize = SIZES
        .iter()
        .map(|size| (size * BLOCKS as usize).div_ceil(256 << 10))
        .sum();
    while (resident.count("region.residentChunks") as usize) < chunks {
        if Instant::now() > deadline {
            return Err("the map outputs were not staged".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let minor = Pair::new(fabric, Staging::OnDemand, &directories[1])?;
    let major = Pair::new(fabric, Staging::OnDemand, &directories[2])?;
    for (map, size) in SIZES.iter().enumerate() {
        let mut plain = Plain::new(fabric, *size)?;
        let mut medians: [(&str, Vec<f64>); 6] = [
            ("read", Vec::new()),
            ("read+version", Vec::new()),
            ("resident", Vec::new()),
            ("minor", Vec::new()),
            ("major", Vec::new()),
            ("medium", Vec::new()),
        ];
        for pair in [&resident, &minor, &major] {
            for block in 0..WARM {
                pair.fetch(map, block)?;
            }
        }
        for _ in 0..rounds {
            let mut times: [Vec<Duration>; 6] = Default::default();
            for operation in 0..operations {
                // Every block once in a while, in an order that no read-ahead guesses.
                let block = operation * 37 % BLOCKS;
                // Untimed, so that both find the same caches.
                plain.read()?;
                times[0].push(plain.read()?);
                times[1].push(plain.read_and_check()?);
                times[2].push(resident.fetch(map, block)?);
                reopen(&minor, map);
                times[3].push(minor.fetch(map, block)?);
                if operation % 8 == 0 {
                    reopen(&major, map);
                    let file = chill(&major.files[map].data)?;
                    times[4].push(major.fetch(map, block)?);
                    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
                    let mut bytes = vec![0; *size];
                    let start = Instant::now();
                    file.read_exact_at(&mut bytes, u64::from(block) * *size as u64)?;
                    times[5].push(start.elapsed());
                }
            }
            for ((_, medians), times) in medians.iter_mut().zip(times) {
                medians.push(median(times));
            }
        }
        for (exit, mut medians) in medians {
            medians.sort_by(f64::total_cmp);
            println!(
                "{{\"fabric\":\"{kind}\",\"bytes\":{size},\"exit\":\"{exit}\",\"median\":{:.2},\"least\":{:.2},\"most\":{:.2}}}",
                medians[medians.len() / 2], medians[0], medians[medians.len() - 1],
            );
        }
    }
    for (name, pair) in [
        ("resident", &resident),
        ("minor", &minor),
        ("major", &major),
    ] {
        let exits =
            ["resident", "minor", "major"].map(|exit| pair.count(&format!("region.{exit}")));
        eprintln!(
            "{name}: {exits:?} pieces resident, minor, major; {} pulled",
            pair.count("pullsOffered")
        );
    }
    Ok(())
}

/// Forgets what is resident of a map output, and opens it again.
fn reopen(pair: &Pair, map: usize) {
    pair.owner.forget_shuffle(0);
    let id = OutputId {
        shuffle_id: 0,
        map_id: map as i64,
    };
    pair.owner.resolve(id, Some(pair.files[map].clone()));
}
