//! Small buffers: pages that are split for leases of 2, 4, 16 or 64 KiB.
//!
//! There is one `SmallBuffers` for each purpose and small size class. It knows the split pages that
//! have a free buffer, each with a bit mask of the free ones (128 of 2 KiB at most). A split page
//! without a free buffer is on no list. A page whose last buffer returns is whole again and leaves
//! at once.
//!
//! Purposes do not share a split page, and a split page counts as a whole (`admission`). Otherwise
//! readers could scatter one small lease over each page, and the reserve for serving would have
//! enough bytes but not one free page.
//!
//! The state is a lock and an ordered map rather than a queue of buffers: a page becomes whole only
//! if its buffers can be taken out of the middle of the free list. The order of the map fills the
//! lowest pages first, so that the others become whole (address-ordered first fit, as in jemalloc).
//! A reply takes one small lease, not one for each block, and the critical section is a few dozen
//! instructions.

use crate::pages::PageIndex;
use faro_sync::{lock, Mutex};
use std::collections::BTreeMap;

/// The free buffers of a page, one bit each.
type Mask = u128;

/// The free buffers of one size class for one purpose.
pub(crate) struct SmallBuffers {
    /// The mask of a page whose buffers are all free.
    whole: Mask,
    split: Mutex<Split>,
}

/// The state under the lock.
struct Split {
    /// Pages with free and used buffers: no mask is 0 or `whole`.
    partial: BTreeMap<PageIndex, Mask>,
    /// Number of buffers taken from pages that were split already, since the start.
    taken: u64,
}

impl SmallBuffers {
    /// Returns a list of pages that are split into `buffers` buffers each, 2 to 128.
    pub(crate) fn new(buffers: u32) -> Self {
        debug_assert!((2..=128).contains(&buffers));
        Self {
            whole: Mask::MAX >> (Mask::BITS - buffers),
            split: Mutex::new(Split {
                partial: BTreeMap::new(),
                taken: 0,
            }),
        }
    }

    /// Returns the number of buffers taken since the start, without the first of each page.
    pub(crate) fn taken(&self) -> u64 {
        lock(&self.split).taken
    }

    /// Takes a free buffer of a page that is already split and for which `usable` is true. Returns
    /// the page and the buffer's index in it.
    pub(crate) fn take(&self, usable: impl Fn(PageIndex) -> bool) -> Option<(PageIndex, u32)> {
        let mut split = lock(&self.split);
        let split = &mut *split;
        let mut pages = split.partial.iter_mut();
        let (page, mask) = pages.find(|(page, _)| usable(**page))?;
        split.taken += 1;
        let page = *page;
        let index = mask.trailing_zeros();
        *mask &= *mask - 1;
        if *mask == 0 {
            split.partial.remove(&page);
        }
        Some((page, index))
    }

    /// Splits `page`, which the caller holds, and takes its first buffer.
    pub(crate) fn split(&self, page: PageIndex) -> u32 {
        let before = lock(&self.split).partial.insert(page, self.whole & !1);
        debug_assert!(before.is_none(), "page {page} was split twice");
        0
    }

    /// Returns a buffer. The result is `true` if it was the last one in use: then the caller holds
    /// the whole page.
    #[must_use]
    pub(crate) fn give(&self, page: PageIndex, index: u32) -> bool {
        let partial = &mut lock(&self.split).partial;
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
        for buffers in [4, 16, 64, 128] {
            let small = SmallBuffers::new(buffers);
            assert_eq!(small.take(|_| true), None);
            let mut out = vec![(9, small.split(9))];
            out.extend((1..buffers).map(|_| small.take(|_| true).unwrap()));
            assert_eq!(small.take(|_| true), None, "{buffers} buffers and no more");
            let mut numbers: Vec<_> = out.iter().map(|(_, index)| *index).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..buffers).collect::<Vec<_>>());
            let last = out.pop().unwrap();
            for (page, index) in out {
                assert!(!small.give(page, index));
            }
            assert!(small.give(last.0, last.1));
            assert_eq!(
                small.take(|_| true),
                None,
                "the whole page belongs to the caller"
            );
        }
    }

    #[test]
    fn the_lowest_page_is_filled_first() {
        let small = SmallBuffers::new(4);
        small.split(7);
        small.split(3);
        let order: Vec<_> = (0..6).map(|_| small.take(|_| true).unwrap().0).collect();
        assert_eq!(order, [3, 3, 3, 7, 7, 7]);
    }
}
