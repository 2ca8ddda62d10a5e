//! Decides when slabs become idle, and when their pages are released.
//!
//! The pool has no thread of its own: progress threads call `release_idle` regularly. A slab that
//! had no page in use for `idle_release` becomes idle, the one with the highest index first; one
//! slab always stays. Then fabrics de-register it, and its pages are released, one slab for each
//! call.
//!
//! A slab is idle as a whole or not at all, and free pages are used in turn. So an arena that is
//! steadily in use keeps all its slabs, even if each of them is mostly free. It gives up memory
//! that one phase of a job needed and the next does not.

use crate::arena::Release;
use crate::Pool;
use faro_sync::clock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Minimum and maximum time between two searches for idle slabs. Within these bounds it is a
/// quarter of `idle_release`.
const SWEEPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(10)];

/// The state of this search.
pub(crate) struct IdleSearch {
    /// `PoolOptions::idle_release`. If it is zero, no slab becomes idle.
    after: Duration,
    /// The zero of the arena's clock, which counts milliseconds.
    started: Instant,
    /// Time of the next search, on that clock. The thread that advances it searches.
    next_sweep: AtomicU32,
    /// True if an idle slab may have pages to release.
    release_pending: AtomicBool,
    /// Incremented when slabs become idle.
    epoch: AtomicU32,
}

impl IdleSearch {
    pub(crate) fn new(after: Duration) -> Self {
        Self {
            after,
            started: clock::now(),
            next_sweep: AtomicU32::new(0),
            release_pending: AtomicBool::new(false),
            epoch: AtomicU32::new(0),
        }
    }

    fn now(&self) -> u32 {
        // The clock wraps after 49 days; only differences are used.
        clock::now().duration_since(self.started).as_millis() as u32
    }
}

/// Returns milliseconds, at most half the range of a clock that wraps.
fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).map_or(i32::MAX as u32, |millis| millis.min(i32::MAX as u32))
}

impl Pool {
    /// Marks slabs as idle that were not used for `idle_release`, and releases the pages of at most
    /// one idle slab that no device has registered. Any thread should call it regularly; most calls
    /// only read the clock.
    pub fn release_idle(&self) {
        let idle = &self.idle;
        if idle.after.is_zero() {
            return;
        }
        let now = idle.now();
        self.arena.pages().tick(now);
        let due = idle.next_sweep.load(Ordering::Relaxed);
        let [min, max] = SWEEPS;
        let next = now.wrapping_add(millis((idle.after / 4).clamp(min, max)));
        if now.wrapping_sub(due) <= i32::MAX as u32
            && idle
                .next_sweep
                .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            self.mark_idle(idle.after);
        }
        if idle.release_pending.load(Ordering::Relaxed) {
            self.release_idle_pages(1);
        }
    }

    /// Marks slabs as idle that had no page in use for `age`; at least one stays active. Returns
    /// their number. They keep their pages until `release_idle_pages`.
    pub fn mark_idle(&self, age: Duration) -> u32 {
        let marked = self.arena.pages().mark_idle(self.idle.now(), millis(age));
        if marked > 0 {
            log::debug!("{marked} slabs of the arena are idle");
            // The epoch changes after the slabs are marked, so that a fabric that sees the new
            // epoch sees the marks.
            self.idle.epoch.fetch_add(1, Ordering::Release);
            self.idle.release_pending.store(true, Ordering::Relaxed);
        }
        marked
    }

    /// Releases the pages of up to `max` idle slabs that no device has registered. Returns their
    /// number.
    pub fn release_idle_pages(&self, max: u32) -> u32 {
        let release = |index: u32| {
            let slab = self.slabs[index as usize].get();
            let is_gone = slab.is_some_and(|slab| slab.release());
            if is_gone {
                self.counters.slab_released();
            }
            is_gone
        };
        // The flag is cleared before the search: a slab that becomes idle later sets it again.
        self.idle.release_pending.store(false, Ordering::Relaxed);
        let mut done = 0;
        let mut last = Release::One;
        while done < max && last == Release::One {
            last = self.arena.pages().release_one(&release);
            done += u32::from(last == Release::One);
        }
        if last != Release::All {
            self.idle.release_pending.store(true, Ordering::Relaxed);
        }
        if done > 0 {
            self.announce_to_others();
        }
        done
    }

    /// Returns a number that changes whenever slabs become idle. A fabric looks for idle slabs when
    /// it has changed.
    #[must_use]
    pub fn idle_epoch(&self) -> u32 {
        self.idle.epoch.load(Ordering::Acquire)
    }

    /// Returns whether a slab is idle. A fabric that has it registered should de-register it. The
    /// slab may become active at any time; the fabric then registers it again for its next lease.
    #[must_use]
    pub fn is_idle(&self, index: u32) -> bool {
        self.arena
            .pages()
            .registration_pins(index)
            .is_some_and(|pins| pins.is_idle())
    }
}
