//! The purpose of a lease, and the errors of the pool.

use std::fmt;
use thiserror::Error;

/// The purpose of a lease. Serving has a reserve, so that a process whose readers hold their whole
/// share can still answer its peers. Without the reserve two executors could wait for each other
/// for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Bytes of blocks that this process reads.
    Read,
    /// Bytes that this process sends.
    Serve,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "reading",
            Self::Serve => "serving",
        })
    }
}

/// The reason that the pool cannot be made or gives no lease.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PoolError {
    /// The limit is below [`MIN_LIMIT_BYTES`](crate::MIN_LIMIT_BYTES).
    #[error("memory limit {got} bytes is too small, at least {min} bytes are needed")]
    LimitTooSmall { got: u64, min: u64 },
    /// The limit is above [`MAX_LIMIT_BYTES`](crate::MAX_LIMIT_BYTES).
    #[error("memory limit {got} bytes is too large, at most {max} bytes are possible")]
    LimitTooLarge { got: u64, max: u64 },
    /// The [`Budget`](crate::Budget) is shared by as many pools as may share it.
    #[error("{max} pools share the memory already, as many as may")]
    TooManyPools { max: u32 },
    /// A lease of 0 bytes, or of more than a page.
    #[error("cannot lease {got} bytes, a lease has 1 to {max} bytes")]
    BadSize { got: usize, max: usize },
    /// The purpose holds its whole share, or all pages of the arena are taken. `held` and `limit`
    /// are those of the bound that was met, in bytes of whole pages.
    #[error("the arena is exhausted for {purpose}: {held} of {limit} bytes are taken")]
    Exhausted {
        purpose: Purpose,
        held: u64,
        limit: u64,
    },
    /// External memory of 0 bytes, or of more bytes than a range on the wire can describe.
    #[error("cannot register {got} bytes of memory at once, 1 to {max} bytes are possible")]
    BadWrap { got: usize, max: usize },
    /// External memory that does not fit in the limit. `held` counts bytes of whole pages and
    /// slabs.
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
    /// The operating system refused memory.
    #[error("cannot map {bytes} bytes: {reason}")]
    NoMemory { bytes: usize, reason: String },
}
