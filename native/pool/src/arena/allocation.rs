//! The arena's dimensions, and what is taken from it.

use crate::pages::PageIndex;
use crate::{Purpose, SIZE_CLASSES};

/// The arena's dimensions.
#[derive(Debug, Clone, Copy)]
pub struct Geometry {
    /// Maximum number of mapped slabs.
    pub slabs: u32,
    /// Number of pages in each slab.
    pub pages_per_slab: u32,
    /// Number of pages that only serving may take.
    pub reserve_pages: u32,
}

/// The part of the arena that a lease has: a page, or one small buffer of a split page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Allocation {
    /// Number of the page, counted over all slabs.
    pub page: PageIndex,
    /// Number of the small buffer in the page; 0 for a whole page.
    pub index: u32,
    /// Index into [`SIZE_CLASSES`].
    pub class: u8,
    /// The purpose whose share the allocation counts against.
    pub purpose: Purpose,
}

impl Allocation {
    /// Returns the bytes of the size class.
    pub fn bytes(self) -> usize {
        SIZE_CLASSES[usize::from(self.class)]
    }
}
