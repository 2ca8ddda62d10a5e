//! The guards of the chunk cache: for reading a resident chunk, and for filling a slot.

use super::ChunkCache;
use crate::table::{Chunk, Slot};
use crate::version::{is_stable, publish, Version};
use crate::RegionId;
use faro_pool::Lease;
use faro_sync::atomic::Ordering;
use faro_sync::lock;
use std::sync::Arc;

/// A resident chunk. It is not evicted, and its page stays, while the guard lives. If the arena was refused a page
/// meanwhile, the guard gives this one back.
pub struct ReadGuard {
    pub(super) cache: Arc<ChunkCache>,
    pub(super) page: Arc<Lease>,
    pub(super) slot: Slot,
    pub(super) version: Version,
    pub(super) length: usize,
}

impl ReadGuard {
    /// Returns the chunk's bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `page` keeps the page mapped, and `length` is within it. Only a `FillGuard` writes
        // to it, and the table starts no fill of a slot that has readers. This guard was taken under
        // the lock under which the last fill was published, which orders the fill's writes before.
        unsafe { std::slice::from_raw_parts(self.page.start().as_ptr(), self.length) }
    }

    /// Returns the page, to be made readable for peers.
    pub fn page(&self) -> &Arc<Lease> {
        &self.page
    }

    /// Returns the slot. Its version is the word with that index in the versions' lease.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Returns the version that a peer must find in that word after its read.
    pub fn version(&self) -> Version {
        self.version
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        let cache = &self.cache;
        let mut state = lock(&cache.state);
        state.table.release(self.slot);
        cache.note_held(&state);
        // Besides this guard only the cache has it: no other reader, and no fabric that shows it to peers.
        let is_last = Arc::strong_count(&self.page) == 2;
        if is_last && cache.is_exhausted() && state.give_page(self.slot, &cache.versions) {
            cache.pages_held.fetch_sub(1, Ordering::Relaxed);
            cache.counts.pages_released.fetch_add(1, Ordering::Relaxed);
            cache.look_again();
        }
        // The page returns to the arena after this, without the lock.
    }
}

/// A slot to be filled. If the guard is dropped without `publish`, the slot becomes empty.
pub struct FillGuard {
    pub(super) cache: Arc<ChunkCache>,
    pub(super) page: Arc<Lease>,
    pub(super) slot: Slot,
    pub(super) chunk: Chunk,
    pub(super) published: bool,
}

impl FillGuard {
    /// Returns the page to be filled, whose content is arbitrary.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `ReadGuard::bytes`. A slot that is being filled has no readers and no second
        // `FillGuard`, and `&mut self` excludes another slice of this one. Devices and peers may read
        // meanwhile; they discard what they read, because the version is odd.
        unsafe { std::slice::from_raw_parts_mut(self.page.start().as_ptr(), self.page.capacity()) }
    }

    /// Publishes the first `length` bytes of the page as the chunk.
    pub fn publish(mut self, length: usize) -> ReadGuard {
        debug_assert!(length <= self.page.capacity());
        let cache = Arc::clone(&self.cache);
        let mut state = lock(&cache.state);
        state.table.publish(self.slot, length);
        cache.note_held(&state);
        // There are versions, because `begin_fill` began one. No reader accepts an odd one.
        let version = cache.versions.word(self.slot).map_or(1, publish);
        debug_assert!(is_stable(version), "`begin_fill` began a version");
        drop(state);
        self.published = true;
        cache.counts.prefetched.fetch_add(1, Ordering::Relaxed);
        ReadGuard {
            cache,
            page: Arc::clone(&self.page),
            slot: self.slot,
            version,
            length,
        }
    }

    /// Returns the chunk to fill in: its region and its number.
    pub fn chunk(&self) -> (RegionId, u64) {
        self.chunk
    }
}

impl Drop for FillGuard {
    fn drop(&mut self) {
        if !self.published {
            lock(&self.cache.state).table.abandon(self.slot);
        }
    }
}
