//! The arena: a bounded set of large slabs, handed out as leases.
//!
//! Registered memory is the scarce thing, so it is bounded by a number in the configuration, taken
//! from the system rarely (16 MiB at a time), and passed from hand to hand in between:
//!
//! ```text
//!   Pool ── Arena ── admission   how many pages each purpose holds; the cap and the reserve
//!    │        ├───── pages      free pages: hot stacks before a bounded queue
//!    │        ├───── buffers      pages cut in 4, 16 or 64 KiB
//!    │        ├───── slabs       which are mapped, resting, released; outside memory in the cap
//!    │        ├───── tenure      whether a slab's pages must stay
//!    │        └───── gate        who was refused and is told when memory returns
//!    ├── Slab × n ── pages       memfd + mapping
//!    ├── ExternalMemory                 memory outside the slabs: wrapped, or to be registered lazily
//!    └── counters
//! ```
//! The arena knows no memory, only numbers, and is explored by a loom model and an oracle; the pool
//! adds the slabs. A lease is returned by dropping it, on any thread. Slabs stay mapped until the
//! pool and its last lease are gone, so that nothing that points into one ever dangles. What an
//! idle slab gives up (`release_idle`) is its registration, and then its pages; see `registration_pins`.
//!
//! The pool does not register anything: fabrics do. They learn of new slabs by `slab`, of idle ones
//! by `rests` and `is_idle`, of memory outside the slabs by the leases of it, and tell the pool
//! what they registered by [`RegistrationPin`] and [`RegistrationCount`].

mod counters;
mod error;
mod external;
mod idle;
mod lease;
mod mapped_file;
mod mapping;
mod registration;
mod slab;
mod slabs;

// Public for the model only.
#[cfg(not(loom))]
mod admission;
#[cfg(loom)]
pub mod admission;
#[cfg(not(loom))]
mod arena;
#[cfg(loom)]
pub mod arena;
#[cfg(not(loom))]
mod event_count;
#[cfg(loom)]
pub mod event_count;
#[cfg(not(loom))]
mod pages;
#[cfg(loom)]
pub mod pages;
#[cfg(not(loom))]
mod registration_pins;
#[cfg(loom)]
pub mod registration_pins;
mod small_buffers;

pub use counters::PoolCounters;
pub use error::{PoolError, Purpose};
pub use external::{Access, Attachment, CleanUp, ExternalMemory, WrapRefused, MAX_EXTERNAL_BYTES};
pub use lease::Lease;
pub use registration::{RegistrationCount, RegistrationPin};
pub use slab::Slab;

use arena::{Allocation, Arena, Geometry};
use idle::Idle;
use slab::PAGES_PER_SLAB;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Bytes of one slab.
pub const SLAB_BYTES: usize = 16 << 20;
/// Bytes of one page, the largest lease of a slab.
pub const PAGE_BYTES: usize = 256 << 10;
/// Lease sizes, ascending; the last is a page.
pub const SIZE_CLASSES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, PAGE_BYTES];
/// Smallest limit a pool accepts: one slab for each purpose.
pub const MIN_LIMIT_BYTES: u64 = 2 * SLAB_BYTES as u64;
/// Largest limit a pool accepts; its lists are sized for the limit when it is made.
pub const MAX_LIMIT_BYTES: u64 = 1 << 40;

/// What a pool is made with.
#[derive(Debug, Clone, Copy)]
pub struct PoolOptions {
    /// Hard cap, bytes, rounded down to slabs.
    pub limit_bytes: u64,
    /// How long a slab goes unused before it is given up; zero: never.
    pub idle_release: Duration,
    /// Whether slabs are put on the machine's huge pages when there are enough.
    pub huge_pages: bool,
}

impl PoolOptions {
    /// Nothing is given up; huge pages when there are any.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            idle_release: Duration::ZERO,
            huge_pages: true,
        }
    }
}

/// The pool.
pub struct Pool {
    /// Which bytes are whose.
    arena: Arena,
    /// As many places as the limit allows; filled from the front, never released.
    slabs: Box<[OnceLock<Arc<Slab>>]>,
    counters: counters::Counters,
    options: PoolOptions,
    idle: Idle,
    /// Next number for memory outside the slabs.
    next_external: AtomicU32,
}

impl Pool {
    /// A pool that will never map more than `limit_bytes` (rounded down to slabs).
    ///
    /// # Errors
    /// `LimitTooSmall`, `LimitTooLarge`.
    pub fn new(limit_bytes: u64) -> Result<Arc<Self>, PoolError> {
        Self::with_options(PoolOptions::new(limit_bytes))
    }

    /// A pool like that.
    ///
    /// # Errors
    /// `LimitTooSmall`, `LimitTooLarge`.
    pub fn with_options(options: PoolOptions) -> Result<Arc<Self>, PoolError> {
        let limit_bytes = options.limit_bytes;
        if limit_bytes < MIN_LIMIT_BYTES {
            return Err(PoolError::LimitTooSmall {
                got: limit_bytes,
                min: MIN_LIMIT_BYTES,
            });
        }
        if limit_bytes > MAX_LIMIT_BYTES {
            return Err(PoolError::LimitTooLarge {
                got: limit_bytes,
                max: MAX_LIMIT_BYTES,
            });
        }
        // Within u32 by MAX_LIMIT_BYTES, as are all pages.
        let slabs = (limit_bytes / SLAB_BYTES as u64) as u32;
        let pages_per_slab = PAGES_PER_SLAB as u32;
        Ok(Arc::new(Self {
            arena: Arena::new(Geometry {
                slabs,
                pages_per_slab,
                // An eighth, but never less than one slab.
                reserve_pages: (slabs * pages_per_slab / 8).max(pages_per_slab),
            }),
            slabs: (0..slabs).map(|_| OnceLock::new()).collect(),
            counters: counters::Counters::default(),
            options,
            idle: Idle::new(options.idle_release),
            next_external: AtomicU32::new(0),
        }))
    }

    /// The smallest class that holds `bytes`, now or not at all. Never blocks; may map a slab.
    ///
    /// # Errors
    /// `BadSize`, `Exhausted`, `NoMemory`.
    pub fn try_lease(self: &Arc<Self>, bytes: usize, purpose: Purpose) -> Result<Lease, PoolError> {
        let class = Arena::class_of(bytes)?;
        self.arena
            .attempt_or_arm(class, purpose, &|index| self.map_slab(index))
            .map(|allocation| self.lease(allocation))
            .inspect_err(|_| self.counters.refused())
    }

    /// Like `try_lease`, but waits for returns until `deadline`. Not for progress threads.
    ///
    /// # Errors
    /// `BadSize`, `NoMemory` at once; `Exhausted` when the deadline has passed.
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

    /// All of the caller's own memory, as a lease that counts against the cap from now on. A fabric
    /// registers it when it first uses it. When the lease is dropped it is de-registered, and then
    /// `clean_up` is called, on that thread.
    ///
    /// It counts as memory for reading, and all such memory together in whole slabs.
    ///
    /// # Errors
    /// `BadWrap`, `NoRoom`, each with `clean_up`, which is not called.
    ///
    /// # Safety
    /// The `bytes` bytes from `start` are valid for reads and writes, initialised, and used by
    /// nobody else until `clean_up` is called. Reading or writing them never faults (a mapped file
    /// that somebody may truncate would).
    pub unsafe fn wrap(
        self: &Arc<Self>,
        start: NonNull<u8>,
        bytes: usize,
        clean_up: CleanUp,
    ) -> Result<Lease, WrapRefused> {
        ExternalMemory::new(self, start, bytes, clean_up).map(Lease::of_external)
    }

    /// New, zeroed memory of exactly `bytes` bytes, outside the slabs: registered when the NIC first
    /// uses it, by itself, and de-registered and freed with its lease. For what is larger than a
    /// page, or may never meet a NIC; everything else is cheaper from a slab.
    ///
    /// # Errors
    /// `BadWrap`, `NoRoom`, `NoMemory`.
    pub fn allocate_lazily(self: &Arc<Self>, bytes: usize) -> Result<Lease, PoolError> {
        external::check(bytes)?;
        let (start, clean_up) = external::anonymous(bytes)?;
        // SAFETY: a mapping of our own of that length, zeroed, known to nobody else; `clean_up`
        // unmaps it.
        unsafe { self.wrap(start, bytes, clean_up) }.map_err(|refused| {
            (refused.clean_up)();
            refused.error
        })
    }

    /// `listener` is called, on whatever thread returns memory, after a `try_lease` was refused
    /// (once per refusal burst: the flag is re-armed by the next refusal). It must not block or
    /// panic. The memory that returned may be too little for the purpose or size that was refused;
    /// then the next try is refused and re-arms.
    pub fn on_release(&self, listener: Box<dyn Fn() + Send + Sync>) {
        self.arena.listen(Arc::from(listener));
    }

    /// A slab by index.
    pub fn slab(&self, index: u32) -> Option<Arc<Slab>> {
        self.slabs.get(index as usize)?.get().cloned()
    }

    /// Keeps a slab's pages where they are, to be taken before it is registered and dropped after it
    /// is de-registered. `None`: the slab rests (so that nobody has a lease of it).
    #[must_use]
    pub fn pin(self: &Arc<Self>, index: u32) -> Option<RegistrationPin> {
        RegistrationPin::new(self, index)
    }

    /// Counts a registration that took that long, until the answer is dropped.
    #[must_use]
    pub fn count_registration(self: &Arc<Self>, bytes: usize, took: Duration) -> RegistrationCount {
        RegistrationCount::new(self, bytes, took)
    }

    /// Bytes that `purpose` may hold at most; what is larger can never be leased at once.
    #[must_use]
    pub fn share_bytes(&self, purpose: Purpose) -> u64 {
        u64::from(self.arena.share_pages(purpose)) * PAGE_BYTES as u64
    }

    /// Counters.
    pub fn counters(&self) -> PoolCounters {
        let (resting, released) = self.arena.idle();
        let is_releasable = |index: &&u32| {
            let slab = self.slabs[**index as usize].get();
            slab.is_some_and(|slab| slab.is_releasable())
        };
        let away = released.iter().filter(is_releasable).count();
        let slabs = |count: usize| (count * SLAB_BYTES) as u64;
        PoolCounters {
            limit_bytes: slabs(self.slabs.len()),
            held_bytes: u64::from(self.arena.held().total()) * PAGE_BYTES as u64,
            leased_bytes: self.arena.leased_bytes(),
            resting_bytes: slabs(resting as usize),
            ..self
                .counters
                .snapshot(self.arena.acquisitions(), slabs(away))
        }
    }

    /// Called by the arena for each index once, in order, one at a time.
    fn map_slab(&self, index: u32) -> Result<(), PoolError> {
        self.counters.mapping(SLAB_BYTES as u64);
        let start = Instant::now();
        let PoolOptions {
            huge_pages,
            idle_release,
            ..
        } = self.options;
        let slab = Slab::map(index, huge_pages, !idle_release.is_zero()).inspect_err(|error| {
            self.counters.not_mapped(SLAB_BYTES as u64);
            log::warn!("{error}");
        })?;
        let took = start.elapsed().as_nanos() as u64;
        if self.counters.mapped(took, slab.is_huge()) {
            log::info!("the arena has slabs on huge pages of 2 MiB, while some are free");
        } else if index == 0 && huge_pages && !slab.is_huge() {
            log::debug!(
                "the arena is on ordinary pages: a slab needs 8 free huge pages of 2 MiB; \
                 `sysctl vm.nr_hugepages=N` sets some aside"
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
        // SAFETY: the page is in the slab and the index in the page, so the sum is below the
        // slab's SLAB_BYTES, all of which are mapped at `base`.
        let start = unsafe { slab.base().add(page * PAGE_BYTES + in_page) };
        Lease::new(Arc::clone(self), allocation, start)
    }

    /// Takes back what `lease` gave.
    pub(crate) fn take_back(&self, allocation: Allocation) {
        self.arena.give(allocation);
    }

    /// Counts memory outside the slabs against the cap; its number.
    pub(crate) fn count_external(&self, bytes: usize) -> Result<u32, PoolError> {
        external::check(bytes)?;
        let mut counted = self.arena.wrap(bytes as u64);
        if counted.is_err() {
            // Slabs that nobody uses may be in the way of it; those registered stay in the way.
            self.mark_idle(Duration::ZERO);
            if self.release_idle_pages(u32::MAX) > 0 {
                counted = self.arena.wrap(bytes as u64);
            }
        }
        counted.map_err(|refused| {
            self.counters.refused();
            PoolError::NoRoom {
                got: bytes,
                held: u64::from(refused.held) * PAGE_BYTES as u64,
                limit: u64::from(refused.limit) * PAGE_BYTES as u64,
                slab: SLAB_BYTES,
            }
        })?;
        let leased = self.arena.leased_bytes();
        self.counters.wrapped(bytes as u64, leased);
        Ok(self.next_external())
    }

    pub(crate) fn next_external(&self) -> u32 {
        self.next_external.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn uncount_external(&self, bytes: usize) {
        self.counters.unwrapped(bytes as u64);
        self.arena.unwrap(bytes as u64);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.counters()).finish()
    }
}
