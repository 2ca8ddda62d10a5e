//! Handles for Java: keys of a [`SlotMap`] as numbers, checked on every use.
//!
//! A key has a slot number and a generation, which changes when the slot's value is removed. An
//! address as a handle would save the look-up, but a second `free` or a wrong number would then
//! access freed memory. A call from Java makes one look-up under a lock that is rarely contended;
//! blocks need none.

use slotmap::{DefaultKey, Key, KeyData, SlotMap};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Locks a value behind a handle, even if another call panicked while it held the lock.
pub fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values by handle. A handle is never 0, which Java uses for "none".
pub struct Registry<T> {
    values: LazyLock<Mutex<SlotMap<DefaultKey, T>>>,
}

impl<T> Registry<T> {
    /// Returns an empty registry.
    pub const fn new() -> Self {
        Self {
            values: LazyLock::new(|| Mutex::new(SlotMap::new())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SlotMap<DefaultKey, T>> {
        // Under this lock only an allocation can panic, and that leaves the map consistent.
        lock(&self.values)
    }

    /// Keeps `value` and returns its handle.
    pub fn insert(&self, value: T) -> u64 {
        self.lock().insert(value).data().as_ffi()
    }

    /// Takes the value out. Returns `None` if the handle is stale or was never given out.
    pub fn remove(&self, handle: u64) -> Option<T> {
        let key = key(handle)?;
        self.lock().remove(key)
    }

    /// Changes the value in place, and removes it if `change` returns true with its result. Returns
    /// that result, or `None` if the handle is stale or was never given out.
    pub fn change<R>(&self, handle: u64, change: impl FnOnce(&mut T) -> (R, bool)) -> Option<R> {
        let key = key(handle)?;
        let mut values = self.lock();
        let (result, done) = change(values.get_mut(key)?);
        let gone = if done { values.remove(key) } else { None };
        drop(values);
        drop(gone);
        Some(result)
    }

    /// Returns the number of values.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.lock().len()
    }
}

impl<T: Clone> Registry<T> {
    /// Returns a clone of the value (an `Arc`), or `None` if the handle is stale or was never given
    /// out.
    pub fn get(&self, handle: u64) -> Option<T> {
        let key = key(handle)?;
        self.lock().get(key).cloned()
    }
}

/// Returns the key of a handle. `from_ffi` accepts any number and makes an even generation odd, so
/// that a wrong number could become a valid key. Therefore the key must convert back to the same
/// number.
fn key(handle: u64) -> Option<DefaultKey> {
    let data = KeyData::from_ffi(handle);
    (data.as_ffi() == handle).then(|| DefaultKey::from(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_good_until_it_is_removed() {
        let registry = Registry::new();
        let handle = registry.insert("a");
        assert_eq!(registry.get(handle), Some("a"));
        assert_eq!(registry.remove(handle), Some("a"));
        assert_eq!(registry.get(handle), None);
        assert_eq!(registry.remove(handle), None);
        assert_eq!(registry.len(), 0);
    }

    #[test]
    fn a_change_removes_the_value_when_it_says_so() {
        let registry = Registry::new();
        let handle = registry.insert(1);
        assert_eq!(
            registry.change(handle, |n| (std::mem::replace(n, 2), false)),
            Some(1)
        );
        assert_eq!(registry.change(handle, |n| (*n, true)), Some(2));
        assert_eq!(registry.change(handle, |n| (*n, true)), None);
        assert_eq!(registry.len(), 0);
    }

    #[test]
    fn a_reused_slot_has_another_handle() {
        let registry = Registry::new();
        let first = registry.insert(1);
        registry.remove(first);
        let second = registry.insert(2);
        assert_ne!(first, second);
        assert_eq!(first as u32, second as u32, "the slot is reused");
        assert_eq!(registry.remove(first), None);
        assert_eq!(registry.get(second), Some(2));
    }

    #[test]
    fn invented_handles_are_refused() {
        let registry = Registry::new();
        let valid = registry.insert(());
        assert_ne!(valid, 0);
        // The slot of the one value with every wrong generation that is near, and other slots.
        let slot = valid & 0xffff_ffff;
        let generations = [0, 2, 3, 4].map(|generation| generation << 32 | slot);
        let others = [0, 1, 2, u64::MAX, 1 << 32, 0xffff_ffff, 1 << 32 | 7];
        for handle in generations.into_iter().chain(others) {
            assert_eq!(registry.get(handle), None, "{handle:#x}");
            assert_eq!(registry.remove(handle), None, "{handle:#x}");
        }
        assert_eq!(registry.len(), 1);
    }
}
