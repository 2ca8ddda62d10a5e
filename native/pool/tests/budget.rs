//! Several pools that share their memory.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

use faro_pool::{Budget, Lease, Pool, PoolError, Purpose, MIN_LIMIT_BYTES, PAGE_BYTES, SLAB_BYTES};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

const SLAB: u64 = SLAB_BYTES as u64;
const PAGES_PER_SLAB: usize = SLAB_BYTES / PAGE_BYTES;

/// Two pools with two slabs of their own each, and `shared` more.
fn two(shared: u64) -> (Arc<Budget>, Arc<Pool>, Arc<Pool>) {
    let budget = Budget::new(2 * MIN_LIMIT_BYTES + shared * SLAB, 2).unwrap();
    let pool = || Pool::in_budget(&budget, Duration::from_secs(60)).unwrap();
    let (a, b) = (pool(), pool());
    (budget, a, b)
}

/// Leases pages until that is refused.
fn fill(pool: &Arc<Pool>, purpose: Purpose) -> Vec<Lease> {
    std::iter::from_fn(|| pool.try_lease(PAGE_BYTES, purpose).ok()).collect()
}

#[test]
fn a_pool_that_has_all_it_may_leaves_the_other_its_own_and_more() {
    let (budget, a, b) = two(8);
    assert_eq!(a.share_bytes(Purpose::Serve), 6 * SLAB);
    let of_a = fill(&a, Purpose::Serve);
    assert_eq!(of_a.len(), 6 * PAGES_PER_SLAB);
    assert_eq!(b.reach_bytes(), 4 * SLAB);
    let of_b = fill(&b, Purpose::Serve);
    assert_eq!(of_b.len(), 4 * PAGES_PER_SLAB);
    let mapped = a.counters().mapped_bytes + b.counters().mapped_bytes;
    assert_eq!((budget.held_bytes(), mapped), (10 * SLAB, 10 * SLAB));
    assert!(budget.held_bytes() <= budget.limit_bytes());
    // Refused for want of memory of all pools, it names its own whole limit: the arena is full, so
    // that caches give pages back.
    let refused = b.try_lease(PAGE_BYTES, Purpose::Serve).unwrap_err();
    let PoolError::Exhausted { held, limit, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(limit, 6 * SLAB);
    assert!(held >= 4 * SLAB, "{held}");
}

#[test]
fn what_one_pool_gives_back_another_hears_of_and_takes() {
    let (budget, a, b) = two(4);
    let rings = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&rings);
    b.on_release(Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
    }));
    let of_a = fill(&a, Purpose::Serve);
    let of_b = fill(&b, Purpose::Serve);
    assert_eq!(of_b.len(), 3 * PAGES_PER_SLAB);
    // A refusal because of other pools' memory announces nothing, or it would wake itself again and again.
    assert!(b.try_lease_each(&[PAGE_BYTES; 3], Purpose::Serve).is_err());
    assert_eq!(rings.load(Ordering::Relaxed), 0);
    drop(of_a);
    assert_eq!(a.mark_idle(Duration::ZERO), 3);
    assert_eq!(a.release_idle_pages(u32::MAX), 3);
    assert_eq!(rings.load(Ordering::Relaxed), 1);
    assert_eq!(budget.held_bytes(), 4 * SLAB);
    assert_eq!(fill(&b, Purpose::Serve).len(), PAGES_PER_SLAB);
    // And back: idle slabs are used again, and counted again.
    drop(of_b);
    b.mark_idle(Duration::ZERO);
    b.release_idle_pages(u32::MAX);
    assert_eq!(fill(&a, Purpose::Serve).len(), 4 * PAGES_PER_SLAB);
    assert!(budget.held_bytes() <= budget.limit_bytes());
}

#[test]
fn a_pool_that_ends_gives_all_back_and_another_may_come() {
    let (budget, a, b) = two(4);
    let more = || Pool::in_budget(&budget, Duration::ZERO);
    assert!(matches!(more(), Err(PoolError::TooManyPools { max: 2 })));
    let of_a = fill(&a, Purpose::Serve);
    drop(a);
    assert!(budget.held_bytes() > 0, "leases keep the pool");
    drop(of_a);
    assert_eq!(budget.held_bytes(), 0);
    assert_eq!(more().unwrap().reach_bytes(), 4 * SLAB);
    drop(b);
}

#[test]
fn reading_leaves_a_slab_of_the_own_part_to_serving() {
    let (_budget, a, b) = two(0);
    let reads = fill(&a, Purpose::Read);
    assert_eq!(reads.len(), PAGES_PER_SLAB);
    assert_eq!(fill(&a, Purpose::Serve).len(), PAGES_PER_SLAB);
    assert_eq!(fill(&b, Purpose::Serve).len(), 2 * PAGES_PER_SLAB);
}

#[test]
fn external_memory_counts_too() {
    let (budget, a, _b) = two(2);
    let lease = a.allocate_lazily(SLAB_BYTES).unwrap();
    assert_eq!(budget.held_bytes(), SLAB);
    let rest = fill(&a, Purpose::Serve);
    assert_eq!(rest.len(), 2 * PAGES_PER_SLAB);
    assert_eq!(budget.held_bytes(), 3 * SLAB);
    drop(lease);
    assert_eq!(budget.held_bytes(), 2 * SLAB);
}
