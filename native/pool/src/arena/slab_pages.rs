//! The whole pages of slabs: which are free, who may take one, and where more come from.

use super::Geometry;
use crate::admission::{reserve_pages, AdmissionRefused, HeldPages, PageAdmission};
use crate::budget::Share;
use crate::pages::{FreePages, PageIndex};
use crate::registration_pins::RegistrationPins;
use crate::slabs::{SlabSource, Slabs};
use crate::{PoolError, Purpose, PAGE_BYTES};
use faro_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use faro_sync::{lock, spin_loop, Mutex};
// No model bars a slab, and each load that loom knows of would add interleavings.
use std::sync::atomic::AtomicBool;

/// Maps the slab with this index.
pub type MapSlab<'a> = &'a dyn Fn(u32) -> Result<(), PoolError>;

/// Pages, counted by purpose. Nothing here is announced.
pub struct SlabPages {
    pub(super) geometry: Geometry,
    pub(super) admission: PageAdmission,
    pub(super) free: FreePages,
    /// Locked while a slab is mapped, becomes idle or active, or is released.
    pub(super) slabs: Mutex<Slabs>,
    /// What it may have of a memory that it shares with other arenas; `None`: it shares none.
    share: Option<Share>,
    /// The registration pins, by slab.
    pub(super) registration_pins: Box<[RegistrationPins]>,
    /// The slabs of which no page is leased any more; see `bar`.
    pub(super) barred: Box<[AtomicBool]>,
    /// For each slab, the value of `clock` when one of its pages was last returned.
    pub(super) last_use: Box<[AtomicU32]>,
    /// The time, in the caller's unit.
    pub(super) clock: AtomicU32,
    /// Number of leases of the first page of a slab, which is leased without being listed as free.
    firsts: AtomicU64,
}

impl SlabPages {
    /// Returns pages without mapped slabs.
    pub(super) fn new(geometry: Geometry, share: Option<Share>) -> Self {
        let pages = geometry.slabs * geometry.pages_per_slab;
        Self {
            geometry,
            admission: PageAdmission::new(pages, geometry.reserve_pages),
            free: FreePages::new(pages),
            slabs: Mutex::new(Slabs::new(geometry.slabs)),
            share,
            registration_pins: (0..geometry.slabs)
                .map(|_| RegistrationPins::new())
                .collect(),
            barred: (0..geometry.slabs)
                .map(|_| AtomicBool::new(false))
                .collect(),
            last_use: (0..geometry.slabs).map(|_| AtomicU32::new(0)).collect(),
            clock: AtomicU32::new(0),
            firsts: AtomicU64::new(0),
        }
    }

    pub(super) fn taken(&self) -> u64 {
        self.free.taken() + self.firsts.load(Ordering::Relaxed)
    }

    /// Whole or split.
    pub fn held(&self) -> HeldPages {
        self.admission.held()
    }

    /// Returns the maximum number of pages that `purpose` may hold.
    pub fn share_pages(&self, purpose: Purpose) -> u32 {
        match purpose {
            Purpose::Read => self.admission.read_limit(),
            Purpose::Serve => self.admission.limit(),
        }
    }

    /// Returns its part of a memory that it shares.
    pub(crate) fn share(&self) -> Option<&Share> {
        self.share.as_ref()
    }

    /// Maps no more, and leaves its own part of a memory that it shares to another arena. Returns
    /// false if that is not possible now.
    pub(crate) fn retire(&self) -> bool {
        let _slabs = lock(&self.slabs);
        self.share.as_ref().is_some_and(Share::retire)
    }

    /// Counts `more` slabs against the share, if it has one. Returns false if they are too many.
    pub(super) fn count_in_share(&self, more: u32) -> bool {
        self.share.as_ref().is_none_or(|share| share.take(more))
    }

    /// Ends a `count_in_share`.
    pub(super) fn uncount_in_share(&self, fewer: u32) {
        if let Some(share) = &self.share {
            share.give(fewer);
        }
    }

    /// Returns the pages that it could have at most now, with those that it has: fewer than its
    /// limit where others have taken what it shares with them.
    pub(crate) fn reach_pages(&self) -> u32 {
        let slabs = self.share.as_ref().map_or(u32::MAX, Share::reach);
        (slabs.min(self.geometry.slabs) * self.geometry.pages_per_slab).min(self.admission.limit())
    }

    /// Counts `count` pages, all or none, before they are found.
    ///
    /// # Errors
    /// Returns `Exhausted`.
    pub(super) fn enter(&self, purpose: Purpose, count: u32) -> Result<(), PoolError> {
        self.admission
            .enter_many(purpose, count)
            .map_err(|refused| exhausted(purpose, refused))
    }

    /// Uncounts pages that were counted and are not found.
    pub(super) fn leave(&self, purpose: Purpose, count: u32) {
        self.admission.leave_many(purpose, count);
    }

    /// Lists a page as free, and uncounts it.
    pub(super) fn list(&self, purpose: Purpose, page: PageIndex) {
        debug_assert!(page < self.geometry.slabs * self.geometry.pages_per_slab);
        // The use is noted before the page is listed, so that a thread that finds it free knows when
        // it was used.
        self.note_use(self.slab_of(page));
        if !self.is_barred(page) {
            self.free.give(purpose, page);
        }
        self.admission.leave(purpose);
    }

    /// Finds the page of an admission. On an error the admission is ended, and not announced.
    pub(super) fn find(&self, purpose: Purpose, map: MapSlab<'_>) -> Result<PageIndex, PoolError> {
        loop {
            if let Some(page) = self.free.take(purpose) {
                return Ok(page);
            }
            match self.grow(purpose, map) {
                Ok(Some(page)) => return Ok(page),
                // The bounds were lowered after this admission.
                Ok(None) if self.held().total() > self.admission.limit() => {
                    self.admission.leave(purpose);
                    return Err(exhausted(purpose, self.whole()));
                }
                // All slabs are mapped, so a page must have moved between the lists during the
                // search.
                Ok(None) => spin_loop(),
                Err(error) => {
                    self.admission.leave(purpose);
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
            return Err(exhausted(purpose, self.whole()));
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
        debug_assert!(slab < self.geometry.slabs);
        let first = slab * self.geometry.pages_per_slab;
        for page in first + 1..first + self.geometry.pages_per_slab {
            self.free.give_cold(page);
        }
        Ok(Some(first))
    }

    /// Leases no page of a slab any more, and maps no other: a device cannot register them. The pages
    /// that are leased return to nobody. Returns false if less than a slab for each purpose would be
    /// left; then all is as before.
    pub(crate) fn bar(&self, slab: u32) -> bool {
        let mut slabs = lock(&self.slabs);
        let barred = self.barred.iter().enumerate();
        let left = barred
            .take(slabs.mapped() as usize)
            .filter(|(at, barred)| *at != slab as usize && !barred.load(Ordering::Relaxed))
            .count() as u32;
        if left < 2 || slab >= slabs.mapped() {
            return false;
        }
        slabs.cap();
        self.barred[slab as usize].store(true, Ordering::Relaxed);
        let Geometry { pages_per_slab, .. } = self.geometry;
        let reserve = reserve_pages(left, pages_per_slab);
        self.admission.lower(left * pages_per_slab, reserve);
        // A page that another thread lists at this moment may be leased once more.
        drop(self.free.withdraw(|page| self.slab_of(page) == slab));
        true
    }

    /// Returns whether the page's slab is barred.
    pub(super) fn is_barred(&self, page: PageIndex) -> bool {
        let barred = self.barred.get(self.slab_of(page) as usize);
        barred.is_some_and(|barred| barred.load(Ordering::Relaxed))
    }

    /// Returns the bound that is met where all pages are taken.
    fn whole(&self) -> AdmissionRefused {
        AdmissionRefused {
            held: self.held().total(),
            limit: self.share_pages(Purpose::Serve),
        }
    }

    pub(super) fn slab_of(&self, page: PageIndex) -> u32 {
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

fn exhausted(purpose: Purpose, AdmissionRefused { held, limit }: AdmissionRefused) -> PoolError {
    PoolError::Exhausted {
        purpose,
        held: u64::from(held) * PAGE_BYTES as u64,
        limit: u64::from(limit) * PAGE_BYTES as u64,
    }
}
