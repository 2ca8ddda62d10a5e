//! Throughput of a shuffle that is 100, 10 and 1 times as large as the server's arena, in turn. Prints one
//! line of JSON for each block size and share: medians of the rounds, MB/s, and where bytes came from.
//!
//! `cargo bench -p faro-endpoint --bench arena_share -- shm|tcp|verbs DIRECTORY [ROUNDS [MIB]]`
//!
//! MIB: size of the shuffle, 3200 by default, because the smallest arena is 32 MiB.

mod pair;

use pair::{fabric_named, write, Attempt, Pair, Setup, Shape};
use std::path::PathBuf;
use std::time::Instant;

const BLOCK_BYTES: [usize; 2] = [16 << 10, 256 << 10];
const MAPS: usize = 16;
/// Number of blocks of a request, and of requests in flight, as for a reduce task.
const REQUEST_BLOCKS: usize = 64;
const UNDER_WAY: usize = 5;

/// Reads every block once, as reducers do: the same partition of every map output.
fn pass(pair: &Pair, blocks: u32) -> Attempt<()> {
    let all: Vec<(usize, u32)> = (0..blocks)
        .flat_map(|block| (0..MAPS).map(move |map| (map, block)))
        .collect();
    pair.request_all(all.chunks(REQUEST_BLOCKS), UNDER_WAY)?;
    Ok(())
}

fn main() -> Attempt<()> {
    // `cargo bench` adds `--bench`.
    let words = std::env::args().skip(1);
    let arguments: Vec<String> = words.filter(|word| word != "--bench").collect();
    let [kind, directory, ..] = arguments.as_slice() else {
        return Err("arena_share shm|tcp|verbs DIRECTORY [ROUNDS [MIB]]".into());
    };
    let (fabric, directory) = (fabric_named(kind)?, PathBuf::from(directory));
    let number = |at: usize, or: u64| arguments.get(at).map_or(Ok(or), |text| text.parse());
    let (rounds, bytes) = (number(2, 3)?, number(3, 3_200)? << 20);
    for block_bytes in BLOCK_BYTES {
        let blocks = (bytes / MAPS as u64 / block_bytes as u64) as u32;
        let shape = Shape {
            blocks,
            block_bytes,
        };
        let files = (0..MAPS)
            .map(|map| write(&directory.join(block_bytes.to_string()), map, shape))
            .collect::<Attempt<Vec<_>>>()?;
        let mut shares: Vec<(u64, Vec<f64>, [u64; 3])> =
            [1, 10, 100].map(|share| (share, Vec::new(), [0; 3])).into();
        for _ in 0..rounds {
            for (share, rates, exits) in &mut shares {
                let setup = Setup {
                    fabric,
                    staged: None,
                    memory_limit: (bytes / 100 * *share).max(faro_pool::MIN_LIMIT_BYTES),
                };
                let pair = Pair::new(setup, files.clone())?;
                pass(&pair, blocks)?;
                let start = Instant::now();
                pass(&pair, blocks)?;
                rates.push(bytes as f64 / 1e6 / start.elapsed().as_secs_f64());
                *exits = ["hits", "minorFaults", "majorFaults"]
                    .map(|e| pair.count(&format!("region.{e}")));
            }
        }
        for (share, mut rates, exits) in shares {
            rates.sort_by(f64::total_cmp);
            println!(
                "{{\"fabric\":\"{kind}\",\"bytes\":{block_bytes},\"share\":{share},\"median\":{:.0},\"least\":{:.0},\"most\":{:.0},\"resident\":{},\"minor\":{},\"major\":{}}}",
                rates[rates.len() / 2], rates[0], rates[rates.len() - 1], exits[0], exits[1], exits[2],
            );
        }
        for files in files {
            std::fs::remove_file(files.data)?;
        }
    }
    Ok(())
}
