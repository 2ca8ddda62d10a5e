//! One slab: its memory, and a record of its parts that were ever leased.

use crate::mapping::{PageKind, SlabMapping};
use crate::{PoolError, PAGE_BYTES, SIZE_CLASSES, SLAB_BYTES};
use faro_sync::atomic::{AtomicU64, Ordering};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

/// Number of pages in a slab.
pub(crate) const PAGES_PER_SLAB: usize = SLAB_BYTES / PAGE_BYTES;
/// Number of bytes for which a `touched` word has one bit. Two leases of the smallest class share a
/// bit.
const GRAIN_BYTES: usize = PAGE_BYTES / 64;

const _: () = assert!(SLAB_BYTES % PAGE_BYTES == 0);
const _: () = assert!(GRAIN_BYTES % SIZE_CLASSES[0] == 0);
const _: () = assert!(SLAB_BYTES <= u32::MAX as usize, "offsets in a slab are u32");

/// One slab: a memfd and its mapping. Peers on the same host map it by descriptor.
pub struct Slab {
    /// The position in the pool.
    index: u32,
    mapping: SlabMapping,
    /// For each page, the grains that were leased since the memory was new.
    touched: Box<[AtomicU64]>,
}

impl Slab {
    /// Maps a new slab.
    ///
    /// # Errors
    /// Returns `NoMemory`.
    pub(crate) fn map(index: u32, huge: bool, releasable: bool) -> Result<Self, PoolError> {
        Ok(Self {
            index,
            mapping: SlabMapping::new(huge, releasable)?,
            touched: (0..PAGES_PER_SLAB).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Notes that `bytes` bytes from byte `first` of a page are leased; both are multiples of a
    /// size class. Returns whether all grains that they lie in had been leased before.
    pub(crate) fn touch(&self, page_in_slab: usize, first: usize, bytes: usize) -> bool {
        let grains = bytes.div_ceil(GRAIN_BYTES);
        let mask = (u64::MAX >> (64 - grains)) << (first / GRAIN_BYTES);
        let word = &self.touched[page_in_slab];
        // These bits are only for counters, so they need no ordering. The load saves the locked
        // instruction for memory that was leased before.
        word.load(Ordering::Relaxed) & mask == mask
            || word.fetch_or(mask, Ordering::Relaxed) & mask == mask
    }

    /// Releases the pages to the system, if their kind allows it (`SlabMapping::release`). No lease
    /// of the slab may exist, and no device may have it registered. Returns `false` if the pages
    /// stay.
    pub(crate) fn release(&self) -> bool {
        let given = self.mapping.release();
        if given {
            for word in &self.touched {
                word.store(0, Ordering::Relaxed);
            }
        }
        given
    }

    pub(crate) fn is_releasable(&self) -> bool {
        self.mapping.is_releasable()
    }

    /// Returns the position in the pool, from 0, which is never reused.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the memory's file descriptor for peers, which cannot be used to write.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.mapping.fd()
    }

    pub fn base(&self) -> NonNull<u8> {
        self.mapping.base()
    }

    pub fn bytes(&self) -> usize {
        SLAB_BYTES
    }

    /// Returns whether it uses reserved huge pages of 2 MiB.
    pub fn is_huge(&self) -> bool {
        self.mapping.kind() == PageKind::Huge
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("index", &self.index)
            .field("base", &self.base())
            .field("pages", &self.mapping.kind())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn touch_tells_first_use_from_reuse_by_grain() {
        let slab = Slab::map(0, false, true).unwrap();
        assert!(!slab.touch(3, 8192, 4096));
        assert!(slab.touch(3, 8192, 4096));
        assert!(!slab.touch(3, 0, 16384), "three of four grains are new");
        assert!(!slab.touch(3, 0, PAGE_BYTES));
        assert!(slab.touch(3, 0, PAGE_BYTES));
        assert!(!slab.touch(4, 0, PAGE_BYTES));
        assert!(slab.release());
        assert!(!slab.touch(3, 0, PAGE_BYTES), "its pages are new again");
    }
}
