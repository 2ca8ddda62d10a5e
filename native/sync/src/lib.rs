//! The synchronisation primitives of all crates, and the one switch between the machine's and
//! loom's models of them.
//!
//! A crate whose protocols loom explores takes every primitive from here, so that the code that
//! loom explores is the code that ships. With `--cfg loom` the names below are loom's; otherwise
//! they are those of the standard library. Same arrangement as s2n-quic's `sync/primitive.rs`.
//!
//! [`lock`] replaces `Mutex::lock().unwrap_or_else(PoisonError::into_inner)`. A mutex is poisoned
//! when a thread panics while it holds the lock. Faro ignores that mark, because its critical
//! sections are short, call no code of the caller, and leave the data valid at every point where
//! they can panic. A critical section for which this is not true must not use [`lock`].

mod barrier;
pub mod clock;
#[cfg(loom)]
mod modelled;
pub mod simulated;

pub use barrier::device_write_barrier;
pub use simulated::{HashMap, HashSet, TableKeys};

#[cfg(not(loom))]
mod primitive {
    pub use crossbeam_queue::ArrayQueue;
    pub use std::hint::spin_loop;
    pub use std::sync::atomic;
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard};
}

#[cfg(loom)]
mod primitive {
    pub use crate::modelled::ArrayQueue;
    pub use loom::sync::atomic;
    pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use loom::thread::yield_now as spin_loop;
}

pub use primitive::*;

use std::any::Any;
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

/// Locks `mutex`, even if it is poisoned.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a panic's message from the payload that `catch_unwind` returns.
pub fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&'static str>().copied();
    let owned = || payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(owned).unwrap_or("a panic without a message")
}

/// Locks `mutex` if no thread holds it, even if it is poisoned. Never blocks.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Releases the lock, waits for a notification or until `timeout` has passed, and locks again.
/// May return earlier, so the caller checks its condition in a loop.
pub fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Duration,
) -> MutexGuard<'a, T> {
    let result = condvar.wait_timeout(guard, timeout);
    result.unwrap_or_else(PoisonError::into_inner).0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_poisoned_mutex_can_be_locked() {
        let mutex = Arc::new(Mutex::new(1));
        let poisoner = Arc::clone(&mutex);
        let panicked = std::thread::spawn(move || {
            let mut value = lock(&poisoner);
            *value = 2;
            panic!("poisons the mutex: this panic belongs to the test");
        });
        assert!(panicked.join().is_err());
        assert!(mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 2);
        assert_eq!(try_lock(&mutex).map(|value| *value), Some(2));
    }

    #[test]
    fn try_lock_does_not_wait() {
        let mutex = Mutex::new(());
        let guard = lock(&mutex);
        assert!(try_lock(&mutex).is_none());
        drop(guard);
        assert!(try_lock(&mutex).is_some());
    }

    #[test]
    fn a_wait_ends_without_a_notification() {
        let (mutex, condvar) = (Mutex::new(7), Condvar::new());
        let guard = wait_timeout(&condvar, lock(&mutex), Duration::from_millis(1));
        assert_eq!(*guard, 7);
    }
}
