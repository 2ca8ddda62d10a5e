//! Measures what a server does about bytes that are not in memory, and what it costs to pin them instead. Prints one line
//! of JSON for each case.
//!
//! `cargo bench -p faro-endpoint --bench faults [--features research] -- PART shm|tcp|verbs DIRECTORY [ROUNDS [MB ...]]`
//!
//! - `sweep`: blocks of which 0 to 100 % are on the medium, one request at a time and 16 at once.
//! - `storage`: an output five times the arena beside an arena that holds it, from the disk and from memory.
//! - `start`: from the start of two endpoints to the first block of an output of MB megabytes and to its last one, with
//!   unpinned and with pinned regions (these need the feature).
//!
//! DIRECTORY has to be on a file system with a medium for `sweep`.

mod pair;

use faro_endpoint::{FabricChoice, OutputFiles, RegionMode};
use pair::{fabric_named, write, Attempt, Pair, Setup, Shape};
use rustix::fs::{fadvise, Advice};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const KIB: usize = 1 << 10;
/// Blocks that a sweep asks for. They are this many blocks apart, so that what the system reads ahead for one is no other.
const BLOCKS: u32 = 256;
const APART: u32 = 8;
/// Per cent of the blocks that are on the medium.
const SHARES: [u32; 7] = [0, 5, 10, 25, 50, 75, 100];
const AT_ONCE: usize = 16;
/// Blocks that one round of `storage` asks for, far apart.
const REQUESTS: u32 = 400;
/// Limit of the arena of a default executor.
const ARENA: u64 = 112 << 20;

struct Case {
    fabric: FabricChoice,
    name: String,
    directory: PathBuf,
    rounds: usize,
}

impl Case {
    fn pair(&self, limit: u64, regions: Option<RegionMode>, files: &OutputFiles) -> Attempt<Pair> {
        let setup = Setup {
            fabric: self.fabric,
            staged: regions,
            memory_limit: limit,
        };
        Pair::new(setup, vec![files.clone()])
    }

    fn print(&self, words: &str) {
        println!("{{\"fabric\":\"{}\",{words}}}", self.name);
    }
}

/// Leaves `share` per cent of the blocks on the medium, and the others in the page cache.
fn chill(path: &Path, share: u32, block_bytes: usize) -> Attempt<()> {
    let file = File::open(path)?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    fadvise(&file, 0, None, Advice::Random)?;
    let mut bytes = vec![0; block_bytes];
    for block in (0..BLOCKS).filter(|block| block * 37 % 100 >= share) {
        let at = u64::from(block * APART) * block_bytes as u64;
        file.read_exact_at(&mut bytes, at)?;
    }
    Ok(())
}

fn sweep(case: &Case) -> Attempt<()> {
    for block_bytes in [4 * KIB, 64 * KIB] {
        let shape = Shape {
            blocks: BLOCKS * APART,
            block_bytes,
        };
        let pair = case.pair(512 << 20, None, &write(&case.directory, 0, shape)?)?;
        // In an order that no read-ahead guesses.
        let places: Vec<(usize, u32)> = (0..BLOCKS).map(|n| (0, n * 91 % BLOCKS * APART)).collect();
        let pass = |share, at_once| -> Attempt<f64> {
            pair.reopen(0);
            chill(&pair.files[0].data, share, block_bytes)?;
            let start = Instant::now();
            pair.request_all(places.chunks(1), at_once)?;
            Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(BLOCKS))
        };
        pass(0, 1)?;
        for _ in 0..case.rounds {
            for share in SHARES {
                let (alone, together) = (pass(share, 1)?, pass(share, AT_ONCE)?);
                case.print(&format!(
                    "\"bytes\":{block_bytes},\"on the medium, %\":{share},\
                     \"one at a time, µs\":{alone:.1},\"{AT_ONCE} at once, µs\":{together:.1}"
                ));
            }
        }
    }
    Ok(())
}

fn storage(case: &Case) -> Attempt<()> {
    let arenas = [faro_pool::MIN_LIMIT_BYTES, 16 * faro_pool::MIN_LIMIT_BYTES];
    for block_bytes in [16 * KIB, 64 * KIB] {
        let blocks = (5 * arenas[0] / block_bytes as u64) as u32;
        let shape = Shape {
            blocks,
            block_bytes,
        };
        let files = write(&case.directory, 0, shape)?;
        let pairs = arenas.map(|arena| case.pair(arena, None, &files));
        for round in 0..=case.rounds {
            for (arena, pair) in arenas.iter().zip(&pairs) {
                let pair = pair.as_ref().map_err(ToString::to_string)?;
                let pass = || -> Attempt<Vec<Duration>> {
                    let fetch = |n: u32| pair.fetch(0, n * 7919 % blocks);
                    let mut times = (0..REQUESTS).map(fetch).collect::<Attempt<Vec<_>>>()?;
                    times.sort_unstable();
                    Ok(times)
                };
                pair.reopen(0);
                fadvise(&File::open(&files.data)?, 0, None, Advice::DontNeed)?;
                let on_the_disk = pass()?;
                // The chunk cache fills at the third access.
                pass()?;
                pass()?;
                // The first round also makes the connection.
                if round == 0 {
                    continue;
                }
                for (place, times) in [("disk", on_the_disk), ("memory", pass()?)] {
                    let mean =
                        times.iter().sum::<Duration>().as_secs_f64() * 1e6 / f64::from(REQUESTS);
                    let slow = times[times.len() * 99 / 100].as_secs_f64() * 1e6;
                    case.print(&format!(
                        "\"bytes\":{block_bytes},\"where\":\"{place}\",\"arena, MiB\":{},\
                         \"mean, µs\":{mean:.1},\"99 %, µs\":{slow:.1}",
                        arena >> 20
                    ));
                }
            }
        }
    }
    Ok(())
}

fn start(case: &Case, sizes: &[u64]) -> Attempt<()> {
    for megabytes in sizes {
        let shape = Shape {
            blocks: *megabytes as u32,
            block_bytes: 1_000_000,
        };
        let files = write(&case.directory, 0, shape)?;
        let blocks: Vec<(usize, u32)> = (1..shape.blocks).map(|block| (0, block)).collect();
        for _ in 0..case.rounds {
            for (name, mode) in RegionMode::ALL {
                if !["unpinned", "pinned"].contains(name) {
                    continue;
                }
                let began = Instant::now();
                let millis = || began.elapsed().as_secs_f64() * 1e3;
                let regions = (*mode != RegionMode::Unpinned).then_some(*mode);
                let pair = case.pair(ARENA, regions, &files)?;
                pair.fetch(0, 0)?;
                let first = millis();
                pair.request_all(blocks.chunks(8), 4)?;
                case.print(&format!(
                    "\"MB\":{megabytes},\"regions\":\"{name}\",\"first byte, ms\":{first:.1},\
                     \"last byte, ms\":{:.0},\"registering, ms\":{:.2},\"registered, MB\":{:.1},\
                     \"leased, MB\":{:.1}",
                    millis(),
                    pair.count("pool.registrationNanos") as f64 / 1e6,
                    pair.count("pool.registeredHighWaterBytes") as f64 / 1e6,
                    pair.count("pool.highWaterBytes") as f64 / 1e6,
                ));
            }
        }
    }
    Ok(())
}

fn main() -> Attempt<()> {
    // `cargo bench` adds `--bench`.
    let words = std::env::args().skip(1);
    let arguments: Vec<String> = words.filter(|word| word != "--bench").collect();
    let [part, fabric, directory, numbers @ ..] = arguments.as_slice() else {
        return Err("faults sweep|storage|start shm|tcp|verbs DIRECTORY [ROUNDS [MB ...]]".into());
    };
    let numbers: Vec<u64> = numbers
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let case = Case {
        fabric: fabric_named(fabric)?,
        name: fabric.clone(),
        directory: PathBuf::from(directory),
        rounds: numbers.first().map_or(3, |rounds| *rounds as usize),
    };
    match part.as_str() {
        "sweep" => sweep(&case),
        "storage" => storage(&case),
        "start" => start(&case, numbers.get(1..).unwrap_or_default()),
        other => Err(format!("part '{other}', allowed: sweep, storage, start").into()),
    }
}
