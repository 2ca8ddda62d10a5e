//! The one place that chooses synchronisation primitives: the machine's, or loom's model of them.
//!
//! Everything in this crate that synchronises takes its primitives from here, so that the code
//! that loom explores is the code that ships. Only the cold queue is a stand-in under loom (a
//! locked `VecDeque`): crossbeam's own queue is not instrumented, and its correctness is not what
//! the models are about. Source of the arrangement: s2n-quic's `sync/primitive.rs`.

use std::sync::PoisonError;

#[cfg(not(loom))]
mod primitive {
    pub(crate) use crossbeam_queue::ArrayQueue;
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{fence, AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, TryLockError};
}

#[cfg(loom)]
mod primitive {
    pub(crate) use loom::sync::atomic::{fence, AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now as spin_loop;
    pub(crate) use std::sync::TryLockError;

    /// Stand-in for crossbeam's `ArrayQueue`, with the same bound.
    pub(crate) struct ArrayQueue<T> {
        items: Mutex<std::collections::VecDeque<T>>,
        capacity: usize,
    }

    impl<T> ArrayQueue<T> {
        pub(crate) fn new(capacity: usize) -> Self {
            Self {
                items: Mutex::new(std::collections::VecDeque::new()),
                capacity,
            }
        }

        pub(crate) fn push(&self, item: T) -> Result<(), T> {
            let mut items = super::lock(&self.items);
            if items.len() == self.capacity {
                return Err(item);
            }
            items.push_back(item);
            Ok(())
        }

        pub(crate) fn pop(&self) -> Option<T> {
            super::lock(&self.items).pop_front()
        }

        pub(crate) fn len(&self) -> usize {
            super::lock(&self.items).len()
        }
    }
}

pub(crate) use primitive::*;

/// Locks; a poisoned lock is as good as any, because no critical section of this crate can leave
/// its data half-changed (none calls foreign code).
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks if nobody else does.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
