//! The residency table with its memory: reads, staging, eviction.
//!
//! One lock guards table, pages and admission; it is held for look-ups, never for a copy, a read of
//! a file or a checksum. Bytes are copied under a *guard* (nobody overwrites what is held) and filled
//! under a *claim* (nobody else fills or reads what is claimed). Peers read without either and have
//! versions.
//!
//! Memory: slots get pages from the arena one by one, while the arena has more free than a quarter
//! of its limit; from there on the clock reuses what there is. Whoever is refused by the arena calls
//! `give_back` and gets the pages that matter least.

mod guards;

pub use guards::{FillGuard, ReadGuard};

use crate::admission::Admission;
use crate::table::{NoSlot, Slot, Table};
use crate::version::{begin, still, Version, VERSION_BYTES};
use crate::{Region, RegionError, RegionId, CHUNK_BYTES, MAX_SLOTS};
use crossbeam_utils::CachePadded;
use faro_pool::{Lease, Pool, Purpose, PAGE_BYTES};
use faro_sync::atomic::{AtomicU64, Ordering};
use faro_sync::{lock, Mutex};
use std::io;
use std::sync::{Arc, OnceLock};

/// The version of what never changes.
const UNCHANGING: Version = 2;

/// Whether a read may wait for a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    /// A progress thread: what is not in memory is left out.
    Never,
    /// An I/O thread.
    May,
}

/// By which exits the pieces of a read left; a piece is what one chunk has of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exits {
    /// Copied from a page.
    pub resident: u64,
    /// From the page cache.
    pub minor: u64,
    /// From the medium.
    pub major: u64,
}

/// Snapshot of the counters; all but the last two only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChunkCacheCounters {
    /// Pieces by exit, of reads and of staging.
    pub exits: Exits,
    /// Chunks brought into pages.
    pub staged: u64,
    /// Pieces found in a page that `stage` had filled, before anybody asked for them.
    pub staged_hits: u64,
    /// Chunks that went for others.
    pub evictions: u64,
    /// Pages given back because the arena was short.
    pub given_back: u64,
    /// Chunks in pages now.
    pub resident_chunks: u64,
    /// Bytes of the arena held now, the versions' among them.
    pub held_bytes: u64,
}

#[derive(Default)]
struct Counts {
    resident: CachePadded<AtomicU64>,
    minor: CachePadded<AtomicU64>,
    major: AtomicU64,
    staged: AtomicU64,
    staged_hits: AtomicU64,
    given_back: AtomicU64,
}

/// Why a chunk is brought into a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// It is asked for; others have to go for it.
    Demand,
    /// It will be.
    Prefetch { evict: bool },
}

struct State {
    table: Table,
    /// By slot. A page that has been exposed to peers is counted by them too.
    pages: Vec<Option<Arc<Lease>>>,
    /// By slot: what it holds was staged before anybody asked.
    prefetched: Vec<bool>,
    admission: Admission,
}

/// See the module's comment.
pub struct ChunkCache {
    pool: Arc<Pool>,
    state: Mutex<State>,
    /// One word for each slot and that of `unchanging`, from the first byte; taken with the first page. Changed under
    /// `state` only.
    versions: OnceLock<Arc<Lease>>,
    slots: usize,
    counts: Counts,
}

impl ChunkCache {
    /// Room for up to `slots` chunks of `CHUNK_BYTES`; takes no memory yet.
    ///
    /// # Errors
    /// `Slots`.
    pub fn new(pool: Arc<Pool>, slots: usize) -> Result<Arc<Self>, RegionError> {
        if slots == 0 || slots > MAX_SLOTS {
            return Err(RegionError::Slots {
                got: slots,
                max: MAX_SLOTS,
            });
        }
        Ok(Arc::new(Self {
            pool,
            state: Mutex::new(State {
                table: Table::new(slots),
                pages: (0..slots).map(|_| None).collect(),
                prefetched: vec![false; slots],
                admission: Admission::new(slots),
            }),
            versions: OnceLock::new(),
            slots,
            counts: Counts::default(),
        }))
    }

    /// The versions' lease, to be exposed, once anything was resident; slot `i` has the 8 bytes from
    /// `8 * i`.
    pub fn versions(&self) -> Option<&Arc<Lease>> {
        self.versions.get()
    }

    /// Slot and version of memory that is not this crate's and whose bytes never change, so that a
    /// peer can follow one protocol for both. `None`: the arena has no memory for versions.
    pub fn constant(&self) -> Option<(usize, Version)> {
        let _state = lock(&self.state);
        self.has_versions().then_some((self.slots, UNCHANGING))
    }

    /// The chunk, if it is in a page, held until the guard is dropped.
    pub fn get(self: &Arc<Self>, id: RegionId, chunk: u64) -> Option<ReadGuard> {
        let mut state = lock(&self.state);
        let slot = state.table.acquire((id, chunk))?;
        self.guard(&state, slot)
    }

    /// Whether the chunk is in a page; no use of it.
    pub fn has(&self, id: RegionId, chunk: u64) -> bool {
        lock(&self.state).table.has((id, chunk))
    }

    /// A page for the chunk, to be filled by the caller. `None`: it has one, somebody fills one, or
    /// all are in use.
    pub fn begin_fill(self: &Arc<Self>, id: RegionId, chunk: u64) -> Option<FillGuard> {
        self.begin_fill_for(id, chunk, Cause::Demand)
    }

    /// Brings a chunk into a page before anybody asks for it; may sleep. `evict`: others may have to
    /// go for it. `false`: it is being brought already, or there is no page for it.
    ///
    /// # Errors
    /// What reading the file says.
    pub fn prefetch(
        self: &Arc<Self>,
        region: &Region,
        chunk: u64,
        evict: bool,
    ) -> io::Result<bool> {
        let ahead = Cause::Prefetch { evict };
        Ok(self.fill(region, chunk, ahead)?.is_some())
    }

    /// Fills `out` with the bytes of `region` from `offset`, and says how much of it (all, if it may
    /// sleep). May stage what is asked for often, if it may sleep.
    ///
    /// # Errors
    /// What reading the file says; `UnexpectedEof` when it has become shorter.
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

    /// Forgets all regions of a group; nobody believes their bytes from now on.
    pub fn forget(&self, group: u32) {
        let mut state = lock(&self.state);
        for slot in state.table.forget(group) {
            self.begin(slot);
        }
        state.admission.forget(group);
    }

    /// Gives up to `pages` pages back to the arena, the least useful first; those that peers may
    /// read stay. Returns how many.
    pub fn release(&self, pages: usize) -> usize {
        let mut state = lock(&self.state);
        let State {
            table, pages: of, ..
        } = &mut *state;
        // Only the cache has it: no reader, no filler, and no fabric that shows it to peers.
        let ours = |slot: Slot| of[slot].as_ref().is_some_and(|p| Arc::strong_count(p) == 1);
        let slots = table.take_pages(pages, ours);
        let gone: Vec<_> = slots
            .into_iter()
            .filter_map(|slot| {
                self.begin(slot);
                of[slot].take()
            })
            .collect();
        drop(state);
        self.counts
            .given_back
            .fetch_add(gone.len() as u64, Ordering::Relaxed);
        gone.len()
    }

    /// Last step of a reader in this process that held no guard: whether what it read of `slot` before
    /// is what was published under `version`. Peers read the versions' lease instead.
    pub fn is_still(&self, slot: usize, version: Version) -> bool {
        slot < self.slots && self.word(slot).is_some_and(|word| still(word, version))
    }

    /// Panics if the table contradicts itself; for tests.
    #[doc(hidden)]
    pub fn check(&self) {
        lock(&self.state).table.check();
    }

    /// Counters.
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
            staged: get(&self.counts.staged),
            staged_hits: get(&self.counts.staged_hits),
            evictions: state.table.evictions(),
            given_back: get(&self.counts.given_back),
            resident_chunks: state.table.residents() as u64,
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
        let mut admitted = false;
        let guard = {
            let mut state = lock(&self.state);
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
            // A chunk that cannot be read as a whole may have the bytes that are wanted.
            None if admitted => self.fill(region, chunk, Cause::Demand).unwrap_or(None),
            None => None,
        };
        if let Some(bytes) = guard
            .as_ref()
            .and_then(|p| p.bytes().get(within..within + piece.len()))
        {
            piece.copy_from_slice(bytes);
            return Ok(piece.len());
        }
        self.fault(region, chunk * CHUNK_BYTES + within as u64, piece, sleep)
    }

    /// The software page fault: cache first, then the medium if that may be waited for.
    fn fault(
        &self,
        region: &Region,
        offset: u64,
        piece: &mut [u8],
        sleep: Sleep,
    ) -> io::Result<usize> {
        let cached = region.read_cached(offset, piece)?;
        if cached == piece.len() {
            self.counts.minor.fetch_add(1, Ordering::Relaxed);
            return Ok(cached);
        }
        if sleep == Sleep::Never {
            return Ok(cached);
        }
        region.read(offset + cached as u64, &mut piece[cached..])?;
        // Where the file system cannot say, nobody knows that a medium was waited for.
        let exit = match region.knows_nowait() {
            true => &self.counts.major,
            false => &*self.counts.minor,
        };
        exit.fetch_add(1, Ordering::Relaxed);
        Ok(piece.len())
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
        self.fault(region, offset, &mut fill.bytes_mut()[..length], Sleep::May)?;
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
        let slot = match state.table.begin_fill((id, chunk)) {
            Ok(slot) => slot,
            Err(NoSlot::Resident | NoSlot::Filling | NoSlot::AllHeld) => return None,
        };
        self.begin(slot);
        state.prefetched[slot] = cause != Cause::Demand;
        let page = state.pages[slot].clone()?;
        Some(FillGuard {
            cache: Arc::clone(self),
            page,
            slot,
            chunk: (id, chunk),
            published: false,
        })
    }

    /// One more page, if all are taken and the arena has plenty.
    fn grow(&self, state: &mut State) {
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
        if !self.has_versions() {
            return;
        }
        if let Ok(lease) = self.pool.try_lease(PAGE_BYTES, Purpose::Serve) {
            state.pages[slot] = Some(Arc::new(lease));
            state.table.add_page();
        }
    }

    /// A slot that the table has held, for somebody who uses what is in it.
    fn guard(self: &Arc<Self>, state: &State, slot: Slot) -> Option<ReadGuard> {
        if state.prefetched[slot] {
            self.counts.staged_hits.fetch_add(1, Ordering::Relaxed);
        }
        Some(ReadGuard {
            cache: Arc::clone(self),
            page: state.pages[slot].clone()?,
            slot,
            version: self.word(slot)?.load(Ordering::Relaxed),
            length: state.table.length(slot),
        })
    }

    /// Takes the memory of the versions, if it is not taken yet. Under `state`.
    fn has_versions(&self) -> bool {
        if self.versions.get().is_none() {
            let bytes = (self.slots + 1) * VERSION_BYTES;
            let Ok(mut lease) = self.pool.try_lease(bytes, Purpose::Serve) else {
                return false;
            };
            // Recycled memory holds anything; all slots begin empty, and so odd.
            for word in lease.bytes_mut()[..bytes].chunks_exact_mut(VERSION_BYTES) {
                word.copy_from_slice(&1u64.to_le_bytes());
            }
            let last = self.slots * VERSION_BYTES..bytes;
            lease.bytes_mut()[last].copy_from_slice(&UNCHANGING.to_le_bytes());
            return self.versions.set(Arc::new(lease)).is_ok();
        }
        true
    }

    /// Nobody believes what is in the slot from here on.
    fn begin(&self, slot: Slot) {
        if let Some(word) = self.word(slot) {
            begin(word);
        }
    }

    /// `None` only while no slot has had memory yet.
    fn word(&self, slot: Slot) -> Option<&AtomicU64> {
        debug_assert!(slot < self.slots);
        let start = self.versions.get()?.start().as_ptr().cast::<u64>();
        // SAFETY: `versions` holds more than `slots` words and `slot` is one of them; a lease is aligned to 4
        // KiB, so each word is to 8; the lease lives as long as `self`. Once it is in `versions` the
        // words are only ever accessed as atomics in this process (nobody calls `bytes` of this
        // lease), and by devices and read-only mappings of peers outside of it.
        Some(unsafe { AtomicU64::from_ptr(start.add(slot)) })
    }
}
