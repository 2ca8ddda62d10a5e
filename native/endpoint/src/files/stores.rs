//! Open files and offset tables of known map outputs. Each store has a bound, and drops what is used least.

use super::cache::{self, Cache};
use super::descriptors::Descriptors;
use super::offsets::Offsets;
use quick_cache::Weighter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Bytes of a table of 200 partitions, roughly.
const TYPICAL_TABLE: u64 = 1 << 10;

#[derive(Clone)]
struct TableBytes;

impl Weighter<u64, Arc<Offsets>> for TableBytes {
    fn weight(&self, _generation: &u64, table: &Arc<Offsets>) -> u64 {
        table.bytes()
    }
}

/// Open files and offset tables, each with its bound.
pub(crate) struct Stores {
    pub(super) descriptors: Descriptors,
    /// By generation.
    tables: Cache<u64, Arc<Offsets>, TableBytes>,
    generation: AtomicU64,
}

impl Stores {
    /// Returns stores of at most `open_files` open files, at least 2, and at most `bytes` bytes of
    /// tables.
    pub(super) fn new(open_files: usize, bytes: u64) -> Arc<Self> {
        let tables = (bytes / TYPICAL_TABLE) as usize;
        Arc::new(Self {
            descriptors: Descriptors::new(open_files),
            tables: cache::new(bytes, tables, TableBytes),
            generation: AtomicU64::new(1),
        })
    }

    /// Returns a number that no files had before.
    pub(super) fn next_generation(&self) -> u64 {
        self.generation.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn offsets(&self, generation: u64) -> Option<Arc<Offsets>> {
        self.tables.get(&generation)
    }

    /// Returns whether a table that takes up to `bytes` bytes would be kept, without most others going.
    pub(super) fn may_keep(&self, bytes: u64) -> bool {
        bytes <= self.tables.shard_capacity() / 4
    }

    pub(super) fn keep_offsets(&self, generation: u64, table: Offsets) {
        self.tables.insert(generation, Arc::new(table));
    }

    pub(super) fn drop_offsets(&self, generation: u64) {
        self.tables.remove(&generation);
    }

    /// Returns the bytes of all tables.
    pub(super) fn offset_bytes(&self) -> u64 {
        self.tables.weight()
    }
}
