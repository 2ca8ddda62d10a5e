//! What a lease is for, and why one is not given.

use thiserror::Error;

/// What a lease is for. Serving has a reserve of its own, so that readers that hold all they may
/// hold can never keep an owner from answering (which would be a deadlock across executors).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Bytes of blocks that this process reads.
    Read,
    /// Bytes on their way out.
    Serve,
}

/// Why no lease was given.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PoolError {
    /// The limit is below [`MIN_LIMIT_BYTES`](crate::MIN_LIMIT_BYTES).
    #[error("memory limit {got} bytes is too small, at least {min} bytes are needed")]
    LimitTooSmall { got: u64, min: u64 },
    /// The limit is above [`MAX_LIMIT_BYTES`](crate::MAX_LIMIT_BYTES).
    #[error("memory limit {got} bytes is too large, at most {max} bytes are possible")]
    LimitTooLarge { got: u64, max: u64 },
    /// More than a page, or nothing.
    #[error("a lease of {got} bytes is not possible, 1 to {max} bytes are")]
    BadSize { got: usize, max: usize },
    /// All that this purpose may hold is held. `held` and `limit` are those of the bound that was
    /// met: the purpose's own share, or the whole arena. Both count whole pages.
    #[error("arena exhausted for {purpose:?}: {held} of {limit} bytes are taken")]
    Exhausted {
        purpose: Purpose,
        held: u64,
        limit: u64,
    },
    /// Memory to wrap, or to allocate for lazy registration, that is empty or too long for a range
    /// on the wire.
    #[error("{got} bytes of memory cannot be registered as one, 1 to {max} can")]
    BadWrap { got: usize, max: usize },
    /// Memory to wrap, or to allocate for lazy registration, that would go beyond the cap. `held`
    /// counts whole pages and slabs.
    #[error(
        "{got} more bytes cannot be registered: {held} of {limit} bytes are taken, counted in whole \
         slabs of {slab}; raise the memory limit or release other memory first"
    )]
    NoRoom {
        got: usize,
        held: u64,
        limit: u64,
        slab: usize,
    },
    /// The operating system gave no memory.
    #[error("cannot map {bytes} bytes: {reason}")]
    NoMemory { bytes: usize, reason: String },
}
