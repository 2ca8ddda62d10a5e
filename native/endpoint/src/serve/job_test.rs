use super::*;
use crate::files::{Output, OutputFiles};
use crate::memory::RegionMode;
use faro_fabric::{FilePipes, PIPE_BYTES};
use faro_pool::{Pool, PAGE_BYTES};
use faro_region::{ChunkCache, CHUNK_BYTES};
use faro_wire::crc32c;

struct Rig {
    memory: Arc<Memory>,
    output: Arc<Output>,
    data: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| ((at * 31) >> 7) as u8).collect()
}

/// Pipes only where `pipes`, and otherwise what a device takes from memory.
fn sources(pipes: bool) -> WriteSources {
    WriteSources {
        parts: 3,
        pipes,
        by_device: !pipes,
    }
}

/// An output of one partition.
fn rig(bytes: usize) -> Rig {
    let pool = Pool::new(64 << 20).unwrap();
    let cache = ChunkCache::new(Arc::clone(&pool), 8).unwrap();
    let modes = (RegionMode::Unpinned, false);
    let mut memory = Memory::new(pool, cache, modes, 1 << 20);
    // Those of the process are for all tests.
    Arc::get_mut(&mut memory).unwrap().pipes = FilePipes::new();
    let dir = tempfile::tempdir().unwrap();
    let files = OutputFiles {
        data: dir.path().join("d"),
        index: dir.path().join("i"),
    };
    std::fs::write(&files.data, content(bytes)).unwrap();
    let index = [0, bytes as u64].map(u64::to_be_bytes).concat();
    std::fs::write(&files.index, index).unwrap();
    let output = crate::files::open_for_test(&files);
    Rig {
        memory,
        output: Arc::new(output),
        data: files.data,
        _dir: dir,
    }
}

/// A request for all of it, with buffers for `buffers` pages.
fn job(rig: &Rig, buffers: usize, reader_verifies: bool, pipes: bool) -> ServeJob {
    job_of(
        rig,
        &vec![PAGE_BYTES; buffers],
        reader_verifies,
        sources(pipes),
    )
}

fn job_of(rig: &Rig, buffers: &[usize], reader_verifies: bool, sources: WriteSources) -> ServeJob {
    let id = OutputId {
        shuffle_id: 1,
        map_id: 2,
    };
    let block = BlockId {
        map_id: id.map_id.into(),
        shuffle_id: id.shuffle_id.into(),
        start_reduce: 0.into(),
        end_reduce: 1.into(),
        piece: 0.into(),
    };
    let buffer = |bytes: &usize| RemoteBuffer {
        key: 1.into(),
        offset: 0.into(),
        length: (*bytes as u32).into(),
        reserved: 0.into(),
    };
    let fetch = Fetch {
        deadline_ms: 1_000,
        writes_only: true,
        reader_verifies,
        buffers: buffers.iter().map(buffer).collect(),
        blocks: vec![block],
    };
    let account = Account::new();
    let mut job = ServeJob::new(1, QuotaKey::known(7), account, fetch, sources).unwrap();
    job.answers.insert(id, Ok(Arc::clone(&rig.output)));
    job.may_lease(true);
    job
}

fn filled(turn: JobTurn) -> Vec<FilledBuffer> {
    match turn {
        JobTurn::Filled { filled, .. } => filled,
        JobTurn::Offered { .. } => panic!("offered"),
        JobTurn::Cold => panic!("cold"),
        JobTurn::Busy => panic!("busy"),
        JobTurn::Broken { detail } => panic!("{detail}"),
    }
}

fn is_piped(buffer: &FilledBuffer) -> bool {
    matches!(buffer.source, WriteSource::Pipe(_))
}

#[test]
fn only_what_the_reader_verifies_is_piped() {
    let rig = rig(4 * PAGE_BYTES + 5_000);
    for (verifies, takes) in [(true, true), (true, false), (false, true)] {
        let mut job = job(&rig, 5, verifies, takes);
        let first = filled(job.turn(&rig.memory, Sleep::May));
        assert_eq!(first.len(), TURN_BUFFERS);
        for buffer in &first {
            assert_eq!(is_piped(buffer), verifies && takes);
            assert_eq!(buffer.written.sum().is_none(), verifies);
        }
        // Little bytes are copied by less work.
        let last = filled(job.turn(&rig.memory, Sleep::May));
        assert!(last.len() == 1 && !is_piped(&last[0]));
        assert_eq!(last[0].written.length.get(), 5_000);
    }
}

/// Filling a pipe may wait for a disk, so a progress thread does not: whatever the file system, it reads only what a
/// read that does not wait can read.
#[test]
fn a_turn_that_may_not_sleep_fills_no_pipe() {
    let rig = rig(2 * PAGE_BYTES);
    let mut job = job(&rig, 2, true, true);
    let answer = job.turn(&rig.memory, Sleep::Never);
    if !matches!(answer, JobTurn::Cold) {
        let buffers = filled(answer);
        assert!(!buffers.iter().any(is_piped));
    }
}

#[test]
fn without_a_pipe_bytes_are_copied() {
    let rig = rig(4 * PAGE_BYTES);
    // Others use all of them.
    let pipe = || rig.memory.try_pipe_for(&Account::new()).unwrap();
    let held: Vec<_> = std::iter::from_fn(pipe).collect();
    assert!(!held.is_empty());
    let copied = filled(job(&rig, 4, true, true).turn(&rig.memory, Sleep::May));
    assert!(copied.len() == 4 && !copied.iter().any(is_piped));
    assert!(copied.iter().all(|buffer| buffer.written.sum().is_some()));
    drop(held);
    let piped = filled(job(&rig, 4, true, true).turn(&rig.memory, Sleep::May));
    assert!(piped.iter().all(is_piped));
}

/// A peer that takes no bytes has a few pipes, and waits for them like for pages.
#[test]
fn pipes_of_one_peer_are_bounded() {
    let rig = rig(PAGE_BYTES);
    let account = Account::new();
    let mut held = Vec::new();
    while let Ok(pipe) = rig.memory.try_pipe_for(&account) {
        held.extend(pipe);
    }
    assert!(held.len() * PIPE_BYTES <= crate::limits::PIPED_SHARE as usize);
    held.pop();
    assert!(rig.memory.try_pipe_for(&account).is_ok());
}

#[test]
fn a_file_that_was_cut_breaks_the_turn_before_anything_is_sent() {
    let rig = rig(2 * PAGE_BYTES);
    let mut job = job(&rig, 2, true, true);
    assert!(job.prepare(Sleep::May).is_none());
    let file = std::fs::File::options()
        .write(true)
        .open(&rig.data)
        .unwrap();
    file.set_len(PAGE_BYTES as u64).unwrap();
    // Its identity shows it, before the read would.
    assert!(matches!(job.turn(&rig.memory, Sleep::May), JobTurn::Cold));
    assert!(job.wants_files());
}

/// Caches these chunks of the output.
fn cache(rig: &Rig, chunks: &[u64]) {
    let region = rig.output.region().unwrap();
    for chunk in chunks {
        assert!(rig.memory.cache.prefetch(region, *chunk).unwrap());
    }
}

/// Returns whether each part of a buffer is in a page of the chunk cache, after a check of its bytes.
fn parts_in_cache(rig: &Rig, buffer: &FilledBuffer, expected: &[u8]) -> Vec<bool> {
    let parts = buffer.source.parts();
    let bytes: Vec<&[u8]> = parts.iter().map(WritePart::bytes).collect();
    assert!(bytes.concat() == expected);
    let sum = buffer.written.sum();
    assert!(sum.is_none_or(|sum| sum == crc32c(expected)));
    let region = rig.output.region().unwrap();
    let chunks = (0..region.bytes().div_ceil(CHUNK_BYTES)).filter_map(|chunk| {
        let guard = rig.memory.cache.get(region.id(), chunk)?;
        Some(guard.page().start())
    });
    let pages: Vec<_> = chunks.collect();
    let is_cached = |part: &WritePart| pages.contains(&part.memory.lease().start());
    parts.iter().map(is_cached).collect()
}

#[test]
fn what_is_cached_is_sent_from_its_pages() {
    let bytes = 5 * PAGE_BYTES;
    let (rig, content) = (rig(bytes), content(bytes));
    cache(&rig, &[0, 2, 3]);
    let held = rig.memory.pool.counters().leased_bytes;
    let buffers = [100_000, PAGE_BYTES, PAGE_BYTES];
    let mut job = job_of(&rig, &buffers, false, sources(false));
    let filled = filled(job.turn(&rig.memory, Sleep::May));
    let mut at = 0;
    let mut of_cache = Vec::new();
    for buffer in &filled {
        let length = buffer.written.length.get() as usize;
        of_cache.push(parts_in_cache(&rig, buffer, &content[at..at + length]));
        at += length;
    }
    // To 100,000; to 362,144, over the end of chunk 0; to 624,288, over that of 1.
    let expected = [vec![true], vec![true, false], vec![false, true]];
    assert_eq!(of_cache, expected);
    let more = rig.memory.pool.counters().leased_bytes - held;
    assert!(
        more <= 2 * PAGE_BYTES as u64,
        "{more} bytes for what is not cached"
    );
    drop(filled);
    assert_eq!(rig.memory.pool.counters().leased_bytes, held);
}

#[test]
fn a_write_has_no_more_parts_than_its_connection_takes() {
    let bytes = 2 * PAGE_BYTES;
    let (rig, content) = (rig(bytes), content(bytes));
    cache(&rig, &[0, 1]);
    for (parts, expected) in [(1, vec![false]), (2, vec![true, true])] {
        let sources = WriteSources {
            parts,
            ..sources(false)
        };
        let mut job = job_of(&rig, &[PAGE_BYTES - 50_000, PAGE_BYTES], false, sources);
        let filled = filled(job.turn(&rig.memory, Sleep::May));
        let from = PAGE_BYTES - 50_000;
        let second = &content[from..from + PAGE_BYTES];
        assert_eq!(parts_in_cache(&rig, &filled[1], second), expected);
    }
}

/// Neither an eviction nor a shortage takes a page whose bytes are on their way.
#[test]
fn a_page_stays_until_its_bytes_have_left() {
    let bytes = 2 * PAGE_BYTES;
    let (rig, content) = (rig(bytes), content(bytes));
    cache(&rig, &[0, 1]);
    let sent = filled(job(&rig, 1, false, false).turn(&rig.memory, Sleep::May));
    assert_eq!(rig.memory.cache.unguarded_bytes(), PAGE_BYTES as u64);
    assert_eq!(rig.memory.cache.release(usize::MAX), 1, "the other one");
    assert_eq!(rig.memory.cache.release(usize::MAX), 0);
    let parts = sent[0].source.parts();
    assert!(parts.len() == 1 && parts[0].bytes() == &content[..PAGE_BYTES]);
    // The arena wants it, so it does not stay in the cache.
    drop(sent);
    assert_eq!(rig.memory.cache.counters().cached_chunks, 0);
    assert_eq!(rig.memory.cache.counters().pages_released, 2);
}

/// Small parts keep half of a peer's share of pages from the others at most, and whole pages all of it: their copies would
/// take as much. The peer gets all bytes.
#[test]
fn a_peer_that_has_half_its_share_gets_copies_of_small_parts() {
    const SMALL: usize = 8 << 10;
    for (piece, from_cache) in [(SMALL, 4), (PAGE_BYTES, 8)] {
        let bytes = 8 * piece.max(PAGE_BYTES / 8);
        let (rig, content) = (rig(bytes), content(bytes));
        cache(&rig, &Vec::from_iter(0..bytes.div_ceil(PAGE_BYTES) as u64));
        // A thirty-second of 64 MiB is eight pages.
        let mut job = job_of(&rig, &[piece; 8], false, sources(false));
        let mut sent = filled(job.turn(&rig.memory, Sleep::May));
        job.may_lease(true);
        sent.extend(filled(job.turn(&rig.memory, Sleep::May)));
        let pieces = sent.iter().zip(content.chunks(piece));
        let of_cache: Vec<bool> = pieces
            .flat_map(|(buffer, piece)| parts_in_cache(&rig, buffer, piece))
            .collect();
        let expected: Vec<bool> = (0..8).map(|at| at < from_cache).collect();
        assert_eq!(of_cache, expected, "{piece}");
    }
}

/// What a device takes from memory, and its reader verifies, is not read by its server.
#[test]
fn only_what_a_device_sends_to_a_reader_that_verifies_has_no_sum() {
    let rig = rig(2 * PAGE_BYTES);
    cache(&rig, &[0]);
    for verifies in [false, true] {
        for by_device in [false, true] {
            let sources = WriteSources {
                by_device,
                ..sources(false)
            };
            let mut job = job_of(&rig, &[PAGE_BYTES; 2], verifies, sources);
            for buffer in filled(job.turn(&rig.memory, Sleep::May)) {
                assert_eq!(buffer.written.sum().is_none(), verifies && by_device);
            }
        }
    }
}
