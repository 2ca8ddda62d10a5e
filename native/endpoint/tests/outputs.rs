//! A server with more map outputs than it may have files open, and map outputs that are replaced.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[macro_use]
mod support;

use faro_endpoint::{Config, Endpoint, FabricChoice, OutputFiles, RegionMode};
use faro_wire::{BlockStatus, OutputId};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use support::{block, collect, config, counter, fetch, pattern, until, write_output, Server};

over_every_fabric!(
    every_output_of_many_is_read_and_few_stay_open,
    a_replaced_output_is_read_anew,
    an_output_that_is_written_over_is_read_anew,
    what_is_in_the_chunk_cache_is_not_offered_for_a_later_file,
    a_staged_output_is_not_read_from_its_file,
);

fn pair(fabric: FabricChoice) -> (Server, Arc<Endpoint>, u64) {
    use rustix::process::{getrlimit, setrlimit, Resource};
    let limit = rustix::process::Rlimit {
        current: Some(LIMIT),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let server = Server::start(config("server", fabric));
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    (server, client, peer)
}

fn open_files_of(directory: &Path) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let paths = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    paths.filter(|path| path.starts_with(directory)).count()
}

/// Number of files that this process may open, lowered so that a test need not write tens of
/// thousands of files.
const LIMIT: u64 = 2_048;

fn bound() -> usize {
    LIMIT as usize / 4
}

/// There are three times as many outputs as may be open.
fn every_output_of_many_is_read_and_few_stay_open(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    const MAPS: i64 = 1_500;
    let parts = |map: i64| [pattern(map as u64, 40), vec![], pattern(7 + map as u64, 9)];
    for map in 0..MAPS {
        server.put(3, map, &parts(map));
    }
    let stop = AtomicBool::new(false);
    let max = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut max = 0;
            while !stop.load(Ordering::Acquire) {
                max = max.max(open_files_of(server.dir.path()));
            }
            max
        });
        for _ in 0..2 {
            let requests: Vec<(u64, i64)> = (0..MAPS)
                .step_by(250)
                .map(|from| {
                    let blocks: Vec<_> = (from..from + 250)
                        .flat_map(|map| [block(3, map, 0, 1), block(3, map, 1, 3)])
                        .collect();
                    let request = client.fetch(peer, &blocks, support::TIMEOUT);
                    (request.unwrap(), from)
                })
                .collect();
            let ids: Vec<u64> = requests.iter().map(|(id, _)| *id).collect();
            let mut done = collect(&client, &ids);
            for (id, from) in requests {
                let got = done.remove(&id).unwrap().bytes();
                for (map, pair) in (from..).zip(got.chunks(2)) {
                    let [first, _, last] = parts(map);
                    assert!(pair == [first, last], "{map}");
                }
            }
        }
        stop.store(true, Ordering::Release);
        watch.join().unwrap()
    });
    assert!(max <= bound(), "{max} files were open, {} may be", bound());
    let told = counter(&server.endpoint, "openOutputs") as usize;
    assert!(told <= bound() && told == open_files_of(server.dir.path()));
    server.endpoint.forget_shuffle(3);
    assert_eq!(counter(&server.endpoint, "openOutputs"), 0);
    assert_eq!(open_files_of(server.dir.path()), 0);
}

/// Writes other partitions beside the output and renames them over it, index first, as Spark does.
fn replace(server: &Server, map: i64, parts: &[Vec<u8>]) {
    let aside = tempfile::tempdir_in(server.dir.path()).unwrap();
    let id = OutputId {
        shuffle_id: 0,
        map_id: map,
    };
    let new = write_output(aside.path(), id, parts);
    for file in [&new.index, &new.data] {
        let name = file.file_name().unwrap();
        std::fs::rename(file, server.dir.path().join(name)).unwrap();
    }
}

fn generation(number: u64, sizes: [usize; 3]) -> Vec<Vec<u8>> {
    let seeds = 10 * number..;
    let parts = seeds.zip(sizes).map(|(seed, bytes)| pattern(seed, bytes));
    parts.collect()
}

/// Other lengths in each generation, and one that repeats the lengths of the one before.
const SIZES: [[usize; 3]; 4] = [
    [300_000, 10, 90_000],
    [90_000, 300_000, 0],
    [90_000, 300_000, 0],
    [10, 20, 600_000],
];

/// Reads often enough that chunks are cached, all of the output and parts of it.
fn check(client: &Endpoint, peer: u64, parts: &[Vec<u8>]) {
    for _ in 0..4 {
        let blocks = [block(0, 1, 0, 1), block(0, 1, 1, 2), block(0, 1, 2, 3)];
        let got = fetch(client, peer, &blocks).bytes();
        assert!(got == parts, "parts are those of this generation");
        let got = fetch(client, peer, &[block(0, 1, 0, 3)]).bytes();
        assert!(got == [parts.concat()], "the whole is of this generation");
    }
}

fn a_replaced_output_is_read_anew(fabric: FabricChoice) {
    for forget in [false, true] {
        let (server, client, peer) = pair(fabric);
        server.put(0, 1, &generation(0, SIZES[0]));
        check(&client, peer, &generation(0, SIZES[0]));
        for (number, sizes) in (1..).zip(&SIZES[1..]) {
            let parts = generation(number, *sizes);
            replace(&server, 1, &parts);
            if forget {
                server.endpoint.forget_shuffle(0);
            }
            check(&client, peer, &parts);
        }
        assert_eq!(counter(&client, "retries"), 0);
        assert_eq!(counter(&client, "crcErrors"), 0);
    }
}

/// The files keep their inodes and get other bytes: length and time change.
fn an_output_that_is_written_over_is_read_anew(fabric: FabricChoice) {
    let (server, client, peer) = pair(fabric);
    for (number, sizes) in (0..).zip([SIZES[0], SIZES[1], SIZES[3]]) {
        let parts = generation(number, sizes);
        server.put(0, 1, &parts);
        check(&client, peer, &parts);
    }
    assert_eq!(counter(&client, "retries"), 0);
}

fn what_is_in_the_chunk_cache_is_not_offered_for_a_later_file(fabric: FabricChoice) {
    let server = Server::start(Config {
        stages_outputs: true,
        regions: RegionMode::Optimistic,
        ..config("server", fabric)
    });
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    let id = OutputId {
        shuffle_id: 0,
        map_id: 1,
    };
    let files = server.put(0, 1, &[pattern(0, 1_000_000)]);
    for number in 0..4 {
        let parts = [pattern(number, 1_000_000)];
        if number > 0 {
            replace(&server, 1, &parts);
        }
        let before = counter(&server.endpoint, "region.prefetched");
        server.endpoint.committed(id, &files, None);
        until("chunks are cached", || {
            counter(&server.endpoint, "region.prefetched") == before + 4
        });
        for _ in 0..3 {
            let got = fetch(&client, peer, &[block(0, 1, 0, 1)]).bytes();
            assert!(got == parts, "generation {number}");
        }
    }
    assert!(counter(&client, "remoteReads") > 0);
    assert_eq!(counter(&client, "retries"), 0);
}

fn a_staged_output_is_not_read_from_its_file(fabric: FabricChoice) {
    let server = Server::start(Config {
        stages_outputs: true,
        ..config("server", fabric)
    });
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    let parts = [pattern(0, 700_000), pattern(1, 100), pattern(2, 300_000)];
    let mut staged = server.endpoint.stage().unwrap();
    let data = parts.concat();
    let mut rest = &data[..];
    while !rest.is_empty() {
        let room = staged.room();
        let now = room.len().min(rest.len());
        room[..now].copy_from_slice(&rest[..now]);
        staged.filled(now);
        rest = &rest[now..];
    }
    let files = server.put(0, 1, &parts);
    let id = OutputId {
        shuffle_id: 0,
        map_id: 1,
    };
    server.endpoint.committed(id, &files, Some(staged));
    assert_eq!(counter(&server.endpoint, "region.cachedChunks"), 4);
    let blocks: Vec<_> = (0..3).map(|i| block(0, 1, i, i + 1)).collect();
    assert!(fetch(&client, peer, &blocks).bytes() == parts);
    for faults in ["region.minorFaults", "region.majorFaults"] {
        assert_eq!(counter(&server.endpoint, faults), 0, "{faults}");
    }
}

#[test]
fn an_output_that_is_deleted_is_that_block_s_status() {
    let (server, client, peer) = pair(FabricChoice::Tcp);
    let files: Vec<OutputFiles> = (0..20)
        .map(|map| server.put(0, map, &[pattern(map as u64, 5_000)]))
        .collect();
    let all: Vec<_> = (0..20).map(|map| block(0, map, 0, 1)).collect();
    assert_eq!(fetch(&client, peer, &all).bytes().len(), 20);
    for files in files.iter().skip(1).step_by(2) {
        std::fs::remove_file(&files.data).unwrap();
        std::fs::remove_file(&files.index).unwrap();
    }
    let fetched = fetch(&client, peer, &all);
    assert_eq!(fetched.failure, None);
    for (map, (status, bytes)) in fetched.blocks.iter().enumerate() {
        match map % 2 {
            0 => assert!(*bytes == pattern(map as u64, 5_000), "{map}"),
            _ => assert_eq!(*status, BlockStatus::UnknownOutput as u32, "{map}"),
        }
    }
    assert_eq!(counter(&client, "retries"), 0);
}

/// Spark forgets a shuffle before it deletes the files. A question in between opens them again.
#[test]
fn deleted_files_give_their_space_back() {
    let (server, client, peer) = pair(FabricChoice::Tcp);
    let files: Vec<OutputFiles> = (0..10)
        .map(|map| server.put(6, map, &[pattern(map as u64, 5_000)]))
        .collect();
    let all: Vec<_> = (0..10).map(|map| block(6, map, 0, 1)).collect();
    let delete = || {
        for files in &files {
            std::fs::remove_file(&files.data).unwrap();
        }
    };
    server.endpoint.forget_shuffle(6);
    fetch(&client, peer, &all);
    assert_eq!(open_files_of(server.dir.path()), 10, "a late question");
    delete();
    server.endpoint.forget_shuffle(6);
    assert_eq!(open_files_of(server.dir.path()), 0, "forgotten again");

    for map in 0..10 {
        server.put(6, map, &[pattern(map as u64, 5_000)]);
    }
    fetch(&client, peer, &all);
    assert_eq!(open_files_of(server.dir.path()), 10);
    delete();
    until("deleted files are closed, though nothing asks", || {
        open_files_of(server.dir.path()) == 0
    });
    assert_eq!(counter(&server.endpoint, "openOutputs"), 0);
}

/// Questions are answered by several threads, of which one does not come back for a while.
#[test]
fn several_threads_answer_questions() {
    let endpoint = Endpoint::start(config("server", FabricChoice::Tcp)).unwrap();
    let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
    let peer = client.add_peer(&endpoint.card()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let id = |map: i64| OutputId {
        shuffle_id: 0,
        map_id: map,
    };
    for map in 0..400 {
        write_output(dir.path(), id(map), &[pattern(map as u64, 100)]);
    }
    let files = |id: OutputId| OutputFiles {
        data: dir.path().join(format!("shuffle_0_{}_0.data", id.map_id)),
        index: dir.path().join(format!("shuffle_0_{}_0.index", id.map_id)),
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    for id in endpoint.unresolved(64, Duration::from_millis(20)) {
                        endpoint.resolve(id, Some(files(id)));
                    }
                }
            });
        }
        for _ in 0..3 {
            let all: Vec<_> = (0..400).map(|map| block(0, map, 0, 1)).collect();
            let got = fetch(&client, peer, &all).bytes();
            for (map, bytes) in got.iter().enumerate() {
                assert!(*bytes == pattern(map as u64, 100), "{map}");
            }
            endpoint.forget_shuffle(0);
        }
        stop.store(true, Ordering::Release);
    });
}
