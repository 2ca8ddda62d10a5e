//! An event count, which tells threads that were refused memory that some has returned. Returning
//! memory takes no lock unless a thread waits.
//!
//! Refused threads either wait (`lease_before`) or, if they are progress threads that must not wait
//! (`try_lease`), have a listener. Both follow Dekker's protocol, which needs a sequentially
//! consistent fence on both sides:
//!
//! ```text
//!   refused thread                   returning thread
//!   1. registers (count or flag)     1. lists the memory as free
//!   2. fence                         2. fence
//!   3. looks for memory again        3. looks for registered threads
//! ```
//! One of the two fences comes first, and step 3 of the other thread sees the step 1 before it. So
//! either the refused thread finds the memory, or the returning thread finds the refused one. A
//! waiter reads the epoch before it looks for memory, and sleeps only while the epoch is the same,
//! so that memory that returns between the look and the sleep wakes it. `tests/loom.rs` explores
//! this.
//!
//! A thread that is refused several leases gives back those that it had taken meanwhile. That
//! changes nothing for threads that were refused before it began, nor for itself: if it told
//! itself, it would wake itself without end. Only threads that looked for memory meanwhile can have
//! missed this memory. So looks are counted at their start and at their end ([`ProducerSnapshot`]).

use crossbeam_utils::CachePadded;
use faro_sync::atomic::{fence, AtomicBool, AtomicU32, AtomicU64, Ordering};
use faro_sync::{lock, wait_timeout, Condvar, Mutex};
use std::sync::Arc;
use std::time::Instant;

/// A function that is called when memory has returned.
pub type ReleaseListener = Arc<dyn Fn() + Send + Sync>;

/// The start of a look, in both halves of `EventCount::looks`.
const LOOK: u64 = (1 << 32) + 1;
/// The end of a look.
const END_OF_LOOK: u64 = 1;

/// The count of looks before a thread took memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProducerSnapshot {
    looks: u64,
    /// Number of current looks that are this thread's own: 0 or 1.
    own: u32,
}

/// The waiting threads and the listeners.
pub(crate) struct EventCount {
    /// Number of threads in `wait_for`.
    waiters: CachePadded<AtomicU32>,
    /// True if a thread with a listener was refused since the listeners were last called.
    armed: CachePadded<AtomicBool>,
    /// Bits 0..32 count the threads in `arm_and` now; bits 32..64 count all that have been there,
    /// modulo 2^32.
    looks: CachePadded<AtomicU64>,
    /// Incremented by every `announce` while a thread waits.
    epoch: Mutex<u64>,
    /// Notified after `epoch` was incremented.
    epoch_grew: Condvar,
    /// The list is replaced as a whole, so that listeners are called without a lock.
    listeners: Mutex<Arc<Vec<ReleaseListener>>>,
}

impl EventCount {
    pub(crate) fn new() -> Self {
        Self {
            waiters: CachePadded::new(AtomicU32::new(0)),
            armed: CachePadded::new(AtomicBool::new(false)),
            looks: CachePadded::new(AtomicU64::new(0)),
            epoch: Mutex::new(0),
            epoch_grew: Condvar::new(),
            listeners: Mutex::new(Arc::new(Vec::new())),
        }
    }

    pub(crate) fn listen(&self, listener: ReleaseListener) {
        let mut listeners = lock(&self.listeners);
        let mut more = Vec::clone(&listeners);
        more.push(listener);
        *listeners = Arc::new(more);
    }

    /// Announces memory that was listed as free: wakes all waiters, and calls the listeners if a
    /// thread was refused since their last call.
    pub(crate) fn announce(&self) {
        fence(Ordering::SeqCst);
        self.wake_waiters();
        self.call_listeners();
    }

    /// Counts the looks before memory is taken that may be given back unused, or of which others
    /// may use a part.
    pub(crate) fn before_taking(&self) -> ProducerSnapshot {
        ProducerSnapshot {
            // Acquire pairs with the release of a look's end: that look saw the memory that is
            // taken from now on.
            looks: self.looks.load(Ordering::Acquire),
            own: 0,
        }
    }

    /// Announces memory that was taken after `before` and is, at least in part, free again. Tells
    /// only the threads that may have looked for it meanwhile. A wait in `wait_for` is not counted,
    /// because one more look does no harm there.
    pub(crate) fn announce_to_later(&self, before: ProducerSnapshot) {
        fence(Ordering::SeqCst);
        self.wake_waiters();
        let nobody_looked = before.looks as u32 == before.own;
        if !nobody_looked || self.looks.load(Ordering::Relaxed) != before.looks {
            self.call_listeners();
        }
    }

    fn wake_waiters(&self) {
        if self.waiters.load(Ordering::Relaxed) > 0 {
            *lock(&self.epoch) += 1;
            // All waiters are woken: they want different sizes for different purposes, and a single
            // one might not be able to use this memory.
            self.epoch_grew.notify_all();
        }
    }

    fn call_listeners(&self) {
        // The load keeps the cache line shared while no thread was refused. The swap chooses one of
        // several returning threads.
        if self.armed.load(Ordering::Relaxed) && self.armed.swap(false, Ordering::AcqRel) {
            let listeners = Arc::clone(&lock(&self.listeners));
            for listener in listeners.iter() {
                listener();
            }
        }
    }

    /// Tries once more. If that is refused, the next `announce` calls the listeners. `attempt` gets
    /// the value of `before_taking` without this look.
    pub(crate) fn arm_and<T, E>(
        &self,
        attempt: impl FnOnce(ProducerSnapshot) -> Result<T, E>,
    ) -> Result<T, E> {
        let looks = self.looks.fetch_add(LOOK, Ordering::AcqRel);
        self.armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let result = attempt(ProducerSnapshot {
            looks: looks.wrapping_add(LOOK),
            own: 1,
        });
        self.looks.fetch_sub(END_OF_LOOK, Ordering::Release);
        result
    }

    /// Calls `attempt` now and after every `announce`, until it succeeds, until it fails with an
    /// error for which `refused` is false, or until the deadline has passed.
    pub(crate) fn wait_for<T, E>(
        &self,
        deadline: Instant,
        refused: impl Fn(&E) -> bool,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut epoch = lock(&self.epoch);
        self.waiters.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let result = loop {
            let seen = *epoch;
            drop(epoch);
            match attempt() {
                Err(error) if refused(&error) && Instant::now() < deadline => {}
                result => break result,
            }
            epoch = lock(&self.epoch);
            while *epoch == seen {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                epoch = wait_timeout(&self.epoch_grew, epoch, left);
            }
        };
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        result
    }
}
