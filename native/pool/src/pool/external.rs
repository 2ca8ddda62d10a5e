//! External memory lies outside the slabs. It is a caller's own, wrapped, or allocated to be
//! registered lazily.
//!
//! It is leased like memory of a slab. It counts against the limit from the moment it is wrapped,
//! before a device can register it. No device knows it until a fabric first uses it. The fabric
//! then leaves its registration here as an *attachment*, of which this crate knows only that it
//! must be dropped before the memory is cleaned up. When the lease is dropped, on any thread, the
//! attachments are dropped first, which de-registers the memory. Then the clean-up is called, and
//! then the limit has room again. A fabric that ends takes its attachments out before.
//!
//! For large memory that lives long this is cheap: one registration. For all other memory a slab is
//! cheaper; `make bench SUITE=memory` measures both.

use crate::{Pool, PoolError, PAGE_BYTES, SLAB_BYTES};
use faro_sync::{lock, Mutex};
use memmap2::MmapMut;
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// A function that is called once, when wrapped memory is no longer used and no device has it
/// registered.
pub type CleanUp = Box<dyn FnOnce() + Send>;
/// A fabric's registration of external memory; dropped before the memory is cleaned up.
pub type Attachment = Box<dyn Any + Send>;

/// The error of `Pool::wrap`. The memory still belongs to the caller, and `clean_up` was not
/// called.
#[derive(thiserror::Error)]
#[error("{error}")]
pub struct WrapRefused {
    /// The reason.
    pub error: PoolError,
    /// The caller's clean-up.
    pub clean_up: CleanUp,
}

impl fmt::Debug for WrapRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WrapRefused").field(&self.error).finish()
    }
}

/// Maximum bytes of one piece of external memory: ranges on the wire have 32 bits.
pub const MAX_EXTERNAL_BYTES: usize = u32::MAX as usize;
/// The first number of external memory. Slabs have smaller numbers.
const FIRST_NUMBER: u32 = 1 << 31;

/// The rights of a device to external memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The device may read and write.
    ReadWrite,
    /// The device may read.
    Read,
    /// The device may read, and may page in missing pages by itself (on-demand paging) if it can.
    ReadOnDemand,
}

/// One piece of external memory, with the registrations that fabrics have made of it.
pub struct ExternalMemory {
    /// The number, which no slab and no other external memory has.
    number: u32,
    /// The first byte; `bytes` bytes are valid until `clean_up` is called.
    start: NonNull<u8>,
    bytes: usize,
    access: Access,
    /// True if it counts against the pool's limit.
    counted: bool,
    /// One attachment for each fabric instance, with the instance's number.
    attachments: Mutex<Vec<(u64, Attachment)>>,
    /// `Some` until it is dropped.
    clean_up: Option<CleanUp>,
    pool: Arc<Pool>,
}

// SAFETY: `start` is memory that the caller of `Pool::wrap` lent to this value until `clean_up`, for
// all threads; all other fields are Send.
unsafe impl Send for ExternalMemory {}
// SAFETY: through `&self` the fields are only read, and the attachments are behind their lock.
unsafe impl Sync for ExternalMemory {}

impl ExternalMemory {
    /// Counts the memory against the limit.
    ///
    /// # Errors
    /// Returns `BadWrap` or `NoRoom`, with `clean_up`.
    pub(crate) fn new(
        pool: &Arc<Pool>,
        start: NonNull<u8>,
        bytes: usize,
        clean_up: CleanUp,
    ) -> Result<Self, WrapRefused> {
        match pool.count_external(bytes) {
            Ok(number) => Ok(Self {
                number: FIRST_NUMBER | number,
                start,
                bytes,
                access: Access::ReadWrite,
                counted: true,
                attachments: Mutex::new(Vec::new()),
                clean_up: Some(clean_up),
                pool: Arc::clone(pool),
            }),
            Err(error) => Err(WrapRefused { error, clean_up }),
        }
    }

    /// Makes external memory that does not count against the limit.
    pub(crate) fn uncounted(
        pool: &Arc<Pool>,
        start: NonNull<u8>,
        bytes: usize,
        access: Access,
        clean_up: CleanUp,
    ) -> Self {
        Self {
            number: FIRST_NUMBER | pool.next_external(),
            start,
            bytes,
            access,
            counted: false,
            attachments: Mutex::new(Vec::new()),
            clean_up: Some(clean_up),
            pool: Arc::clone(pool),
        }
    }

    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns a number that no slab and no other external memory of this pool has.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a registration of the fabric instance `fabric`, until `detach` or drop.
    pub fn attach(&self, fabric: u64, attachment: Attachment) {
        let mut attachments = lock(&self.attachments);
        debug_assert!(attachments.iter().all(|(of, _)| *of != fabric));
        attachments.push((fabric, attachment));
    }

    /// Removes and returns the registration of `fabric`; the caller drops it.
    pub fn detach(&self, fabric: u64) -> Option<Attachment> {
        let mut attachments = lock(&self.attachments);
        let at = attachments.iter().position(|(of, _)| *of == fabric)?;
        Some(attachments.swap_remove(at).1)
    }
}

impl Drop for ExternalMemory {
    fn drop(&mut self) {
        // This de-registers the memory while it still exists.
        let attachments = std::mem::take(&mut *lock(&self.attachments));
        drop(attachments);
        if let Some(clean_up) = self.clean_up.take() {
            clean_up();
        }
        if self.counted {
            self.pool.uncount_external(self.bytes);
        }
    }
}

impl fmt::Debug for ExternalMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalMemory")
            .field("number", &self.number)
            .field("start", &self.start)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// How external memory counts against the pool's limit.
impl Pool {
    /// Counts external memory. Returns its number.
    ///
    /// # Errors
    /// Returns `BadWrap` or `NoRoom`.
    fn count_external(&self, bytes: usize) -> Result<u32, PoolError> {
        check(bytes)?;
        let mut counted = self.arena.wrap(bytes as u64);
        if counted.is_err() {
            // Unused slabs take part of the limit, so those that no device has registered are
            // released.
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

    fn next_external(&self) -> u32 {
        self.next_external.fetch_add(1, Ordering::Relaxed)
    }

    fn uncount_external(&self, bytes: usize) {
        self.counters.unwrapped(bytes as u64);
        self.arena.unwrap(bytes as u64);
        self.announce_to_others();
    }
}

/// Checks the length of external memory.
///
/// # Errors
/// Returns `BadWrap` for 0 bytes or more than `MAX_EXTERNAL_BYTES`.
pub(crate) fn check(bytes: usize) -> Result<(), PoolError> {
    match bytes {
        1..=MAX_EXTERNAL_BYTES => Ok(()),
        got => Err(PoolError::BadWrap {
            got,
            max: MAX_EXTERNAL_BYTES,
        }),
    }
}

/// Maps new, zeroed memory. Returns it with the clean-up that unmaps it.
///
/// # Errors
/// Returns `NoMemory`.
pub(crate) fn anonymous(bytes: usize) -> Result<(NonNull<u8>, CleanUp), PoolError> {
    let refused = |reason: String| PoolError::NoMemory { bytes, reason };
    let mut mapping =
        MmapMut::map_anon(bytes).map_err(|error| refused(format!("mmap: {error}")))?;
    let start = NonNull::new(mapping.as_mut_ptr())
        .ok_or_else(|| refused("mmap at address 0".to_owned()))?;
    Ok((start, Box::new(move || drop(mapping))))
}
