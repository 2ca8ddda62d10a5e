//! The arena: a bounded set of large slabs, handed out as leases.
//!
//! Registered memory is the scarce thing, so it is bounded by a number in the configuration, taken
//! from the system rarely (16 MiB at a time), and passed from hand to hand in between:
//!
//! ```text
//!   Pool ── Arena ── admission   how many frames each purpose holds; the cap and the reserve
//!    │        ├───── frames      free frames: hot stacks before a bounded queue
//!    │        ├───── pieces      frames cut in 4, 16 or 64 KiB
//!    │        └───── gate        who was refused and is told when memory returns
//!    ├── Slab × n                memfd + mapping
//!    └── counters
//! ```
//! The arena knows no memory, only numbers, and is explored by a loom model and an oracle; the pool
//! adds the slabs. A lease is returned by dropping it, on any thread. Slabs stay mapped until the
//! pool and its last lease are gone.

mod counters;
mod error;
mod lease;
mod slab;
mod sync;

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
mod frames;
#[cfg(loom)]
pub mod frames;
#[cfg(not(loom))]
mod gate;
#[cfg(loom)]
pub mod gate;
mod pieces;

pub use counters::PoolCounters;
pub use error::{PoolError, Purpose};
pub use lease::Lease;
pub use slab::Slab;

use arena::{Arena, Geometry, Place};
use slab::FRAMES_PER_SLAB;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Bytes of one slab.
pub const SLAB_BYTES: usize = 16 << 20;
/// Bytes of one frame, the largest lease.
pub const FRAME_BYTES: usize = 256 << 10;
/// Lease sizes, ascending; the last is a frame.
pub const SIZE_CLASSES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, FRAME_BYTES];
/// Smallest limit a pool accepts: one slab for each purpose.
pub const MIN_LIMIT_BYTES: u64 = 2 * SLAB_BYTES as u64;
/// Largest limit a pool accepts; its lists are sized for the limit when it is made.
pub const MAX_LIMIT_BYTES: u64 = 1 << 40;

/// The pool.
pub struct Pool {
    /// Which bytes are whose.
    arena: Arena,
    /// As many places as the limit allows; filled from the front, never emptied.
    slabs: Box<[OnceLock<Arc<Slab>>]>,
    counters: counters::Counters,
}

impl Pool {
    /// A pool that will never map more than `limit_bytes` (rounded down to slabs).
    ///
    /// # Errors
    /// `LimitTooSmall`, `LimitTooLarge`.
    pub fn new(limit_bytes: u64) -> Result<Arc<Self>, PoolError> {
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
        // Within u32 by MAX_LIMIT_BYTES, as are all frames.
        let slabs = (limit_bytes / SLAB_BYTES as u64) as u32;
        let frames_per_slab = FRAMES_PER_SLAB as u32;
        Ok(Arc::new(Self {
            arena: Arena::new(Geometry {
                slabs,
                frames_per_slab,
                // An eighth, but never less than one slab.
                reserve_frames: (slabs * frames_per_slab / 8).max(frames_per_slab),
            }),
            slabs: (0..slabs).map(|_| OnceLock::new()).collect(),
            counters: counters::Counters::default(),
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
            .map(|place| self.lease(place))
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
        let place = match self.arena.attempt(class, purpose, &map) {
            Err(PoolError::Exhausted { .. }) => {
                self.counters.refused();
                self.counters.waited();
                self.arena.attempt_before(class, purpose, deadline, &map)
            }
            result => result,
        };
        place.map(|place| self.lease(place))
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

    /// Bytes that `purpose` may hold at most; what is larger can never be leased at once.
    #[must_use]
    pub fn share_bytes(&self, purpose: Purpose) -> u64 {
        u64::from(self.arena.share_frames(purpose)) * FRAME_BYTES as u64
    }

    /// Counters.
    pub fn counters(&self) -> PoolCounters {
        self.counters.snapshot(
            (self.slabs.len() * SLAB_BYTES) as u64,
            u64::from(self.arena.held().total()) * FRAME_BYTES as u64,
        )
    }

    /// Called by the arena for each index once, in order, one at a time.
    fn map_slab(&self, index: u32) -> Result<(), PoolError> {
        self.counters.mapping(SLAB_BYTES as u64);
        let start = Instant::now();
        let slab = Slab::map(index).inspect_err(|error| {
            self.counters.not_mapped(SLAB_BYTES as u64);
            log::warn!("{error}");
        })?;
        self.counters.mapped(start.elapsed().as_nanos() as u64);
        let before = self.slabs[index as usize].set(Arc::new(slab));
        debug_assert!(before.is_ok(), "slab {index} was mapped twice");
        Ok(())
    }

    fn lease(self: &Arc<Self>, place: Place) -> Lease {
        let slab = self.slabs[place.frame as usize / FRAMES_PER_SLAB]
            .get()
            .expect("the arena gives out only frames of mapped slabs");
        let frame = place.frame as usize % FRAMES_PER_SLAB;
        let in_frame = place.piece as usize * place.bytes();
        let reused = slab.touch(frame, in_frame, place.bytes());
        self.counters.leased(place.bytes() as u64, reused);
        // SAFETY: the frame is in the slab and the piece in the frame, so the sum is below the
        // slab's SLAB_BYTES, all of which are mapped at `base`.
        let start = unsafe { slab.base().add(frame * FRAME_BYTES + in_frame) };
        Lease::new(Arc::clone(self), place, start)
    }

    /// Takes back what `lease` gave.
    pub(crate) fn take_back(&self, place: Place) {
        self.counters.returned(place.bytes() as u64);
        self.arena.give(place);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.counters()).finish()
    }
}
