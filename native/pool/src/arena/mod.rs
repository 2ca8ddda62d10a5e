//! The pool without its memory: tracks which pages and small buffers are free, and which purpose
//! may take them.
//!
//! The arena knows only numbers, so that models and property tests can explore it at any size:
//! three pages in a loom model, thousands in a pool. The caller passes the function that maps a
//! slab.
//!
//! The order of steps makes it correct (see `admission`): a thread that takes a page is *counted
//! first*, and then takes it; a thread that returns one *lists it first*, is then uncounted, and
//! announces it last. Slabs that are not used become idle, with all their pages withdrawn (`idle`),
//! and are activated again before another slab is mapped. External memory takes its part of the
//! limit (`external`).

mod external;
mod idle;

pub use idle::Release;

use crate::admission::{Held, PageAdmission, Refused};
use crate::budget::Share;
use crate::event_count::{Before, EventCount, Listener};
use crate::pages::{FreePages, PageIndex};
use crate::registration_pins::RegistrationPins;
use crate::slabs::{SlabSource, Slabs};
use crate::small_buffers::SmallBuffers;
use crate::{PoolError, Purpose, PAGE_BYTES, SIZE_CLASSES};
use crossbeam_utils::CachePadded;
use faro_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use faro_sync::{lock, spin_loop, Mutex};
use std::time::Instant;

/// Number of size classes below a page.
const SMALL_CLASSES: usize = SIZE_CLASSES.len() - 1;

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

/// The arena's state.
pub struct Arena {
    geometry: Geometry,
    admission: PageAdmission,
    free: FreePages,
    /// The small buffers, by purpose and class.
    small_buffers: [[SmallBuffers; SMALL_CLASSES]; 2],
    event_count: EventCount,
    /// Locked while a slab is mapped, becomes idle or active, or is released.
    slabs: Mutex<Slabs>,
    /// What it may have of a memory that it shares with other arenas; `None`: it shares none.
    share: Option<Share>,
    /// The registration pins, by slab.
    registration_pins: Box<[RegistrationPins]>,
    /// For each slab, the value of `clock` when one of its pages was last returned.
    last_use: Box<[AtomicU32]>,
    /// The time, in the caller's unit.
    clock: AtomicU32,
    /// Bytes of held pages that are not leased: free buffers of split pages, and what rounding adds
    /// to external memory. So a lease of a whole page changes no counter.
    spare: CachePadded<AtomicU64>,
    /// Number of leases of the first page of a slab, which is leased without being listed as free.
    firsts: AtomicU64,
}

/// Maps the slab with this index.
pub type MapSlab<'a> = &'a dyn Fn(u32) -> Result<(), PoolError>;

impl Arena {
    /// Returns an arena without mapped slabs, which shares its memory with no other.
    #[cfg(loom)]
    pub fn new(geometry: Geometry) -> Self {
        Self::with_share(geometry, None)
    }

    /// Returns an arena without mapped slabs, whose memory counts against `share` too.
    pub(crate) fn with_share(geometry: Geometry, share: Option<Share>) -> Self {
        let pages = geometry.slabs * geometry.pages_per_slab;
        let small_buffers = || {
            std::array::from_fn(|class| {
                SmallBuffers::new((PAGE_BYTES / SIZE_CLASSES[class]) as u32)
            })
        };
        Self {
            geometry,
            admission: PageAdmission::new(pages, geometry.reserve_pages),
            free: FreePages::new(pages),
            small_buffers: [small_buffers(), small_buffers()],
            event_count: EventCount::new(),
            slabs: Mutex::new(Slabs::new(geometry.slabs)),
            share,
            registration_pins: (0..geometry.slabs)
                .map(|_| RegistrationPins::new())
                .collect(),
            last_use: (0..geometry.slabs).map(|_| AtomicU32::new(0)).collect(),
            clock: AtomicU32::new(0),
            spare: CachePadded::new(AtomicU64::new(0)),
            firsts: AtomicU64::new(0),
        }
    }

    /// Returns the bytes leased, of slabs and external memory. It may be off by the leases that
    /// other threads take or return meanwhile.
    pub fn leased_bytes(&self) -> u64 {
        let held = i64::from(self.held().total()) * PAGE_BYTES as i64;
        // A small buffer is counted slightly before or after its page.
        (held - self.spare.load(Ordering::Relaxed) as i64).clamp(0, held) as u64
    }

    /// Returns the number of leases of slabs since the start.
    pub fn acquisitions(&self) -> u64 {
        let buffers: u64 = self
            .small_buffers
            .iter()
            .flatten()
            .map(SmallBuffers::taken)
            .sum();
        buffers + self.free.taken() + self.firsts.load(Ordering::Relaxed)
    }

    /// Counts spare bytes of held pages: `more` became free or newly held, and `fewer` were leased
    /// or are no longer held.
    fn spare(&self, more: usize, fewer: usize) {
        let change = (more as u64).wrapping_sub(fewer as u64);
        // The sum is modulo 2^64, because it can be below zero for a moment.
        self.spare.fetch_add(change, Ordering::Relaxed);
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
        before: Before,
        class: u8,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Allocation, PoolError> {
        let (allocation, is_split) = self.take(class, purpose, map)?;
        if is_split {
            // Other threads may have been refused while this page was counted and not yet split.
            self.event_count.announce_to_later(before);
        }
        Ok(allocation)
    }

    /// Takes a free page or buffer of the class, and returns whether a page was split for it.
    /// Announces nothing.
    fn take(
        &self,
        class: u8,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<(Allocation, bool), PoolError> {
        let allocation = |page, index| Allocation {
            page,
            index,
            class,
            purpose,
        };
        let Some(small) = self.small(class, purpose) else {
            return Ok((allocation(self.take_page(purpose, map)?, 0), false));
        };
        let bytes = SIZE_CLASSES[usize::from(class)];
        if let Some((page, index)) = small.take() {
            self.spare(0, bytes);
            return Ok((allocation(page, index), false));
        }
        let page = self.take_page(purpose, map)?;
        let index = small.split(page);
        self.spare(PAGE_BYTES, bytes);
        Ok((allocation(page, index), true))
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
        before: Before,
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
                None => self.take(class, purpose, map),
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
            self.list(allocation);
        }
        if gives_back {
            self.event_count.announce_to_later(before);
        }
        Err(error)
    }

    /// Takes `count` whole pages, all or none.
    fn take_pages(
        &self,
        before: Before,
        count: u32,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Vec<Allocation>, PoolError> {
        self.admission
            .enter_many(purpose, count)
            .map_err(|refused| exhausted(purpose, refused))?;
        let mut allocations = Vec::with_capacity(count as usize);
        for left in (0..count).rev() {
            match self.find_page(purpose, map) {
                Ok(page) => allocations.push(Allocation {
                    page,
                    index: 0,
                    class: SMALL_CLASSES as u8,
                    purpose,
                }),
                Err(error) => {
                    // `find_page` has uncounted the page that it did not find.
                    self.admission.leave_many(purpose, left);
                    for allocation in allocations {
                        self.list(allocation);
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
        self.list(allocation);
        self.event_count.announce();
    }

    /// Lists an allocation as free, without announcing it.
    fn list(&self, allocation: Allocation) {
        let whole = match self.small(allocation.class, allocation.purpose) {
            Some(small) => {
                let whole = small.give(allocation.page, allocation.index);
                let of_page = if whole { PAGE_BYTES } else { 0 };
                self.spare(allocation.bytes(), of_page);
                whole
            }
            None => true,
        };
        if whole {
            // The use is noted before the page is listed, so that a thread that finds it free knows
            // when it was used.
            self.note_use(self.slab_of(allocation.page));
            self.free.give(allocation.purpose, allocation.page);
            self.admission.leave(allocation.purpose);
        }
    }

    /// Announces memory that other arenas of the share have given back.
    pub(crate) fn announce(&self) {
        self.event_count.announce();
    }

    /// Returns its part of a memory that it shares.
    pub(crate) fn share(&self) -> Option<&Share> {
        self.share.as_ref()
    }

    /// Counts `more` slabs against the share, if it has one. Returns false if they are too many.
    fn count_in_share(&self, more: u32) -> bool {
        self.share.as_ref().is_none_or(|share| share.take(more))
    }

    /// Ends a `count_in_share`.
    fn uncount_in_share(&self, fewer: u32) {
        if let Some(share) = &self.share {
            share.give(fewer);
        }
    }

    /// Returns the pages that it could have at most now, with those that it has: fewer than its
    /// limit where others have taken what it shares with them.
    pub(crate) fn reach_pages(&self) -> u32 {
        let slabs = self.share.as_ref().map_or(u32::MAX, Share::reach);
        slabs.min(self.geometry.slabs) * self.geometry.pages_per_slab
    }

    /// Adds a listener, which `EventCount` calls.
    pub fn listen(&self, listener: Listener) {
        self.event_count.listen(listener);
    }

    /// Returns the pages taken, whole or split.
    pub fn held(&self) -> Held {
        self.admission.held()
    }

    /// Returns the maximum number of pages that `purpose` may hold.
    pub fn share_pages(&self, purpose: Purpose) -> u32 {
        let Geometry {
            slabs,
            pages_per_slab,
            reserve_pages,
        } = self.geometry;
        match purpose {
            Purpose::Read => slabs * pages_per_slab - reserve_pages,
            Purpose::Serve => slabs * pages_per_slab,
        }
    }

    /// Returns the small buffers of the class; `None` for whole pages.
    fn small(&self, class: u8, purpose: Purpose) -> Option<&SmallBuffers> {
        self.small_buffers[purpose as usize].get(usize::from(class))
    }

    fn take_page(&self, purpose: Purpose, map: MapSlab<'_>) -> Result<PageIndex, PoolError> {
        self.admission
            .enter(purpose)
            .map_err(|refused| exhausted(purpose, refused))?;
        self.find_page(purpose, map)
    }

    /// Finds the page of an admission. On an error the admission is ended.
    fn find_page(&self, purpose: Purpose, map: MapSlab<'_>) -> Result<PageIndex, PoolError> {
        loop {
            if let Some(page) = self.free.take(purpose) {
                return Ok(page);
            }
            match self.grow(purpose, map) {
                Ok(Some(page)) => return Ok(page),
                // All slabs are mapped, so a page must have moved between the lists during the
                // search.
                Ok(None) => spin_loop(),
                // This refusal has taken no page, so no other thread missed one. To announce it would
                // wake the refused thread again and again.
                Err(error @ PoolError::Exhausted { .. }) => {
                    self.admission.leave(purpose);
                    return Err(error);
                }
                Err(error) => {
                    self.admission.leave(purpose);
                    self.event_count.announce();
                    return Err(error);
                }
            }
        }
    }

    /// Activates an idle slab or maps a new one, lists all its pages except the first as free, and
    /// takes the first. Returns `None` if all slabs are mapped and active, and `Exhausted` if the
    /// share has no more.
    fn grow(&self, purpose: Purpose, map: MapSlab<'_>) -> Result<Option<PageIndex>, PoolError> {
        let mut slabs = lock(&self.slabs);
        // The thread that held the lock before may have listed pages for all threads that waited
        // for it.
        if let Some(page) = self.free.take(purpose) {
            return Ok(Some(page));
        }
        let Some(source) = slabs.next() else {
            return Ok(None);
        };
        let more = u32::from(!slabs.next_is_counted());
        if !self.count_in_share(more) {
            let held = self.held().total();
            let limit = self.share_pages(Purpose::Serve);
            return Err(exhausted(purpose, Refused { held, limit }));
        }
        let slab = match source {
            SlabSource::Idle(slab) => {
                self.registration_pins[slab as usize].activate();
                slab
            }
            SlabSource::New(slab) => {
                map(slab).inspect_err(|_| self.uncount_in_share(more))?;
                slab
            }
        };
        slabs.taken();
        self.note_use(slab);
        self.firsts.fetch_add(1, Ordering::Relaxed);
        let first = slab * self.geometry.pages_per_slab;
        for page in first + 1..first + self.geometry.pages_per_slab {
            self.free.give_cold(page);
        }
        Ok(Some(first))
    }

    fn slab_of(&self, page: PageIndex) -> u32 {
        page / self.geometry.pages_per_slab
    }

    /// Notes that a page of the slab is used now. This is a hint for `mark_idle`, so it needs no
    /// ordering; the load keeps the cache line shared until the clock changes.
    fn note_use(&self, slab: u32) {
        let now = self.clock.load(Ordering::Relaxed);
        let last = &self.last_use[slab as usize];
        if last.load(Ordering::Relaxed) != now {
            last.store(now, Ordering::Relaxed);
        }
    }
}

fn exhausted(purpose: Purpose, Refused { held, limit }: Refused) -> PoolError {
    PoolError::Exhausted {
        purpose,
        held: u64::from(held) * PAGE_BYTES as u64,
        limit: u64::from(limit) * PAGE_BYTES as u64,
    }
}
