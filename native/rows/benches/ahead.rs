//! Compares decoding on the task's thread with decoding ahead of it on another thread, for one
//! task, for as many tasks as the machine has processors, and for more. Prints nanoseconds of time
//! and of processor time per row for each.
//!
//! Batches are copied out of the decoder, as they are copied into arrays of the JVM. With two
//! copies the decoding thread fills one while the task reads the other. Each round measures both
//! sides; the results are medians.
//!
//! `cargo bench -p faro-rows --bench ahead -- [ROUNDS]`

#[path = "../tests/support/encode.rs"]
mod encode;

use encode::{lz4_stream, row_stream};
use faro_rows::{Batch, Codec, RowDecoder, ROW_HEAD_BYTES};
use rustix::time::{clock_gettime, ClockId};
use std::hint::black_box;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

const BATCH_BYTES: usize = 64 << 10;
const PUSH_BYTES: usize = 1 << 20;
const BLOCK_BYTES: usize = 32 << 10;
const ROW_BYTES: usize = 24;
const ROWS: usize = 1_000_000;

/// The side of the comparison: reads a part, with `work` rounds of a hash for each row.
type Side = fn(&[u8], u32) -> u64;

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn part() -> Vec<u8> {
    let mut state = 1_u64;
    let rows: Vec<Vec<u8>> = (0..ROWS as u64)
        .map(|row| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            [row, state >> 40, state >> 62]
                .map(u64::to_ne_bytes)
                .concat()
        })
        .collect();
    assert_eq!(rows[0].len(), ROW_BYTES);
    lz4_stream(&row_stream(&rows), BLOCK_BYTES)
}

/// Stands for a task's work on a row: `work` rounds of a hash.
fn consume(bytes: &[u8], work: u32) -> u64 {
    let mut sum = 0_u64;
    for row in bytes.chunks_exact(ROW_HEAD_BYTES + ROW_BYTES) {
        let mut hash = u64::from(row[ROW_HEAD_BYTES]);
        for round in 0..work {
            hash = (hash ^ u64::from(round))
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(31);
        }
        sum = sum.wrapping_add(hash);
    }
    sum
}

/// Decodes the part and calls `full` for every batch.
fn decode(part: &[u8], mut full: impl FnMut(&mut RowDecoder)) {
    let mut decoder = RowDecoder::new(Codec::Lz4, BATCH_BYTES).expect("a decoder");
    for mut piece in part.chunks(PUSH_BYTES) {
        loop {
            let pushed = decoder.push(piece).expect("a good part");
            piece = &piece[pushed.taken..];
            if !pushed.full {
                break;
            }
            full(&mut decoder);
        }
    }
    while decoder.end_part().expect("a good part").full {
        full(&mut decoder);
    }
    full(&mut decoder);
}

fn copy_batch(decoder: &mut RowDecoder, copy: &mut Vec<u8>) {
    copy.clear();
    if let Batch::Rows { bytes, .. } = decoder.turn() {
        copy.extend_from_slice(bytes);
    }
}

fn on_the_tasks_thread(part: &[u8], work: u32) -> u64 {
    let (mut sum, mut copy) = (0_u64, Vec::with_capacity(BATCH_BYTES));
    decode(part, |decoder| {
        copy_batch(decoder, &mut copy);
        sum = sum.wrapping_add(consume(&copy, work));
    });
    sum
}

fn ahead(part: &[u8], work: u32) -> u64 {
    let (filled, batches): (SyncSender<Vec<u8>>, Receiver<Vec<u8>>) = sync_channel(1);
    let (back, returned) = sync_channel::<Vec<u8>>(2);
    for _ in 0..2 {
        back.send(Vec::with_capacity(BATCH_BYTES)).expect("room");
    }
    thread::scope(|scope| {
        scope.spawn(move || {
            decode(part, |decoder| {
                let mut copy = returned.recv().expect("the task is there");
                copy_batch(decoder, &mut copy);
                filled.send(copy).expect("the task is there");
            });
        });
        let mut sum = 0_u64;
        for copy in batches {
            sum = sum.wrapping_add(consume(&copy, work));
            // The send fails once the decoding thread has ended.
            let _ = back.send(copy);
        }
        sum
    })
}

/// Measures `tasks` simultaneous tasks. Returns time and processor time, in nanoseconds per row of
/// one task.
fn measure(side: Side, part: &[u8], tasks: usize, work: u32) -> (f64, f64) {
    let (start, busy) = (Instant::now(), processor_time());
    thread::scope(|scope| {
        for _ in 0..tasks {
            scope.spawn(|| black_box(side(part, work)));
        }
    });
    let per_row = |time: Duration| time.as_nanos() as f64 / ROWS as f64;
    (
        per_row(start.elapsed()),
        per_row(processor_time() - busy) / tasks as f64,
    )
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let rounds = std::env::args().skip(1).find(|text| text != "--bench");
    let rounds = rounds.map_or(7, |text| text.parse().expect("rounds"));
    let part = part();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    for work in [5, 20, 60] {
        for tasks in [1, cores, 2 * cores] {
            let sides: [(&str, Side); 2] = [("task", on_the_tasks_thread), ("ahead", ahead)];
            let mut figures = [const { (Vec::new(), Vec::new()) }; 2];
            for _ in 0..rounds {
                for (of, (_, side)) in figures.iter_mut().zip(sides) {
                    let (time, busy) = measure(side, &part, tasks, work);
                    of.0.push(time);
                    of.1.push(busy);
                }
            }
            for ((times, busy), (name, _)) in figures.into_iter().zip(sides) {
                println!(
                    "{{\"side\": \"{name}\", \"processors\": {cores}, \"tasks\": {tasks}, \"work\": {work}, \
                     \"ns_per_row\": {:.1}, \"processor_ns_per_row\": {:.1}}}",
                    median(times),
                    median(busy)
                );
            }
        }
    }
}
