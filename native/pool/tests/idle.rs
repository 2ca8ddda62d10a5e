//! Tests idle slabs: when they become idle, what they give up, and that no user notices.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_pool::{Lease, Pool, PoolOptions, Purpose, RegistrationPin, PAGE_BYTES, SLAB_BYTES};
use std::sync::Arc;
use std::time::Duration;

const PAGES_PER_SLAB: usize = SLAB_BYTES / PAGE_BYTES;
const SLABS: usize = 4;
const NOW: Duration = Duration::ZERO;

fn pool() -> Arc<Pool> {
    let options = PoolOptions {
        // This is longer than any test takes, so only slabs that a test marks are idle.
        idle_release: Duration::from_secs(3600),
        huge_pages: false,
        ..PoolOptions::new((SLABS * SLAB_BYTES) as u64)
    };
    Pool::with_options(options).unwrap()
}

fn page(pool: &Arc<Pool>) -> Lease {
    pool.try_lease(PAGE_BYTES, Purpose::Serve).unwrap()
}

/// Returns a pool whose slabs are all mapped, written and free again.
fn used() -> Arc<Pool> {
    let pool = pool();
    let mut all: Vec<_> = (0..SLABS * PAGES_PER_SLAB).map(|_| page(&pool)).collect();
    all.iter_mut().for_each(|lease| lease.bytes_mut().fill(7));
    drop(all);
    pool
}

/// Returns the bytes of memory behind the slabs.
fn resident(pool: &Pool) -> u64 {
    (0..)
        .map_while(|index| pool.slab(index))
        .map(|slab| rustix::fs::fstat(slab.fd()).unwrap().st_blocks as u64 * 512)
        .sum()
}

fn pins(pool: &Arc<Pool>) -> Vec<RegistrationPin> {
    (0..SLABS as u32)
        .map(|index| pool.pin(index).unwrap())
        .collect()
}

#[test]
fn idle_slabs_give_their_pages_back_and_one_stays() {
    let pool = used();
    assert_eq!(resident(&pool), (SLABS * SLAB_BYTES) as u64);
    assert_eq!(pool.mark_idle(NOW), SLABS as u32 - 1);
    let counters = pool.counters();
    assert_eq!(counters.idle_bytes, ((SLABS - 1) * SLAB_BYTES) as u64);
    assert_eq!(counters.slabs_released, 0);
    assert_eq!(pool.release_idle_pages(2), 2);
    assert_eq!(pool.release_idle_pages(9), 1, "once each");
    assert_eq!(resident(&pool), SLAB_BYTES as u64);
    let counters = pool.counters();
    assert_eq!(counters.slabs_released, SLABS as u64 - 1);
    assert_eq!(counters.mapped_bytes, SLAB_BYTES as u64);
    assert!(!pool.is_idle(0), "leases are packed into the lowest");
    assert_eq!(pool.mark_idle(NOW), 0);
    // The same indices must have the same addresses, and nothing new may be mapped.
    let all: Vec<_> = (0..SLABS * PAGES_PER_SLAB).map(|_| page(&pool)).collect();
    assert!(pool.try_lease(1, Purpose::Serve).is_err());
    let counters = pool.counters();
    assert_eq!(counters.slabs_mapped, SLABS as u64);
    assert_eq!(counters.idle_bytes, 0);
    assert_eq!(counters.mapped_bytes, (SLABS * SLAB_BYTES) as u64);
    drop(all);
}

#[test]
fn new_pages_are_zero_and_count_as_new() {
    let pool = used();
    pool.mark_idle(NOW);
    pool.release_idle_pages(u32::MAX);
    let before = pool.counters();
    let all: Vec<_> = (0..SLABS * PAGES_PER_SLAB).map(|_| page(&pool)).collect();
    for lease in &all {
        let kept = lease.slab() == 0;
        let byte = if kept { 7 } else { 0 };
        assert!(lease.bytes().iter().all(|b| *b == byte), "{lease:?}");
    }
    let hits = pool.counters().reuse_hits - before.reuse_hits;
    assert_eq!(hits, PAGES_PER_SLAB as u64);
}

#[test]
fn a_slab_with_one_buffer_in_use_stays() {
    let pool = used();
    // One page is split. Its slab must stay, with the page's content.
    let mut index = pool.try_lease(1, Purpose::Read).unwrap();
    index.bytes_mut().fill(9);
    assert_eq!(pool.mark_idle(NOW), SLABS as u32 - 1);
    assert!(!pool.is_idle(index.slab()));
    pool.release_idle_pages(u32::MAX);
    assert!(index.bytes().iter().all(|byte| *byte == 9));
    let slab = index.slab();
    drop(index);
    assert_eq!(pool.mark_idle(NOW), 0, "it is the last one");
    assert!(!pool.is_idle(slab));
}

#[test]
fn what_was_used_lately_stays() {
    let pool = used();
    assert_eq!(pool.mark_idle(Duration::from_secs(3600)), 0);
    pool.release_idle();
    assert_eq!(pool.counters().idle_bytes, 0);
}

#[test]
fn pages_stay_while_a_device_has_them() {
    let pool = used();
    let mut pins = pins(&pool);
    assert_eq!(pool.mark_idle(NOW), SLABS as u32 - 1);
    assert_eq!(pool.release_idle_pages(u32::MAX), 0);
    assert_eq!(resident(&pool), (SLABS * SLAB_BYTES) as u64);
    assert!(pool.pin(3).is_none(), "nobody needs it");
    drop(pins.pop());
    assert_eq!(pool.release_idle_pages(u32::MAX), 1);
    assert_eq!(resident(&pool), ((SLABS - 1) * SLAB_BYTES) as u64);
    // The slabs are activated before the device was de-registered, so nothing is lost.
    let all: Vec<_> = (0..SLABS * PAGES_PER_SLAB).map(|_| page(&pool)).collect();
    let lost = |lease: &&Lease| lease.bytes().iter().any(|byte| *byte != 7);
    assert_eq!(all.iter().filter(lost).count(), PAGES_PER_SLAB);
    assert!(pool.pin(3).is_some());
}

#[test]
fn fabrics_hear_of_slabs_that_rest() {
    let pool = used();
    let before = pool.idle_epoch();
    pool.mark_idle(Duration::from_secs(3600));
    assert_eq!(pool.idle_epoch(), before);
    pool.mark_idle(NOW);
    assert_ne!(pool.idle_epoch(), before);
    assert_eq!((0..9).filter(|slab| pool.is_idle(*slab)).count(), SLABS - 1);
}

#[test]
fn tending_does_all_of_it_in_time() {
    let options = PoolOptions {
        idle_release: Duration::from_millis(20),
        huge_pages: false,
        ..PoolOptions::new((SLABS * SLAB_BYTES) as u64)
    };
    let pool = Pool::with_options(options).unwrap();
    drop(
        (0..SLABS * PAGES_PER_SLAB)
            .map(|_| page(&pool))
            .collect::<Vec<_>>(),
    );
    while pool.counters().slabs_released < SLABS as u64 - 1 {
        pool.release_idle();
        std::thread::yield_now();
    }
    assert_eq!(
        pool.counters().idle_bytes,
        ((SLABS - 1) * SLAB_BYTES) as u64
    );
}

#[test]
fn a_pool_that_keeps_everything_seals_its_slabs() {
    let pool = Pool::new((SLABS * SLAB_BYTES) as u64).unwrap();
    drop(page(&pool));
    pool.release_idle();
    let seals = rustix::fs::fcntl_get_seals(pool.slab(0).unwrap().fd()).unwrap();
    assert!(seals.contains(rustix::fs::SealFlags::FUTURE_WRITE));
}
