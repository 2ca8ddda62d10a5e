//! Compares row blocks with the codec alone on generated sets: bytes of the whole stream, and
//! nanoseconds per row to encode and to decode, in the thread's processor time. Prints one JSON
//! object per set and codec.
//!
//! `cargo bench -p faro-rows --bench row_blocks -- [SECONDS [PART OF A SET'S NAME]]`

#[path = "../tests/support/encode.rs"]
mod encode;
mod sets;
#[path = "../tests/support/unsafe_row.rs"]
mod unsafe_row;

use encode::row_stream;
use faro_rows::{Batch, BlockCompressor, Codec, RowDecoder};
use rustix::time::{clock_gettime, ClockId};
use sets::{Random, SETS};
use std::hint::black_box;
use std::time::{Duration, Instant};
use unsafe_row::{row, words};

const BATCH_BYTES: usize = 64 << 10;
/// The default of `spark.io.compression.lz4.blockSize`.
const BLOCK_BYTES: usize = 32 << 10;
const ROWS: usize = 200_000;

/// Returns the processor time of the calling thread, so that other work on the machine does not
/// count.
fn busy() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

struct Piece {
    bytes: Vec<u8>,
}

/// Cuts rows into pieces of whole rows.
fn pieces(rows: &[Vec<u8>]) -> Vec<Piece> {
    let mut pieces = vec![Piece { bytes: Vec::new() }];
    for row in rows {
        let row = row_stream(std::slice::from_ref(row));
        if pieces
            .last()
            .is_some_and(|piece| piece.bytes.len() + row.len() > BLOCK_BYTES)
        {
            pieces.push(Piece { bytes: Vec::new() });
        }
        if let Some(piece) = pieces.last_mut() {
            piece.bytes.extend(row);
        }
    }
    pieces
}

fn compress(codec: Codec, packed: Option<usize>, pieces: &[Piece]) -> Vec<u8> {
    let mut compressor = BlockCompressor::new(codec, 1, BLOCK_BYTES).expect("a compressor");
    if let Some(words) = packed {
        compressor = compressor.with_row_blocks(words);
    }
    let mut block = vec![0; compressor.max_bytes(BLOCK_BYTES)];
    let mut part = Vec::new();
    for piece in pieces {
        let length = compressor.compress_rows(&piece.bytes, &mut block);
        part.extend_from_slice(&block[..length.expect("there is room")]);
    }
    part.extend_from_slice(compressor.end());
    part
}

fn decode(codec: Codec, part: &[u8]) -> u64 {
    let mut decoder = RowDecoder::new(codec, BATCH_BYTES).expect("a decoder");
    let mut rows = 0;
    let mut turn = |decoder: &mut RowDecoder| {
        if let Batch::Rows { bytes, rows: more } = decoder.turn() {
            black_box(bytes);
            rows += u64::from(more);
        }
    };
    for mut piece in part.chunks(1 << 20) {
        loop {
            let pushed = decoder.push(piece).expect("a good part");
            piece = &piece[pushed.taken..];
            if !pushed.full {
                break;
            }
            turn(&mut decoder);
        }
    }
    while decoder.end_part().expect("a good part").full {
        turn(&mut decoder);
    }
    turn(&mut decoder);
    rows
}

/// Calls `run` repeatedly for `time` and returns the minimum processor time, in nanoseconds per
/// row.
fn measure(time: Duration, mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut best = Duration::MAX;
    while best == Duration::MAX || start.elapsed() < time {
        let start = busy();
        run();
        best = best.min(busy() - start);
    }
    best.as_nanos() as f64 / ROWS as f64
}

fn main() {
    // `cargo bench` adds the argument `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|text| text != "--bench");
    let seconds = arguments.next();
    let seconds = seconds.map_or(0.5, |text| text.parse().expect("seconds"));
    let some = arguments.next().unwrap_or_default();
    let time = Duration::from_secs_f64(seconds);
    for (name, fields, make) in SETS {
        if !name.contains(&some) {
            continue;
        }
        let mut random = Random(7);
        let rows: Vec<_> = (0..ROWS).map(|at| row(&make(at, &mut random))).collect();
        let pieces = pieces(&rows);
        for codec in [Codec::Lz4, Codec::Zstd] {
            let figures = [None, Some(words(fields))].map(|packed| {
                let part = compress(codec, packed, &pieces);
                assert_eq!(decode(codec, &part), ROWS as u64);
                let encode = measure(time, || {
                    black_box(compress(codec, packed, &pieces));
                });
                let decode = measure(time, || {
                    black_box(decode(codec, &part));
                });
                (part.len(), encode, decode)
            });
            let [(bytes, encode, decode), (packed, pack, unpack)] = figures;
            println!(
                "{{\"set\": \"{name}\", \"codec\": \"{codec:?}\", \"bytes\": {bytes}, \"packed_share\": {:.3}, \
                 \"encode_ns\": {encode:.1}, \"pack_ns\": {pack:.1}, \"decode_ns\": {decode:.1}, \
                 \"unpack_ns\": {unpack:.1}}}",
                packed as f64 / bytes as f64,
            );
        }
    }
}
