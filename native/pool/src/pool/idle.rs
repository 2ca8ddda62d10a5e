//! When slabs become idle, and when their pages are released.
//!
//! The pool has no thread of its own: progress threads call `release_idle` now and then. A slab of
//! which no page was in use for `idle_release` becomes idle, the one with the highest index first;
//! one slab always stays. Then fabrics de-register it, and its pages are released, one slab for each
//! call.
//!
//! A slab is idle as a whole or not at all, and free pages are used in turn. So an arena that is
//! steadily in use keeps all its slabs, even if each of them is mostly free. It gives up what one
//! phase of a job needed and the next does not.

use crate::arena::Release;
use crate::Pool;
use faro_sync::simulated;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Least and most time between two searches for idle slabs; within that, a quarter of
/// `idle_release`.
const SWEEPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(10)];

/// The state of that.
pub(crate) struct Idle {
    /// `PoolOptions::idle_release`. Zero: no slab becomes idle.
    after: Duration,
    /// Zero of the arena's clock, which counts milliseconds.
    started: Instant,
    /// Time of the next search, on that clock. The thread that moves it on searches.
    next_sweep: AtomicU32,
    /// An idle slab may have pages to release.
    release_pending: AtomicBool,
    /// Grows when slabs become idle.
    epoch: AtomicU32,
}

impl Idle {
    pub(crate) fn new(after: Duration) -> Self {
        Self {
            after,
            started: simulated::now(),
            next_sweep: AtomicU32::new(0),
            release_pending: AtomicBool::new(false),
            epoch: AtomicU32::new(0),
        }
    }

    fn now(&self) -> u32 {
        // Wraps after 49 days. Only differences are used.
        simulated::now().duration_since(self.started).as_millis() as u32
    }
}

/// Milliseconds, at most half the range of a clock that wraps.
fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).map_or(i32::MAX as u32, |millis| millis.min(i32::MAX as u32))
}

impl Pool {
    /// Marks slabs as idle that were not used for `idle_release`, and releases the pages of at most one
    /// idle slab that no device has registered. To be called every now and then, by any thread; most
    /// calls only read the clock.
    pub fn release_idle(&self) {
        let idle = &self.idle;
        if idle.after.is_zero() {
            return;
        }
        let now = idle.now();
        self.arena.tick(now);
        let due = idle.next_sweep.load(Ordering::Relaxed);
        let [least, most] = SWEEPS;
        let next = now.wrapping_add(millis((idle.after / 4).clamp(least, most)));
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

    /// Marks slabs as idle of which no page was in use for `age`; at least one stays active. Returns
    /// their number. They keep their pages until `release_idle_pages`.
    pub fn mark_idle(&self, age: Duration) -> u32 {
        let marked = self.arena.mark_idle(self.idle.now(), millis(age));
        if marked > 0 {
            log::debug!("{marked} slabs of the arena are idle");
            // After the slabs are marked: a fabric that sees the new epoch sees the marks.
            self.idle.epoch.fetch_add(1, Ordering::Release);
            self.idle.release_pending.store(true, Ordering::Relaxed);
        }
        marked
    }

    /// Releases the pages of up to `most` idle slabs that no device has registered. Returns their
    /// number.
    pub fn release_idle_pages(&self, most: u32) -> u32 {
        let release = |index: u32| {
            let slab = self.slabs[index as usize].get();
            if slab.is_some_and(|slab| slab.release()) {
                self.counters.slab_released();
            }
        };
        // Cleared before the search: a slab that becomes idle after it sets the flag again.
        self.idle.release_pending.store(false, Ordering::Relaxed);
        let mut done = 0;
        let mut last = Release::One;
        while done < most && last == Release::One {
            last = self.arena.release_one(&release);
            done += u32::from(last == Release::One);
        }
        if last != Release::All {
            self.idle.release_pending.store(true, Ordering::Relaxed);
        }
        done
    }

    /// Changes whenever slabs become idle. A fabric looks for idle slabs when it has changed.
    #[must_use]
    pub fn idle_epoch(&self) -> u32 {
        self.idle.epoch.load(Ordering::Acquire)
    }

    /// Whether a slab is idle. A fabric that has it registered should de-register it. The slab may
    /// become active at any time; then the fabric registers it again for its next lease.
    #[must_use]
    pub fn is_idle(&self, index: u32) -> bool {
        self.arena
            .registration_pins(index)
            .is_some_and(|pins| pins.is_idle())
    }
}
