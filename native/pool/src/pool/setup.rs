//! Making a pool: its settings, and its part of a budget.

use super::idle::IdleSearch;
use super::Pool;
use crate::admission::reserve_pages;
use crate::arena::{Arena, Geometry};
use crate::budget::{self, Budget, Share};
use crate::counters::AtomicCounters;
use crate::slab::PAGES_PER_SLAB;
use crate::{PoolError, MAX_LIMIT_BYTES, MIN_LIMIT_BYTES, SLAB_BYTES};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The settings of a pool.
#[derive(Debug, Clone, Copy)]
pub struct PoolOptions {
    /// Maximum bytes of memory, rounded down to slabs.
    pub limit_bytes: u64,
    /// Time without use after which a slab becomes idle and gives up its memory; zero means never.
    pub idle_release: Duration,
    /// True if slabs use reserved huge pages of 2 MiB when enough of them are free.
    pub huge_pages: bool,
}

impl PoolOptions {
    /// Returns options with which slabs never become idle and huge pages are used.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            idle_release: Duration::ZERO,
            huge_pages: true,
        }
    }
}

impl Pool {
    /// Returns a pool that never holds more than `limit_bytes` of memory (rounded down to slabs).
    ///
    /// # Errors
    /// Returns `LimitTooSmall` or `LimitTooLarge`.
    pub fn new(limit_bytes: u64) -> Result<Arc<Self>, PoolError> {
        Self::with_options(PoolOptions::new(limit_bytes))
    }

    /// Returns a pool with these settings.
    ///
    /// # Errors
    /// Returns `LimitTooSmall` or `LimitTooLarge`.
    pub fn with_options(options: PoolOptions) -> Result<Arc<Self>, PoolError> {
        let limit_bytes = options.limit_bytes;
        if limit_bytes < MIN_LIMIT_BYTES {
            return Err(PoolError::LimitTooSmall {
                got: limit_bytes,
                min: MIN_LIMIT_BYTES,
            });
        }
        if limit_bytes > MAX_LIMIT_BYTES {
            return Err(PoolError::LimitTooLarge {
                got: limit_bytes,
                max: MAX_LIMIT_BYTES,
            });
        }
        Ok(Arc::new(Self::with_share(options, None)))
    }

    /// Returns a pool whose memory counts against `budget`, together with that of other pools. It
    /// has no huge pages, since those are never given back.
    ///
    /// # Errors
    /// Returns `TooManyPools`.
    pub fn in_budget(budget: &Arc<Budget>, idle_release: Duration) -> Result<Arc<Self>, PoolError> {
        let options = PoolOptions {
            limit_bytes: budget.limit_of_a_pool(),
            idle_release,
            huge_pages: false,
        };
        let pool = Arc::new(Self::with_share(options, Some(Share::of(budget)?)));
        let member = Arc::downgrade(&pool);
        budget.tell(member);
        Ok(pool)
    }

    fn with_share(options: PoolOptions, share: Option<Share>) -> Self {
        // MAX_LIMIT_BYTES keeps the numbers of slabs and pages within u32.
        let slabs = (options.limit_bytes / SLAB_BYTES as u64) as u32;
        let pages_per_slab = PAGES_PER_SLAB as u32;
        let reserve_pages = match share {
            Some(_) => budget::reserve_pages(slabs, pages_per_slab),
            None => reserve_pages(slabs, pages_per_slab),
        };
        let geometry = Geometry {
            slabs,
            pages_per_slab,
            reserve_pages,
        };
        Self {
            slabs: (0..slabs).map(|_| OnceLock::new()).collect(),
            arena: Arena::with_share(geometry, share),
            counters: AtomicCounters::default(),
            options,
            idle: IdleSearch::new(options.idle_release),
            next_external: AtomicU32::new(0),
        }
    }
}
