//! Measures the cost of a lease: taking and returning one, by one thread and by two, beside the
//! system's allocator. Prints one JSON object per result, which `tests/bench/memory/run` reads.
//!
//! `cargo bench -p faro-pool --bench lease -- [ROUNDS] [SECONDS]`

use faro_pool::{Pool, PoolOptions, Purpose, PAGE_BYTES};
use rustix::time::{clock_gettime, ClockId};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const LIMIT: u64 = 256 << 20;
/// Number of leases taken and returned between two readings of the clock.
const BATCH: u32 = 1_000;

/// Returns the processor time of the calling thread, so that other work on the machine does not
/// count.
fn busy() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Returns the processor time of one `pair` (take and return) in nanoseconds: the mean over `time`
/// and over `threads` threads that run at once.
fn measure(threads: usize, time: Duration, pair: &(dyn Fn() + Sync)) -> f64 {
    let (start, stop) = (Barrier::new(threads), AtomicBool::new(false));
    let run = || {
        (0..BATCH).for_each(|_| pair());
        start.wait();
        let (from, busy_before, mut pairs) = (Instant::now(), busy(), 0_u64);
        while !stop.load(Ordering::Relaxed) {
            (0..BATCH).for_each(|_| pair());
            pairs += u64::from(BATCH);
            if from.elapsed() >= time {
                stop.store(true, Ordering::Relaxed);
            }
        }
        (busy() - busy_before).as_nanos() as f64 / pairs as f64
    };
    let sum: f64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let results = workers.into_iter().map(|worker| worker.join());
        results.map(|result| result.expect("a worker")).sum()
    });
    sum / threads as f64
}

fn main() {
    // `cargo bench` adds the argument `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|text| text != "--bench");
    let mut number = |default: f64| {
        let given = arguments.next();
        given.map_or(default, |text| text.parse().expect("a number"))
    };
    let (rounds, time) = (number(3.0) as u32, Duration::from_secs_f64(number(0.5)));
    let pool: Arc<Pool> = Pool::with_options(PoolOptions {
        // An endpoint sets this too, so the results include its cost.
        idle_release: Duration::from_secs(60),
        ..PoolOptions::new(LIMIT)
    })
    .expect("a pool");
    let lease = |bytes| {
        let pool = Arc::clone(&pool);
        move || {
            drop(black_box(
                pool.try_lease(bytes, Purpose::Read).expect("room"),
            ))
        }
    };
    let allocate = |bytes| move || drop(black_box(Vec::<u8>::with_capacity(bytes)));
    for round in 0..rounds {
        for (bytes, threads) in [(4 << 10, 1), (4 << 10, 2), (PAGE_BYTES, 1), (PAGE_BYTES, 2)] {
            let before = pool.counters();
            let leases = measure(threads, time, &lease(bytes));
            let after = pool.counters();
            let mapped = after.slabs_mapped - before.slabs_mapped;
            let acquired = after.acquisitions - before.acquisitions;
            println!(
                "{{\"part\": \"lease\", \"side\": \"arena\", \"round\": {round}, \"bytes\": {bytes}, \
                 \"threads\": {threads}, \"ns\": {leases:.1}, \"acquisitions\": {acquired}, \
                 \"slabs_mapped\": {mapped}}}"
            );
            let allocations = measure(threads, time, &allocate(bytes));
            println!(
                "{{\"part\": \"lease\", \"side\": \"malloc\", \"round\": {round}, \"bytes\": {bytes}, \
                 \"threads\": {threads}, \"ns\": {allocations:.1}}}"
            );
        }
    }
}
