//! The arena: a bounded set of large slabs, handed out as leases (design.md section 4).
//!
//! API SKETCH, to be replaced by its implementation; the names and signatures stay.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;

/// Bytes of one slab.
pub const SLAB_BYTES: usize = 16 << 20;
/// Bytes of one frame, the largest lease.
pub const FRAME_BYTES: usize = 256 << 10;
/// Lease sizes, ascending; the last is a frame.
pub const SIZE_CLASSES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, FRAME_BYTES];
/// Smallest limit a pool accepts: one slab for each purpose.
pub const MIN_LIMIT_BYTES: u64 = 2 * SLAB_BYTES as u64;

/// What a lease is for. Serving has a reserve of its own, so that readers that hold all they may
/// hold can never keep an owner from answering (which would be a deadlock across executors).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Bytes of blocks that this process reads.
    Read,
    /// Bytes on their way out.
    Serve,
}

/// Why no lease was given.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PoolError {
    /// The limit is below [`MIN_LIMIT_BYTES`].
    #[error("memory limit {got} bytes is too small, at least {min} bytes are needed")]
    LimitTooSmall { got: u64, min: u64 },
    /// More than a frame, or nothing.
    #[error("a lease of {got} bytes is not possible, 1 to {max} bytes are")]
    BadSize { got: usize, max: usize },
    /// All that this purpose may hold is held.
    #[error("arena exhausted: {held} of {limit} bytes are leased for {purpose:?}")]
    Exhausted {
        purpose: Purpose,
        held: u64,
        limit: u64,
    },
    /// The operating system gave no memory.
    #[error("cannot map a slab of {bytes} bytes: {reason}")]
    NoMemory { bytes: usize, reason: String },
}

/// Snapshot of the pool's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// The hard cap, bytes.
    pub limit_bytes: u64,
    /// Bytes of slabs mapped now.
    pub mapped_bytes: u64,
    /// Bytes leased now (by size class, not by use).
    pub leased_bytes: u64,
    /// Most bytes ever leased at once.
    pub high_water_bytes: u64,
    /// Leases given.
    pub acquisitions: u64,
    /// Leases given from memory that had been leased before.
    pub reuse_hits: u64,
    /// Requests that found the pool exhausted.
    pub exhausted: u64,
    /// Blocking requests that had to wait.
    pub waits: u64,
    /// Slabs mapped since the start.
    pub registrations: u64,
    /// Nanoseconds spent mapping them.
    pub registration_ns: u64,
}

/// The pool.
pub struct Pool {}

/// One slab: a memfd and its mapping, shared with same-host peers by descriptor.
pub struct Slab {
    index: u32,
    memfd: OwnedFd,
    base: NonNull<u8>,
}

/// Exclusive, counted use of bytes in a slab; dropping it returns them.
pub struct Lease {}

impl Pool {
    /// A pool that will never map more than `limit_bytes` (rounded down to slabs).
    pub fn new(limit_bytes: u64) -> Result<Arc<Self>, PoolError> {
        todo!("{limit_bytes}")
    }
    /// The smallest class that holds `bytes`, now or not at all. Never blocks; may map a slab.
    pub fn try_lease(self: &Arc<Self>, bytes: usize, purpose: Purpose) -> Result<Lease, PoolError> {
        todo!("{bytes}{purpose:?}")
    }
    /// Like `try_lease`, but waits for returns until `deadline`. Not for progress threads.
    pub fn lease_before(
        self: &Arc<Self>,
        bytes: usize,
        purpose: Purpose,
        deadline: Instant,
    ) -> Result<Lease, PoolError> {
        todo!("{bytes}{purpose:?}{deadline:?}")
    }
    /// `listener` is called, on whatever thread returns a lease, after a `try_lease` for Read was refused
    /// (once per refusal burst: the flag is re-armed by the next refusal). It must not block.
    pub fn on_release(&self, listener: Box<dyn Fn() + Send + Sync>) {
        drop(listener)
    }
    /// A slab by index.
    pub fn slab(&self, index: u32) -> Option<Arc<Slab>> {
        todo!("{index}")
    }
    /// Counters.
    pub fn counters(&self) -> PoolCounters {
        todo!()
    }
}

impl Slab {
    /// Position in the pool, from 0, never reused.
    pub fn index(&self) -> u32 {
        self.index
    }
    /// The memory's file descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.memfd.as_fd()
    }
    /// First byte.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }
    /// Bytes.
    pub fn bytes(&self) -> usize {
        SLAB_BYTES
    }
}

impl Lease {
    /// Usable bytes.
    pub fn capacity(&self) -> usize {
        todo!()
    }
    /// Slab index.
    pub fn slab(&self) -> u32 {
        todo!()
    }
    /// Offset in the slab.
    pub fn offset(&self) -> u32 {
        todo!()
    }
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        todo!()
    }
    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        todo!()
    }
}
