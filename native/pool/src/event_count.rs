//! Telling those who were refused that memory came back, without a lock on the way of those who
//! return it.
//!
//! Two kinds were refused: threads that wait (`lease_before`) and progress threads that must not
//! wait (`try_lease`) and have a listener instead. Both follow the same two-sided protocol, which
//! is Dekker's and so needs a sequentially consistent fence on either side:
//!
//! ```text
//!   refused                          returner
//!   1. announce (count or flag)      1. list the memory
//!   2. fence                         2. fence
//!   3. look for memory again         3. look for announcements
//! ```
//! Whichever fence comes first, the other side's step 3 sees its step 1; so there is never memory
//! and a sleeper at the same time with nobody to tell. A waiter reads the epoch before it looks
//! again and sleeps only while the epoch stays the same, so that news between its look and its
//! sleep is not lost. `tests/loom.rs` explores this.

use crossbeam_utils::CachePadded;
use faro_sync::atomic::{fence, AtomicBool, AtomicU32, Ordering};
use faro_sync::{lock, wait_timeout, Condvar, Mutex};
use std::sync::Arc;
use std::time::Instant;

/// Called when memory came back.
pub type Listener = Arc<dyn Fn() + Send + Sync>;

/// The meeting point.
pub(crate) struct EventCount {
    /// Threads in `wait_for`.
    waiters: CachePadded<AtomicU32>,
    /// Someone was refused since the listeners were last called.
    armed: CachePadded<AtomicBool>,
    /// Grows with every announcement of memory.
    epoch: Mutex<u64>,
    /// Told after `epoch` grew.
    news: Condvar,
    /// Replaced as a whole, so that they are called with no lock held.
    listeners: Mutex<Arc<Vec<Listener>>>,
}

impl EventCount {
    pub(crate) fn new() -> Self {
        Self {
            waiters: CachePadded::new(AtomicU32::new(0)),
            armed: CachePadded::new(AtomicBool::new(false)),
            epoch: Mutex::new(0),
            news: Condvar::new(),
            listeners: Mutex::new(Arc::new(Vec::new())),
        }
    }

    pub(crate) fn listen(&self, listener: Listener) {
        let mut listeners = lock(&self.listeners);
        let mut more = Vec::clone(&listeners);
        more.push(listener);
        *listeners = Arc::new(more);
    }

    /// Memory came back (and is already listed): wakes waiters, calls listeners if armed.
    pub(crate) fn announce(&self) {
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::Relaxed) > 0 {
            *lock(&self.epoch) += 1;
            // All, because waiters want different sizes for different purposes: the one that
            // would be chosen might not be one that this memory helps.
            self.news.notify_all();
        }
        // The load keeps the line shared while nobody was refused; the swap picks one caller.
        if self.armed.load(Ordering::Relaxed) && self.armed.swap(false, Ordering::AcqRel) {
            let listeners = Arc::clone(&lock(&self.listeners));
            for listener in listeners.iter() {
                listener();
            }
        }
    }

    /// `attempt` once more, after which a refusal is certain to be followed by a listener's call.
    pub(crate) fn arm_and<T, E>(&self, attempt: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        attempt()
    }

    /// Repeats `attempt` on every announcement while `refused` says that it may yet succeed and the
    /// deadline has not passed; always at least once.
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
                epoch = wait_timeout(&self.news, epoch, left);
            }
        };
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        result
    }
}
