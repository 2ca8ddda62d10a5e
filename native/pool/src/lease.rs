//! A lease: exclusive, counted use of bytes in a slab.
//!
//! It is a plain value that may go to any thread and returns its bytes when dropped there. It
//! holds the pool, and so its slab's mapping, alive. `&mut` is the only way to write, so whoever
//! shares a lease (`Arc<Lease>`) shares bytes that no longer change in this process; a peer that
//! was given a range to write must be fenced off before the bytes are read, which is the fabric's
//! contract (`revoke`), not this type's.

use crate::arena::Place;
use crate::{Pool, FRAME_BYTES, SLAB_BYTES};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// Exclusive, counted use of bytes in a slab; dropping it returns them.
pub struct Lease {
    /// Keeps the mapping; takes the place back.
    pool: Arc<Pool>,
    /// Ours alone in `pool`'s arena until `drop`.
    place: Place,
    /// First byte: `place` in the slab's mapping.
    start: NonNull<u8>,
}

// SAFETY: `start` points into memory that the arena gave to this lease alone and that `pool` keeps
// mapped; it is reached only through `&self` and `&mut self`, like a boxed slice. `Pool` is Send
// and Sync.
unsafe impl Send for Lease {}
// SAFETY: as above; `&Lease` gives only `&[u8]`.
unsafe impl Sync for Lease {}

impl Lease {
    /// Wraps a place that `pool`'s arena gave out and nobody else holds.
    pub(crate) fn new(pool: Arc<Pool>, place: Place, start: NonNull<u8>) -> Self {
        Self { pool, place, start }
    }

    /// Usable bytes.
    pub fn capacity(&self) -> usize {
        self.place.bytes()
    }

    /// Slab index.
    pub fn slab(&self) -> u32 {
        self.place.frame / (SLAB_BYTES / FRAME_BYTES) as u32
    }

    /// Offset in the slab.
    pub fn offset(&self) -> u32 {
        let frame = self.place.frame % (SLAB_BYTES / FRAME_BYTES) as u32;
        frame * FRAME_BYTES as u32 + self.place.piece * self.capacity() as u32
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
        // SAFETY: `start` is valid for `capacity` bytes while `pool` lives, which is at least as
        // long as `self`; the bytes are initialised (zeroed by the kernel when new). The arena gives
        // a place to one lease at a time, the seal FUTURE_WRITE keeps peers from writing by map,
        // and `&self` excludes `bytes_mut`.
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
        self.pool.take_back(self.place);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("slab", &self.slab())
            .field("offset", &self.offset())
            .field("capacity", &self.capacity())
            .field("purpose", &self.place.purpose)
            .finish()
    }
}
