//! One server under the load of many clients, for measuring. `tests/bench/load` runs it cell by cell.
//!
//! `load fabric=tcp peers=100 readers=8 window=4 block=20480 blocks=1 outputs=100 partitions=200
//! requests=20000 limit=256` starts `peers` client endpoints, each with `readers` readers. Each
//! reader keeps `window` requests of `blocks` blocks of `block` bytes in flight, until all readers
//! together have made `requests` requests. `limit` is the arena of every endpoint in MiB.
//! `stopped=8` adds eight peers that ask for 64 MiB each and then take nothing. The server is one
//! process, and all clients are another one (an endpoint each, with its own threads and arena). All
//! requests are made once before the measured pass. Prints one line of JSON: seconds, blocks,
//! bytes, CPU of both sides, failed requests, the longest request, the slowest client's time as a
//! multiple of the mean, and the maxima of the memory that one client's blocks and buffers held and of the server's open descriptors.

#![allow(clippy::unwrap_used)] // A measurement that goes wrong ends.

#[path = "../../tests/support/by_hand.rs"]
mod by_hand;
mod clients;
mod options;
mod server;
#[path = "../../tests/support/stopped.rs"]
mod stopped;

use options::Options;

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|w| w != "--bench")
        .collect();
    allow_descriptors();
    let options = Options::parse(&words);
    match options.card.clone() {
        None => server::run(&options, &words),
        Some(card) => clients::run(&options, &card),
    }
}

/// Raises the limit: a thousand endpoints in one process need about twenty descriptors each.
fn allow_descriptors() {
    use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
    let now = getrlimit(Resource::Nofile);
    let max = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    setrlimit(Resource::Nofile, max).unwrap();
}

/// Returns the CPU time of all threads of this process, in nanoseconds.
pub fn cpu_nanos() -> u64 {
    use rustix::time::{clock_gettime, ClockId};
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}
