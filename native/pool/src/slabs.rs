//! Which slabs there are: mapped, resting, released; and what memory outside them takes of the cap.
//!
//! At every instant with_memory() + wrapped slabs ≤ limit`, where a slab is full unless its pages were
//! given back: that is the cap on what can be registered. It needs no check on the way of a lease.
//! Who was admitted (`admission`) and finds no page free knows that the pages of all slabs awake
//! are held by others who were admitted, so that there are fewer of those slabs than the limit less
//! the wrapped ones; hence one more may be woken or mapped.

use crate::SLAB_BYTES;

/// A slab all of whose pages are withdrawn.
struct IdleSlab {
    slab: u32,
    /// Its pages were given back, or are kept for good.
    released: bool,
}

/// Where the next slab comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It rests, and is to be woken.
    Idle(u32),
    /// It is to be mapped.
    New(u32),
}

/// See the module's comment.
pub(crate) struct Slabs {
    /// All there may be.
    limit: u32,
    /// So far; never fewer.
    mapped: u32,
    /// In the order in which they went to rest, each once.
    idle: Vec<IdleSlab>,
    /// Of memory outside the slabs.
    wrapped_bytes: u64,
}

impl Slabs {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            limit,
            mapped: 0,
            idle: Vec::new(),
            wrapped_bytes: 0,
        }
    }

    pub(crate) fn mapped(&self) -> u32 {
        self.mapped
    }

    /// Slabs that pages may be leased from.
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

    /// Slabs with memory.
    pub(crate) fn with_memory(&self) -> u32 {
        self.mapped - self.released().count() as u32
    }

    pub(crate) fn is_idle(&self, slab: u32) -> bool {
        self.idle.iter().any(|one| one.slab == slab)
    }

    /// The one whose use costs least: one that still has its pages, then one that is still mapped.
    pub(crate) fn next(&self) -> Option<Source> {
        match self.cheapest() {
            Some(at) => Some(Source::Idle(self.idle[at].slab)),
            None if self.mapped < self.limit => Some(Source::New(self.mapped)),
            None => None,
        }
    }

    fn cheapest(&self) -> Option<usize> {
        let full = self.idle.iter().rposition(|one| !one.released);
        full.or(self.idle.len().checked_sub(1))
    }

    /// `next` was done.
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
        let released = false;
        self.idle.push(IdleSlab { slab, released });
    }

    /// A slab that is `free` and whose pages are still there; they count as gone from now on.
    pub(crate) fn choose_to_release(&mut self, free: impl Fn(u32) -> bool) -> Option<u32> {
        let found = |one: &&mut IdleSlab| !one.released && free(one.slab);
        let one = self.idle.iter_mut().find(found)?;
        one.released = true;
        Some(one.slab)
    }

    /// Slabs that all memory outside the slabs takes of the cap, with `more` bytes of it.
    pub(crate) fn wrapped_slabs(&self, more: u64) -> u64 {
        self.wrapped_bytes
            .saturating_add(more)
            .div_ceil(SLAB_BYTES as u64)
    }

    pub(crate) fn wrap(&mut self, bytes: u64) {
        self.wrapped_bytes += bytes;
    }

    pub(crate) fn unwrap(&mut self, bytes: u64) {
        self.wrapped_bytes -= bytes;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_slab_with_pages_is_woken_before_one_without_and_before_a_new_one() {
        let mut slabs = Slabs::new(4);
        for slab in 0..3 {
            assert_eq!(slabs.next(), Some(Source::New(slab)));
            slabs.taken();
        }
        for slab in [2, 1, 0] {
            slabs.mark_idle(slab);
        }
        assert_eq!(slabs.choose_to_release(|slab| slab != 2), Some(1));
        assert_eq!(slabs.choose_to_release(|slab| slab == 1), None, "once each");
        assert_eq!((slabs.active(), slabs.with_memory()), (0, 2));
        for slab in [0, 2, 1] {
            assert_eq!(slabs.next(), Some(Source::Idle(slab)));
            slabs.taken();
        }
        assert_eq!(slabs.next(), Some(Source::New(3)));
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
