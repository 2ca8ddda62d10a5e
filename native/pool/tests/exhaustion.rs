//! Tests the pool at its bounds: sizes, the cap, the reserve, waiting, listeners.

use faro_pool::{
    Lease, Pool, PoolError, Purpose, MAX_LIMIT_BYTES, MIN_LIMIT_BYTES, PAGE_BYTES, SIZE_CLASSES,
    SLAB_BYTES,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

const PAGES_PER_SLAB: usize = SLAB_BYTES / PAGE_BYTES;

fn far() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

/// Leases pages until the pool refuses.
fn fill(pool: &Arc<Pool>, purpose: Purpose) -> (Vec<Lease>, PoolError) {
    let mut leases = Vec::new();
    loop {
        match pool.try_lease(PAGE_BYTES, purpose) {
            Ok(lease) => leases.push(lease),
            Err(error) => return (leases, error),
        }
    }
}

#[test]
fn limits_out_of_range_are_named() {
    assert_eq!(
        Pool::new(MIN_LIMIT_BYTES - 1).unwrap_err(),
        PoolError::LimitTooSmall {
            got: MIN_LIMIT_BYTES - 1,
            min: MIN_LIMIT_BYTES
        }
    );
    assert_eq!(
        Pool::new(u64::MAX).unwrap_err(),
        PoolError::LimitTooLarge {
            got: u64::MAX,
            max: MAX_LIMIT_BYTES
        }
    );
    let rounded = Pool::new(MIN_LIMIT_BYTES + SLAB_BYTES as u64 - 1).unwrap();
    assert_eq!(rounded.counters().limit_bytes, MIN_LIMIT_BYTES);
}

#[test]
fn sizes_out_of_range_are_named() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    for got in [0, PAGE_BYTES + 1, usize::MAX] {
        let refused = PoolError::BadSize {
            got,
            max: PAGE_BYTES,
        };
        assert_eq!(pool.try_lease(got, Purpose::Read).unwrap_err(), refused);
        assert_eq!(
            pool.lease_before(got, Purpose::Serve, far()).unwrap_err(),
            refused
        );
    }
    assert_eq!(pool.counters().mapped_bytes, 0, "nothing was mapped for it");
}

#[test]
fn every_size_gets_the_smallest_class_that_holds_it() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let mut below = 0;
    for class in SIZE_CLASSES {
        for bytes in [below + 1, class - 1, class] {
            let lease = pool.try_lease(bytes, Purpose::Read).unwrap();
            assert_eq!(lease.capacity(), class, "{bytes} bytes");
            assert_eq!(lease.bytes().len(), class);
            assert_eq!(lease.offset() as usize % class, 0, "aligned to its size");
        }
        below = class;
    }
}

#[test]
fn a_lease_lies_where_it_says() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    for bytes in SIZE_CLASSES {
        let _other = pool.try_lease(bytes, Purpose::Serve).unwrap();
        let mut lease = pool.try_lease(bytes, Purpose::Serve).unwrap();
        let slab = pool.slab(lease.slab()).unwrap();
        assert_eq!(slab.index(), lease.slab());
        let base = slab.base().as_ptr() as usize;
        assert_eq!(
            lease.bytes_mut().as_ptr() as usize,
            base + lease.offset() as usize
        );
        assert!(lease.offset() as usize + lease.capacity() <= slab.bytes());
    }
    assert!(pool.slab(1).is_none(), "not mapped yet");
    assert!(pool.slab(u32::MAX).is_none(), "beyond the limit");
}

#[test]
fn contains_is_exact_at_the_edges_and_never_overflows() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let lease = pool.try_lease(4096, Purpose::Read).unwrap();
    assert!(lease.contains(0, 4096) && lease.contains(4096, 0) && lease.contains(4095, 1));
    assert!(!lease.contains(0, 4097) && !lease.contains(4096, 1) && !lease.contains(4097, 0));
    assert!(!lease.contains(u64::MAX, 1) && !lease.contains(1, u64::MAX));
}

#[test]
fn readers_leave_the_reserve_to_owners() {
    // With two slabs the reserve is one slab; with sixteen it is an eighth, two slabs.
    for (slabs, reserve) in [(2, 1), (16, 2)] {
        let pool = Pool::new((slabs * SLAB_BYTES) as u64).unwrap();
        let (readers, refused) = fill(&pool, Purpose::Read);
        let share = (slabs - reserve) * SLAB_BYTES;
        assert_eq!(readers.len(), (slabs - reserve) * PAGES_PER_SLAB);
        assert_eq!(
            refused,
            PoolError::Exhausted {
                purpose: Purpose::Read,
                held: share as u64,
                limit: share as u64
            }
        );
        let (owners, refused) = fill(&pool, Purpose::Serve);
        assert_eq!(owners.len(), reserve * PAGES_PER_SLAB);
        let all = (slabs * SLAB_BYTES) as u64;
        assert_eq!(
            refused,
            PoolError::Exhausted {
                purpose: Purpose::Serve,
                held: all,
                limit: all
            }
        );
        let counters = pool.counters();
        assert_eq!(counters.mapped_bytes, all);
        assert_eq!(counters.leased_bytes, all);
        assert_eq!(counters.high_water_bytes, all);
        assert_eq!(counters.slabs_mapped, slabs as u64);
        assert_eq!(counters.exhausted, 2);
        assert_eq!(counters.reuse_hits, 0);
    }
}

#[test]
fn owners_may_take_what_is_free_and_readers_get_it_back() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let (owners, _) = fill(&pool, Purpose::Serve);
    assert_eq!(owners.len(), 2 * PAGES_PER_SLAB);
    assert!(matches!(
        pool.try_lease(1, Purpose::Read),
        Err(PoolError::Exhausted { purpose: Purpose::Read, held, limit }) if held == limit
    ));
    drop(owners);
    assert_eq!(fill(&pool, Purpose::Read).0.len(), PAGES_PER_SLAB);
    assert_eq!(pool.counters().slabs_mapped, 2, "no slab was mapped twice");
}

#[test]
fn small_leases_cannot_eat_the_reserve_either() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let mut small: Vec<_> =
        std::iter::from_fn(|| pool.try_lease(4096, Purpose::Read).ok()).collect();
    assert_eq!(small.len(), PAGES_PER_SLAB * 64);
    // One small lease is left in each page: the worst possible scatter.
    small.sort_by_key(|lease| (lease.slab(), lease.offset()));
    let scattered: Vec<_> = small
        .into_iter()
        .enumerate()
        .filter(|(i, _)| i % 64 == 0)
        .map(|(_, l)| l)
        .collect();
    assert_eq!(scattered.len(), PAGES_PER_SLAB);
    let counters = pool.counters();
    assert_eq!(counters.held_bytes, SLAB_BYTES as u64);
    assert_eq!(counters.leased_bytes, (PAGES_PER_SLAB * 4096) as u64);
    assert_eq!(fill(&pool, Purpose::Serve).0.len(), PAGES_PER_SLAB);
}

#[test]
fn a_cut_page_is_joined_when_its_last_buffer_returns() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    for class in &SIZE_CLASSES[..SIZE_CLASSES.len() - 1] {
        let buffers: Vec<_> = (0..PAGES_PER_SLAB * PAGE_BYTES / class)
            .map(|_| pool.try_lease(*class, Purpose::Read).unwrap())
            .collect();
        assert!(pool.try_lease(*class, Purpose::Read).is_err());
        drop(buffers);
        assert_eq!(pool.counters().held_bytes, 0);
    }
    assert_eq!(fill(&pool, Purpose::Read).0.len(), PAGES_PER_SLAB);
}

#[test]
fn recycled_bytes_are_not_cleared_and_new_ones_are_zero() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let mut lease = pool.try_lease(PAGE_BYTES, Purpose::Read).unwrap();
    assert!(lease.bytes().iter().all(|byte| *byte == 0));
    lease.bytes_mut().fill(0xa5);
    let allocation = (lease.slab(), lease.offset());
    drop(lease);
    let lease = pool.try_lease(PAGE_BYTES, Purpose::Read).unwrap();
    assert_eq!(
        (lease.slab(), lease.offset()),
        allocation,
        "the hottest page comes first"
    );
    assert!(lease.bytes().iter().all(|byte| *byte == 0xa5));
    assert_eq!(pool.counters().reuse_hits, 1);
}

#[test]
fn a_lease_outlives_every_other_handle_of_its_pool() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let mut lease = pool.try_lease(100, Purpose::Read).unwrap();
    let weak = Arc::downgrade(&pool);
    drop(pool);
    lease.bytes_mut().fill(7);
    assert!(lease.bytes().iter().all(|byte| *byte == 7));
    assert!(weak.upgrade().is_some());
    drop(lease);
    assert!(
        weak.upgrade().is_none(),
        "the last lease takes the pool with it"
    );
}

#[test]
fn an_expired_deadline_is_one_try() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let past = Instant::now();
    let lease = pool.lease_before(1, Purpose::Read, past).unwrap();
    drop(lease);
    let (_leases, _) = fill(&pool, Purpose::Read);
    assert!(matches!(
        pool.lease_before(1, Purpose::Read, past),
        Err(PoolError::Exhausted { .. })
    ));
}

#[test]
fn a_wait_ends_with_its_deadline_and_not_before() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let (_leases, _) = fill(&pool, Purpose::Read);
    let deadline = Instant::now() + Duration::from_millis(30);
    let refused = pool.lease_before(1, Purpose::Read, deadline).unwrap_err();
    assert!(Instant::now() >= deadline);
    assert!(matches!(
        refused,
        PoolError::Exhausted {
            purpose: Purpose::Read,
            ..
        }
    ));
    assert_eq!(pool.counters().waits, 1);
}

#[test]
fn a_waiter_gets_what_another_thread_returns() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    for bytes in SIZE_CLASSES {
        let (mut leases, _) = fill(&pool, Purpose::Read);
        let waits = pool.counters().waits;
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| pool.lease_before(bytes, Purpose::Read, far()));
            // Memory returns only after the thread was refused, so that only an announcement can
            // end its wait.
            while pool.counters().waits == waits {
                std::thread::yield_now();
            }
            leases.pop();
            assert_eq!(waiter.join().unwrap().unwrap().capacity(), bytes);
        });
    }
}

#[test]
fn a_listener_is_called_once_per_burst_of_refusals() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let (calls, counted) = mpsc::channel();
    pool.on_release(Box::new(move || calls.send(()).unwrap()));
    let calls = || counted.try_iter().count();

    for purpose in [Purpose::Read, Purpose::Serve] {
        let (mut leases, _) = fill(&pool, purpose);
        for _ in 0..3 {
            pool.try_lease(1, purpose).unwrap_err();
        }
        assert_eq!(calls(), 0, "nothing has returned yet");
        leases.pop();
        assert_eq!(calls(), 1);
        leases.pop();
        assert_eq!(calls(), 0, "nobody was refused since");
        leases.push(pool.try_lease(1, purpose).unwrap());
        leases.push(pool.try_lease(PAGE_BYTES, purpose).unwrap());
        pool.try_lease(PAGE_BYTES, purpose).unwrap_err();
        drop(leases);
        assert_eq!(calls(), 1, "the refusal armed it again");
    }
}

#[test]
fn a_refusal_of_several_leases_is_no_return_of_memory() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let (calls, counted) = mpsc::channel();
    pool.on_release(Box::new(move || calls.send(()).unwrap()));
    let calls = || counted.try_iter().count();
    let (mut leases, _) = fill(&pool, Purpose::Read);
    leases.truncate(leases.len() - 2);
    assert_eq!(calls(), 1, "the refusal that ended the filling");
    // Two pages are free, so each of these requests could get some of its leases.
    let several: [&[usize]; 4] = [
        &[PAGE_BYTES; 3],
        &[PAGE_BYTES, 3_000, PAGE_BYTES],
        &[3_000, 10_000, 60_000],
        &[60_000, PAGE_BYTES, 10_000],
    ];
    for _ in 0..3 {
        for wanted in several {
            pool.try_lease_each(wanted, Purpose::Read).unwrap_err();
        }
    }
    assert_eq!(calls(), 0, "nothing has returned");
    assert_eq!(
        pool.counters().leased_bytes,
        (leases.len() * PAGE_BYTES) as u64
    );
    leases.pop();
    assert_eq!(calls(), 1);
    for wanted in several {
        let got = pool.try_lease_each(wanted, Purpose::Read).unwrap();
        let sizes = got.iter().zip(wanted);
        assert!(sizes
            .into_iter()
            .all(|(lease, bytes)| lease.capacity() >= *bytes));
        assert_eq!(got.len(), wanted.len());
    }
}

#[test]
fn a_listener_may_lease_and_return() {
    let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
    let got = Arc::new(AtomicU32::new(0));
    let (weak, seen) = (Arc::downgrade(&pool), Arc::clone(&got));
    pool.on_release(Box::new(move || {
        let pool = weak.upgrade().unwrap();
        if pool.try_lease(PAGE_BYTES, Purpose::Read).is_ok() {
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let (mut leases, _) = fill(&pool, Purpose::Read);
    leases.pop();
    assert_eq!(got.load(Ordering::Relaxed), 1);
}

#[test]
fn a_slab_that_no_device_registers_is_leased_no_more() {
    let pool = Pool::new(4 * SLAB_BYTES as u64).unwrap();
    let slab = |at: u64| at * SLAB_BYTES as u64;
    let (mut leases, _) = fill(&pool, Purpose::Serve);
    assert_eq!(leases.len(), 4 * PAGES_PER_SLAB);
    // Two pages of the third slab stay.
    leases.retain(|lease| lease.slab() == 2);
    leases.truncate(2);
    let others = fill(&pool, Purpose::Serve).0;
    assert!(pool.bar(3) && pool.bar(2));
    assert!(!pool.bar(1), "reading and serving need a slab each");
    assert_eq!(pool.share_bytes(Purpose::Serve), slab(2));
    assert_eq!(pool.share_bytes(Purpose::Read), slab(1));
    assert_eq!(pool.reach_bytes(), slab(2));
    pool.try_lease(PAGE_BYTES, Purpose::Serve).unwrap_err();
    drop(others);
    // The two pages that are still leased count, until they return.
    let (again, refused) = fill(&pool, Purpose::Serve);
    assert_eq!(again.len(), 2 * PAGES_PER_SLAB - 2);
    assert!(again.iter().all(|lease| lease.slab() < 2));
    assert!(
        matches!(refused, PoolError::Exhausted { limit, .. } if limit == slab(2)),
        "{refused}"
    );
    drop(leases);
    let (more, _) = fill(&pool, Purpose::Serve);
    assert_eq!(more.len(), 2);
    assert!(more.iter().all(|lease| lease.slab() < 2));
}

#[test]
fn small_buffers_of_a_slab_that_no_device_registers_are_leased_no_more() {
    let pool = Pool::new(3 * SLAB_BYTES as u64).unwrap();
    let mut pages = fill(&pool, Purpose::Serve).0;
    let last = pages.iter().position(|lease| lease.slab() == 2).unwrap();
    drop(pages.swap_remove(last));
    let small = pool.try_lease(SIZE_CLASSES[0], Purpose::Serve).unwrap();
    assert_eq!(small.slab(), 2);
    assert!(pool.bar(2));
    pool.try_lease(SIZE_CLASSES[0], Purpose::Serve).unwrap_err();
    drop(pages);
    let other = pool.try_lease(SIZE_CLASSES[0], Purpose::Serve).unwrap();
    assert!(other.slab() < 2);
}
