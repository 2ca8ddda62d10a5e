//! Measures the cost of one block as the number of map outputs grows, and their partitions. Blocks are small and asked
//! for as reduce tasks would: the same partition of every map output. Every second partition is a hole of a whole
//! chunk, so that the chunk cache serves none of them, and each is read from its file. Prints one line of JSON for each
//! shape: microseconds per block of the first pass, which asks where the files are, and of the later ones (median);
//! microseconds of processor time of both endpoints per block of the later ones; the files that are open at the end.
//!
//! `cargo bench -p faro-endpoint --bench outputs -- shm|tcp|verbs DIRECTORY [PASSES [OUTPUTSxPARTITIONS...]]`
//!
//! DIRECTORY gets up to 100,000 files in folders like Spark's. The files of outputs with 50,000
//! partitions are names of one pair of files, which would fill a disk otherwise.

mod pair;

use faro_endpoint::OutputFiles;
use pair::{fabric_named, Attempt, Pair, Setup};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Outputs and partitions.
const SHAPES: [(usize, u32); 8] = [
    (100, 200),
    (1_000, 200),
    (5_000, 200),
    (20_000, 200),
    (50_000, 200),
    (100, 50_000),
    (1_000, 50_000),
    (5_000, 50_000),
];
const BLOCK_BYTES: u64 = 64;
const HOLE_BYTES: u64 = faro_region::CHUNK_BYTES - BLOCK_BYTES;
const REQUEST_BLOCKS: usize = 500;
const UNDER_WAY: usize = 5;
/// Blocks of one measurement, at least.
const BLOCKS: usize = 40_000;

fn write_outputs(directory: &Path, outputs: usize, partitions: u32) -> Attempt<Vec<OutputFiles>> {
    let offset = |at: u64| at.div_ceil(2) * BLOCK_BYTES + at / 2 * HOLE_BYTES;
    let index: Vec<u8> = (0..=u64::from(partitions))
        .flat_map(|partition| offset(partition).to_be_bytes())
        .collect();
    let mut all: Vec<OutputFiles> = Vec::with_capacity(outputs);
    for map in 0..outputs {
        let folder = directory.join(format!("{:02x}", map % 64));
        std::fs::create_dir_all(&folder)?;
        let files = OutputFiles {
            data: folder.join(format!("shuffle_0_{map}_0.data")),
            index: folder.join(format!("shuffle_0_{map}_0.index")),
        };
        match all.first().filter(|_| partitions > 1_000) {
            Some(first) => {
                std::fs::hard_link(&first.data, &files.data)?;
                std::fs::hard_link(&first.index, &files.index)?;
            }
            None => {
                std::fs::write(&files.index, &index)?;
                let data = std::fs::File::create(&files.data)?;
                data.set_len(offset(u64::from(partitions)))?;
            }
        }
        all.push(files);
    }
    Ok(all)
}

/// Reads the same partitions of every output. Returns microseconds per block.
fn pass(pair: &Pair, outputs: usize, partitions: std::ops::Range<u32>) -> Attempt<f64> {
    let all: Vec<(usize, u32)> = partitions
        .flat_map(|partition| (0..outputs).map(move |map| (map, 2 * partition)))
        .collect();
    let start = Instant::now();
    pair.request_all(all.chunks(REQUEST_BLOCKS), UNDER_WAY)?;
    Ok(start.elapsed().as_secs_f64() * 1e6 / all.len() as f64)
}

/// Returns the processor time of this process, in microseconds.
fn processor_time() -> Attempt<f64> {
    // User and system time, in ticks of 10 ms, are fields 14 and 15; the name before may have spaces.
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(ticks as f64 * 1e4)
}

fn main() -> Attempt<()> {
    // `cargo bench` adds `--bench`.
    let words = std::env::args().skip(1);
    let arguments: Vec<String> = words.filter(|word| word != "--bench").collect();
    let [kind, directory, ..] = arguments.as_slice() else {
        return Err("outputs shm|tcp|verbs DIRECTORY [PASSES]".into());
    };
    let (fabric, directory) = (fabric_named(kind)?, PathBuf::from(directory));
    let passes: usize = arguments.get(2).map_or(Ok(3), |text| text.parse())?;
    let wanted = arguments.get(3..).unwrap_or_default();
    for (outputs, partitions) in SHAPES {
        let name = format!("{outputs}x{partitions}");
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let files = write_outputs(&directory.join(&name), outputs, partitions)?;
        let setup = Setup {
            fabric,
            staged: None,
            memory_limit: 256 << 20,
        };
        let pair = Pair::new(setup, files)?;
        let first = pass(&pair, outputs, 0..1)?;
        let reducers = BLOCKS.div_ceil(outputs).clamp(2, 99) as u32;
        let mut later = Vec::with_capacity(passes);
        pass(&pair, outputs, 1..1 + reducers)?;
        let before = processor_time()?;
        for _ in 0..passes {
            later.push(pass(&pair, outputs, 1..1 + reducers)?);
        }
        let blocks = (passes * outputs) as f64 * f64::from(reducers);
        let processor = (processor_time()? - before) / blocks;
        later.sort_by(f64::total_cmp);
        println!(
            "{{\"fabric\":\"{kind}\",\"outputs\":{outputs},\"partitions\":{partitions},\"first\":{first:.2},\"median\":{:.2},\"processor\":{processor:.2},\"least\":{:.2},\"most\":{:.2},\"open\":{},\"hits\":{},\"minor\":{}}}",
            later[passes / 2], later[0], later[passes - 1],
            pair.count("openOutputs"), pair.count("region.hits"), pair.count("region.minorFaults"),
        );
        drop(pair);
        std::fs::remove_dir_all(directory.join(name))?;
    }
    Ok(())
}
