//! Many threads on one small pool: leases never overlap, the cap holds, everything comes back.

use faro_pool::{
    Lease, Pool, PoolError, Purpose, MIN_LIMIT_BYTES, PAGE_BYTES, SIZE_CLASSES, SLAB_BYTES,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

const THREADS: u64 = 6;
const STEPS: u64 = 6_000;

/// xorshift64*: enough to choose with, and the same on every run.
fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// Marks the first and last word of a lease as `owner`'s.
fn stamp(lease: &mut Lease, owner: u64) {
    let bytes = lease.bytes_mut();
    let end = bytes.len();
    bytes[..8].copy_from_slice(&owner.to_le_bytes());
    bytes[end - 8..].copy_from_slice(&owner.to_le_bytes());
}

fn assert_stamp(lease: &Lease, owner: u64) {
    let bytes = lease.bytes();
    assert_eq!(bytes[..8], owner.to_le_bytes(), "{lease:?} was shared");
    assert_eq!(
        bytes[bytes.len() - 8..],
        owner.to_le_bytes(),
        "{lease:?} was shared"
    );
}

fn assert_at_rest(pool: &Arc<Pool>) {
    let counters = pool.counters();
    assert_eq!(counters.leased_bytes, 0);
    assert_eq!(counters.held_bytes, 0);
    assert!(counters.high_water_bytes <= counters.limit_bytes);
    assert!(counters.mapped_bytes <= counters.limit_bytes);
    // And what came back can be leased, whole.
    let all: Vec<_> =
        std::iter::from_fn(|| pool.try_lease(PAGE_BYTES, Purpose::Serve).ok()).collect();
    assert_eq!(all.len() * PAGE_BYTES, counters.limit_bytes as usize);
}

#[test]
fn leases_of_many_threads_never_overlap() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let counters = pool.counters();
                assert!(counters.mapped_bytes <= counters.limit_bytes);
                assert!(counters.held_bytes <= counters.limit_bytes);
                std::thread::yield_now();
            }
        });
        let workers: Vec<_> = (1..=THREADS)
            .map(|thread| {
                let pool = &pool;
                scope.spawn(move || {
                    let mut random = 0x9e37_79b9_7f4a_7c15 ^ thread;
                    let mut mine: Vec<(u64, Lease)> = Vec::new();
                    let mut refusals = 0_u32;
                    for step in 0..STEPS {
                        let dice = next(&mut random);
                        if dice % 5 < 3 {
                            let bytes = SIZE_CLASSES[(dice >> 8) as usize % SIZE_CLASSES.len()];
                            let purpose = if dice & 0x80 == 0 {
                                Purpose::Read
                            } else {
                                Purpose::Serve
                            };
                            match pool.try_lease(bytes, purpose) {
                                Ok(mut lease) => {
                                    let owner = thread << 32 | step;
                                    stamp(&mut lease, owner);
                                    mine.push((owner, lease));
                                }
                                Err(PoolError::Exhausted { .. }) => {
                                    refusals += 1;
                                    mine.truncate(mine.len() / 2);
                                }
                                Err(error) => panic!("{error}"),
                            }
                        } else if !mine.is_empty() {
                            let (owner, lease) =
                                mine.swap_remove((dice >> 8) as usize % mine.len());
                            assert_stamp(&lease, owner);
                        }
                    }
                    for (owner, lease) in &mine {
                        assert_stamp(lease, *owner);
                    }
                    refusals
                })
            })
            .collect();
        let refusals: u32 = workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum();
        stop.store(true, Ordering::Relaxed);
        watcher.join().unwrap();
        assert!(
            refusals > 0,
            "the pool was never full: the test is too weak"
        );
    });
    assert_at_rest(&pool);
}

/// Readers that wait for memory that other threads return; ends only if no wake-up is lost.
#[test]
fn every_waiter_is_served() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let far = Instant::now() + Duration::from_secs(600);
    // All but two pages of the readers' share are taken, so that nearly every lease has to wait.
    let ballast: Vec<_> = (0..SLAB_BYTES / PAGE_BYTES - 2)
        .map(|_| pool.try_lease(PAGE_BYTES, Purpose::Read).unwrap())
        .collect();
    std::thread::scope(|scope| {
        let (give, take) = mpsc::sync_channel::<Lease>(1);
        scope.spawn(move || {
            for lease in take {
                std::thread::yield_now();
                drop(lease);
            }
        });
        for thread in 0..THREADS {
            let (pool, give) = (&pool, give.clone());
            scope.spawn(move || {
                for step in 0..500 {
                    let bytes =
                        SIZE_CLASSES[((thread + step) % SIZE_CLASSES.len() as u64) as usize];
                    let lease = pool.lease_before(bytes, Purpose::Read, far).unwrap();
                    give.send(lease).unwrap();
                }
            });
        }
    });
    assert!(
        pool.counters().waits > 0,
        "nobody waited: the test is too weak"
    );
    drop(ballast);
    assert_at_rest(&pool);
}
