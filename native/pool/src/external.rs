//! Memory outside the slabs: a caller's own, wrapped, or allocated to be registered lazily.
//!
//! It is leased like any other and counts against the cap from the moment it is wrapped, that is
//! before any device can register it. No device knows it until a fabric first uses it. What the
//! fabric then makes (a registration) it leaves here as an *attachment*, of which this crate knows
//! only that it has to go before the memory does: when the lease is dropped, on whatever thread,
//! attachments are dropped first, so that the memory is de-registered, then the owner's clean-up is
//! called, then the cap has room again. A fabric that goes away takes its attachments out before.
//!
//! Cheaper than it looks for large, long-lived memory (one registration), dearer than a slab for
//! anything that comes and goes: `make bench-memory` shows both.

use crate::{Pool, PoolError};
use faro_sync::{lock, Mutex};
use memmap2::MmapMut;
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// Called once, when nobody uses wrapped memory any more and no device has it registered.
pub type CleanUp = Box<dyn FnOnce() + Send>;
/// What a fabric keeps with memory; dropped before the memory is cleaned up.
pub type Attachment = Box<dyn Any + Send>;

/// Memory that was not wrapped, with the clean-up that was not called: the memory is still the
/// caller's.
#[derive(thiserror::Error)]
#[error("{error}")]
pub struct WrapRefused {
    /// Why.
    pub error: PoolError,
    /// As it was given.
    pub clean_up: CleanUp,
}

impl fmt::Debug for WrapRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WrapRefused").field(&self.error).finish()
    }
}

/// Longest: ranges on the wire have 32 bits.
pub const MAX_EXTERNAL_BYTES: usize = u32::MAX as usize;
/// Numbers of memory outside the slabs start here; slabs have those below.
const FIRST_NUMBER: u32 = 1 << 31;

/// What a device may do with memory outside the slabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    ReadWrite,
    /// Read.
    Read,
    /// Read, and bring in by itself what is not there (on-demand paging), if it can.
    ReadOnDemand,
}

/// See the module's comment.
pub struct ExternalMemory {
    /// Never given twice; no slab's.
    number: u32,
    /// First byte; valid for `bytes` until `clean_up` is called.
    start: NonNull<u8>,
    bytes: usize,
    access: Access,
    /// Counts against the pool's limit.
    counted: bool,
    /// By fabric instance, at most one each.
    attachments: Mutex<Vec<(u64, Attachment)>>,
    /// There until drop.
    clean_up: Option<CleanUp>,
    pool: Arc<Pool>,
}

// SAFETY: `start` is memory that its owner lent to this value until `clean_up` (contract of
// `Pool::wrap`), in any thread; everything else is Send.
unsafe impl Send for ExternalMemory {}
// SAFETY: shared uses read immutable fields, and attachments under their lock.
unsafe impl Sync for ExternalMemory {}

impl ExternalMemory {
    /// Takes `clean_up` over only if it succeeds.
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

    /// Memory beyond the pool's limit.
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

    /// What a device may do with it.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// A name that no slab and no other memory of this pool has.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// First byte.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps what fabric instance `fabric` made for this memory until the memory goes or `detach`.
    pub fn attach(&self, fabric: u64, attachment: Attachment) {
        let mut attachments = lock(&self.attachments);
        debug_assert!(attachments.iter().all(|(of, _)| *of != fabric));
        attachments.push((fabric, attachment));
    }

    /// Takes it out again, to be dropped by the caller.
    pub fn detach(&self, fabric: u64) -> Option<Attachment> {
        let mut attachments = lock(&self.attachments);
        let at = attachments.iter().position(|(of, _)| *of == fabric)?;
        Some(attachments.swap_remove(at).1)
    }
}

impl Drop for ExternalMemory {
    fn drop(&mut self) {
        // De-registers, while the memory is still there.
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

/// # Errors
/// `BadWrap` for a length that no such memory can have.
pub(crate) fn check(bytes: usize) -> Result<(), PoolError> {
    match bytes {
        1..=MAX_EXTERNAL_BYTES => Ok(()),
        got => Err(PoolError::BadWrap {
            got,
            max: MAX_EXTERNAL_BYTES,
        }),
    }
}

/// New, zeroed memory, and the clean-up that unmaps it.
///
/// # Errors
/// `NoMemory`.
pub(crate) fn anonymous(bytes: usize) -> Result<(NonNull<u8>, CleanUp), PoolError> {
    let refused = |reason: String| PoolError::NoMemory { bytes, reason };
    let mut mapping =
        MmapMut::map_anon(bytes).map_err(|error| refused(format!("mmap: {error}")))?;
    let start = NonNull::new(mapping.as_mut_ptr())
        .ok_or_else(|| refused("mmap at address 0".to_owned()))?;
    Ok((start, Box::new(move || drop(mapping))))
}
