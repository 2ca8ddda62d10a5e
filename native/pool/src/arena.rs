//! The pool without its memory: which pages and buffers are free, who may take them, who waits.
//!
//! Kept apart from the slabs so that models and oracles can explore it at any size: three pages
//! in a loom model, thousands in a pool. The caller gives the function that maps a slab.
//!
//! Order is all that matters here (see `admission`): *count, then take* on the way out, *list,
//! then uncount, then announce* on the way back. Slabs that nobody uses rest, with all their pages
//! withdrawn, and are woken before another is mapped (`slabs`, `registration_pins`).

use crate::admission::{Admission, Held, Refused};
use crate::event_count::{EventCount, Listener};
use crate::pages::{FreePages, PageIndex};
use crate::registration_pins::RegistrationPins;
use crate::slabs::{Slabs, Source};
use crate::small_buffers::SmallBuffers;
use crate::{PoolError, Purpose, PAGE_BYTES, SIZE_CLASSES};
use crossbeam_utils::CachePadded;
use faro_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use faro_sync::{lock, spin_loop, Mutex};
use std::time::Instant;

/// Classes below a page.
const SMALL_CLASSES: usize = SIZE_CLASSES.len() - 1;

/// How many of what.
#[derive(Debug, Clone, Copy)]
pub struct Geometry {
    /// Slabs that may be mapped.
    pub slabs: u32,
    /// Pages in each.
    pub pages_per_slab: u32,
    /// Pages that readers must leave.
    pub reserve_pages: u32,
}

/// Where a lease is: a page, or one index of a cut page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Allocation {
    /// Counted over all slabs.
    pub page: PageIndex,
    /// Position in the page, in units of the class; 0 for a whole page.
    pub index: u32,
    /// Index into [`SIZE_CLASSES`].
    pub class: u8,
    /// Whose share it counts against.
    pub purpose: Purpose,
}

impl Allocation {
    /// Bytes.
    pub fn bytes(self) -> usize {
        SIZE_CLASSES[usize::from(self.class)]
    }
}

/// See the module's comment.
pub struct Arena {
    geometry: Geometry,
    admission: Admission,
    free: FreePages,
    /// By purpose and class.
    small_buffers: [[SmallBuffers; SMALL_CLASSES]; 2],
    event_count: EventCount,
    /// Held while a slab is mapped, withdrawn, woken or released.
    slabs: Mutex<Slabs>,
    /// By slab.
    registration_pins: Box<[RegistrationPins]>,
    /// By slab: the `clock` when a page of it came back last.
    last_use: Box<[AtomicU32]>,
    /// What `last_use` is measured by; its unit is the caller's.
    clock: AtomicU32,
    /// Bytes of pages held that are not leased: free buffers of cut pages, and what rounding adds
    /// to memory outside the slabs. So a lease of a whole page has nothing to count.
    spare: CachePadded<AtomicU64>,
    /// Leases of slabs' first pages: those that `free` never had.
    firsts: AtomicU64,
}

/// What `release_one` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Gave a slab's pages back; there may be more.
    One,
    /// Nothing: devices have all that rest registered.
    NoneYet,
    /// Nothing: all that rest are empty.
    All,
}

/// Maps the slab of that index.
pub type MapSlab<'a> = &'a dyn Fn(u32) -> Result<(), PoolError>;

impl Arena {
    /// Nothing mapped yet.
    pub fn new(geometry: Geometry) -> Self {
        let pages = geometry.slabs * geometry.pages_per_slab;
        let small_buffers = || {
            std::array::from_fn(|class| {
                SmallBuffers::new((PAGE_BYTES / SIZE_CLASSES[class]) as u32)
            })
        };
        Self {
            geometry,
            admission: Admission::new(pages, geometry.reserve_pages),
            free: FreePages::new(pages),
            small_buffers: [small_buffers(), small_buffers()],
            event_count: EventCount::new(),
            slabs: Mutex::new(Slabs::new(geometry.slabs)),
            registration_pins: (0..geometry.slabs)
                .map(|_| RegistrationPins::new())
                .collect(),
            last_use: (0..geometry.slabs).map(|_| AtomicU32::new(0)).collect(),
            clock: AtomicU32::new(0),
            spare: CachePadded::new(AtomicU64::new(0)),
            firsts: AtomicU64::new(0),
        }
    }

    /// Bytes leased, of slabs and outside of them. While others lease and return it may be off by
    /// what they are at.
    pub fn leased_bytes(&self) -> u64 {
        let held = i64::from(self.held().total()) * PAGE_BYTES as i64;
        // Counted a moment before or after its page, a index must not make more of it than is held.
        (held - self.spare.load(Ordering::Relaxed) as i64).clamp(0, held) as u64
    }

    /// Leases of slabs given since the start.
    pub fn acquisitions(&self) -> u64 {
        let buffers: u64 = self
            .small_buffers
            .iter()
            .flatten()
            .map(SmallBuffers::taken)
            .sum();
        buffers + self.free.taken() + self.firsts.load(Ordering::Relaxed)
    }

    /// Of the bytes of held pages, `more` are not leased any more or newly held, and `fewer` leased
    /// or not held any more.
    fn spare(&self, more: usize, fewer: usize) {
        let change = (more as u64).wrapping_sub(fewer as u64);
        // Modulo 2^64: it can be below zero for a moment.
        self.spare.fetch_add(change, Ordering::Relaxed);
    }

    /// The smallest class that holds `bytes`.
    pub fn class_of(bytes: usize) -> Result<u8, PoolError> {
        if bytes == 0 || bytes > PAGE_BYTES {
            return Err(PoolError::BadSize {
                got: bytes,
                max: PAGE_BYTES,
            });
        }
        // At most four, and `bytes` fits the last.
        Ok(SIZE_CLASSES.iter().filter(|class| **class < bytes).count() as u8)
    }

    /// One try, silent when refused.
    pub fn attempt(
        &self,
        class: u8,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Allocation, PoolError> {
        let allocation = |page, index| Allocation {
            page,
            index,
            class,
            purpose,
        };
        let Some(small) = self.small(class, purpose) else {
            return Ok(allocation(self.take_page(purpose, map)?, 0));
        };
        let bytes = SIZE_CLASSES[usize::from(class)];
        if let Some((page, index)) = small.take() {
            self.spare(0, bytes);
            return Ok(allocation(page, index));
        }
        let page = self.take_page(purpose, map)?;
        let index = small.split(page);
        self.spare(PAGE_BYTES, bytes);
        // Others may have been refused because this page was already counted but not yet cut.
        self.event_count.announce();
        Ok(allocation(page, index))
    }

    /// One try; a refusal is followed by a listener's call as soon as anything returns.
    pub fn attempt_or_arm(
        &self,
        class: u8,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Allocation, PoolError> {
        match self.attempt(class, purpose, map) {
            Err(PoolError::Exhausted { .. }) => self
                .event_count
                .arm_and(|| self.attempt(class, purpose, map)),
            result => result,
        }
    }

    /// Tries until the deadline.
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

    /// Takes back what an attempt gave.
    pub fn give(&self, allocation: Allocation) {
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
            // Before it is listed, so that who finds it free knows when it was used.
            self.stamp(self.slab_of(allocation.page));
            self.free.give(allocation.purpose, allocation.page);
            self.admission.leave(allocation.purpose);
        }
        self.event_count.announce();
    }

    /// See `EventCount`.
    pub fn listen(&self, listener: Listener) {
        self.event_count.listen(listener);
    }

    /// Pages taken, whole or cut.
    pub fn held(&self) -> Held {
        self.admission.held()
    }

    /// Pages that `purpose` may hold at most.
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

    /// `None` for whole pages.
    fn small(&self, class: u8, purpose: Purpose) -> Option<&SmallBuffers> {
        self.small_buffers[purpose as usize].get(usize::from(class))
    }

    fn take_page(&self, purpose: Purpose, map: MapSlab<'_>) -> Result<PageIndex, PoolError> {
        self.admission
            .enter(purpose)
            .map_err(|Refused { held, limit }| PoolError::Exhausted {
                purpose,
                held: u64::from(held) * PAGE_BYTES as u64,
                limit: u64::from(limit) * PAGE_BYTES as u64,
            })?;
        loop {
            if let Some(page) = self.free.take(purpose) {
                return Ok(page);
            }
            match self.grow(purpose, map) {
                Ok(Some(page)) => return Ok(page),
                // All is mapped: a page was moving between the lists while they were looked at.
                Ok(None) => spin_loop(),
                Err(error) => {
                    self.admission.leave(purpose);
                    self.event_count.announce();
                    return Err(error);
                }
            }
        }
    }

    /// A page of a slab that was woken or mapped, whose others are listed; `None` if there is none.
    fn grow(&self, purpose: Purpose, map: MapSlab<'_>) -> Result<Option<PageIndex>, PoolError> {
        let mut slabs = lock(&self.slabs);
        // Whoever held the lock may have listed enough for all who waited for it.
        if let Some(page) = self.free.take(purpose) {
            return Ok(Some(page));
        }
        let slab = match slabs.next() {
            None => return Ok(None),
            Some(Source::Idle(slab)) => {
                self.registration_pins[slab as usize].activate();
                slab
            }
            Some(Source::New(slab)) => {
                map(slab)?;
                slab
            }
        };
        slabs.taken();
        self.stamp(slab);
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

    /// A hint for `rest`, so no ordering; the load keeps the line shared while the clock stands.
    fn stamp(&self, slab: u32) {
        let now = self.clock.load(Ordering::Relaxed);
        let last = &self.last_use[slab as usize];
        if last.load(Ordering::Relaxed) != now {
            last.store(now, Ordering::Relaxed);
        }
    }

    /// Whether that slab's pages must stay.
    pub fn registration_pins(&self, slab: u32) -> Option<&RegistrationPins> {
        self.registration_pins.get(slab as usize)
    }

    /// Sets the clock.
    pub fn tick(&self, now: u32) {
        self.clock.store(now, Ordering::Relaxed);
    }

    /// Sets the clock and has slabs rest of which no page is in use or was for `age`, but never
    /// the last one. How many.
    pub fn mark_idle(&self, now: u32, age: u32) -> u32 {
        self.tick(now);
        let mut slabs = lock(&self.slabs);
        let old: Vec<bool> = (0..slabs.mapped())
            .map(|slab| {
                let last = self.last_use[slab as usize].load(Ordering::Relaxed);
                !slabs.is_idle(slab) && now.wrapping_sub(last) >= age
            })
            .collect();
        let mut most = slabs.active().saturating_sub(1);
        if most == 0 || !old.contains(&true) {
            return 0;
        }
        let mut pages = self.free.withdraw(|page| old[self.slab_of(page) as usize]);
        pages.sort_unstable();
        let mut marked = 0;
        // The highest first: leases are packed into the lowest.
        for of_one in pages
            .chunk_by(|a, b| self.slab_of(*a) == self.slab_of(*b))
            .rev()
        {
            let slab = self.slab_of(of_one[0]);
            if of_one.len() == self.geometry.pages_per_slab as usize && most > 0 {
                self.registration_pins[slab as usize].mark_idle();
                slabs.mark_idle(slab);
                (most, marked) = (most - 1, marked + 1);
            } else {
                // Some are in use.
                of_one.iter().for_each(|page| self.free.give_cold(*page));
            }
        }
        marked
    }

    /// Has `empty` give back the pages of one slab that rests and that no device has registered.
    pub fn release_one(&self, empty: &dyn Fn(u32)) -> Release {
        let mut slabs = lock(&self.slabs);
        match slabs.choose_to_release(|slab| self.registration_pins[slab as usize].is_releasable())
        {
            Some(slab) => {
                empty(slab);
                Release::One
            }
            None if slabs.released().count() < slabs.idle() as usize => Release::NoneYet,
            None => Release::All,
        }
    }

    /// Slabs that rest, and which of them are empty.
    pub fn idle(&self) -> (u32, Vec<u32>) {
        let slabs = lock(&self.slabs);
        (slabs.idle(), slabs.released().collect())
    }

    /// Counts memory outside the slabs against the cap. It counts in whole slabs, all of it
    /// together, because what a slab has no room for cannot be leased; and like reading, because
    /// it must leave the reserve.
    pub fn wrap(&self, bytes: u64) -> Result<(), Refused> {
        let mut slabs = lock(&self.slabs);
        let more = slabs.wrapped_slabs(bytes) - slabs.wrapped_slabs(0);
        let pages = u32::try_from(more)
            .ok()
            .and_then(|more| more.checked_mul(self.geometry.pages_per_slab))
            .unwrap_or(u32::MAX);
        self.admission.enter_many(Purpose::Read, pages)?;
        // Slabs that are registered but not leased are in the way of it.
        if u64::from(slabs.with_memory()) + slabs.wrapped_slabs(bytes)
            > u64::from(self.geometry.slabs)
        {
            self.admission.leave_many(Purpose::Read, pages);
            return Err(Refused {
                held: slabs.with_memory() * self.geometry.pages_per_slab,
                limit: self.geometry.slabs * self.geometry.pages_per_slab,
            });
        }
        slabs.wrap(bytes);
        self.spare(pages as usize * PAGE_BYTES, bytes as usize);
        Ok(())
    }

    /// The reverse.
    pub fn unwrap(&self, bytes: u64) {
        let mut slabs = lock(&self.slabs);
        let before = slabs.wrapped_slabs(0);
        slabs.unwrap(bytes);
        let fewer = before - slabs.wrapped_slabs(0);
        let pages = fewer as u32 * self.geometry.pages_per_slab;
        self.spare(bytes as usize, pages as usize * PAGE_BYTES);
        self.admission.leave_many(Purpose::Read, pages);
        drop(slabs);
        self.event_count.announce();
    }
}
