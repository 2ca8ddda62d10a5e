//! The pool: the arena with its slabs, external memory and counters, and the types that refer back
//! to it.

mod account;
mod external;
mod idle;
mod lease;
mod mapped_file;
mod registration;
mod setup;

pub use account::{Account, Charge};
pub use external::{Access, Attachment, CleanUp, ExternalMemory, WrapRefused, MAX_EXTERNAL_BYTES};
pub use lease::Lease;
pub use registration::{RegistrationCount, RegistrationPin};
pub use setup::PoolOptions;

use crate::arena::{Allocation, Arena};
use crate::budget::BudgetMember;
use crate::slab::{Slab, PAGES_PER_SLAB};
use crate::{counters, PoolCounters, PoolError, Purpose, PAGE_BYTES, SLAB_BYTES};
use idle::IdleSearch;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A pool of memory for leases, bounded by a limit.
pub struct Pool {
    /// The slabs by index, for as many as the limit allows. They are set in order and never unset.
    /// Before `arena`, so that they are unmapped when the arena gives its share back.
    pub(crate) slabs: Box<[OnceLock<Arc<Slab>>]>,
    /// The pages and buffers, leased or free.
    pub(crate) arena: Arena,
    pub(crate) counters: counters::AtomicCounters,
    options: PoolOptions,
    pub(crate) idle: IdleSearch,
    /// The next number of external memory.
    next_external: AtomicU32,
}

impl Pool {
    /// Maps no more memory, and leaves its place in the budget to another pool, for what ends and may
    /// have memory that does not come back yet. What it has is counted until it is dropped. Returns
    /// false if it has no budget, or more than fits beside the other pools now.
    pub fn retire(&self) -> bool {
        let has_retired = self.arena.pages().retire();
        self.announce_to_others();
        has_retired
    }

    /// Tells the other pools of the budget that memory has returned. Called without a lock.
    fn announce_to_others(&self) {
        if let Some(share) = self.arena.pages().share() {
            share.budget().announce();
        }
    }

    /// Returns a lease of the smallest size class that holds `bytes`, if it is available now. Never
    /// blocks; may map a slab.
    ///
    /// # Errors
    /// Returns `BadSize`, `Exhausted` or `NoMemory`.
    pub fn try_lease(self: &Arc<Self>, bytes: usize, purpose: Purpose) -> Result<Lease, PoolError> {
        let class = Arena::class_of(bytes)?;
        self.arena
            .attempt_or_arm(class, purpose, &|index| self.map_slab(index))
            .map(|allocation| self.lease(allocation))
            .inspect_err(|_| self.counters.refused())
    }

    /// Returns a lease for each of these numbers of bytes, all or none, so that callers that each
    /// need several never hold some and wait for the others. Like a refusal of one lease, a refusal
    /// wakes no listener, although it may have taken some of them for a moment.
    ///
    /// # Errors
    /// The errors are those of `try_lease`.
    pub fn try_lease_each(
        self: &Arc<Self>,
        bytes: &[usize],
        purpose: Purpose,
    ) -> Result<Vec<Lease>, PoolError> {
        let classes = bytes.iter().map(|bytes| Arena::class_of(*bytes));
        let classes = classes.collect::<Result<Vec<_>, _>>()?;
        let allocations = self
            .arena
            .attempt_each_or_arm(&classes, purpose, &|index| self.map_slab(index))
            .inspect_err(|_| self.counters.refused())?;
        Ok(allocations.into_iter().map(|a| self.lease(a)).collect())
    }

    /// Returns the bytes of pages that are held for `purpose`, whole or split.
    #[must_use]
    pub fn held_bytes(&self, purpose: Purpose) -> u64 {
        let held = self.arena.pages().held();
        let pages = match purpose {
            Purpose::Read => held.read,
            Purpose::Serve => held.serve,
        };
        u64::from(pages) * PAGE_BYTES as u64
    }

    /// Waits until `deadline` for memory to return, and otherwise does the same as `try_lease`.
    /// Progress threads must not call it.
    ///
    /// # Errors
    /// Returns `BadSize` and `NoMemory` at once, and `Exhausted` after the deadline.
    pub fn lease_before(
        self: &Arc<Self>,
        bytes: usize,
        purpose: Purpose,
        deadline: Instant,
    ) -> Result<Lease, PoolError> {
        let class = Arena::class_of(bytes)?;
        let map = |index| self.map_slab(index);
        let allocation = match self.arena.attempt(class, purpose, &map) {
            Err(PoolError::Exhausted { .. }) => {
                self.counters.refused();
                self.counters.waited();
                self.arena.attempt_before(class, purpose, deadline, &map)
            }
            result => result,
        };
        allocation.map(|allocation| self.lease(allocation))
    }

    /// Leases the caller's own memory. It counts against the limit from now on, as memory for
    /// reading; all such memory together counts in whole slabs. A fabric registers it when it first
    /// uses it. Dropping the lease de-registers the memory and then calls `clean_up`, on the same
    /// thread.
    ///
    /// # Errors
    /// Returns `BadWrap` or `NoRoom`. The error returns `clean_up`, which was not called.
    ///
    /// # Safety
    /// The `bytes` bytes from `start` are valid for reads and writes, initialised, and used by no
    /// other code until `clean_up` is called. Reading or writing them never faults, as it would in a
    /// mapped file that becomes shorter.
    pub unsafe fn wrap(
        self: &Arc<Self>,
        start: NonNull<u8>,
        bytes: usize,
        clean_up: CleanUp,
    ) -> Result<Lease, WrapRefused> {
        ExternalMemory::new(self, start, bytes, clean_up).map(Lease::of_external)
    }

    /// Leases new, zeroed memory of exactly `bytes` bytes, outside the slabs. A fabric registers it
    /// when it first uses it; dropping the lease de-registers and frees it. This is for memory that
    /// is larger than a page or that a NIC may never use; all other memory is cheaper from a slab.
    ///
    /// # Errors
    /// Returns `BadWrap`, `NoRoom` or `NoMemory`.
    pub fn allocate_lazily(self: &Arc<Self>, bytes: usize) -> Result<Lease, PoolError> {
        external::check(bytes)?;
        let (start, clean_up) = external::anonymous(bytes)?;
        // SAFETY: it is a new mapping of that length, zeroed; only `clean_up`, which unmaps it, has
        // its address.
        unsafe { self.wrap(start, bytes, clean_up) }.map_err(|refused| {
            (refused.clean_up)();
            refused.error
        })
    }

    /// Adds a listener that is called when memory returns after `try_lease` was refused, on the
    /// thread that returns it. Several refusals before that return lead to one call. The listener
    /// must not block or panic. The memory may not fit the size or purpose that was refused: then
    /// the next `try_lease` is refused, and the next return calls the listener again.
    pub fn on_release(&self, listener: Box<dyn Fn() + Send + Sync>) {
        self.arena.listen(Arc::from(listener));
    }

    /// Returns the slab with this index; `None` if it is not mapped.
    pub fn slab(&self, index: u32) -> Option<Arc<Slab>> {
        self.slabs.get(index as usize)?.get().cloned()
    }

    /// Leases no page of a slab any more, and maps no further slab, because a device cannot register
    /// it. Leases of the slab stay valid. Returns false if less memory than the smallest limit would be
    /// left; then nothing changes.
    pub fn bar(&self, index: u32) -> bool {
        self.arena.pages().bar(index)
    }

    /// Keeps a slab's pages until the pin is dropped. A fabric pins a slab before it registers it,
    /// and drops the pin after it has de-registered it. Returns `None` if the slab is idle, so that
    /// no lease of it exists.
    #[must_use]
    pub fn pin(self: &Arc<Self>, index: u32) -> Option<RegistrationPin> {
        RegistrationPin::new(self, index)
    }

    /// Counts a registration of `bytes` bytes that took `took`, until the result is dropped.
    #[must_use]
    pub fn count_registration(self: &Arc<Self>, bytes: usize, took: Duration) -> RegistrationCount {
        RegistrationCount::new(self, bytes, took)
    }

    /// Returns the maximum bytes that `purpose` may hold at once.
    #[must_use]
    pub fn share_bytes(&self, purpose: Purpose) -> u64 {
        u64::from(self.arena.pages().share_pages(purpose)) * PAGE_BYTES as u64
    }

    /// Returns the most bytes that the pool could hold now: less than its limit where other pools
    /// have what it shares with them.
    #[must_use]
    pub fn reach_bytes(&self) -> u64 {
        u64::from(self.arena.pages().reach_pages()) * PAGE_BYTES as u64
    }

    pub fn counters(&self) -> PoolCounters {
        let (idle, released) = self.arena.pages().idle();
        let is_releasable = |index: &&u32| {
            let slab = self.slabs[**index as usize].get();
            slab.is_some_and(|slab| slab.is_releasable())
        };
        let released = released.iter().filter(is_releasable).count();
        let slabs = |count: usize| (count * SLAB_BYTES) as u64;
        PoolCounters {
            limit_bytes: slabs(self.slabs.len()),
            held_bytes: u64::from(self.arena.pages().held().total()) * PAGE_BYTES as u64,
            leased_bytes: self.arena.leased_bytes(),
            idle_bytes: slabs(idle as usize),
            ..self
                .counters
                .snapshot(self.arena.acquisitions(), slabs(released))
        }
    }

    /// Maps a slab. The arena calls it once for each index, in order, one call at a time.
    fn map_slab(&self, index: u32) -> Result<(), PoolError> {
        self.counters.mapping(SLAB_BYTES as u64);
        let start = Instant::now();
        let PoolOptions {
            huge_pages,
            idle_release,
            ..
        } = self.options;
        // `count_external` releases idle slabs of a shared memory also where time alone does not.
        let releasable = !idle_release.is_zero() || self.arena.pages().share().is_some();
        let slab = Slab::map(index, huge_pages, releasable).inspect_err(|error| {
            self.counters.not_mapped(SLAB_BYTES as u64);
            log::warn!("{error}");
        })?;
        let took = start.elapsed().as_nanos() as u64;
        if self.counters.mapped(took, slab.is_huge()) {
            log::info!("slabs of the arena are on huge pages of 2 MiB while enough are free");
        } else if index == 0 && huge_pages && !slab.is_huge() {
            log::debug!(
                "the arena is on ordinary pages: a slab needs 8 free huge pages of 2 MiB, which \
                 `sysctl vm.nr_hugepages=N` reserves"
            );
        }
        let before = self.slabs[index as usize].set(Arc::new(slab));
        debug_assert!(before.is_ok(), "slab {index} was mapped twice");
        Ok(())
    }

    fn lease(self: &Arc<Self>, allocation: Allocation) -> Lease {
        let slab = self.slabs[allocation.page as usize / PAGES_PER_SLAB]
            .get()
            .expect("the arena gives out only pages of mapped slabs");
        let page = allocation.page as usize % PAGES_PER_SLAB;
        let in_page = allocation.index as usize * allocation.bytes();
        let reused = slab.touch(page, in_page, allocation.bytes());
        self.counters.leased(self.arena.leased_bytes(), reused);
        // SAFETY: the page is in the slab and the buffer in the page, so that the sum is below
        // SLAB_BYTES; all of them are mapped at `base`.
        let start = unsafe { slab.base().add(page * PAGE_BYTES + in_page) };
        Lease::new(Arc::clone(self), allocation, start)
    }

    /// Returns an allocation of a lease to the arena.
    pub(crate) fn take_back(&self, allocation: Allocation) {
        self.arena.give(allocation);
    }
}

impl BudgetMember for Pool {
    fn memory_returned(&self) {
        self.arena.announce();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.counters()).finish()
    }
}
