//! Compares random histories of leases and returns with an oracle: a list of byte ranges.

use faro_pool::{
    Lease, Pool, PoolError, PoolOptions, Purpose, PAGE_BYTES, SIZE_CLASSES, SLAB_BYTES,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const SLABS: usize = 3;
const PAGES: usize = SLABS * SLAB_BYTES / PAGE_BYTES;
/// The reserve is one slab, because a slab is more than an eighth of three.
const READ_PAGES: usize = PAGES - SLAB_BYTES / PAGE_BYTES;

#[derive(Debug, Clone)]
enum Step {
    /// Takes a number of leases of a number of bytes each.
    Lease(usize, Purpose, usize),
    /// Returns leases that the indices pick.
    Return(Vec<prop::sample::Index>),
    /// Returns everything of one purpose.
    ReturnAll(Purpose),
    /// Marks slabs as idle, and releases the pages of some of them.
    Idle(u32),
}

fn purpose() -> impl Strategy<Value = Purpose> {
    prop_oneof![Just(Purpose::Read), Just(Purpose::Serve)]
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![
        1..=PAGE_BYTES,
        1..=SIZE_CLASSES[0],
        prop::sample::select(&SIZE_CLASSES[..]),
        Just(PAGE_BYTES),
    ];
    prop_oneof![
        6 => (bytes, purpose(), 1_usize..60).prop_map(|(b, p, n)| Step::Lease(b, p, n)),
        4 => prop::collection::vec(any::<prop::sample::Index>(), 1..60).prop_map(Step::Return),
        1 => purpose().prop_map(Step::ReturnAll),
        2 => (0_u32..3).prop_map(Step::Idle),
    ]
}

/// Computes the expected state from the live leases only.
#[derive(Default)]
struct Oracle {
    live: Vec<(Purpose, Lease)>,
    /// The start and the end of every live lease.
    ranges: BTreeMap<u64, u64>,
}

fn range(lease: &Lease) -> (u64, u64) {
    let start = u64::from(lease.slab()) * SLAB_BYTES as u64 + u64::from(lease.offset());
    (start, start + lease.capacity() as u64)
}

impl Oracle {
    fn add(&mut self, purpose: Purpose, mut lease: Lease) {
        let start = range(&lease).0;
        lease.bytes_mut()[..8].copy_from_slice(&start.to_le_bytes());
        let (start, end) = range(&lease);
        assert!(
            end <= (SLABS * SLAB_BYTES) as u64,
            "{lease:?} lies beyond the cap"
        );
        let below = self.ranges.range(..end).next_back();
        assert!(
            below.is_none_or(|(_, below_end)| *below_end <= start),
            "{lease:?} overlaps {below:?}"
        );
        self.ranges.insert(start, end);
        self.live.push((purpose, lease));
    }

    fn remove(&mut self, position: usize) {
        let (_, lease) = self.live.swap_remove(position);
        self.ranges.remove(&range(&lease).0);
    }

    /// Returns the pages with a live lease of `purpose`, of one class if it is given.
    fn pages(&self, purpose: Purpose, class: Option<usize>) -> BTreeMap<u64, usize> {
        let mut pages = BTreeMap::new();
        for (of, lease) in &self.live {
            if *of == purpose && class.is_none_or(|class| class == lease.capacity()) {
                *pages.entry(range(lease).0 / PAGE_BYTES as u64).or_insert(0) += 1;
            }
        }
        pages
    }

    /// Returns whether a lease of that class must succeed: a buffer is free in a page that is split
    /// for it, or the purpose may take one more page.
    fn must_succeed(&self, purpose: Purpose, class: usize) -> bool {
        let read = self.pages(Purpose::Read, None).len();
        let serve = self.pages(Purpose::Serve, None).len();
        let buffers = PAGE_BYTES / class;
        let buffer_free = self
            .pages(purpose, Some(class))
            .values()
            .any(|used| *used < buffers);
        let frame_free = read + serve < PAGES && (purpose == Purpose::Serve || read < READ_PAGES);
        buffer_free || frame_free
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_histories_agree_with_the_oracle(steps in prop::collection::vec(step(), 1..40)) {
        // Idle slabs rest when a step says so, and at no other time.
        let pool = Pool::with_options(PoolOptions {
            idle_release: Duration::from_secs(3600),
            huge_pages: false,
            ..PoolOptions::new((SLABS * SLAB_BYTES) as u64)
        })
        .unwrap();
        let mut oracle = Oracle::default();
        for step in steps {
            match step {
                Step::Lease(bytes, purpose, count) => {
                    let class = SIZE_CLASSES.into_iter().find(|class| *class >= bytes).unwrap();
                    for _ in 0..count {
                        let expected = oracle.must_succeed(purpose, class);
                        match pool.try_lease(bytes, purpose) {
                            Ok(lease) => {
                                prop_assert!(expected, "{purpose:?} {bytes} was given");
                                prop_assert_eq!(lease.capacity(), class);
                                oracle.add(purpose, lease);
                            }
                            Err(PoolError::Exhausted { .. }) => {
                                prop_assert!(!expected, "{purpose:?} {bytes} was refused");
                                break;
                            }
                            Err(error) => prop_assert!(false, "{error}"),
                        }
                    }
                }
                Step::Return(picks) => {
                    for pick in picks {
                        if !oracle.live.is_empty() {
                            oracle.remove(pick.index(oracle.live.len()));
                        }
                    }
                }
                Step::Idle(empty) => {
                    pool.mark_idle(Duration::ZERO);
                    pool.release_idle_pages(empty);
                }
                Step::ReturnAll(purpose) => {
                    while let Some(at) = oracle.live.iter().position(|(p, _)| *p == purpose) {
                        oracle.remove(at);
                    }
                }
            }
            let counters = pool.counters();
            let leased: u64 = oracle.ranges.iter().map(|(start, end)| end - start).sum();
            let read = oracle.pages(Purpose::Read, None);
            let serve = oracle.pages(Purpose::Serve, None);
            prop_assert!(read.keys().all(|page| !serve.contains_key(page)));
            prop_assert!(read.len() <= READ_PAGES);
            prop_assert_eq!(counters.leased_bytes, leased);
            prop_assert_eq!(
                counters.held_bytes,
                ((read.len() + serve.len()) * PAGE_BYTES) as u64
            );
            prop_assert!(counters.mapped_bytes <= counters.limit_bytes);
            for (_, lease) in &oracle.live {
                prop_assert!(!pool.is_idle(lease.slab()), "{lease:?} rests");
                // Bytes of a lease stay whatever rests; see `add`.
                prop_assert_eq!(&lease.bytes()[..8], range(lease).0.to_le_bytes());
            }
            prop_assert!(counters.high_water_bytes <= counters.limit_bytes);
        }
        oracle.live.clear();
        prop_assert_eq!(pool.counters().held_bytes, 0);
        let all: Vec<_> =
            std::iter::from_fn(|| pool.try_lease(PAGE_BYTES, Purpose::Serve).ok()).collect();
        prop_assert_eq!(all.len(), PAGES);
    }
}
