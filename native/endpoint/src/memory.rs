//! The arena as the endpoint's parts use it.
//!
//! Resident chunks are worth keeping only while nobody needs their frames: whoever is refused by the
//! arena takes a few back from the residency and asks again.

use crate::config::{RegionMode, Staging};
use faro_pool::{Lease, Pool, PoolError, Purpose};
use faro_region::ChunkCache;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Frames that the residency gives up for one refusal: enough that the next few succeed at once,
/// few enough that one large request does not empty it.
const GIVE_BACK: usize = 8;

/// See the module's comment.
pub(crate) struct Memory {
    pub(crate) pool: Arc<Pool>,
    pub(crate) cache: Arc<ChunkCache>,
    /// How map outputs are made readable for devices.
    pub(crate) regions: RegionMode,
    /// What is brought into frames, and when.
    pub(crate) staging: Staging,
    /// Refusals when the residency had nothing left to give but what peers may be reading.
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

    /// Like `Pool::try_lease`, at the residency's cost.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn try_lease(&self, bytes: usize, purpose: Purpose) -> Result<Lease, PoolError> {
        match self.pool.try_lease(bytes, purpose) {
            Err(PoolError::Exhausted { .. }) if self.cache.release(GIVE_BACK) > 0 => {
                self.pool.try_lease(bytes, purpose)
            }
            Err(error @ PoolError::Exhausted { .. }) => {
                self.recall();
                Err(error)
            }
            result => result,
        }
    }

    /// What was shown to peers is to be taken back.
    pub(crate) fn recall(&self) {
        self.shortages.fetch_add(1, Ordering::Relaxed);
    }

    /// Grows when somebody was refused, so that frames which peers may read are to be taken back.
    pub(crate) fn shortages(&self) -> u64 {
        self.shortages.load(Ordering::Relaxed)
    }
}
