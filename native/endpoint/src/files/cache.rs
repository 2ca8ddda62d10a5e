//! The one kind of cache that the catalog uses: weighted, sharded, and not emptied by a scan.

use faro_sync::TableKeys;
use quick_cache::sync::DefaultLifecycle;
use quick_cache::{OptionsBuilder, Weighter};
use std::hash::Hash;

pub(super) type Cache<K, V, W> = quick_cache::sync::Cache<K, V, W, TableKeys>;

/// Each has its part of the room, so there are few: a large offset table has to fit into one.
const SHARDS: usize = 16;

/// Returns a cache for `weight`, which is about `entries` entries.
pub(super) fn new<K, V, W>(weight: u64, entries: usize, weighter: W) -> Cache<K, V, W>
where
    K: Hash + Eq + Clone,
    V: Clone,
    W: Weighter<K, V> + Clone,
{
    let mut options = OptionsBuilder::new();
    options.weight_capacity(weight);
    options.estimated_items_capacity(entries);
    options.shards(SHARDS);
    // Remembers as many names as the cache has room for: if what is in use changes, e.g. from one stage's map outputs
    // to the next one's, the new ones are let in at their second use.
    options.ghost_allocation(1.0);
    let Ok(options) = options.build() else {
        // Both capacities are given, so `build` does not fail.
        return Cache::with(
            entries,
            weight,
            weighter,
            TableKeys::default(),
            DefaultLifecycle::default(),
        );
    };
    Cache::with_options(
        options,
        weighter,
        TableKeys::default(),
        DefaultLifecycle::default(),
    )
}
