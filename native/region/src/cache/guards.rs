//! What a reader holds, and what a filler does: a resident chunk, and a page for one.

use super::ChunkCache;
use crate::table::{Chunk, Slot};
use crate::version::{publish, Version};
use crate::RegionId;
use faro_pool::Lease;
use faro_sync::atomic::Ordering;
use faro_sync::lock;
use std::sync::Arc;

/// A resident chunk, held.
pub struct ReadGuard {
    pub(super) cache: Arc<ChunkCache>,
    pub(super) page: Arc<Lease>,
    pub(super) slot: Slot,
    pub(super) version: Version,
    pub(super) length: usize,
}

impl ReadGuard {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the page is mapped for `page`'s life and `length` is within it. Only a claim
        // writes to it, and the table gives no claim of a slot that is held; the guard was taken
        // under the lock under which the last claim was published, which orders its writes before.
        unsafe { std::slice::from_raw_parts(self.page.start().as_ptr(), self.length) }
    }

    /// The page, to be exposed.
    pub fn page(&self) -> &Arc<Lease> {
        &self.page
    }

    /// Which slot; its version has that place in the versions' lease.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// What a peer has to find there after it read.
    pub fn version(&self) -> Version {
        self.version
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        lock(&self.cache.state).table.release(self.slot);
    }
}

/// A page to be filled. Dropped without `publish`, it stays empty.
pub struct FillGuard {
    pub(super) cache: Arc<ChunkCache>,
    pub(super) page: Arc<Lease>,
    pub(super) slot: Slot,
    pub(super) chunk: Chunk,
    pub(super) published: bool,
}

impl FillGuard {
    /// Where to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `ReadGuard::bytes`; a claimed slot is not held and claimed by nobody else, and
        // `&mut self` excludes another slice of this claim. What devices and peers read meanwhile
        // they discard, because the version was made odd before.
        unsafe { std::slice::from_raw_parts_mut(self.page.start().as_ptr(), self.page.capacity()) }
    }

    /// The first `length` bytes are the chunk's.
    pub fn publish(mut self, length: usize) -> ReadGuard {
        debug_assert!(length <= self.page.capacity());
        let cache = Arc::clone(&self.cache);
        let mut state = lock(&cache.state);
        state.table.publish(self.slot, length);
        // There are versions: the claim began one. An odd one is believed by nobody.
        let version = cache.word(self.slot).map_or(1, publish);
        drop(state);
        self.published = true;
        cache.counts.staged.fetch_add(1, Ordering::Relaxed);
        ReadGuard {
            cache,
            page: Arc::clone(&self.page),
            slot: self.slot,
            version,
            length,
        }
    }

    /// The chunk that it is for: region and number.
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
