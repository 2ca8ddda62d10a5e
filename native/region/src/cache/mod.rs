//! The chunk cache: fills and evicts chunks in pages of the arena, and reads regions through it.
//!
//! One lock guards table, pages and admission. It is held for lookups, but not while bytes are
//! copied, a file is read or a checksum is computed. Bytes are copied or sent under a `ReadGuard`, which
//! keeps the chunk from being evicted, and filled under a `FillGuard`, which keeps all others out
//! of the slot. Peers have neither and use versions.
//!
//! Slots get pages from the arena one by one, as long as less than three quarters of the arena are
//! taken. After that, chunks are evicted for others (`state`). A caller that the arena refuses calls
//! `release`, which returns the pages of the least used chunks; where guards hold all, the next that ends returns its
//! own.

mod counters;
mod guards;
mod read;
mod staged;
mod state;
mod versions;

pub use counters::{ChunkCacheCounters, ReadSources};
pub use guards::{FillGuard, ReadGuard};
pub use read::Sleep;
pub use staged::StagedFile;

use crate::table::Slot;
use crate::version::Version;
use crate::{RegionError, RegionId, MAX_SLOTS};
use counters::Counts;
use faro_pool::{Lease, Pool, PAGE_BYTES};
use faro_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use faro_sync::{lock, Mutex};
use state::{CacheState, FillCause};
use std::sync::Arc;
use versions::Versions;

/// A cache of chunks in pages of the arena, readable by peers.
pub struct ChunkCache {
    pool: Arc<Pool>,
    state: Mutex<CacheState>,
    versions: Versions,
    /// Number of slots that have a page. Changed only under the lock of `state`.
    pages_held: AtomicU64,
    /// Number of slots whose chunk a guard holds. Changed only under the lock of `state`.
    guarded: AtomicU64,
    /// `release` found no page, and `look_again` was not called since. Set only under the lock of `state`, so that a
    /// guard that ends knows that its page is wanted.
    exhausted: AtomicBool,
    counts: Counts,
}

impl ChunkCache {
    /// Returns a cache for up to `slots` chunks of `CHUNK_BYTES`. It takes no memory yet.
    ///
    /// # Errors
    /// Returns `Slots` if the number of slots is out of bounds.
    pub fn new(pool: Arc<Pool>, slots: usize) -> Result<Arc<Self>, RegionError> {
        if slots == 0 || slots > MAX_SLOTS {
            return Err(RegionError::Slots {
                got: slots,
                max: MAX_SLOTS,
            });
        }
        Ok(Arc::new(Self {
            pool,
            state: Mutex::new(CacheState::new(slots)),
            versions: Versions::new(slots),
            pages_held: AtomicU64::new(0),
            guarded: AtomicU64::new(0),
            exhausted: AtomicBool::new(false),
            counts: Counts::default(),
        }))
    }

    /// Returns the lease of the versions, to be made readable for peers; slot `i` has the 8 bytes
    /// from `8 * i`. Returns `None` until the first slot has a page.
    pub fn versions(&self) -> Option<&Arc<Lease>> {
        self.versions.lease()
    }

    /// Returns a slot and a version for memory that never changes, so that peers read it by the same
    /// protocol. Returns `None` if the arena has no memory for versions.
    pub fn constant(&self) -> Option<(usize, Version)> {
        let _state = lock(&self.state);
        let has_memory = self.versions.has_memory(&self.pool);
        has_memory.then(|| self.versions.constant())
    }

    /// Returns the chunk, if it is in a slot; this is a use of it. It stays there until the guard is dropped.
    pub fn get(self: &Arc<Self>, id: RegionId, chunk: u64) -> Option<ReadGuard> {
        let mut state = lock(&self.state);
        let slot = state.acquire((id, chunk))?;
        self.counts.resident.fetch_add(1, Ordering::Relaxed);
        self.guard(&state, slot)
    }

    /// Returns whether the chunk is in a slot. This does not count as a use of it.
    pub fn has(&self, id: RegionId, chunk: u64) -> bool {
        lock(&self.state).table.has((id, chunk))
    }

    /// Returns a slot for the caller to fill with the chunk. Returns `None` if a slot has the chunk
    /// or is being filled with it, or if all slots are in use.
    pub fn begin_fill(self: &Arc<Self>, id: RegionId, chunk: u64) -> Option<FillGuard> {
        self.begin_fill_for(id, chunk, FillCause::Demand)
    }

    /// Forgets all regions of a group. No peer accepts their bytes from now on.
    pub fn forget(&self, group: u32) {
        let mut state = lock(&self.state);
        for slot in state.table.forget(group) {
            self.versions.begin(slot);
        }
        state.admission.forget(group);
    }

    /// Returns up to `pages` pages to the arena, those of the least used chunks first. Pages that
    /// peers may read stay, and those that guards hold. Returns their number. If it is none, the next
    /// guard that ends returns its page.
    pub fn release(&self, pages: usize) -> usize {
        let mut state = lock(&self.state);
        let freed = state.take_pages(pages, &self.versions);
        if freed.is_empty() {
            self.exhausted.store(true, Ordering::Relaxed);
        }
        let held = self
            .pages_held
            .fetch_sub(freed.len() as u64, Ordering::Relaxed);
        debug_assert!(held >= freed.len() as u64, "a page was freed twice");
        drop(state);
        self.counts
            .pages_released
            .fetch_add(freed.len() as u64, Ordering::Relaxed);
        freed.len()
    }

    /// Returns whether `release` found no page and nothing has changed since: it would go over all slots for
    /// nothing.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// Lets `release` be called again, because time has passed or pages were revoked.
    pub fn look_again(&self) {
        self.exhausted.store(false, Ordering::Relaxed);
    }

    /// Returns the bytes of the pages that slots have and no guard holds.
    pub fn unguarded_bytes(&self) -> u64 {
        let [held, guarded] = [&self.pages_held, &self.guarded].map(|n| n.load(Ordering::Relaxed));
        held.saturating_sub(guarded) * PAGE_BYTES as u64
    }

    /// Called under the lock of `state` when the number of slots with readers may have changed.
    fn note_held(&self, state: &CacheState) {
        self.guarded
            .store(state.table.held_slots() as u64, Ordering::Relaxed);
    }

    /// Returns the addresses of up to `max` pages that `release` could release if no fabric showed
    /// them to peers, those of the least used chunks first.
    pub fn shown_pages(&self, max: usize) -> Vec<usize> {
        lock(&self.state).shown_pages(max)
    }

    /// Returns, for a reader in this process without a guard, whether the bytes of `slot` that it
    /// has read are those published under `version`. Peers read the lease of the versions instead.
    pub fn is_still(&self, slot: usize, version: Version) -> bool {
        self.versions.is_still(slot, version)
    }

    /// Panics if the table contradicts itself. For tests.
    #[doc(hidden)]
    pub fn check(&self) {
        lock(&self.state).table.check();
    }

    /// Returns a snapshot of the counters.
    pub fn counters(&self) -> ChunkCacheCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let state = lock(&self.state);
        let pages = state.pages.iter().flatten().count();
        ChunkCacheCounters {
            exits: ReadSources {
                resident: get(&self.counts.resident),
                minor: get(&self.counts.minor),
                major: get(&self.counts.major),
            },
            prefetched: get(&self.counts.prefetched),
            prefetch_hits: get(&self.counts.prefetch_hits),
            evictions: state.table.evictions(),
            pages_released: get(&self.counts.pages_released),
            cached_chunks: state.table.residents() as u64,
            held_bytes: (pages * PAGE_BYTES + self.versions().map_or(0, |v| v.capacity())) as u64,
        }
    }

    /// Returns a slot for the caller to fill with the chunk, if there is one for this cause.
    fn begin_fill_for(
        self: &Arc<Self>,
        id: RegionId,
        chunk: u64,
        cause: FillCause,
    ) -> Option<FillGuard> {
        let mut state = lock(&self.state);
        if state.grow(&self.pool, &self.versions) {
            self.pages_held.fetch_add(1, Ordering::Relaxed);
        }
        let slot = state.slot_to_fill((id, chunk), cause)?;
        self.versions.begin(slot);
        let page = state.pages[slot].clone()?;
        Some(FillGuard {
            cache: Arc::clone(self),
            page,
            slot,
            chunk: (id, chunk),
            published: false,
        })
    }

    /// Returns the guard of a slot that the table has just acquired for a read.
    fn guard(self: &Arc<Self>, state: &CacheState, slot: Slot) -> Option<ReadGuard> {
        self.note_held(state);
        if state.prefetched[slot] {
            self.counts.prefetch_hits.fetch_add(1, Ordering::Relaxed);
        }
        Some(ReadGuard {
            cache: Arc::clone(self),
            page: state.pages[slot].clone()?,
            slot,
            version: self.versions.word(slot)?.load(Ordering::Relaxed),
            length: state.table.length(slot),
        })
    }
}
