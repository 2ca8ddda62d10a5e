//! Handles for Java: slot number and generation, checked on every use.
//!
//! An address would save the look-up, but a second `free` or a forged value would then be a crash
//! or worse. One uncontended lock and one index cost some 20 ns, and there is one look-up for each
//! call or batch, none for a block.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values by handle. A handle is `generation << 32 | slot + 1`, so it is never 0.
pub struct Registry<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    /// `None`: free, and listed in `free`.
    slots: Vec<Slot<T>>,
    /// Slots that may be used again, last freed first (its memory is warm).
    free: Vec<u32>,
}

struct Slot<T> {
    /// Counts the values this slot had; a handle of an older one is stale.
    generation: u32,
    value: Option<T>,
}

impl<T> Registry<T> {
    /// An empty registry.
    pub const fn new() -> Self {
        Self {
            state: Mutex::new(State {
                slots: Vec::new(),
                free: Vec::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code that can panic runs under this lock but an allocation.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps `value` and names it.
    pub fn insert(&self, value: T) -> u64 {
        let mut state = self.lock();
        let slot = match state.free.pop() {
            Some(slot) => slot,
            None => {
                state.slots.push(Slot {
                    generation: 0,
                    value: None,
                });
                (state.slots.len() - 1) as u32
            }
        };
        let entry = &mut state.slots[slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.value = Some(value);
        u64::from(entry.generation) << 32 | (u64::from(slot) + 1)
    }

    /// Takes the value out; `None` for a stale or invented handle.
    pub fn remove(&self, handle: u64) -> Option<T> {
        let mut state = self.lock();
        let (slot, generation) = split(handle)?;
        let entry = state.slots.get_mut(slot as usize)?;
        if entry.generation != generation {
            return None;
        }
        let value = entry.value.take()?;
        state.free.push(slot);
        Some(value)
    }

    /// How many values are kept.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        let state = self.lock();
        state.slots.len() - state.free.len()
    }
}

impl<T: Clone> Registry<T> {
    /// A clone of the value (an `Arc`); `None` for a stale or invented handle.
    pub fn get(&self, handle: u64) -> Option<T> {
        let state = self.lock();
        let (slot, generation) = split(handle)?;
        let entry = state.slots.get(slot as usize)?;
        if entry.generation != generation {
            return None;
        }
        entry.value.clone()
    }
}

fn split(handle: u64) -> Option<(u32, u32)> {
    let slot = (handle as u32).checked_sub(1)?;
    Some((slot, (handle >> 32) as u32))
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
        registry.insert(());
        for handle in [0, 1, 2, u64::MAX, 1 << 32, 0xffff_ffff, 1 << 32 | 7] {
            assert_eq!(registry.remove(handle), None, "{handle:#x}");
        }
        assert_eq!(registry.len(), 1);
    }
}
