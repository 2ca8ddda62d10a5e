//! Measures the cost of a fabric by itself: two threads, one connection, writes followed by a message per batch, as the
//! endpoint writes blocks. `sealed` is TCP with encrypted bytes. Prints MB/s, writes/s, CPU of both sides and system
//! calls.
//!
//! `cargo bench -p faro-fabric --bench throughput [-- tcp|sealed|shm]`

use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{TcpConfig, TcpFabric};
use faro_fabric::{
    ConnectionId, Event, Exposure, Fabric, Identity, Message, OwnIdentity, RejectedPost,
    RemoteRange, Write, WriteSource,
};
use faro_pool::{Lease, Pool, Purpose};
use faro_secure::Protection;
use rustix::time::{clock_gettime, ClockId};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BATCH: usize = 64;
const SECONDS: Duration = Duration::from_secs(2);

fn site(kind: &str, endpoint: u128) -> (Box<dyn Fabric>, Arc<Pool>) {
    let pool = Pool::new(256 << 20).expect("a pool");
    let fabric: Box<dyn Fabric> = match kind {
        "shm" => {
            let pool = pool.clone();
            Box::new(
                ShmFabric::new(ShmConfig {
                    identity: OwnIdentity::public(endpoint),
                    protection: Protection::Clear,
                    pool,
                })
                .expect("shm"),
            )
        }
        _ => {
            let config = TcpConfig {
                bind: ([127, 0, 0, 1], 0).into(),
                advertise: String::new(),
                identity: OwnIdentity::public(endpoint),
                protection: match kind {
                    "sealed" => Protection::Sealed,
                    _ => Protection::Clear,
                },
                pool: pool.clone(),
            };
            Box::new(TcpFabric::new(config).expect("tcp"))
        }
    };
    (fabric, pool)
}

/// Exposes a batch of targets; answers each message with one, as a client does with more buffers.
fn target(kind: &str, size: usize, ranges: Sender<Vec<RemoteRange>>, location: Sender<String>) {
    let (mut fabric, pool) = site(kind, 2);
    location.send(fabric.location()).expect("the other thread");
    let mut events = Vec::new();
    loop {
        fabric
            .poll(&mut events, Duration::from_millis(100))
            .expect("poll");
        for event in events.drain(..) {
            match event {
                Event::Accepted { connection, .. } => {
                    let expose = |_| {
                        let lease = pool.try_lease(size, Purpose::Read).expect("a lease");
                        fabric
                            .expose(connection, Exposure::Writable(lease))
                            .map_err(drop)
                            .expect("an exposure")
                    };
                    ranges
                        .send((0..2 * BATCH).map(expose).collect())
                        .expect("the other thread");
                }
                Event::Message {
                    connection,
                    message,
                } => drop(fabric.send(connection, message)),
                Event::Closed { .. } => return report("  target", &*fabric),
                _ => {}
            }
        }
        fabric.flush();
    }
}

fn report(who: &str, fabric: &dyn Fabric) {
    let calls = ["send_calls", "receive_calls", "poll_calls"];
    let counters = fabric.counters();
    let shown: Vec<_> = counters
        .iter()
        .filter(|(name, _)| calls.contains(name))
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    println!("{who}: {}", shown.join(", "));
}

fn post(
    fabric: &mut dyn Fabric,
    connection: ConnectionId,
    source: &Arc<Lease>,
    size: usize,
    ranges: &[RemoteRange],
) {
    for target in ranges {
        let write = Write {
            token: 0,
            source: WriteSource::part(source.clone(), 0, size),
            target: *target,
            immediate: None,
            last: false,
        };
        if let Err(RejectedPost::TooLarge(..) | RejectedPost::NotConnected(..)) =
            fabric.write(connection, write)
        {
            panic!("a write was rejected");
        }
    }
    let message = Message {
        kind: faro_wire::kind::FIRST_MESSAGE,
        id: 1,
        body: vec![0; 16 * ranges.len()],
    };
    fabric.send(connection, message).expect("room");
}

fn run(kind: &str, size: usize) {
    let ((ranges_to, ranges), (location_to, location)) = (channel(), channel());
    let owned = kind.to_owned();
    let other = std::thread::spawn(move || target(&owned, size, ranges_to, location_to));
    let (mut fabric, pool) = site(kind, 1);
    let location: String = receive(&location);
    let deadline = Instant::now() + Duration::from_secs(5);
    let connection = fabric
        .connect(&location, &Identity::public(2), deadline)
        .expect("a location");
    let source = Arc::new(pool.try_lease(size, Purpose::Serve).expect("a lease"));
    let mut events = Vec::new();
    let mut ranges_known = Vec::new();
    let (mut batches, mut start, mut cpu) = (0u64, Instant::now(), cpu_now());
    loop {
        fabric
            .poll(&mut events, Duration::from_millis(100))
            .expect("poll");
        for event in events.drain(..) {
            match event {
                Event::Connected { .. } => {
                    ranges_known = receive(&ranges);
                    (start, cpu) = (Instant::now(), cpu_now());
                    for half in ranges_known.chunks(BATCH) {
                        post(&mut *fabric, connection, &source, size, half);
                    }
                }
                Event::Message { .. } => {
                    let half = (batches % 2) as usize * BATCH;
                    batches += 1;
                    post(
                        &mut *fabric,
                        connection,
                        &source,
                        size,
                        &ranges_known[half..half + BATCH],
                    );
                }
                Event::Closed { reason, .. } => panic!("{reason}"),
                _ => {}
            }
        }
        fabric.flush();
        if start.elapsed() > SECONDS && batches > 0 {
            break;
        }
    }
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_now() - cpu);
    let writes = (batches * BATCH as u64) as f64;
    let megabytes = writes * size as f64 / 1e6;
    println!(
        "{kind} {size:>7} B: {:>8.0} MB/s {:>9.0} writes/s, CPU {:.3} ms/MB {:.2} us/write",
        megabytes / wall,
        writes / wall,
        cpu * 1e3 / megabytes,
        cpu * 1e6 / writes
    );
    report("  writer", &*fabric);
    drop(fabric);
    other.join().expect("the target's thread");
}

fn receive<T>(from: &Receiver<T>) -> T {
    from.recv().expect("the other thread")
}

/// Returns the CPU seconds that this process has used.
fn cpu_now() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    // `cargo bench` adds an argument of its own.
    let mut arguments = std::env::args().skip(1).filter(|text| text != "--bench");
    let kinds: Vec<String> = match arguments.next() {
        Some(kind) => vec![kind],
        None => vec!["tcp".to_owned(), "shm".to_owned()],
    };
    for kind in kinds {
        for size in [1 << 10, 4 << 10, 64 << 10, 256 << 10] {
            run(&kind, size);
        }
    }
}
