//! A lease: exclusive, counted use of bytes that a device may be given.
//!
//! It is a plain value that may go to any thread and returns its bytes when dropped there. It
//! holds the pool, and so its slab's mapping, alive. `&mut` is the only way to write, so whoever
//! shares a lease (`Arc<Lease>`) shares bytes that no longer change in this process; a peer that
//! was given a range to write must be fenced off before the bytes are read, which is the fabric's
//! contract (`revoke`), not this type's.

use crate::arena::Allocation;
use crate::external::ExternalMemory;
use crate::{Pool, PAGE_BYTES, SLAB_BYTES};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// Whose the bytes are.
enum Origin {
    /// A place in a slab, ours alone in the pool's arena until `drop`. The pool keeps the mapping
    /// and takes the place back.
    Slab(Arc<Pool>, Allocation),
    /// All of that memory.
    ExternalMemory(Arc<ExternalMemory>),
}

/// Exclusive, counted use of bytes in a slab, or of wrapped memory; dropping it returns them.
pub struct Lease {
    origin: Origin,
    /// First byte: the place in the slab's mapping, or of the memory.
    start: NonNull<u8>,
}

// SAFETY: `start` points into memory that the arena, or the owner of wrapped memory, gave to this
// lease alone and that `origin` keeps; it is reached only through `&self` and `&mut self`, like a
// boxed slice. `Pool` and `ExternalMemory` are Send and Sync.
unsafe impl Send for Lease {}
// SAFETY: as above; `&Lease` gives only `&[u8]`.
unsafe impl Sync for Lease {}

impl Lease {
    /// Wraps a place that `pool`'s arena gave out and nobody else holds.
    pub(crate) fn new(pool: Arc<Pool>, allocation: Allocation, start: NonNull<u8>) -> Self {
        let origin = Origin::Slab(pool, allocation);
        Self { origin, start }
    }

    /// All of that memory, which nobody else uses.
    pub(crate) fn of_external(memory: ExternalMemory) -> Self {
        let start = memory.start();
        let origin = Origin::ExternalMemory(Arc::new(memory));
        Self { origin, start }
    }

    /// Usable bytes.
    pub fn capacity(&self) -> usize {
        match &self.origin {
            Origin::Slab(_, allocation) => allocation.bytes(),
            Origin::ExternalMemory(memory) => memory.bytes(),
        }
    }

    /// Slab index; for memory outside the slabs a number that no slab has.
    pub fn slab(&self) -> u32 {
        match &self.origin {
            Origin::Slab(_, allocation) => allocation.page / (SLAB_BYTES / PAGE_BYTES) as u32,
            Origin::ExternalMemory(memory) => memory.number(),
        }
    }

    /// Offset in the slab.
    pub fn offset(&self) -> u32 {
        match &self.origin {
            Origin::Slab(_, allocation) => {
                let page = allocation.page % (SLAB_BYTES / PAGE_BYTES) as u32;
                page * PAGE_BYTES as u32 + allocation.index * allocation.bytes() as u32
            }
            Origin::ExternalMemory(_) => 0,
        }
    }

    /// The memory, if it is not in a slab; for fabrics, which register it when they first use it.
    #[must_use]
    pub fn external(&self) -> Option<&Arc<ExternalMemory>> {
        match &self.origin {
            Origin::Slab(..) => None,
            Origin::ExternalMemory(memory) => Some(memory),
        }
    }

    /// Whether `length` bytes from `offset` lie in the lease; for ranges that a peer names.
    pub fn contains(&self, offset: u64, length: u64) -> bool {
        offset
            .checked_add(length)
            .is_some_and(|end| end <= self.capacity() as u64)
    }

    /// Address of the first byte, for memory that is shared with devices and changes under versions
    /// (`faro-region`). Whoever writes through it answers for it that nobody holds `bytes` then.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is valid for `capacity` bytes while `origin` lives, which is as long as
        // `self`; the bytes are initialised (zeroed by the kernel when new, or wrapped so). A place
        // or wrapped memory is of one lease at a time, peers' mappings cannot write (`pages`), and
        // `&self` excludes `bytes_mut`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.capacity()) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` excludes every other reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.capacity()) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Origin::Slab(pool, allocation) = &self.origin {
            pool.take_back(*allocation);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Slab(_, allocation) => f
                .debug_struct("Lease")
                .field("slab", &self.slab())
                .field("offset", &self.offset())
                .field("capacity", &self.capacity())
                .field("purpose", &allocation.purpose)
                .finish(),
            Origin::ExternalMemory(memory) => f.debug_tuple("Lease").field(memory).finish(),
        }
    }
}
