//! The counters of the chunk cache.

use crossbeam_utils::CachePadded;
use faro_sync::atomic::AtomicU64;

/// Parts of reads, counted by where their bytes came from. A part lies in one chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exits {
    /// From a page of the arena.
    pub resident: u64,
    /// From the page cache.
    pub minor: u64,
    /// From the disk.
    pub major: u64,
}

/// A snapshot of the counters; all but the last two only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChunkCacheCounters {
    /// Parts of reads and of fills, by where their bytes came from.
    pub exits: Exits,
    /// Chunks filled into slots.
    pub prefetched: u64,
    /// Parts of reads that were found in a slot that `prefetch` had filled.
    pub prefetch_hits: u64,
    /// Chunks evicted for others.
    pub evictions: u64,
    /// Pages returned by `release`, because the arena was exhausted.
    pub pages_released: u64,
    /// Chunks in slots now.
    pub cached_chunks: u64,
    /// Bytes of the arena held now, with those of the versions.
    pub held_bytes: u64,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) resident: CachePadded<AtomicU64>,
    pub(super) minor: CachePadded<AtomicU64>,
    pub(super) major: AtomicU64,
    pub(super) prefetched: AtomicU64,
    pub(super) prefetch_hits: AtomicU64,
    pub(super) pages_released: AtomicU64,
}
