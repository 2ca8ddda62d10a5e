//! The versions of slots: words in a lease that peers can read.

use crate::table::Slot;
use crate::version::{begin, still, Version, VERSION_BYTES};
use faro_pool::{Lease, Pool, Purpose};
use faro_sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// The version of bytes that never change.
const UNCHANGING: Version = 2;

/// One word for each slot, then that of `constant`, from the first byte. They are leased with the
/// first page, and changed only under the lock of the cache.
pub(super) struct Versions {
    lease: OnceLock<Arc<Lease>>,
    slots: usize,
}

impl Versions {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            lease: OnceLock::new(),
            slots,
        }
    }

    /// Returns the lease, once the first slot has a page.
    pub(super) fn lease(&self) -> Option<&Arc<Lease>> {
        self.lease.get()
    }

    /// Returns the slot and version of bytes that never change.
    pub(super) fn constant(&self) -> (Slot, Version) {
        (self.slots, UNCHANGING)
    }

    /// Returns whether the bytes of `slot` are those published under `version`.
    pub(super) fn is_still(&self, slot: Slot, version: Version) -> bool {
        slot < self.slots && self.word(slot).is_some_and(|word| still(word, version))
    }

    /// Leases memory for the versions if that is not done yet, and returns whether there is any.
    /// Called under the lock of the cache.
    pub(super) fn has_memory(&self, pool: &Arc<Pool>) -> bool {
        if self.lease.get().is_none() {
            let bytes = (self.slots + 1) * VERSION_BYTES;
            let Ok(mut lease) = pool.try_lease(bytes, Purpose::Serve) else {
                return false;
            };
            // Recycled memory has old bytes. All slots begin empty, and so with odd versions.
            for word in lease.bytes_mut()[..bytes].chunks_exact_mut(VERSION_BYTES) {
                word.copy_from_slice(&1u64.to_le_bytes());
            }
            let last = self.slots * VERSION_BYTES..bytes;
            lease.bytes_mut()[last].copy_from_slice(&UNCHANGING.to_le_bytes());
            return self.lease.set(Arc::new(lease)).is_ok();
        }
        true
    }

    /// Makes the slot's version odd, so that no reader accepts its bytes.
    pub(super) fn begin(&self, slot: Slot) {
        if let Some(word) = self.word(slot) {
            begin(word);
        }
    }

    /// Returns the slot's version. It is `None` only until a slot has its first page.
    pub(super) fn word(&self, slot: Slot) -> Option<&AtomicU64> {
        debug_assert!(slot < self.slots);
        let start = self.lease.get()?.start().as_ptr().cast::<u64>();
        // SAFETY: `lease` holds more than `slots` words, of which this is one. A lease is aligned to
        // 2 KiB, so each word is aligned to 8. The lease lives as long as `self`. Once it is in
        // `lease`, this process accesses the words only as atomics (no code calls `bytes` of this
        // lease); devices and peers' read-only mappings only read them.
        Some(unsafe { AtomicU64::from_ptr(start.add(slot)) })
    }
}
