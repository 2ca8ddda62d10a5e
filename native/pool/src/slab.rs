//! One slab: its pages, and which of them were ever leased.

use crate::pages::{PageKind, Pages};
use crate::sync::{AtomicU64, Ordering};
use crate::{PoolError, PAGE_BYTES, SIZE_CLASSES, SLAB_BYTES};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

/// Frames in a slab.
pub(crate) const PAGES_PER_SLAB: usize = SLAB_BYTES / PAGE_BYTES;
/// Smallest class; a frame has 64 of them, one for each bit of a `touched` word.
const GRAIN_BYTES: usize = SIZE_CLASSES[0];

const _: () = assert!(SLAB_BYTES % PAGE_BYTES == 0);
const _: () = assert!(PAGE_BYTES / GRAIN_BYTES == 64);
const _: () = assert!(SLAB_BYTES <= u32::MAX as usize, "offsets in a slab are u32");

/// One slab: a memfd and its mapping, shared with same-host peers by descriptor.
pub struct Slab {
    /// Position in the pool.
    index: u32,
    pages: Pages,
    /// By frame: which grains were leased since the pages were new, and so are in memory.
    touched: Box<[AtomicU64]>,
}

impl Slab {
    /// Maps a new slab; see `Pages::new`.
    pub(crate) fn map(index: u32, huge: bool, give_back: bool) -> Result<Self, PoolError> {
        Ok(Self {
            index,
            pages: Pages::new(huge, give_back)?,
            touched: (0..PAGES_PER_SLAB).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Notes that a range of a frame is being leased; `true` if all of it had been before.
    /// `first` is its first byte in the frame; both are multiples of the smallest class.
    pub(crate) fn touch(&self, frame_in_slab: usize, first: usize, bytes: usize) -> bool {
        let grains = bytes / GRAIN_BYTES;
        let mask = (u64::MAX >> (64 - grains)) << (first / GRAIN_BYTES);
        let word = &self.touched[frame_in_slab];
        // Statistics only, so no ordering; the load spares a warm lease the locked instruction.
        word.load(Ordering::Relaxed) & mask == mask
            || word.fetch_or(mask, Ordering::Relaxed) & mask == mask
    }

    /// Gives the pages back to the system if they are of that kind; see `Pages::give_back`. Nobody
    /// has a lease of this slab, and no device has it registered.
    pub(crate) fn give_back(&self) -> bool {
        let given = self.pages.give_back();
        if given {
            for word in &self.touched {
                word.store(0, Ordering::Relaxed);
            }
        }
        given
    }

    /// Whether its pages are of the kind that can be given back.
    pub(crate) fn gives_back(&self) -> bool {
        self.pages.gives_back()
    }

    /// Position in the pool, from 0, never reused.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The memory's file descriptor, to be given to peers: nobody can write by it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pages.fd()
    }

    /// First byte.
    pub fn base(&self) -> NonNull<u8> {
        self.pages.base()
    }

    /// Bytes.
    pub fn bytes(&self) -> usize {
        SLAB_BYTES
    }

    /// Whether it lies on the machine's huge pages.
    pub fn is_huge(&self) -> bool {
        self.pages.kind() == PageKind::Huge
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("index", &self.index)
            .field("base", &self.base())
            .field("pages", &self.pages.kind())
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
        assert!(slab.give_back());
        assert!(!slab.touch(3, 0, PAGE_BYTES), "its pages are new again");
    }
}
