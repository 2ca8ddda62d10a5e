//! Measures the decoder in its thread's processor time: gigabytes of the row stream per second and
//! nanoseconds per row, for short and long rows and each codec, and nanoseconds per part of two
//! rows. Prints one JSON object per result.
//!
//! `cargo bench -p faro-rows --bench decode -- [SECONDS]`

#[path = "../tests/support/encode.rs"]
mod encode;

use encode::{lz4_stream, row_stream, zstd_frame};
use faro_rows::{Batch, Codec, RowDecoder};
use rustix::time::{clock_gettime, ClockId};
use std::hint::black_box;
use std::time::{Duration, Instant};

const BATCH_BYTES: usize = 64 << 10;
/// About the bytes that arrive at once for one of Spark's requests.
const PUSH_BYTES: usize = 1 << 20;
/// The default of `spark.io.compression.lz4.blockSize`.
const BLOCK_BYTES: usize = 32 << 10;

/// Returns the processor time of the calling thread, so that other work on the machine does not
/// count.
fn busy() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Returns rows of 8-byte fields: a counter, a field of many distinct values, and texts that
/// repeat.
fn rows(count: usize, bytes: usize) -> Vec<Vec<u8>> {
    let mut state = 1_u64;
    let mut field = |row: usize, at: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        match at % 3 {
            0 => row as u64,
            1 => state >> 40,
            _ => u64::from_ne_bytes(*b"shuffle ") ^ (state >> 62),
        }
    };
    (0..count)
        .map(|row| {
            (0..bytes / 8)
                .flat_map(|at| field(row, at).to_ne_bytes())
                .collect()
        })
        .collect()
}

fn compressed(codec: Codec, stream: &[u8]) -> Vec<u8> {
    match codec {
        Codec::None => stream.to_vec(),
        Codec::Lz4 => lz4_stream(stream, BLOCK_BYTES),
        Codec::Zstd => zstd_frame(stream, false),
    }
}

/// Decodes the parts and returns the number of rows.
fn decode(decoder: &mut RowDecoder, parts: &[Vec<u8>]) -> u64 {
    let mut rows = 0;
    // This copy stands for the copy into the JVM's array.
    let mut copy = vec![0; BATCH_BYTES];
    let mut turn = |decoder: &mut RowDecoder| {
        if let Batch::Rows { bytes, rows: more } = decoder.turn() {
            black_box(&mut copy[..bytes.len()]).copy_from_slice(bytes);
            rows += u64::from(more);
        }
    };
    for part in parts {
        for mut piece in part.chunks(PUSH_BYTES) {
            loop {
                let pushed = decoder.push(piece).expect("a good part");
                piece = &piece[pushed.taken..];
                if !pushed.full {
                    break;
                }
                turn(decoder);
            }
        }
        while decoder.end_part().expect("a good part").full {
            turn(decoder);
        }
    }
    turn(decoder);
    rows
}

/// Decodes all parts repeatedly for `time` and returns the minimum processor time of a round.
fn measure(time: Duration, codec: Codec, parts: &[Vec<u8>], expected: usize) -> Duration {
    let mut decoder = RowDecoder::new(codec, BATCH_BYTES).expect("a decoder");
    let run = |decoder: &mut RowDecoder| {
        let start = busy();
        assert_eq!(decode(decoder, parts), expected as u64);
        busy() - start
    };
    let start = Instant::now();
    let mut best = run(&mut decoder);
    while start.elapsed() < time {
        best = best.min(run(&mut decoder));
    }
    best
}

fn main() {
    // `cargo bench` adds the argument `--bench`.
    let seconds = std::env::args().skip(1).find(|text| text != "--bench");
    let seconds = seconds.map_or(1.0, |text| text.parse().expect("seconds"));
    let time = Duration::from_secs_f64(seconds);
    for (name, bytes) in [("narrow", 24), ("wide", 120), ("kilobyte", 1024)] {
        let rows = rows((32 << 20) / (bytes + 4), bytes);
        let stream = row_stream(&rows);
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            let parts = [compressed(codec, &stream)];
            let took = measure(time, codec, &parts, rows.len());
            println!(
                "{{\"part\": \"rows\", \"rows\": \"{name}\", \"codec\": \"{codec:?}\", \
                 \"gigabytes_per_second\": {:.2}, \"ns_per_row\": {:.1}, \"ratio\": {:.2}}}",
                stream.len() as f64 / took.as_nanos() as f64,
                took.as_nanos() as f64 / rows.len() as f64,
                parts[0].len() as f64 / stream.len() as f64,
            );
        }
    }
    let rows = rows(2000, 24);
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        let parts: Vec<_> = rows
            .chunks(2)
            .map(|rows| compressed(codec, &row_stream(rows)))
            .collect();
        let took = measure(time, codec, &parts, rows.len());
        println!(
            "{{\"part\": \"tiny\", \"codec\": \"{codec:?}\", \"ns_per_part\": {:.1}}}",
            took.as_nanos() as f64 / parts.len() as f64
        );
    }
}
