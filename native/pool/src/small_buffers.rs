//! Pages that are cut into smaller leases.
//!
//! One small per purpose and small class. A small knows its pages with at least one free index,
//! each with a bit mask of what is free (64 buffers of 4 KiB are just one word); a page with none
//! free is on no list at all, and one whose last index returned leaves the small at once.
//!
//! Purposes do not share a cut page, and a cut page counts as a whole (`admission`): otherwise
//! readers could scatter one small lease over every page and the reserve for serving would be a
//! sum of bytes in which not a single page is free.
//!
//! A lock and an ordered map instead of a queue of buffers. A page can only be joined again if
//! its buffers can be withdrawn from the middle of the free list, which a queue cannot do, and the
//! map's order packs leases into the lowest pages, which is what lets the others become whole
//! (address-ordered first fit, as jemalloc does). A small lease is taken per reply, not per block;
//! the section under the lock is a few dozen instructions.

use crate::pages::PageIndex;
use faro_sync::{lock, Mutex};
use std::collections::BTreeMap;

/// Pieces of a page that are free, one bit each.
type Mask = u64;

/// Free buffers of one size for one purpose.
pub(crate) struct SmallBuffers {
    /// Mask of a page with nothing in use; its set bits are the buffers of this class.
    whole: Mask,
    cut: Mutex<Cut>,
}

/// What the lock of a small guards.
struct Cut {
    /// Pages with some buffers free and some in use: no mask here is 0 or `whole`.
    partial: BTreeMap<PageIndex, Mask>,
    /// Pieces taken of pages that were cut already, since the start.
    taken: u64,
}

impl SmallBuffers {
    /// A small that cuts a page in `buffers` (2 to 64).
    pub(crate) fn new(buffers: u32) -> Self {
        debug_assert!((2..=64).contains(&buffers));
        Self {
            whole: Mask::MAX >> (64 - buffers),
            cut: Mutex::new(Cut {
                partial: BTreeMap::new(),
                taken: 0,
            }),
        }
    }

    /// Pieces taken since the start, but for the first of each cut.
    pub(crate) fn taken(&self) -> u64 {
        lock(&self.cut).taken
    }

    /// A free index of a page that is already cut.
    pub(crate) fn take(&self) -> Option<(PageIndex, u32)> {
        let mut cut = lock(&self.cut);
        let cut = &mut *cut;
        let mut entry = cut.partial.first_entry()?;
        cut.taken += 1;
        let page = *entry.key();
        let mask = entry.get_mut();
        let index = mask.trailing_zeros();
        *mask &= *mask - 1;
        if *mask == 0 {
            entry.remove();
        }
        Some((page, index))
    }

    /// Cuts `page`, which the caller holds, and takes its first index.
    pub(crate) fn split(&self, page: PageIndex) -> u32 {
        let before = lock(&self.cut).partial.insert(page, self.whole & !1);
        debug_assert!(before.is_none(), "page {page} was cut twice");
        0
    }

    /// Returns a index. `true`: it was the last in use, the page is whole and the caller's.
    #[must_use]
    pub(crate) fn give(&self, page: PageIndex, index: u32) -> bool {
        let partial = &mut lock(&self.cut).partial;
        let mask = partial.entry(page).or_insert(0);
        debug_assert!(*mask & (1 << index) == 0, "{page}/{index} returned twice");
        *mask |= 1 << index;
        if *mask != self.whole {
            return false;
        }
        partial.remove(&page);
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_whole_again_exactly_when_its_last_buffer_returns() {
        for buffers in [4, 16, 64] {
            let small = SmallBuffers::new(buffers);
            assert_eq!(small.take(), None);
            let mut out = vec![(9, small.split(9))];
            out.extend((1..buffers).map(|_| small.take().unwrap()));
            assert_eq!(small.take(), None, "{buffers} buffers and no more");
            let mut numbers: Vec<_> = out.iter().map(|(_, index)| *index).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..buffers).collect::<Vec<_>>());
            let last = out.pop().unwrap();
            for (page, index) in out {
                assert!(!small.give(page, index));
            }
            assert!(small.give(last.0, last.1));
            assert_eq!(small.take(), None, "a whole page is the caller's");
        }
    }

    #[test]
    fn the_lowest_page_is_filled_first() {
        let small = SmallBuffers::new(4);
        small.split(7);
        small.split(3);
        let order: Vec<_> = (0..6).map(|_| small.take().unwrap().0).collect();
        assert_eq!(order, [3, 3, 3, 7, 7, 7]);
    }
}
