//! Counts the pages that each purpose holds. The hard cap and the reserve are checked in one atomic
//! word.
//!
//! A page is counted here *before* a thread looks for it, and uncounted *after* it is listed as
//! free again. So a thread that was admitted knows that there is a free page for it: at every
//! moment the pages off the lists are at most as many as the admissions, and one of these
//! admissions is its own.
//!
//! The reserve prevents a deadlock. If readers could hold all pages, two executors could each fill
//! their arena with leases that wait for the other's bytes, and neither would have a page to answer
//! with. Readers therefore stop at `limit − reserve`; serving may take all free pages. Reading
//! needs no reserve: a reply goes into leases that its reader already holds, so serving always
//! ends.
//!
//! Both counts are in one word, so that one compare-exchange checks both bounds. Two counters would
//! need a lock, or could overshoot.

use crate::Purpose;
use crossbeam_utils::CachePadded;
use faro_sync::atomic::{AtomicU64, Ordering};
// No model lowers the bounds, and each load that loom knows of would add interleavings.
use std::sync::atomic::AtomicU32;

/// One page in the count of `Purpose::Serve`.
const SERVE_ONE: u64 = 1 << 32;

/// Returns the pages that readers may not take: an eighth of all, and at least one slab.
pub(crate) fn reserve_pages(slabs: u32, pages_per_slab: u32) -> u32 {
    (slabs * pages_per_slab / 8).max(pages_per_slab)
}

/// Pages that each purpose holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldPages {
    /// Pages held by `Purpose::Read`.
    pub read: u32,
    /// Pages held by `Purpose::Serve`.
    pub serve: u32,
}

impl HeldPages {
    fn of(word: u64) -> Self {
        Self {
            read: word as u32,
            serve: (word >> 32) as u32,
        }
    }

    pub fn total(self) -> u32 {
        self.read + self.serve
    }
}

/// The bound that a refused admission met, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionRefused {
    /// Number of pages that count against the bound.
    pub held: u32,
    /// The bound, in pages.
    pub limit: u32,
}

/// The two counts and their bounds.
pub(crate) struct PageAdmission {
    /// Bits 0..32 count the pages held for reading, ≤ `read_limit`; bits 32..64 those held for
    /// serving. Their sum is ≤ `limit`.
    held: CachePadded<AtomicU64>,
    /// Number of pages of the whole arena. It is only ever lowered.
    limit: AtomicU32,
    /// Maximum number of pages that readers may hold: `limit` minus the reserve.
    read_limit: AtomicU32,
}

impl PageAdmission {
    pub(crate) fn new(limit: u32, reserve: u32) -> Self {
        Self {
            held: CachePadded::new(AtomicU64::new(0)),
            limit: AtomicU32::new(limit),
            read_limit: AtomicU32::new(limit.saturating_sub(reserve)),
        }
    }

    /// Returns the number of pages of the arena.
    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Returns the number of pages that readers may hold.
    pub(crate) fn read_limit(&self) -> u32 {
        self.read_limit.load(Ordering::Relaxed)
    }

    /// Lowers the bounds; more pages than these may be held until they return.
    pub(crate) fn lower(&self, limit: u32, reserve: u32) {
        self.read_limit
            .fetch_min(limit.saturating_sub(reserve), Ordering::Relaxed);
        self.limit.fetch_min(limit, Ordering::Relaxed);
    }

    fn one(purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Read => 1,
            Purpose::Serve => SERVE_ONE,
        }
    }

    /// Counts `pages` more pages, all or none.
    ///
    /// # Errors
    /// Returns the bound that forbids it.
    pub(crate) fn enter_many(&self, purpose: Purpose, pages: u32) -> Result<(), AdmissionRefused> {
        let mut word = self.held.load(Ordering::Relaxed);
        loop {
            let held = HeldPages::of(word);
            let (limit, read_limit) = (self.limit(), self.read_limit());
            if purpose == Purpose::Read && pages > read_limit.saturating_sub(held.read) {
                return Err(AdmissionRefused {
                    held: held.read,
                    limit: read_limit,
                });
            }
            if pages > limit.saturating_sub(held.total()) {
                return Err(AdmissionRefused {
                    held: held.total(),
                    limit,
                });
            }
            // Acquire pairs with the release in `leave`: the page that made room is listed.
            match self.held.compare_exchange_weak(
                word,
                word + Self::one(purpose) * u64::from(pages),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    /// Uncounts a page that is listed again, or was never found.
    pub(crate) fn leave(&self, purpose: Purpose) {
        self.leave_many(purpose, 1);
    }

    /// Uncounts `pages` pages.
    pub(crate) fn leave_many(&self, purpose: Purpose, pages: u32) {
        let gone = Self::one(purpose) * u64::from(pages);
        let before = self.held.fetch_sub(gone, Ordering::AcqRel);
        debug_assert!(
            match purpose {
                Purpose::Read => HeldPages::of(before).read >= pages,
                Purpose::Serve => HeldPages::of(before).serve >= pages,
            },
            "a page left that never entered"
        );
    }

    pub(crate) fn held(&self) -> HeldPages {
        HeldPages::of(self.held.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn reading_stops_at_the_reserve_and_serving_does_not() {
        let admission = PageAdmission::new(4, 1);
        for _ in 0..3 {
            admission.enter_many(Purpose::Read, 1).unwrap();
        }
        assert_eq!(
            admission.enter_many(Purpose::Read, 1),
            Err(AdmissionRefused { held: 3, limit: 3 })
        );
        admission.enter_many(Purpose::Serve, 1).unwrap();
        assert_eq!(
            admission.enter_many(Purpose::Serve, 1),
            Err(AdmissionRefused { held: 4, limit: 4 })
        );
        assert_eq!(admission.held(), HeldPages { read: 3, serve: 1 });
    }

    #[test]
    fn serving_may_take_what_reading_left() {
        let admission = PageAdmission::new(4, 1);
        for _ in 0..4 {
            admission.enter_many(Purpose::Serve, 1).unwrap();
        }
        assert_eq!(
            admission.enter_many(Purpose::Read, 1),
            Err(AdmissionRefused { held: 4, limit: 4 })
        );
        admission.leave(Purpose::Serve);
        admission.enter_many(Purpose::Read, 1).unwrap();
    }

    #[test]
    fn many_enter_together_or_not_at_all() {
        let admission = PageAdmission::new(4, 1);
        assert_eq!(
            admission.enter_many(Purpose::Read, 4),
            Err(AdmissionRefused { held: 0, limit: 3 })
        );
        admission.enter_many(Purpose::Read, 3).unwrap();
        admission.enter_many(Purpose::Read, 1).unwrap_err();
        admission.leave_many(Purpose::Read, 3);
        assert_eq!(admission.held().total(), 0);
    }
}
