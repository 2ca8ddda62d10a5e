//! Whether a slab's pages must stay: it is in use, or a device has it registered.
//!
//! An idle slab goes to rest in three steps, taken by whoever is at hand, in this order:
//!
//! ```text
//!   arena   withdraws all its pages     word: IDLE | pins     nobody can lease from it
//!   fabric  de-registers it, unpins      word: IDLE | 0        no device reaches it
//!   pool    gives the pages back         (under the lock by which slabs wake)
//! ```
//! It may be woken after any of them, always under that lock: before the second nothing was lost,
//! after it the fabric registers it again when it next needs it, after the third the pages are new.
//!
//! The order of the last two is what matters. A device goes on with the pages that it pinned when
//! it registered them, so that giving back registered pages would leave device and processor with
//! different memory at one address. Therefore a fabric pins *before* it registers, a pin is refused
//! while the slab rests, and pages go only if it rests without a pin. All three are in one word.

use faro_sync::atomic::{AtomicU32, Ordering};

/// All pages are withdrawn. Changed only under the arena's lock of slabs.
const IDLE: u32 = 1 << 31;

/// One slab's.
pub struct RegistrationPins {
    /// Bit 31: resting; below: devices that have it registered or are about to.
    word: AtomicU32,
}

impl RegistrationPins {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
        }
    }

    /// The pages stay until `unpin`. False: it rests, and nobody needs it.
    pub fn pin(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & IDLE != 0 {
                return false;
            }
            // Acquire pairs with `activate`: what was done to the pages meanwhile is done.
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

    /// No device reaches the pages by that pin any more.
    pub fn unpin(&self) {
        let before = self.word.fetch_sub(1, Ordering::Release);
        debug_assert!(before & !IDLE > 0, "unpinned more often than pinned");
    }

    /// Whether whoever pinned it should let go.
    pub fn is_idle(&self) -> bool {
        self.word.load(Ordering::Acquire) & IDLE != 0
    }

    /// Under the lock of slabs, with all pages withdrawn.
    pub(crate) fn mark_idle(&self) {
        self.word.fetch_or(IDLE, Ordering::AcqRel);
    }

    /// Under the lock of slabs, before any page is listed.
    pub(crate) fn activate(&self) {
        self.word.fetch_and(!IDLE, Ordering::AcqRel);
    }

    /// Under the lock of slabs: whether the pages may go. It stays so until that lock is released.
    pub(crate) fn is_releasable(&self) -> bool {
        self.word.load(Ordering::Acquire) == IDLE
    }
}
