//! Stages files whose writer is in this process: their bytes come from the writer's memory.

use super::{ChunkCache, FillGuard};
use crate::version::publish;
use crate::{Region, RegionId, CHUNK_BYTES};
use faro_pool::{Lease, Purpose, PAGE_BYTES};
use faro_sync::atomic::Ordering;
use faro_sync::lock;
use std::sync::Arc;

/// The front of a file that is being written, in pages of the arena that no peer sees. If it is
/// dropped without `publish`, it returns the pages.
pub struct StagedFile {
    cache: Arc<ChunkCache>,
    /// The pages; all are full except the last.
    pages: Vec<Lease>,
    bytes: u64,
    /// True after bytes were left out; later bytes are not staged.
    ended: bool,
}

impl ChunkCache {
    /// Returns a staged file without bytes. It takes no memory yet.
    pub fn stage(self: &Arc<Self>) -> StagedFile {
        StagedFile {
            cache: Arc::clone(self),
            pages: Vec::new(),
            bytes: 0,
            ended: false,
        }
    }

    /// Puts the first `length` bytes of a page, which are the chunk's, into a slot. Returns false
    /// if a slot has the chunk or is being filled with it, or if there is no empty slot.
    fn adopt(self: &Arc<Self>, chunk: (RegionId, u64), page: Lease, length: usize) -> bool {
        let page = Arc::new(page);
        let mut state = lock(&self.state);
        if !self.versions.has_memory(&self.pool) {
            return false;
        }
        if !state.table.has_room() {
            let Some(slot) = state.table.slot_without_page() else {
                return false;
            };
            // This is the only empty slot now, so `begin_fill` takes it.
            debug_assert!(state.pages[slot].is_none(), "slot {slot} has a page");
            state.pages[slot] = Some(Arc::clone(&page));
            self.pages_held.fetch_add(1, Ordering::Relaxed);
            state.table.add_page();
        }
        let Ok(slot) = state.table.begin_fill(chunk) else {
            return false;
        };
        self.versions.begin(slot);
        state.prefetched[slot] = true;
        let is_shown = |last: &Arc<Lease>| !Arc::ptr_eq(last, &page) && Arc::strong_count(last) > 1;
        let shown = state.pages[slot].as_ref().filter(|last| is_shown(last));
        if let Some(last) = shown.map(Arc::clone) {
            drop(state);
            // A fabric shows the slot's old page to peers and holds it until it is revoked, which
            // happens only to pages of slots. So the slot keeps that page, and the bytes are copied
            // into it.
            let mut fill = FillGuard {
                cache: Arc::clone(self),
                page: last,
                slot,
                chunk,
                published: false,
            };
            fill.bytes_mut()[..length].copy_from_slice(&page.bytes()[..length]);
            drop(fill.publish(length));
            return true;
        }
        let last = state.pages[slot].replace(page);
        state.table.publish(slot, length);
        if let Some(word) = self.versions.word(slot) {
            publish(word);
        }
        state.table.release(slot);
        drop(state);
        drop(last);
        self.counts.prefetched.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Returns the bytes of pages that slots have without a chunk.
    fn empty_bytes(&self) -> u64 {
        lock(&self.state).table.empty_slots() as u64 * PAGE_BYTES as u64
    }
}

impl StagedFile {
    /// Returns room for the file's next bytes, at most to the end of a page. It is empty if more
    /// than half of the arena is taken or bytes were left out.
    pub fn room(&mut self) -> &mut [u8] {
        let within = (self.bytes % PAGE_BYTES as u64) as usize;
        let pages_bytes = self.pages.len() as u64 * PAGE_BYTES as u64;
        if !self.ended && pages_bytes == self.bytes {
            self.ended = !self.add_page();
        }
        match self.pages.last_mut() {
            Some(page) if !self.ended => &mut page.bytes_mut()[within..PAGE_BYTES],
            _ => &mut [],
        }
    }

    fn add_page(&mut self) -> bool {
        let pool = &self.cache.pool;
        let counters = pool.counters();
        let with_it = counters.held_bytes + PAGE_BYTES as u64;
        // Empty slots take the bytes of staged pages, which are free then.
        let in_use = with_it.saturating_sub(self.cache.empty_bytes());
        if in_use > counters.limit_bytes / 2 || with_it > counters.limit_bytes / 4 * 3 {
            return false;
        }
        let lease = pool.try_lease(PAGE_BYTES, Purpose::Serve);
        lease.map(|lease| self.pages.push(lease)).is_ok()
    }

    /// Notes that the first `bytes` bytes of `room` were filled.
    pub fn filled(&mut self, bytes: usize) {
        debug_assert!(bytes <= PAGE_BYTES - (self.bytes % PAGE_BYTES as u64) as usize);
        self.bytes += bytes as u64;
    }

    /// Ends the staging, because some bytes of the file are left out.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Ends the staging of a complete file: makes its staged chunks resident, and returns their
    /// number. Returns 0 if the file does not have these bytes.
    pub fn publish(self, region: &Region) -> usize {
        if self.bytes > region.bytes() {
            return 0;
        }
        let mut resident = 0;
        for (chunk, page) in self.pages.into_iter().enumerate() {
            let start = chunk as u64 * CHUNK_BYTES;
            if start >= self.bytes {
                break;
            }
            let length = CHUNK_BYTES.min(region.bytes() - start);
            // A chunk that is staged only in part does not count.
            if start + length <= self.bytes
                && self
                    .cache
                    .adopt((region.id(), chunk as u64), page, length as usize)
            {
                resident += 1;
            }
        }
        resident
    }
}
