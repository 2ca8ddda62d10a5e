//! Distinguishes mapped, idle and released slabs, and counts the part of the limit that external
//! memory takes.
//!
//! At every moment `with_memory() + slabs taken by external memory ≤ limit`, where a slab has
//! memory unless its pages were released. This bounds the memory that can be registered. A lease
//! does not need to check it: a thread that was admitted (`admission`) and finds no free page knows
//! that other admitted threads hold the pages of all active slabs. So there are fewer active slabs
//! than the limit without external memory allows, and one more may be activated or mapped.

use crate::SLAB_BYTES;

/// A slab whose pages are all withdrawn.
struct IdleSlab {
    slab: u32,
    /// True if its pages were released, or cannot be released.
    released: bool,
    /// True unless its pages are gone.
    counted: bool,
}

/// The next slab to take pages from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlabSource {
    /// An idle slab, to be activated.
    Idle(u32),
    /// A slab to be mapped.
    New(u32),
}

/// The states of all slabs.
pub(crate) struct Slabs {
    /// Maximum number of slabs.
    limit: u32,
    /// No further slab is mapped.
    is_capped: bool,
    /// Number of slabs mapped so far.
    mapped: u32,
    /// The idle slabs, in the order in which they became idle.
    idle: Vec<IdleSlab>,
    /// Bytes of external memory.
    external_bytes: u64,
}

impl Slabs {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            limit,
            is_capped: false,
            mapped: 0,
            idle: Vec::new(),
            external_bytes: 0,
        }
    }

    /// Ends the mapping of slabs.
    pub(crate) fn cap(&mut self) {
        self.is_capped = true;
    }

    pub(crate) fn mapped(&self) -> u32 {
        self.mapped
    }

    /// Returns the number of slabs whose pages may be leased.
    pub(crate) fn active(&self) -> u32 {
        self.mapped - self.idle()
    }

    pub(crate) fn idle(&self) -> u32 {
        self.idle.len() as u32
    }

    pub(crate) fn released(&self) -> impl Iterator<Item = u32> + '_ {
        let released = self.idle.iter().filter(|one| one.released);
        released.map(|one| one.slab)
    }

    pub(crate) fn with_memory(&self) -> u32 {
        self.mapped - self.released().count() as u32
    }

    pub(crate) fn is_idle(&self, slab: u32) -> bool {
        self.idle.iter().any(|one| one.slab == slab)
    }

    /// Returns the slab whose use costs least: an idle one with its pages, then one without, then a
    /// new one.
    pub(crate) fn next(&self) -> Option<SlabSource> {
        match self.cheapest() {
            Some(at) => Some(SlabSource::Idle(self.idle[at].slab)),
            None if self.mapped < self.limit && !self.is_capped => {
                Some(SlabSource::New(self.mapped))
            }
            None => None,
        }
    }

    /// Returns whether the slab of `next` has its pages, so that it needs no more memory.
    pub(crate) fn next_is_counted(&self) -> bool {
        self.cheapest().is_some_and(|at| self.idle[at].counted)
    }

    /// Notes that the pages of an idle slab are gone.
    pub(crate) fn uncount(&mut self, slab: u32) {
        let gone = self.idle.iter_mut().find(|one| one.slab == slab);
        if let Some(one) = gone {
            one.counted = false;
        }
    }

    fn cheapest(&self) -> Option<usize> {
        let full = self.idle.iter().rposition(|one| !one.released);
        full.or(self.idle.len().checked_sub(1))
    }

    /// Notes that the slab of `next` is active.
    pub(crate) fn taken(&mut self) {
        match self.cheapest() {
            Some(at) => drop(self.idle.remove(at)),
            None => self.mapped += 1,
        }
        debug_assert!(
            u64::from(self.with_memory()) + self.wrapped_slabs(0) <= u64::from(self.limit),
            "more memory than the cap"
        );
    }

    pub(crate) fn mark_idle(&mut self, slab: u32) {
        self.idle.push(IdleSlab {
            slab,
            released: false,
            counted: true,
        });
    }

    /// Chooses an idle slab with its pages for which `free` is true. It counts as released from now
    /// on.
    pub(crate) fn choose_to_release(&mut self, free: impl Fn(u32) -> bool) -> Option<u32> {
        let found = |one: &&mut IdleSlab| !one.released && free(one.slab);
        let one = self.idle.iter_mut().find(found)?;
        one.released = true;
        Some(one.slab)
    }

    /// Returns the number of slabs of the limit that external memory takes, with `more` bytes
    /// added.
    pub(crate) fn wrapped_slabs(&self, more: u64) -> u64 {
        self.external_bytes
            .saturating_add(more)
            .div_ceil(SLAB_BYTES as u64)
    }

    pub(crate) fn wrap(&mut self, bytes: u64) {
        self.external_bytes += bytes;
    }

    pub(crate) fn unwrap(&mut self, bytes: u64) {
        self.external_bytes -= bytes;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_slab_with_pages_is_woken_before_one_without_and_before_a_new_one() {
        let mut slabs = Slabs::new(4);
        for slab in 0..3 {
            assert_eq!(slabs.next(), Some(SlabSource::New(slab)));
            slabs.taken();
        }
        for slab in [2, 1, 0] {
            slabs.mark_idle(slab);
        }
        assert_eq!(slabs.choose_to_release(|slab| slab != 2), Some(1));
        assert_eq!(slabs.choose_to_release(|slab| slab == 1), None, "once each");
        assert_eq!((slabs.active(), slabs.with_memory()), (0, 2));
        for slab in [0, 2, 1] {
            assert_eq!(slabs.next(), Some(SlabSource::Idle(slab)));
            slabs.taken();
        }
        assert_eq!(slabs.next(), Some(SlabSource::New(3)));
        slabs.taken();
        assert_eq!(slabs.next(), None);
    }

    #[test]
    fn wrapped_memory_counts_in_whole_slabs_all_of_it_together() {
        let mut slabs = Slabs::new(4);
        let slab = SLAB_BYTES as u64;
        assert_eq!(slabs.wrapped_slabs(1), 1);
        slabs.wrap(slab / 2);
        assert_eq!(slabs.wrapped_slabs(slab / 2), 1);
        assert_eq!(slabs.wrapped_slabs(slab / 2 + 1), 2);
        slabs.unwrap(slab / 2);
        assert_eq!(slabs.wrapped_slabs(0), 0);
    }
}
