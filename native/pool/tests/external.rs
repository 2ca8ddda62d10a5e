//! Tests memory outside the slabs: how it counts, when it is cleaned up, and that nothing is left.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_pool::{
    Lease, Pool, PoolError, Purpose, WrapRefused, MAX_EXTERNAL_BYTES, PAGE_BYTES, SLAB_BYTES,
};
use std::ptr::NonNull;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;

const SLABS: usize = 4;

fn pool() -> Arc<Pool> {
    Pool::new((SLABS * SLAB_BYTES) as u64).unwrap()
}

/// Wraps a box of this test; its clean-up sends a message on `gone`.
fn wrap(pool: &Arc<Pool>, bytes: usize, gone: &Sender<&'static str>) -> Result<Lease, WrapRefused> {
    let mut owned = vec![3_u8; bytes.max(1)].into_boxed_slice();
    let start = NonNull::new(owned.as_mut_ptr()).unwrap();
    let gone = gone.clone();
    let clean_up = Box::new(move || {
        drop(owned);
        gone.send("memory").unwrap();
    });
    // SAFETY: the box is valid, initialised and owned by this test until `clean_up` drops it.
    unsafe { pool.wrap(start, bytes, clean_up) }
}

#[test]
fn attachments_go_before_the_memory_and_then_there_is_room() {
    struct Registered(Sender<&'static str>);
    impl Drop for Registered {
        fn drop(&mut self) {
            self.0.send("registration").unwrap();
        }
    }
    let pool = pool();
    let (gone, told) = channel();
    let mut lease = wrap(&pool, 100_000, &gone).unwrap();
    assert_eq!(lease.capacity(), 100_000);
    assert!(pool.slab(lease.slab()).is_none());
    lease.bytes_mut()[99_999] = 4;
    let memory = lease.external().unwrap();
    memory.attach(1, Box::new(Registered(gone.clone())));
    memory.attach(2, Box::new(()));
    assert!(memory.detach(2).is_some() && memory.detach(2).is_none());
    let counters = pool.counters();
    assert_eq!(counters.external_bytes, 100_000);
    assert_eq!(counters.leased_bytes, 100_000);
    assert_eq!(counters.held_bytes, SLAB_BYTES as u64);
    assert_eq!(counters.fragmentation_bytes(), SLAB_BYTES as u64 - 100_000);
    drop(lease);
    assert_eq!(
        told.try_iter().collect::<Vec<_>>(),
        ["registration", "memory"]
    );
    let counters = pool.counters();
    assert_eq!((counters.external_bytes, counters.held_bytes), (0, 0));
}

#[test]
fn lengths_that_cannot_be_are_named() {
    let pool = pool();
    let (gone, told) = channel();
    let refused = |got| PoolError::BadWrap {
        got,
        max: MAX_EXTERNAL_BYTES,
    };
    let WrapRefused { error, clean_up } = wrap(&pool, 0, &gone).unwrap_err();
    assert_eq!(error, refused(0));
    assert!(told.try_recv().is_err(), "the memory is still the caller's");
    clean_up();
    assert_eq!(pool.allocate_lazily(0).unwrap_err(), refused(0));
    let got = MAX_EXTERNAL_BYTES + 1;
    assert_eq!(pool.allocate_lazily(got).unwrap_err(), refused(got));
    assert_eq!(pool.counters().held_bytes, 0);
}

#[test]
fn the_cap_is_looked_at_before_and_the_reserve_is_left() {
    let pool = pool();
    let three = 3 * SLAB_BYTES;
    let lease = pool.allocate_lazily(three).unwrap();
    let more = pool.allocate_lazily(1).unwrap_err();
    assert_eq!(
        more,
        PoolError::NoRoom {
            got: 1,
            held: three as u64,
            limit: three as u64,
            slab: SLAB_BYTES
        }
    );
    let text = more.to_string();
    assert!(
        text.contains("50331648") && text.contains("16777216"),
        "{text}"
    );
    assert!(pool.try_lease(1, Purpose::Read).is_err());
    let reserve: Vec<_> =
        std::iter::from_fn(|| pool.try_lease(PAGE_BYTES, Purpose::Serve).ok()).collect();
    assert_eq!(reserve.len(), SLAB_BYTES / PAGE_BYTES);
    drop(lease);
    assert!(pool.try_lease(1, Purpose::Read).is_ok());
}

#[test]
fn leases_and_outside_memory_share_the_cap() {
    let pool = pool();
    let _small = pool.allocate_lazily(1).unwrap();
    let _within_the_same_slab = pool.allocate_lazily(SLAB_BYTES - 1).unwrap();
    let all: Vec<_> =
        std::iter::from_fn(|| pool.try_lease(PAGE_BYTES, Purpose::Serve).ok()).collect();
    assert_eq!(all.len(), (SLABS - 1) * SLAB_BYTES / PAGE_BYTES);
    assert_eq!(pool.counters().slabs_mapped, SLABS as u64 - 1);
    assert!(pool.allocate_lazily(1).is_err());
}

#[test]
fn idle_slabs_make_room() {
    let pool = pool();
    let all: Vec<_> =
        std::iter::from_fn(|| pool.try_lease(PAGE_BYTES, Purpose::Serve).ok()).collect();
    drop(all);
    assert_eq!(pool.counters().mapped_bytes, (SLABS * SLAB_BYTES) as u64);
    let registered = pool.pin(1).unwrap();
    let two = 2 * SLAB_BYTES;
    let lease = pool.allocate_lazily(two).unwrap();
    assert!(matches!(
        pool.allocate_lazily(SLAB_BYTES),
        Err(PoolError::NoRoom { .. })
    ));
    drop(registered);
    let other = pool.allocate_lazily(SLAB_BYTES).unwrap();
    drop((lease, other));
    let all = std::iter::from_fn(|| pool.try_lease(PAGE_BYTES, Purpose::Serve).ok());
    assert_eq!(
        all.collect::<Vec<_>>().len(),
        SLABS * SLAB_BYTES / PAGE_BYTES
    );
}
