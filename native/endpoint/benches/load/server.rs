//! The server's process: the endpoint, its map outputs, and the clients' process as a child.

use super::options::Options;
use faro_endpoint::{Endpoint, OutputFiles};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Returns where map output `map` is.
fn files_of(dir: &Path, map: i64) -> OutputFiles {
    // Spark does the same, so that no directory has tens of thousands of files.
    let dir = dir.join(format!("{:02x}", map % 64));
    OutputFiles {
        data: dir.join(format!("{map}.data")),
        index: dir.join(format!("{map}.index")),
    }
}

/// Writes map outputs of equal partitions. The data files are sparse and take no space on the disk:
/// their bytes are zero, and reading them takes page cache.
fn write_outputs(options: &Options, dir: &Path) {
    let offsets = (0..=options.partitions).map(|n| n * options.block);
    let index: Vec<u8> = offsets.flat_map(u64::to_be_bytes).collect();
    for n in 0..64 {
        std::fs::create_dir(dir.join(format!("{n:02x}"))).unwrap();
    }
    for map in 0..options.outputs as i64 {
        let files = files_of(dir, map);
        std::fs::write(&files.index, &index).unwrap();
        let data = std::fs::File::create(&files.data).unwrap();
        data.set_len(options.partitions * options.block).unwrap();
    }
}

/// Runs `work` while a thread answers where the map outputs are, and one counts open descriptors.
/// Returns the most that were open.
fn serve(endpoint: &Arc<Endpoint>, dir: PathBuf, work: impl FnOnce()) -> usize {
    let (stop, max) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                for id in endpoint.unresolved(256, Duration::from_millis(20)) {
                    endpoint.resolve(id, Some(files_of(&dir, id.map_id)));
                }
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
                max.fetch_max(open, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        work();
        stop.store(true, Ordering::Release);
    });
    max.into_inner()
}

/// Runs one cell and prints its line.
pub fn run(options: &Options, words: &[String]) {
    let dir = tempfile::tempdir().unwrap();
    write_outputs(options, dir.path());
    let endpoint = Endpoint::start(options.config("server".to_owned())).unwrap();
    let card: String = endpoint.card().iter().map(|b| format!("{b:02x}")).collect();
    let (mut cpu, mut line) = (0, String::new());
    let descriptors = serve(&endpoint, dir.path().to_owned(), || {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(words)
            .arg(format!("card={card}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        // The clients are ready, and wait until this side has noted its CPU.
        assert_eq!(said.next().unwrap().unwrap(), "ready");
        let before = super::cpu_nanos();
        writeln!(child.stdin.as_mut().unwrap(), "go").unwrap();
        line = said.next().unwrap().unwrap();
        cpu = super::cpu_nanos() - before;
        assert!(child.wait().unwrap().success());
    });
    let counters = endpoint.counters();
    let counter = |name: &str| {
        let found = counters.iter().find(|(n, _)| n == name);
        found.map_or(0, |(_, value)| *value)
    };
    let line = line.strip_suffix('}').unwrap();
    println!(
        "{line},\"server_cpu_ns\":{cpu},\"descriptors\":{descriptors},\"busy\":{},\"server_high_bytes\":{}}}",
        counter("busyRefusals"),
        counter("pool.highWaterBytes"),
    );
    endpoint.close();
}
