//! Leases: exclusive, counted use of bytes that a device may access.
//!
//! A lease is a value that may move to any thread. It keeps the pool and so its slab's mapping
//! alive, and returns its bytes when it is dropped. Only `&mut` can write, so that the holders of
//! an `Arc<Lease>` share bytes that no longer change in this process. A peer that was given a range
//! to write to must be cut off before the bytes are read; fabrics ensure that (`revoke`), not this
//! type.

use super::account::Charge;
use super::external::ExternalMemory;
use crate::arena::Allocation;
use crate::{Pool, PAGE_BYTES, SLAB_BYTES};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// The origin of a lease's bytes.
enum LeaseOrigin {
    /// A part of a slab. The pool keeps the mapping, and its arena gives this part to no other
    /// lease until `drop` returns it.
    Slab(Arc<Pool>, Allocation),
    /// All of that external memory.
    ExternalMemory(Arc<ExternalMemory>),
}

/// Exclusive, counted use of bytes of a slab or of external memory. Dropping it returns them.
///
/// A lease is taken for a purpose, used by its owner alone, and returned when it is dropped:
///
/// ```
/// use faro_pool::{Pool, Purpose, MIN_LIMIT_BYTES, PAGE_BYTES};
///
/// let pool = Pool::new(MIN_LIMIT_BYTES)?;
/// let mut lease = pool.try_lease(1000, Purpose::Read)?;
/// lease.bytes_mut()[..5].copy_from_slice(b"bytes");
/// // A lease has the smallest size class that holds the request.
/// assert!(lease.capacity() >= 1000);
/// // A fabric names the bytes to a device or a peer by slab and offset.
/// println!("slab {}, offset {}", lease.slab(), lease.offset());
///
/// // Readers leave a reserve for serving, so that the last lease is refused before the arena is full.
/// let mut pages = Vec::new();
/// while let Ok(page) = pool.try_lease(PAGE_BYTES, Purpose::Read) {
///     pages.push(page);
/// }
/// assert!(pool.try_lease(PAGE_BYTES, Purpose::Serve).is_ok());
///
/// drop(pages);
/// assert!(pool.try_lease(PAGE_BYTES, Purpose::Read).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lease {
    origin: LeaseOrigin,
    /// The first byte.
    start: NonNull<u8>,
    /// The charge to the account of the lease's user.
    charge: Option<Charge>,
}

// SAFETY: `start` points into memory that the arena, or the caller of `Pool::wrap`, gave to this
// lease alone and that `origin` keeps. It is reached only through `&self` and `&mut self`, like a
// boxed slice. `Pool` and `ExternalMemory` are Send and Sync.
unsafe impl Send for Lease {}
// SAFETY: as above; `&Lease` gives only `&[u8]`.
unsafe impl Sync for Lease {}

impl Lease {
    /// Leases what `pool`'s arena has just allocated.
    pub(crate) fn new(pool: Arc<Pool>, allocation: Allocation, start: NonNull<u8>) -> Self {
        let origin = LeaseOrigin::Slab(pool, allocation);
        Self::with(origin, start)
    }

    /// Leases all of this memory, which no other code uses.
    pub(crate) fn of_external(memory: ExternalMemory) -> Self {
        let start = memory.start();
        let origin = LeaseOrigin::ExternalMemory(Arc::new(memory));
        Self::with(origin, start)
    }

    fn with(origin: LeaseOrigin, start: NonNull<u8>) -> Self {
        Self {
            origin,
            start,
            charge: None,
        }
    }

    /// Keeps `charge` until the lease is dropped.
    pub fn charge_to(&mut self, charge: Charge) {
        debug_assert!(self.charge.is_none());
        self.charge = Some(charge);
    }

    /// Returns the size of the lease in bytes, at least as many as requested.
    pub fn capacity(&self) -> usize {
        match &self.origin {
            LeaseOrigin::Slab(_, allocation) => allocation.bytes(),
            LeaseOrigin::ExternalMemory(memory) => memory.bytes(),
        }
    }

    /// Returns the slab's index; for external memory a number that no slab has.
    pub fn slab(&self) -> u32 {
        match &self.origin {
            LeaseOrigin::Slab(_, allocation) => allocation.page / (SLAB_BYTES / PAGE_BYTES) as u32,
            LeaseOrigin::ExternalMemory(memory) => memory.number(),
        }
    }

    /// Returns the offset in the slab in bytes; 0 for external memory.
    pub fn offset(&self) -> u32 {
        match &self.origin {
            LeaseOrigin::Slab(_, allocation) => {
                let page = allocation.page % (SLAB_BYTES / PAGE_BYTES) as u32;
                debug_assert!((allocation.index as usize + 1) * allocation.bytes() <= PAGE_BYTES);
                page * PAGE_BYTES as u32 + allocation.index * allocation.bytes() as u32
            }
            LeaseOrigin::ExternalMemory(_) => 0,
        }
    }

    /// Returns the external memory; `None` for a lease of a slab. Fabrics register such memory when
    /// they first use it.
    #[must_use]
    pub fn external(&self) -> Option<&Arc<ExternalMemory>> {
        match &self.origin {
            LeaseOrigin::Slab(..) => None,
            LeaseOrigin::ExternalMemory(memory) => Some(memory),
        }
    }

    /// Returns whether `length` bytes from `offset` lie in the lease, to check ranges that a peer
    /// names.
    pub fn contains(&self, offset: u64, length: u64) -> bool {
        offset
            .checked_add(length)
            .is_some_and(|end| end <= self.capacity() as u64)
    }

    /// Returns the address of the first byte, for memory that changes under versions while devices
    /// read it (`faro-region`). A caller that writes through it must ensure that no slice of
    /// `bytes` exists.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is valid for `capacity` bytes while `origin` lives, which is as long as
        // `self`; the bytes are initialised (zeroed by the kernel, or by the contract of
        // `Pool::wrap`). They belong to one lease at a time, peers' mappings cannot write
        // (`mapping`), and `&self` excludes `bytes_mut`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.capacity()) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` excludes every other reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.capacity()) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The charge is dropped first, so that a thread that hears of the memory finds room on the
        // account as well.
        drop(self.charge.take());
        if let LeaseOrigin::Slab(pool, allocation) = &self.origin {
            pool.take_back(*allocation);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            LeaseOrigin::Slab(_, allocation) => f
                .debug_struct("Lease")
                .field("slab", &self.slab())
                .field("offset", &self.offset())
                .field("capacity", &self.capacity())
                .field("purpose", &allocation.purpose)
                .finish(),
            LeaseOrigin::ExternalMemory(memory) => f.debug_tuple("Lease").field(memory).finish(),
        }
    }
}
