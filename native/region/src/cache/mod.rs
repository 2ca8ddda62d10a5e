//! The chunk cache: reads, fills and evicts chunks in pages of the arena.
//!
//! One lock guards table, pages and admission. It is held for lookups, but not while bytes are
//! copied, a file is read or a checksum is computed. Bytes are copied under a `ReadGuard`, which
//! keeps the chunk from being evicted, and filled under a `FillGuard`, which keeps all others out
//! of the slot. Peers have neither and use versions.
//!
//! Slots get pages from the arena one by one, as long as less than three quarters of the arena are
//! taken. After that, chunks are evicted for others. A caller that the arena refuses calls
//! `release`, which returns the pages of the least used chunks.

mod counters;
mod fault;
mod guards;
mod staged;
mod versions;

pub use counters::{ChunkCacheCounters, Exits};
pub use guards::{FillGuard, ReadGuard};
pub use staged::StagedFile;

use crate::admission::ChunkAdmission;
use crate::table::{NoSlot, Slot, Table};
use crate::version::Version;
use crate::{Region, RegionError, RegionId, CHUNK_BYTES, MAX_SLOTS};
use counters::Counts;
use faro_pool::{Lease, Pool, Purpose, PAGE_BYTES};
use faro_sync::atomic::{AtomicU64, Ordering};
use faro_sync::{lock, Mutex};
use fault::fault;
use std::io;
use std::sync::Arc;
use versions::Versions;

/// Says whether a read may wait for a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    /// It may not, because it is on a progress thread: it returns the bytes that are in memory.
    Never,
    /// It may, because it is on an I/O thread.
    May,
}

/// The reason for filling a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// A read asked for the chunk. Another chunk may be evicted for it.
    Demand,
    /// Reads ask for the chunk often. A chunk that is asked for less may be evicted for it.
    Often { accesses: u16 },
    /// A read will ask for the chunk. `evict` says whether another chunk may be evicted for it.
    Prefetch { evict: bool },
}

struct CacheState {
    table: Table,
    /// The pages by slot. A fabric that shows a page to peers holds the `Arc`, too.
    pages: Vec<Option<Arc<Lease>>>,
    /// For each slot, true if its chunk was prefetched.
    prefetched: Vec<bool>,
    admission: ChunkAdmission,
}

/// A cache of chunks in pages of the arena, readable by peers.
pub struct ChunkCache {
    pool: Arc<Pool>,
    state: Mutex<CacheState>,
    versions: Versions,
    /// Number of slots that have a page. Changed only under the lock of `state`.
    pages_held: AtomicU64,
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
            state: Mutex::new(CacheState {
                table: Table::new(slots),
                pages: (0..slots).map(|_| None).collect(),
                prefetched: vec![false; slots],
                admission: ChunkAdmission::new(slots),
            }),
            versions: Versions::new(slots),
            pages_held: AtomicU64::new(0),
            counts: Counts::default(),
        }))
    }

    /// Returns the lease of the versions, to be made readable for peers; slot `i` has the 8 bytes
    /// from `8 * i`. Returns `None` until the first slot has a page.
    pub fn versions(&self) -> Option<&Arc<Lease>> {
        self.versions.lease()
    }

    /// Returns a slot and a version for other memory whose bytes never change, so that peers follow
    /// one protocol for both. Returns `None` if the arena has no memory for versions.
    pub fn constant(&self) -> Option<(usize, Version)> {
        let _state = lock(&self.state);
        let there = self.versions.has_memory(&self.pool);
        there.then(|| self.versions.constant())
    }

    /// Returns the chunk, if it is in a slot. It stays there until the guard is dropped.
    pub fn get(self: &Arc<Self>, id: RegionId, chunk: u64) -> Option<ReadGuard> {
        let mut state = lock(&self.state);
        let slot = state.table.acquire((id, chunk))?;
        self.guard(&state, slot)
    }

    /// Returns whether the chunk is in a slot. This does not count as a use of it.
    pub fn has(&self, id: RegionId, chunk: u64) -> bool {
        lock(&self.state).table.has((id, chunk))
    }

    /// Returns a slot for the caller to fill with the chunk. Returns `None` if a slot has the chunk
    /// or is being filled with it, or if all slots are in use.
    pub fn begin_fill(self: &Arc<Self>, id: RegionId, chunk: u64) -> Option<FillGuard> {
        self.begin_fill_for(id, chunk, Cause::Demand)
    }

    /// Fills a slot with a chunk before a read asks for it; may sleep. `evict` says whether another
    /// chunk may be evicted for it. Returns `false` if a slot has it or is being filled with it, or
    /// if there is no slot for it.
    ///
    /// # Errors
    /// Returns the error of reading the file.
    pub fn prefetch(
        self: &Arc<Self>,
        region: &Region,
        chunk: u64,
        evict: bool,
    ) -> io::Result<bool> {
        let ahead = Cause::Prefetch { evict };
        Ok(self.fill(region, chunk, ahead)?.is_some())
    }

    /// Fills the front of `out` with the bytes of `region` from `offset`, and returns their number.
    /// If the read may sleep, it fills all of `out`, and also fills slots with chunks that are
    /// asked for often.
    ///
    /// # Errors
    /// Returns the error of reading the file, and `UnexpectedEof` if it has become shorter.
    pub fn read(
        self: &Arc<Self>,
        region: &Region,
        offset: u64,
        out: &mut [u8],
        sleep: Sleep,
    ) -> io::Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let (chunk, within) = (at / CHUNK_BYTES, (at % CHUNK_BYTES) as usize);
            let length = (out.len() - done).min(CHUNK_BYTES as usize - within);
            let piece = &mut out[done..done + length];
            let got = self.read_piece(region, chunk, within, piece, sleep)?;
            done += got;
            if got < length {
                break;
            }
        }
        Ok(done)
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
    /// peers may read stay. Returns their number.
    pub fn release(&self, pages: usize) -> usize {
        let mut state = lock(&self.state);
        let CacheState {
            table, pages: of, ..
        } = &mut *state;
        // Only the cache may hold the page: no reader, no filler, and no fabric that shows it to
        // peers.
        let only_held_here =
            |slot: Slot| of[slot].as_ref().is_some_and(|p| Arc::strong_count(p) == 1);
        let slots = table.take_pages(pages, only_held_here);
        let gone: Vec<_> = slots
            .into_iter()
            .filter_map(|slot| {
                self.versions.begin(slot);
                of[slot].take()
            })
            .collect();
        self.pages_held
            .fetch_sub(gone.len() as u64, Ordering::Relaxed);
        drop(state);
        self.counts
            .pages_released
            .fetch_add(gone.len() as u64, Ordering::Relaxed);
        gone.len()
    }

    /// Returns the bytes of the pages that slots have.
    pub fn page_bytes(&self) -> u64 {
        self.pages_held.load(Ordering::Relaxed) * PAGE_BYTES as u64
    }

    /// Returns the addresses of up to `max` pages that `release` could release if no fabric showed
    /// them to peers, those of the least used chunks first.
    pub fn shown_pages(&self, max: usize) -> Vec<usize> {
        let state = lock(&self.state);
        let page = |slot: Slot| state.pages[slot].as_ref();
        let shown = |slot: Slot| page(slot).is_some_and(|page| Arc::strong_count(page) > 1);
        let slots = state.table.least_used(max, shown);
        let address = |slot: Slot| page(slot).map(|page| page.start().as_ptr() as usize);
        slots.into_iter().filter_map(address).collect()
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
            exits: Exits {
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

    fn read_piece(
        self: &Arc<Self>,
        region: &Region,
        chunk: u64,
        within: usize,
        piece: &mut [u8],
        sleep: Sleep,
    ) -> io::Result<usize> {
        let mut admitted = None;
        let guard = {
            let mut state = lock(&self.state);
            if state.admission.halves() {
                state.table.halve_accesses();
            }
            let slot = state.table.acquire((region.id(), chunk));
            if slot.is_none() && sleep == Sleep::May && piece.len() < CHUNK_BYTES as usize {
                admitted = state.admission.count_access((region.id(), chunk));
            }
            slot.and_then(|slot| self.guard(&state, slot))
        };
        let guard = match guard {
            Some(guard) => {
                self.counts.resident.fetch_add(1, Ordering::Relaxed);
                Some(guard)
            }
            // If the chunk cannot be read as a whole, the wanted part may still be readable.
            None => admitted.and_then(|accesses| {
                let cause = Cause::Often { accesses };
                self.fill(region, chunk, cause).unwrap_or(None)
            }),
        };
        if let Some(bytes) = guard
            .as_ref()
            .and_then(|p| p.bytes().get(within..within + piece.len()))
        {
            piece.copy_from_slice(bytes);
            return Ok(piece.len());
        }
        let offset = chunk * CHUNK_BYTES + within as u64;
        fault(&self.counts, region, offset, piece, sleep)
    }

    fn fill(
        self: &Arc<Self>,
        region: &Region,
        chunk: u64,
        cause: Cause,
    ) -> io::Result<Option<ReadGuard>> {
        let Some(mut fill) = self.begin_fill_for(region.id(), chunk, cause) else {
            return Ok(None);
        };
        let offset = chunk * CHUNK_BYTES;
        let length = CHUNK_BYTES.min(region.bytes().saturating_sub(offset)) as usize;
        let bytes = &mut fill.bytes_mut()[..length];
        fault(&self.counts, region, offset, bytes, Sleep::May)?;
        Ok(Some(fill.publish(length)))
    }

    fn begin_fill_for(
        self: &Arc<Self>,
        id: RegionId,
        chunk: u64,
        cause: Cause,
    ) -> Option<FillGuard> {
        let mut state = lock(&self.state);
        self.grow(&mut state);
        if cause == (Cause::Prefetch { evict: false }) && !state.table.has_room() {
            return None;
        }
        let (found, prefetched) = match cause {
            Cause::Demand => (state.table.begin_fill((id, chunk)), false),
            Cause::Often { accesses } => {
                let found = state.table.begin_fill_if_worth((id, chunk), accesses);
                (found, false)
            }
            Cause::Prefetch { .. } => (state.table.begin_fill((id, chunk)), true),
        };
        let slot = match found {
            Ok(slot) => slot,
            Err(NoSlot::Resident | NoSlot::Filling | NoSlot::AllHeld | NoSlot::NotWorth) => {
                return None
            }
        };
        self.versions.begin(slot);
        state.prefetched[slot] = prefetched;
        let page = state.pages[slot].clone()?;
        Some(FillGuard {
            cache: Arc::clone(self),
            page,
            slot,
            chunk: (id, chunk),
            published: false,
        })
    }

    /// Adds a page if no slot is empty and less than three quarters of the arena are taken.
    fn grow(&self, state: &mut CacheState) {
        if state.table.has_room() {
            return;
        }
        let Some(slot) = state.table.slot_without_page() else {
            return;
        };
        let pool = self.pool.counters();
        if pool.held_bytes + PAGE_BYTES as u64 > pool.limit_bytes / 4 * 3 {
            return;
        }
        if !self.versions.has_memory(&self.pool) {
            return;
        }
        if let Ok(lease) = self.pool.try_lease(PAGE_BYTES, Purpose::Serve) {
            state.pages[slot] = Some(Arc::new(lease));
            self.pages_held.fetch_add(1, Ordering::Relaxed);
            state.table.add_page();
        }
    }

    /// Returns the guard of a slot that the table has just acquired for a read.
    fn guard(self: &Arc<Self>, state: &CacheState, slot: Slot) -> Option<ReadGuard> {
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
