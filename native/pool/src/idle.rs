//! When idle slabs go to rest, and when their pages go.
//!
//! The pool has no thread of its own: whoever turns anyway (progress threads) calls `release_idle`. Policy:
//! a slab of which no page was in use for `idle_release` goes to rest, the highest first, one stays;
//! after that its registration and its pages go, one slab's pages for each call. A slab is looked at
//! as a whole, and the free queue goes round, so that an arena under steady load of more than a few
//! pages keeps all its slabs: what is given up is what a phase of the job no longer needs.

use crate::arena::Release;
use crate::Pool;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How often idle slabs are looked for: a quarter of their time, within these.
const SWEEPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(10)];

/// What the pool remembers of it.
pub(crate) struct Idle {
    /// Zero: nothing is given up.
    after: Duration,
    /// Start of the arena's clock, which counts milliseconds.
    started: Instant,
    /// When idle slabs are looked for again; whoever moves it on does so.
    next_sweep: AtomicU32,
    /// Some slab that rests may have pages to give back.
    release_pending: AtomicBool,
    /// Grows when slabs go to rest.
    epoch: AtomicU32,
}

impl Idle {
    pub(crate) fn new(after: Duration) -> Self {
        Self {
            after,
            started: Instant::now(),
            next_sweep: AtomicU32::new(0),
            release_pending: AtomicBool::new(false),
            epoch: AtomicU32::new(0),
        }
    }

    fn now(&self) -> u32 {
        // Wraps after 49 days; only differences count.
        self.started.elapsed().as_millis() as u32
    }
}

/// Small enough for differences on a clock that wraps.
fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).map_or(i32::MAX as u32, |millis| millis.min(i32::MAX as u32))
}

impl Pool {
    /// To be called now and then, by any thread (a second call at the same time does nothing): has
    /// slabs rest that were idle for `idle_release`, and gives back the pages of at most one that no
    /// device has registered any more. Otherwise it only reads the clock.
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

    /// Has slabs rest of which no page is in use or was in use for `age`, but one at least stays.
    /// How many; their pages are there until `release_idle_pages`.
    pub fn mark_idle(&self, age: Duration) -> u32 {
        let marked = self.arena.mark_idle(self.idle.now(), millis(age));
        if marked > 0 {
            log::debug!("{marked} idle slabs of the arena rest");
            // After their registration_pins say so: who sees the number sees them.
            self.idle.epoch.fetch_add(1, Ordering::Release);
            self.idle.release_pending.store(true, Ordering::Relaxed);
        }
        marked
    }

    /// Gives the pages of up to `most` resting slabs back that no device has registered any more.
    /// How many.
    pub fn release_idle_pages(&self, most: u32) -> u32 {
        let empty = |index: u32| {
            let slab = self.slabs[index as usize].get();
            if slab.is_some_and(|slab| slab.release()) {
                self.counters.slab_released();
            }
        };
        // Cleared before looking: a slab that goes to rest after the look sets it again.
        self.idle.release_pending.store(false, Ordering::Relaxed);
        let mut done = 0;
        let mut last = Release::One;
        while done < most && last == Release::One {
            last = self.arena.release_one(&empty);
            done += u32::from(last == Release::One);
        }
        if last != Release::All {
            self.idle.release_pending.store(true, Ordering::Relaxed);
        }
        done
    }

    /// Grows whenever slabs go to rest, so that a fabric knows when to look for them.
    #[must_use]
    pub fn idle_epoch(&self) -> u32 {
        self.idle.epoch.load(Ordering::Acquire)
    }

    /// Whether a slab rests: who has it registered should de-register it. It may wake at any time;
    /// then it is to be registered again when a lease of it is next used.
    #[must_use]
    pub fn is_idle(&self, index: u32) -> bool {
        self.arena
            .registration_pins(index)
            .is_some_and(|pins| pins.is_idle())
    }
}
