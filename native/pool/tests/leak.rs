//! Ten thousand cycles of each kind of memory must leave nothing: no descriptor, no mapping, no
//! byte of the cap. It is one test, so that nothing else in this process changes meanwhile.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_pool::{Pool, PoolOptions, Purpose, PAGE_BYTES, SLAB_BYTES};
use std::sync::Arc;
use std::time::Duration;

const CYCLES: usize = 10_000;
/// Maximum growth of the heap, far less than a page for each cycle.
const HEAP_PAGES: u64 = 256;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns the number of mapped pages. The number of lines would depend on how the kernel joins
/// mappings.
fn mapped() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().next().unwrap().parse().unwrap()
}

fn pool() -> Arc<Pool> {
    let options = PoolOptions {
        idle_release: Duration::from_secs(3600),
        // Huge pages are never released.
        huge_pages: false,
        ..PoolOptions::new(4 * SLAB_BYTES as u64)
    };
    Pool::with_options(options).unwrap()
}

#[test]
fn ten_thousand_lives_leave_nothing() {
    let pool = pool();
    let cycle = |at: usize| {
        let mut lease = pool.try_lease(1 + at % PAGE_BYTES, Purpose::Read).unwrap();
        lease.bytes_mut()[0] = 1;
        let other = pool.try_lease(PAGE_BYTES, Purpose::Serve).unwrap();
        let mut outside = pool.allocate_lazily(1 + at * 7 % SLAB_BYTES).unwrap();
        outside.bytes_mut()[0] = 1;
        let memory = outside.external().unwrap();
        memory.attach(0, Box::new(pool.count_registration(1, Duration::ZERO)));
        let pin = pool.pin(0).unwrap();
        drop((lease, other, outside, pin));
        if at % 16 == 0 {
            // Both slabs that the cycles need become active again.
            let all: Vec<_> = (0..SLAB_BYTES / PAGE_BYTES + 1)
                .map(|_| pool.try_lease(PAGE_BYTES, Purpose::Serve).unwrap())
                .collect();
            drop(all);
            pool.mark_idle(Duration::ZERO);
            pool.release_idle_pages(u32::MAX);
        }
    };
    (0..32).for_each(cycle);
    let (files, pages, before) = (descriptors(), mapped(), pool.counters());
    (0..CYCLES).for_each(cycle);
    let after = pool.counters();
    assert_eq!(descriptors(), files);
    assert!(mapped() <= pages + HEAP_PAGES, "{} from {pages}", mapped());
    assert_eq!((after.held_bytes, after.leased_bytes), (0, 0));
    assert_eq!((after.external_bytes, after.registered_bytes), (0, 0));
    assert_eq!(after.registrations - before.registrations, CYCLES as u64);
    assert_eq!(after.deregistrations, after.registrations);
    assert_eq!(after.slabs_mapped, before.slabs_mapped);
    assert!(after.slabs_released >= before.slabs_released + CYCLES as u64 / 16);
    drop(pool);

    // Pools themselves are made a tenth as often, because each maps a slab.
    let (files, pages) = (descriptors(), mapped());
    for _ in 0..CYCLES / 10 {
        let pool = self::pool();
        drop(pool.try_lease(1, Purpose::Read).unwrap());
    }
    assert_eq!(descriptors(), files);
    assert!(mapped() <= pages + HEAP_PAGES, "{} from {pages}", mapped());
}
