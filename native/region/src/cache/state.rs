//! The state under the cache's lock: the table, the pages of its slots, and admission.

use super::versions::Versions;
use crate::admission::ChunkAdmission;
use crate::table::{Chunk, NoSlot, Slot, Table};
use faro_pool::{Lease, Pool, Purpose, PAGE_BYTES};
use std::sync::Arc;

/// The reason for filling a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FillCause {
    /// A read asked for the chunk. Another chunk may be evicted for it.
    Demand,
    /// Reads ask for the chunk often. A chunk that is asked for less may be evicted for it.
    Often { accesses: u16 },
    /// A read will ask for the chunk. No other chunk is evicted for it.
    Prefetch,
}

pub(super) struct CacheState {
    pub(super) table: Table,
    /// The pages by slot. A fabric that shows a page to peers holds the `Arc`, too.
    pub(super) pages: Vec<Option<Arc<Lease>>>,
    /// For each slot, true if its chunk was prefetched.
    pub(super) prefetched: Vec<bool>,
    pub(super) admission: ChunkAdmission,
}

impl CacheState {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            table: Table::new(slots),
            pages: (0..slots).map(|_| None).collect(),
            prefetched: vec![false; slots],
            admission: ChunkAdmission::new(slots),
        }
    }

    /// Adds a page if no slot is empty and less than three quarters of the arena are taken. Returns
    /// whether it added one.
    pub(super) fn grow(&mut self, pool: &Arc<Pool>, versions: &Versions) -> bool {
        if self.table.has_room() {
            return false;
        }
        let Some(slot) = self.table.slot_without_page() else {
            return false;
        };
        let counters = pool.counters();
        if counters.held_bytes + PAGE_BYTES as u64 > counters.limit_bytes / 4 * 3 {
            return false;
        }
        if !versions.has_memory(pool) {
            return false;
        }
        let Ok(lease) = pool.try_lease(PAGE_BYTES, Purpose::Serve) else {
            return false;
        };
        debug_assert!(self.pages[slot].is_none(), "slot {slot} has a page");
        self.pages[slot] = Some(Arc::new(lease));
        self.table.add_page();
        true
    }

    /// Returns a slot to be filled with the chunk; its version must change. Returns `None` if a slot
    /// has the chunk or is being filled with it, or if `cause` justifies no slot.
    pub(super) fn slot_to_fill(&mut self, chunk: Chunk, cause: FillCause) -> Option<Slot> {
        if cause == FillCause::Prefetch && !self.table.has_room() {
            return None;
        }
        let (found, prefetched) = match cause {
            FillCause::Demand => (self.table.begin_fill(chunk), false),
            FillCause::Often { accesses } => {
                (self.table.begin_fill_if_worth(chunk, accesses), false)
            }
            FillCause::Prefetch => (self.table.begin_fill(chunk), true),
        };
        let slot = match found {
            Ok(slot) => slot,
            Err(NoSlot::Resident | NoSlot::Filling | NoSlot::AllHeld | NoSlot::NotWorth) => {
                return None
            }
        };
        self.prefetched[slot] = prefetched;
        Some(slot)
    }

    /// Takes up to `max` pages away from slots, those of the least used chunks first, and changes
    /// the slots' versions. Pages that peers may read stay.
    pub(super) fn take_pages(&mut self, max: usize, versions: &Versions) -> Vec<Arc<Lease>> {
        let Self { table, pages, .. } = self;
        // Only the cache may hold the page: no reader, no filler, and no fabric that shows it to
        // peers.
        let only_held_here = |slot: Slot| {
            pages[slot]
                .as_ref()
                .is_some_and(|p| Arc::strong_count(p) == 1)
        };
        let slots = table.take_pages(max, only_held_here);
        let taken = slots.into_iter().filter_map(|slot| {
            versions.begin(slot);
            pages[slot].take()
        });
        taken.collect()
    }

    /// Counts a use of the chunk, and a reader of its slot if it is in one. Each use ages the counts of all chunks.
    pub(super) fn acquire(&mut self, chunk: Chunk) -> Option<Slot> {
        if self.admission.halves() {
            self.table.halve_accesses();
        }
        self.table.acquire(chunk)
    }

    /// Takes the page away from a slot that has no readers, and changes its version. Returns whether it did.
    pub(super) fn give_page(&mut self, slot: Slot, versions: &Versions) -> bool {
        let gives = self.table.take_page(slot);
        if gives {
            versions.begin(slot);
            self.pages[slot] = None;
        }
        gives
    }

    /// Returns the addresses of up to `max` pages that `take_pages` could take if no fabric showed
    /// them to peers, those of the least used chunks first.
    pub(super) fn shown_pages(&self, max: usize) -> Vec<usize> {
        let page = |slot: Slot| self.pages[slot].as_ref();
        let shown = |slot: Slot| page(slot).is_some_and(|page| Arc::strong_count(page) > 1);
        let slots = self.table.least_used(max, shown);
        let address = |slot: Slot| page(slot).map(|page| page.start().as_ptr() as usize);
        slots.into_iter().filter_map(address).collect()
    }
}
