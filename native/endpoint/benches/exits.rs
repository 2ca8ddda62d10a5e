//! Measures the cost of each exit of a read: one block between two endpoints of this process, by the place where its
//! bytes are, in turn; and a plain one-sided READ of a fabric, for comparison. Prints one line of JSON for each size
//! and exit: medians of the rounds, microseconds.
//!
//! `cargo bench -p faro-endpoint --bench exits -- shm|tcp|verbs DIRECTORY [ROUNDS [OPERATIONS]]`
//!
//! DIRECTORY has to be on a file system with a medium, or nothing there is ever a major fault.

mod pair;

use faro_endpoint::{FabricChoice, RegionMode};
use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{TcpConfig, TcpFabric};
use faro_fabric::verbs::{VerbsConfig, VerbsFabric};
use faro_fabric::{
    ConnectionId, Event, Exposure, Fabric, Identity, Outcome, OwnIdentity, Read, RemoteRange,
};
use faro_pool::{Pool, Purpose};
use faro_secure::Protection;
use pair::{fabric_named, write, Attempt, Pair, Setup, Shape, LOCALHOST, TIMEOUT};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
/// Blocks of one map output; each operation takes the next one.
const BLOCKS: u32 = 64;
/// Accesses after which a chunk is cached, with some to spare.
const WARM: u32 = 4;

fn chill(path: &Path) -> Attempt<File> {
    let file = File::open(path)?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(file)
}

/// Two fabrics driven by this thread, one with a lease of the other's to read.
struct Plain {
    fabrics: [Box<dyn Fabric>; 2],
    pool: Arc<Pool>,
    peer: ConnectionId,
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
                    identity: OwnIdentity::public(endpoint),
                    protection: Protection::Clear,
                    pool: shared,
                })?),
                FabricChoice::Verbs => Box::new(VerbsFabric::new(VerbsConfig {
                    bind,
                    advertise,
                    identity: OwnIdentity::public(endpoint),
                    protection: Protection::Clear,
                    pool: shared,
                    options: faro_endpoint::VerbsOptions::default(),
                })?),
                _ => Box::new(TcpFabric::new(TcpConfig {
                    bind,
                    advertise,
                    identity: OwnIdentity::public(endpoint),
                    protection: Protection::Clear,
                    pool: shared,
                })?),
            };
            Ok((fabric, pool))
        };
        let ((mut client, pool), (mut server, owners)) = (site(1)?, site(2)?);
        let peer = client.connect(
            &server.location(),
            &Identity::public(2),
            Instant::now() + TIMEOUT,
        )?;
        let (mut events, mut accepted, mut connected) = (Vec::new(), None, false);
        while accepted.is_none() || !connected {
            for fabric in [&mut client, &mut server] {
                fabric.poll(&mut events, Duration::from_millis(1))?;
                for event in events.drain(..) {
                    match event {
                        Event::Accepted {
                            connection: peer, ..
                        } => accepted = Some(peer),
                        Event::Connected { .. } => connected = true,
                        Event::Closed { reason, .. } => return Err(reason.to_string().into()),
                        _ => {}
                    }
                }
            }
        }
        let lease = Arc::new(owners.try_lease(size.min(256 << 10), Purpose::Serve)?);
        let range = server
            .expose(
                accepted.ok_or("no connection came")?,
                Exposure::Readable(lease),
            )
            .map_err(|_| "not exposed")?;
        Ok(Self {
            fabrics: [client, server],
            pool,
            peer,
            range,
        })
    }

    /// Posts one READ. This thread polls both ends, so that no thread has to be woken.
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

    /// Posts a READ, and then reads the 8 bytes of a version, as a pull does.
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
    // `cargo bench` adds `--bench`.
    let words = std::env::args().skip(1);
    let arguments: Vec<String> = words.filter(|word| word != "--bench").collect();
    let usage = "exits shm|tcp|verbs DIRECTORY [ROUNDS [OPERATIONS]]";
    let [kind, directory, ..] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let (fabric, directory) = (fabric_named(kind)?, PathBuf::from(directory));
    let number = |at: usize, or: u32| arguments.get(at).map_or(Ok(or), |text| text.parse());
    let (rounds, operations) = (number(2, 5)?, number(3, 200)?);
    let start = |name: &str, staged| -> Attempt<Pair> {
        let files = SIZES.iter().enumerate().map(|(map, size)| {
            let shape = Shape {
                blocks: BLOCKS,
                block_bytes: *size,
            };
            write(&directory.join(name), map, shape)
        });
        let setup = Setup {
            fabric,
            staged,
            memory_limit: 512 << 20,
        };
        Pair::new(setup, files.collect::<Attempt<Vec<_>>>()?)
    };
    let resident = start("resident", Some(RegionMode::Unpinned))?;
    let pulled = start("pulled", Some(RegionMode::Optimistic))?;
    let chunks = SIZES.map(|size| (size * BLOCKS as usize).div_ceil(256 << 10));
    for pair in [&resident, &pulled] {
        pair.stage(chunks.iter().sum())?;
    }
    let minor = start("minor", None)?;
    let major = start("major", None)?;
    for (map, size) in SIZES.iter().enumerate() {
        let mut plain = Plain::new(fabric, *size)?;
        let mut medians: [(&str, Vec<f64>); 7] = [
            ("read", Vec::new()),
            ("read+version", Vec::new()),
            ("resident", Vec::new()),
            ("minor", Vec::new()),
            ("major", Vec::new()),
            ("medium", Vec::new()),
            ("pulled", Vec::new()),
        ];
        for pair in [&resident, &pulled, &minor, &major] {
            for block in 0..WARM {
                pair.fetch(map, block)?;
            }
        }
        for _ in 0..rounds {
            let mut times: [Vec<Duration>; 7] = Default::default();
            for operation in 0..operations {
                // Every block once in a while, in an order that no read-ahead guesses.
                let block = operation * 37 % BLOCKS;
                // Untimed, so that both find the same caches.
                plain.read()?;
                times[0].push(plain.read()?);
                times[1].push(plain.read_and_check()?);
                times[2].push(resident.fetch(map, block)?);
                times[6].push(pulled.fetch(map, block)?);
                minor.reopen(map);
                times[3].push(minor.fetch(map, block)?);
                if operation % 8 == 0 {
                    major.reopen(map);
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
        ("pulled", &pulled),
        ("minor", &minor),
        ("major", &major),
    ] {
        let exits = ["hits", "minorFaults", "majorFaults"]
            .map(|exit| pair.count(&format!("region.{exit}")));
        eprintln!(
            "{name}: {exits:?} pieces resident, minor, major; {} pulled; {} leases for {} requests",
            pair.count("readOffers"),
            pair.count("pool.acquisitions"),
            pair.count("servedRequests"),
        );
    }
    Ok(())
}
