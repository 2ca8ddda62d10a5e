//! Marks slabs as idle, and chooses idle slabs whose pages may be released.

use super::SlabPages;
use crate::registration_pins::RegistrationPins;
use faro_sync::atomic::Ordering;
use faro_sync::lock;

/// The result of `release_one`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// One slab was released; there may be more to release.
    One,
    /// No slab was released, because the idle slabs that still have pages are registered with
    /// devices.
    NoneYet,
    /// No slab was released, because all idle slabs were released before.
    All,
}

impl SlabPages {
    /// Returns the registration pins of a slab.
    pub fn registration_pins(&self, slab: u32) -> Option<&RegistrationPins> {
        self.registration_pins.get(slab as usize)
    }

    /// Sets the clock, from which `last_use` is set.
    pub fn tick(&self, now: u32) {
        self.clock.store(now, Ordering::Relaxed);
    }

    /// Sets the clock, and marks slabs as idle that had no page in use for `age`. At least one slab
    /// stays active. Returns the number of slabs marked.
    pub fn mark_idle(&self, now: u32, age: u32) -> u32 {
        self.tick(now);
        let mut slabs = lock(&self.slabs);
        let old: Vec<bool> = (0..slabs.mapped())
            .map(|slab| {
                let last = self.last_use[slab as usize].load(Ordering::Relaxed);
                !slabs.is_idle(slab) && now.wrapping_sub(last) >= age
            })
            .collect();
        let mut max = slabs.active().saturating_sub(1);
        if max == 0 || !old.contains(&true) {
            return 0;
        }
        let mut pages = self.free.withdraw(|page| old[self.slab_of(page) as usize]);
        pages.sort_unstable();
        let mut marked = 0;
        // The highest slab comes first, because small buffers fill the lowest pages.
        for of_one in pages
            .chunk_by(|a, b| self.slab_of(*a) == self.slab_of(*b))
            .rev()
        {
            let slab = self.slab_of(of_one[0]);
            if of_one.len() == self.geometry.pages_per_slab as usize && max > 0 {
                self.registration_pins[slab as usize].mark_idle();
                slabs.mark_idle(slab);
                (max, marked) = (max - 1, marked + 1);
            } else {
                // Other pages of the slab are in use.
                of_one.iter().for_each(|page| self.free.give_cold(*page));
            }
        }
        marked
    }

    /// Calls `release` for one idle slab that no device has registered and that still has its pages.
    /// It returns whether the pages are gone.
    pub fn release_one(&self, release: &dyn Fn(u32) -> bool) -> Release {
        let mut slabs = lock(&self.slabs);
        match slabs.choose_to_release(|slab| self.registration_pins[slab as usize].is_releasable())
        {
            Some(slab) => {
                if release(slab) {
                    slabs.uncount(slab);
                    self.uncount_in_share(1);
                }
                Release::One
            }
            None if slabs.released().count() < slabs.idle() as usize => Release::NoneYet,
            None => Release::All,
        }
    }

    /// Returns the number of idle slabs, and the indices of those that were released.
    pub fn idle(&self) -> (u32, Vec<u32>) {
        let slabs = lock(&self.slabs);
        (slabs.idle(), slabs.released().collect())
    }
}
