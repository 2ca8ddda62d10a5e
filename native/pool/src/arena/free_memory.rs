//! The memory that is free: whole pages, and small buffers of split pages. Nothing here is announced.

use super::allocation::{Allocation, Geometry};
use super::slab_pages::{MapSlab, SlabPages};
use crate::budget::Share;
use crate::pages::PageIndex;
use crate::small_buffers::SmallBuffers;
use crate::{PoolError, Purpose, PAGE_BYTES, SIZE_CLASSES};
use crossbeam_utils::CachePadded;
use faro_sync::atomic::{AtomicU64, Ordering};

/// Number of size classes below a page.
pub(super) const SMALL_CLASSES: usize = SIZE_CLASSES.len() - 1;

/// The pages of slabs, and the small buffers into which some of them are split.
pub(super) struct FreeMemory {
    pub(super) pages: SlabPages,
    /// The small buffers, by purpose and class.
    small_buffers: [[SmallBuffers; SMALL_CLASSES]; 2],
    /// Bytes of held pages that are not leased: free buffers of split pages, and what rounding adds
    /// to external memory. So a lease of a whole page changes no counter.
    spare: CachePadded<AtomicU64>,
}

impl FreeMemory {
    /// Returns memory without mapped slabs.
    pub(super) fn new(geometry: Geometry, share: Option<Share>) -> Self {
        let small_buffers = || {
            std::array::from_fn(|class| {
                SmallBuffers::new((PAGE_BYTES / SIZE_CLASSES[class]) as u32)
            })
        };
        Self {
            pages: SlabPages::new(geometry, share),
            small_buffers: [small_buffers(), small_buffers()],
            spare: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// Returns the bytes leased, of slabs and external memory. It may be off by the leases that
    /// other threads take or return meanwhile.
    pub(super) fn leased_bytes(&self) -> u64 {
        let held = i64::from(self.pages.held().total()) * PAGE_BYTES as i64;
        // A small buffer is counted slightly before or after its page.
        (held - self.spare.load(Ordering::Relaxed) as i64).clamp(0, held) as u64
    }

    /// Returns the number of leases of slabs since the start.
    pub(super) fn acquisitions(&self) -> u64 {
        let buffers: u64 = self
            .small_buffers
            .iter()
            .flatten()
            .map(SmallBuffers::taken)
            .sum();
        buffers + self.pages.taken()
    }

    /// Counts spare bytes of held pages: `more` became free or newly held, and `fewer` were leased
    /// or are no longer held.
    pub(super) fn count_spare(&self, more: usize, fewer: usize) {
        let change = (more as u64).wrapping_sub(fewer as u64);
        // The sum is modulo 2^64, because it can be below zero for a moment.
        self.spare.fetch_add(change, Ordering::Relaxed);
    }

    /// Takes a free page or buffer of the class, and returns whether a page was split for it.
    pub(super) fn take(
        &self,
        class: u8,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<(Allocation, bool), PoolError> {
        let allocation = |page, index| Allocation {
            page,
            index,
            class,
            purpose,
        };
        let Some(small) = self.small(class, purpose) else {
            return Ok((allocation(self.take_page(purpose, map)?, 0), false));
        };
        let bytes = SIZE_CLASSES[usize::from(class)];
        let usable = |page| !self.pages.is_barred(page);
        if let Some((page, index)) = small.take(usable) {
            self.count_spare(0, bytes);
            return Ok((allocation(page, index), false));
        }
        let page = self.take_page(purpose, map)?;
        debug_assert!(bytes < PAGE_BYTES);
        let index = small.split(page);
        self.count_spare(PAGE_BYTES, bytes);
        Ok((allocation(page, index), true))
    }

    /// Lists an allocation as free.
    pub(super) fn list(&self, allocation: Allocation) {
        let whole = match self.small(allocation.class, allocation.purpose) {
            Some(small) => {
                let whole = small.give(allocation.page, allocation.index);
                let of_page = if whole { PAGE_BYTES } else { 0 };
                self.count_spare(allocation.bytes(), of_page);
                whole
            }
            None => true,
        };
        if whole {
            self.pages.list(allocation.purpose, allocation.page);
        }
    }

    fn take_page(&self, purpose: Purpose, map: MapSlab<'_>) -> Result<PageIndex, PoolError> {
        self.pages.enter(purpose, 1)?;
        self.pages.find(purpose, map)
    }

    /// Returns the small buffers of the class; `None` for whole pages.
    fn small(&self, class: u8, purpose: Purpose) -> Option<&SmallBuffers> {
        self.small_buffers[purpose as usize].get(usize::from(class))
    }
}
