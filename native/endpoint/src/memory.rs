//! The arena as the endpoint's services use it.
//!
//! A resident chunk is worth keeping only while no request needs its page: a lease that the arena
//! refuses takes a few pages back from the chunk cache and is tried again.

use faro_pool::{Lease, Pool, PoolError, Purpose, PAGE_BYTES};
use faro_region::ChunkCache;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Pages that the chunk cache releases for one refusal: enough that the next few leases succeed at
/// once, few enough that one large request does not empty the cache.
const RELEASED_AT_ONCE: usize = 8;

/// When bytes of map outputs are brought into the chunk cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Staging {
    /// What is asked for often.
    #[default]
    OnDemand,
    /// Also what was just written, while there is room.
    OnCommit,
    /// Also what a peer has asked for and waits for: the schedule makes the future known.
    Planned,
}

impl Staging {
    /// By name.
    pub const ALL: [(&'static str, Self); 3] = [
        ("onDemand", Self::OnDemand),
        ("onCommit", Self::OnCommit),
        ("planned", Self::Planned),
    ];
}

/// How map outputs are made readable for devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RegionMode {
    /// Not at all: their bytes pass through pages of the arena.
    #[default]
    Unpinned,
    /// Each is mapped and registered as a whole, on demand: the device faults pages in.
    Odp,
    /// Each is mapped and registered as a whole, which pins all of it.
    Pinned,
}

impl RegionMode {
    /// By name.
    pub const ALL: [(&'static str, Self); 3] = [
        ("unpinned", Self::Unpinned),
        ("odp", Self::Odp),
        ("pinned", Self::Pinned),
    ];
}

/// The arena, the chunk cache in it, and the modes that both are used in.
pub(crate) struct Memory {
    pub(crate) pool: Arc<Pool>,
    pub(crate) cache: Arc<ChunkCache>,
    pub(crate) regions: RegionMode,
    pub(crate) staging: Staging,
    /// Refusals when the cache had nothing left to release but pages that peers may be reading.
    shortages: AtomicU64,
}

impl Memory {
    pub(crate) fn new(
        pool: Arc<Pool>,
        cache: Arc<ChunkCache>,
        regions: RegionMode,
        staging: Staging,
    ) -> Arc<Self> {
        Arc::new(Self {
            pool,
            cache,
            regions,
            staging,
            shortages: AtomicU64::new(0),
        })
    }

    /// Like `Pool::try_lease`, at the chunk cache's cost.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn try_lease(&self, bytes: usize, purpose: Purpose) -> Result<Lease, PoolError> {
        match self.pool.try_lease(bytes, purpose) {
            Err(PoolError::Exhausted { .. }) if self.cache.release(RELEASED_AT_ONCE) > 0 => {
                self.pool.try_lease(bytes, purpose)
            }
            Err(error @ PoolError::Exhausted { .. }) => {
                self.recall();
                Err(error)
            }
            result => result,
        }
    }

    /// Leases for `bytes` bytes, the last one of the smallest size that holds the rest: all or none, so
    /// that attempts which each need several never hold some and wait for the others.
    ///
    /// # Errors
    /// As `Pool::try_lease`.
    pub(crate) fn try_lease_all(
        &self,
        bytes: u64,
        purpose: Purpose,
    ) -> Result<Vec<Lease>, PoolError> {
        let pages = bytes / PAGE_BYTES as u64;
        let rest = (bytes % PAGE_BYTES as u64) as usize;
        let last = match rest {
            0 => None,
            rest => Some(self.try_lease(rest, purpose)?),
        };
        let mut leases = match u32::try_from(pages).unwrap_or(u32::MAX) {
            0 => Vec::new(),
            pages => match self.pool.try_lease_pages(pages, purpose) {
                Err(PoolError::Exhausted { .. }) if self.cache.release(pages as usize) > 0 => {
                    self.pool.try_lease_pages(pages, purpose)?
                }
                Err(error) => {
                    self.recall();
                    return Err(error);
                }
                Ok(leases) => leases,
            },
        };
        leases.extend(last);
        Ok(leases)
    }

    /// Half of the memory for `purpose` is held: what is not needed yet is not leased.
    pub(crate) fn is_half_full(&self, purpose: Purpose) -> bool {
        self.pool.held_bytes(purpose) * 2 >= self.pool.share_bytes(purpose)
    }

    /// Pages that are exposed to peers are to be revoked.
    pub(crate) fn recall(&self) {
        self.shortages.fetch_add(1, Ordering::Relaxed);
    }

    /// Grows when a lease was refused, so that pages which peers may read are to be revoked.
    pub(crate) fn shortages(&self) -> u64 {
        self.shortages.load(Ordering::Relaxed)
    }
}
