//! The order in which the requests of all fabrics get arena memory: by age.
//!
//! Each progress thread has a line of its own of requests that wait for memory. It publishes the
//! oldest one here, and takes no memory for a request while another thread has published an older
//! one. So free memory accumulates for an old request that needs much, whichever fabric it takes.
//!
//! A thread that is held back is woken when the older request waits no more. It follows Dekker's
//! protocol, with sequentially consistent accesses:
//!
//! ```text
//!   thread that is held back          thread with the older request
//!   1. publishes its own request      1. publishes its next one, or none
//!   2. looks for an older one again   2. looks for the requests that it held back
//! ```
//! One of the two publishes first, and the other one sees that.

use faro_fabric::Waker;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The value for no request. Ids of requests grow with time and do not reach it.
const NONE: u64 = u64::MAX;

/// What one progress thread publishes.
struct ThreadInOrder {
    /// The id of its oldest request that waits for memory.
    first: AtomicU64,
    waker: Waker,
}

/// The place of one progress thread in the order. When it is dropped, it holds no other one back.
pub(crate) struct PlaceInOrder {
    all: Arc<[ThreadInOrder]>,
    own: usize,
}

impl PlaceInOrder {
    /// Returns a place for each of the threads that these wakers wake.
    pub(crate) fn of_each(wakers: impl Iterator<Item = Waker>) -> Vec<Self> {
        let thread = |waker| ThreadInOrder {
            first: AtomicU64::new(NONE),
            waker,
        };
        let all: Arc<[ThreadInOrder]> = wakers.map(thread).collect();
        let place = |own| Self {
            all: Arc::clone(&all),
            own,
        };
        (0..all.len()).map(place).collect()
    }

    fn others(&self) -> impl Iterator<Item = &ThreadInOrder> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(at, thread)| (at != self.own).then_some(thread))
    }

    /// Returns the oldest request that waits on another thread.
    pub(super) fn first_of_others(&self) -> Option<u64> {
        let firsts = self
            .others()
            .map(|other| other.first.load(Ordering::SeqCst));
        firsts.min().filter(|first| *first != NONE)
    }

    /// Returns whether a request that is older than `request` waits on another thread.
    pub(super) fn is_held_back(&self, request: u64) -> bool {
        self.first_of_others().is_some_and(|first| first < request)
    }

    /// Publishes the oldest request that waits on this thread, and wakes the threads that only its
    /// predecessor held back.
    pub(super) fn publish(&self, first: Option<u64>) {
        let (own, first) = (&self.all[self.own].first, first.unwrap_or(NONE));
        // No other thread writes it.
        let before = own.load(Ordering::Relaxed);
        if first == before {
            return;
        }
        own.store(first, Ordering::SeqCst);
        for other in self.others() {
            if (before..first).contains(&other.first.load(Ordering::SeqCst)) {
                (other.waker)();
            }
        }
    }
}

impl Drop for PlaceInOrder {
    fn drop(&mut self) {
        self.publish(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever three threads publish: a thread is woken exactly when a request that held its
        /// first one back waits no more, and nobody is held back when all have been dropped.
        #[test]
        fn who_was_held_back_is_woken(
            steps in prop::collection::vec((0usize..3, prop::option::of(0u64..20)), 1..60)
        ) {
            let woken: Arc<[AtomicU64; 3]> = Arc::default();
            let wakers = (0..3).map(|at| {
                let woken = Arc::clone(&woken);
                Arc::new(move || { woken[at].fetch_add(1, Ordering::Relaxed); }) as Waker
            });
            let places = PlaceInOrder::of_each(wakers);
            let mut firsts = [None; 3];
            for (at, first) in steps {
                let before = firsts[at].unwrap_or(NONE);
                firsts[at] = first;
                places[at].publish(first);
                for (other, waits) in firsts.iter().enumerate() {
                    let is_free = other != at
                        && waits.is_some_and(|own| before <= own && own < first.unwrap_or(NONE));
                    prop_assert_eq!(woken[other].swap(0, Ordering::Relaxed), u64::from(is_free));
                    let oldest = firsts.iter().enumerate().filter(|(n, _)| *n != other);
                    let oldest = oldest.filter_map(|(_, first)| *first).min();
                    prop_assert_eq!(places[other].first_of_others(), oldest);
                }
            }
            let mut places = places.into_iter();
            let last = places.next_back();
            drop(places);
            prop_assert_eq!(last.and_then(|last| last.first_of_others()), None);
        }
    }
}
