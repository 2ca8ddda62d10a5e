//! Counts external memory against the arena's limit.

use super::{Arena, SlabPages};
use crate::admission::AdmissionRefused;
use crate::{Purpose, PAGE_BYTES};
use faro_sync::lock;

impl Arena {
    /// Counts `bytes` of external memory against the limit.
    ///
    /// # Errors
    /// Returns the bound that forbids it.
    pub fn wrap(&self, bytes: u64) -> Result<(), AdmissionRefused> {
        let pages = self.free.pages.wrap(bytes)?;
        self.free
            .count_spare(pages as usize * PAGE_BYTES, bytes as usize);
        Ok(())
    }

    /// Ends a `wrap` of the same number of bytes, and announces it.
    pub fn unwrap(&self, bytes: u64) {
        let pages = self.free.pages.unwrap(bytes);
        self.free
            .count_spare(bytes as usize, pages as usize * PAGE_BYTES);
        self.event_count.announce();
    }
}

impl SlabPages {
    /// Counts `bytes` of external memory against the limit. All external memory together counts in
    /// whole slabs, because the arena grows by whole slabs, and as reading, so that the reserve
    /// stays. Returns the pages that it counts as.
    ///
    /// # Errors
    /// Returns the bound that forbids it.
    fn wrap(&self, bytes: u64) -> Result<u32, AdmissionRefused> {
        let mut slabs = lock(&self.slabs);
        let more = slabs.wrapped_slabs(bytes) - slabs.wrapped_slabs(0);
        let pages = u32::try_from(more)
            .ok()
            .and_then(|more| more.checked_mul(self.geometry.pages_per_slab))
            .unwrap_or(u32::MAX);
        self.admission.enter_many(Purpose::Read, pages)?;
        // Slabs that have memory count too, even if no page of them is leased.
        if u64::from(slabs.with_memory()) + slabs.wrapped_slabs(bytes)
            > u64::from(self.geometry.slabs)
        {
            self.admission.leave_many(Purpose::Read, pages);
            return Err(AdmissionRefused {
                held: slabs.with_memory() * self.geometry.pages_per_slab,
                limit: self.geometry.slabs * self.geometry.pages_per_slab,
            });
        }
        if !self.count_in_share(more as u32) {
            self.admission.leave_many(Purpose::Read, pages);
            return Err(AdmissionRefused {
                held: slabs.with_memory() * self.geometry.pages_per_slab,
                limit: self.geometry.slabs * self.geometry.pages_per_slab,
            });
        }
        slabs.wrap(bytes);
        Ok(pages)
    }

    /// Ends a `wrap` of the same number of bytes. Returns the pages that are not counted any more.
    fn unwrap(&self, bytes: u64) -> u32 {
        let mut slabs = lock(&self.slabs);
        let before = slabs.wrapped_slabs(0);
        slabs.unwrap(bytes);
        let fewer = before - slabs.wrapped_slabs(0);
        let pages = fewer as u32 * self.geometry.pages_per_slab;
        self.admission.leave_many(Purpose::Read, pages);
        self.uncount_in_share(fewer as u32);
        pages
    }
}
