//! Takes the fabrics' reports on their registrations. The pool itself knows no device.

use crate::Pool;
use std::sync::Arc;
use std::time::Duration;

/// Keeps a slab's pages until it is dropped. A fabric takes it *before* it registers the slab, and
/// drops it *after* it has de-registered the slab.
pub struct RegistrationPin {
    pool: Arc<Pool>,
    slab: u32,
}

impl RegistrationPin {
    pub(crate) fn new(pool: &Arc<Pool>, slab: u32) -> Option<Self> {
        pool.arena
            .pages()
            .registration_pins(slab)?
            .pin()
            .then(|| Self {
                pool: Arc::clone(pool),
                slab,
            })
    }
}

impl Drop for RegistrationPin {
    fn drop(&mut self) {
        if let Some(pins) = self.pool.arena.pages().registration_pins(self.slab) {
            pins.unpin();
        }
    }
}

/// Counts a registration until it is dropped.
pub struct RegistrationCount {
    pool: Arc<Pool>,
    bytes: u64,
}

impl RegistrationCount {
    pub(crate) fn new(pool: &Arc<Pool>, bytes: usize, took: Duration) -> Self {
        let bytes = bytes as u64;
        pool.counters.registered(bytes, took.as_nanos() as u64);
        Self {
            pool: Arc::clone(pool),
            bytes,
        }
    }
}

impl Drop for RegistrationCount {
    fn drop(&mut self) {
        self.pool.counters.deregistered(self.bytes);
    }
}
