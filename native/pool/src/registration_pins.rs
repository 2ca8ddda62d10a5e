//! Keeps a slab's pages while the slab is in use or a device has it registered.
//!
//! A slab that was not used for some time becomes idle and gives up its memory in three steps:
//!
//! ```text
//!   arena   withdraws all its pages            word: IDLE | pins    no lease of it exists
//!   fabric  de-registers it, drops its pin     word: IDLE | 0       no device reaches it
//!   pool    releases the pages to the system   (under the lock of slabs)
//! ```
//! The arena may activate the slab again after each step, also under the lock of slabs. Before the
//! second step nothing is lost. After it, the fabric registers the slab again when it needs it.
//! After the third, the pages are new.
//!
//! The order of the last two steps is essential: a device keeps the pages that were there when it
//! registered them. If registered pages were released, device and processor would see different
//! memory at the same address. Therefore a fabric pins *before* it registers, an idle slab refuses
//! pins, and only pages of an idle slab without pins are released. One word holds all of this.

use faro_sync::atomic::{AtomicU32, Ordering};

/// Set while the slab is idle, with all its pages withdrawn. It changes only under the arena's lock
/// of slabs.
const IDLE: u32 = 1 << 31;

/// The pins of one slab.
pub struct RegistrationPins {
    /// Bit 31 is `IDLE`; bits 0..31 count the pins.
    word: AtomicU32,
}

impl RegistrationPins {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
        }
    }

    /// Keeps the pages until `unpin`. Returns `false` if the slab is idle.
    pub fn pin(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & IDLE != 0 {
                return false;
            }
            // Acquire pairs with `activate`: the release of the pages, if any, has ended.
            match self.word.compare_exchange_weak(
                word,
                word + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Ends a `pin`. The device must no longer reach the pages.
    pub fn unpin(&self) {
        let before = self.word.fetch_sub(1, Ordering::Release);
        debug_assert!(before & !IDLE > 0, "unpinned more often than pinned");
    }

    /// Returns whether the slab is idle, so that fabrics should de-register it.
    pub fn is_idle(&self) -> bool {
        self.word.load(Ordering::Acquire) & IDLE != 0
    }

    /// Marks the slab as idle. Called under the lock of slabs, after all pages are withdrawn.
    pub(crate) fn mark_idle(&self) {
        self.word.fetch_or(IDLE, Ordering::AcqRel);
    }

    /// Marks the slab as active. Called under the lock of slabs, before any page is listed as free.
    pub(crate) fn activate(&self) {
        self.word.fetch_and(!IDLE, Ordering::AcqRel);
    }

    /// Returns whether the pages may be released. The answer stays true while the caller holds the
    /// lock of slabs.
    pub(crate) fn is_releasable(&self) -> bool {
        self.word.load(Ordering::Acquire) == IDLE
    }
}
