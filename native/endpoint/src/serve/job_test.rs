use super::*;
use crate::files::OutputFiles;
use crate::memory::{RegionMode, Staging};
use faro_fabric::{FilePipes, PIPE_BYTES};
use faro_pool::{Pool, PAGE_BYTES};
use faro_region::ChunkCache;

struct Rig {
    memory: Arc<Memory>,
    output: Arc<Output>,
    data: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

/// An output of one partition.
fn rig(bytes: usize) -> Rig {
    let pool = Pool::new(64 << 20).unwrap();
    let cache = ChunkCache::new(Arc::clone(&pool), 8).unwrap();
    let modes = (RegionMode::Unpinned, Staging::OnDemand);
    let mut memory = Memory::new(pool, cache, modes, 1 << 20);
    // Those of the process are for all tests.
    Arc::get_mut(&mut memory).unwrap().pipes = FilePipes::new();
    let dir = tempfile::tempdir().unwrap();
    let files = OutputFiles {
        data: dir.path().join("d"),
        index: dir.path().join("i"),
    };
    std::fs::write(&files.data, vec![3; bytes]).unwrap();
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
fn job(rig: &Rig, buffers: usize, reader_verifies: bool, takes_pipes: bool) -> ServeJob {
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
    let buffer = RemoteBuffer {
        key: 1.into(),
        offset: 0.into(),
        length: (PAGE_BYTES as u32).into(),
        reserved: 0.into(),
    };
    let fetch = Fetch {
        deadline_ms: 1_000,
        writes_only: true,
        reader_verifies,
        buffers: vec![buffer; buffers],
        blocks: vec![block],
    };
    let account = Account::new();
    let mut job = ServeJob::new(1, QuotaKey::known(7), account, fetch, takes_pipes).unwrap();
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
    matches!(buffer.source, FilledSource::Pipe(_))
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
            assert_eq!(buffer.written.sum().is_none(), verifies && takes);
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
