//! The counters of the chunk cache.

use crossbeam_utils::CachePadded;
use faro_sync::atomic::AtomicU64;

/// Numbers of parts of reads, by where their bytes came from. A part lies in one chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadSources {
    /// Parts whose bytes came from a page of the arena.
    pub resident: u64,
    /// Parts whose bytes came from the page cache.
    pub minor: u64,
    /// Parts whose bytes came from the disk.
    pub major: u64,
}

/// A snapshot of the counters; all but the last two only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChunkCacheCounters {
    /// Numbers of parts of reads and of fills, by where their bytes came from.
    pub exits: ReadSources,
    /// Number of chunks filled into slots.
    pub prefetched: u64,
    /// Number of parts of reads that were found in a slot that `prefetch` had filled.
    pub prefetch_hits: u64,
    /// Number of chunks evicted for others.
    pub evictions: u64,
    /// Number of pages returned by `release`, because the arena was exhausted.
    pub pages_released: u64,
    /// Number of chunks in slots now.
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
