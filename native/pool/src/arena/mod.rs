//! The pool without its memory: tracks which pages and small buffers are free, and which purpose
//! may take them.
//!
//! The arena knows only numbers, so that models and property tests can explore it at any size:
//! three pages in a loom model, thousands in a pool. The caller passes the function that maps a
//! slab.
//!
//! The order of steps makes it correct (see `admission`): a thread that takes a page is *counted
//! first*, and then takes it; a thread that returns one *lists it first*, is then uncounted, and
//! announces it last. `slab_pages` has the whole pages, and `free_memory` splits them into small
//! buffers; the arena makes attempts and announces. Slabs that are not used become idle, with all
//! their pages withdrawn (`idle`), and are activated again before another slab is mapped. External
//! memory takes its part of the limit (`external`).

mod allocation;
mod external;
mod free_memory;
mod idle;
mod slab_pages;

pub use allocation::{Allocation, Geometry};
pub use idle::Release;
pub use slab_pages::{MapSlab, SlabPages};

use crate::budget::Share;
use crate::event_count::{EventCount, ProducerSnapshot, ReleaseListener};
use crate::{PoolError, Purpose, PAGE_BYTES, SIZE_CLASSES};
use free_memory::{FreeMemory, SMALL_CLASSES};
use std::time::Instant;

/// The arena: its free memory, and the threads that wait for some.
pub struct Arena {
    free: FreeMemory,
    event_count: EventCount,
}

impl Arena {
    /// Returns an arena without mapped slabs, which shares its memory with no other.
    #[cfg(loom)]
    pub fn new(geometry: Geometry) -> Self {
        Self::with_share(geometry, None)
    }

    /// Returns an arena without mapped slabs, whose memory counts against `share` too.
    pub(crate) fn with_share(geometry: Geometry, share: Option<Share>) -> Self {
        Self {
            free: FreeMemory::new(geometry, share),
            event_count: EventCount::new(),
        }
    }

    /// Returns the bytes leased, of slabs and external memory. It may be off by the leases that
    /// other threads take or return meanwhile.
    pub fn leased_bytes(&self) -> u64 {
        self.free.leased_bytes()
    }

    /// Returns the number of leases of slabs since the start.
    pub fn acquisitions(&self) -> u64 {
        self.free.acquisitions()
    }

    /// Returns the smallest size class that holds `bytes`.
    ///
    /// # Errors
    /// Returns `BadSize` for 0 bytes or more than a page.
    pub fn class_of(bytes: usize) -> Result<u8, PoolError> {
        if bytes == 0 || bytes > PAGE_BYTES {
            return Err(PoolError::BadSize {
                got: bytes,
                max: PAGE_BYTES,
            });
        }
        // The number of smaller classes is a valid index, because `bytes` fits in the last class.
        Ok(SIZE_CLASSES.iter().filter(|class| **class < bytes).count() as u8)
    }

    /// Tries once. A refusal arms no listener.
    ///
    /// # Errors
    /// Returns `Exhausted`, or the error of `map`.
    pub fn attempt(
        &self,
        class: u8,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Allocation, PoolError> {
        self.attempt_after(self.event_count.before_taking(), class, purpose, map)
    }

    fn attempt_after(
        &self,
        before: ProducerSnapshot,
        class: u8,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Allocation, PoolError> {
        let (allocation, is_split) = self.announcing(self.free.take(class, purpose, map))?;
        if is_split {
            // Other threads may have been refused while this page was counted and not yet split.
            self.event_count.announce_to_later(before);
        }
        Ok(allocation)
    }

    /// Tries once. After a refusal the next return of memory calls the listeners.
    ///
    /// # Errors
    /// The errors are those of `attempt`.
    pub fn attempt_or_arm(
        &self,
        class: u8,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Allocation, PoolError> {
        match self.attempt(class, purpose, map) {
            Err(PoolError::Exhausted { .. }) => self
                .event_count
                .arm_and(|before| self.attempt_after(before, class, purpose, map)),
            result => result,
        }
    }

    /// Tries once for one allocation of each of these classes, all or none. After a refusal the
    /// next return of memory calls the listeners. A refused attempt gives back what it had taken.
    /// That does not count as a return, except for threads that have looked for memory meanwhile.
    ///
    /// # Errors
    /// The errors are those of `attempt`.
    pub fn attempt_each_or_arm(
        &self,
        classes: &[u8],
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Vec<Allocation>, PoolError> {
        let before = self.event_count.before_taking();
        match self.attempt_each(before, classes, purpose, map) {
            Err(PoolError::Exhausted { .. }) => self
                .event_count
                .arm_and(|before| self.attempt_each(before, classes, purpose, map)),
            result => result,
        }
    }

    fn attempt_each(
        &self,
        before: ProducerSnapshot,
        classes: &[u8],
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Vec<Allocation>, PoolError> {
        let is_whole = |class: u8| usize::from(class) == SMALL_CLASSES;
        let whole = classes.iter().filter(|class| is_whole(**class)).count();
        // The whole pages come first and are counted together, so that most refusals have taken
        // nothing.
        let mut pages = self.take_pages(before, whole as u32, purpose, map)?;
        let (mut taken, mut is_split) = (Vec::with_capacity(classes.len()), false);
        let mut refused = None;
        for class in classes.iter().copied() {
            let page = match is_whole(class) {
                true => pages.pop(),
                false => None,
            };
            let next = match page {
                Some(page) => Ok((page, false)),
                None => self.announcing(self.free.take(class, purpose, map)),
            };
            match next {
                Ok((allocation, splits)) => {
                    is_split |= splits;
                    taken.push(allocation);
                }
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        let Some(error) = refused else {
            if is_split {
                self.event_count.announce_to_later(before);
            }
            return Ok(taken);
        };
        let gives_back = !taken.is_empty() || !pages.is_empty();
        for allocation in taken.into_iter().chain(pages) {
            self.free.list(allocation);
        }
        if gives_back {
            self.event_count.announce_to_later(before);
        }
        Err(error)
    }

    /// Takes `count` whole pages, all or none.
    fn take_pages(
        &self,
        before: ProducerSnapshot,
        count: u32,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Vec<Allocation>, PoolError> {
        self.free.pages.enter(purpose, count)?;
        let mut allocations = Vec::with_capacity(count as usize);
        for left in (0..count).rev() {
            match self.announcing(self.free.pages.find(purpose, map)) {
                Ok(page) => allocations.push(Allocation {
                    page,
                    index: 0,
                    class: SMALL_CLASSES as u8,
                    purpose,
                }),
                Err(error) => {
                    // `find` has uncounted the page that it did not find.
                    self.free.pages.leave(purpose, left);
                    for allocation in allocations {
                        self.free.list(allocation);
                    }
                    if count > 1 {
                        self.event_count.announce_to_later(before);
                    }
                    return Err(error);
                }
            }
        }
        Ok(allocations)
    }

    /// Tries until the deadline.
    ///
    /// # Errors
    /// The errors are those of `attempt`.
    pub fn attempt_before(
        &self,
        class: u8,
        purpose: Purpose,
        deadline: Instant,
        map: MapSlab<'_>,
    ) -> Result<Allocation, PoolError> {
        self.event_count.wait_for(
            deadline,
            |error| matches!(error, PoolError::Exhausted { .. }),
            || self.attempt(class, purpose, map),
        )
    }

    /// Returns an allocation to the arena, and announces it.
    pub fn give(&self, allocation: Allocation) {
        self.free.list(allocation);
        self.event_count.announce();
    }

    /// Announces memory that other arenas of the share have given back.
    pub(crate) fn announce(&self) {
        self.event_count.announce();
    }

    /// Adds a listener, which `EventCount` calls.
    pub fn listen(&self, listener: ReleaseListener) {
        self.event_count.listen(listener);
    }

    /// Returns the pages of slabs, whole.
    pub fn pages(&self) -> &SlabPages {
        &self.free.pages
    }

    /// Announces the page that a failure to find one has uncounted, if other threads may have missed
    /// it. A refusal has taken no page; to announce it would wake the refused thread again and again.
    fn announcing<T>(&self, found: Result<T, PoolError>) -> Result<T, PoolError> {
        if !matches!(found, Ok(_) | Err(PoolError::Exhausted { .. })) {
            self.event_count.announce();
        }
        found
    }
}
