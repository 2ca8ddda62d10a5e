//! A shortcut to what is in a cache: found without a look-up as long as the cache, or a user, has it.

use faro_sync::lock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// One use in this many asks the cache, so that the cache keeps entries that are often used.
const ASK_EVERY: u32 = 4;

/// Place at which a value was found last.
pub(super) struct PositionHint<T> {
    value: Mutex<Weak<T>>,
    uses: AtomicU32,
}

impl<T> Default for PositionHint<T> {
    fn default() -> Self {
        Self {
            value: Mutex::new(Weak::new()),
            uses: AtomicU32::new(0),
        }
    }
}

impl<T> PositionHint<T> {
    /// Returns the value. `look_up` asks the cache, which counts as a use there.
    pub(super) fn find(&self, look_up: impl FnOnce() -> Option<Arc<T>>) -> Option<Arc<T>> {
        let uses = self.uses.fetch_add(1, Ordering::Relaxed);
        let last = match uses % ASK_EVERY {
            0 => None,
            _ => lock(&self.value).upgrade(),
        };
        last.or_else(|| look_up().inspect(|found| self.set(found)))
    }

    pub(super) fn set(&self, found: &Arc<T>) {
        *lock(&self.value) = Arc::downgrade(found);
    }
}
