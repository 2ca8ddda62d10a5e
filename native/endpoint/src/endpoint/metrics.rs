//! The counters of an endpoint, by the names that Spark's metrics system shows.

use super::Endpoint;
use faro_fabric::verbs::port_counters;
use std::sync::atomic::Ordering;

/// Returns what the RDMA ports of this process count, by name. Beside [`Endpoint::counters`], because
/// the device may be asked for it.
#[must_use]
pub fn rdma_port_counters() -> Vec<(&'static str, u64)> {
    let names = [
        "rdmaPort.retransmits",
        "rdmaPort.outOfSequence",
        "rdmaPort.notReady",
    ];
    names.into_iter().zip(port_counters()).collect()
}

impl Endpoint {
    /// Returns the counters by name, e.g. `remoteBlocks.tcp`.
    #[must_use]
    pub fn counters(&self) -> Vec<(String, u64)> {
        let mut all = self.counters.list();
        all.push(("openOutputs".to_owned(), self.catalog.open_files() as u64));
        for (name, value) in self.exchange.counters() {
            all.push((name.to_owned(), value));
        }
        for (name, value) in self.collective.counters() {
            all.push((name.to_owned(), value));
        }
        let pool = self.memory.pool.counters();
        let region = self.memory.cache.counters();
        let (paths, offsets) = self.catalog.held_bytes();
        let requests = self.memory.request_bytes.load(Ordering::Relaxed);
        for (name, value) in [
            ("pool.limitBytes", pool.limit_bytes),
            ("pool.mappedBytes", pool.mapped_bytes),
            ("pool.idleBytes", pool.idle_bytes),
            ("pool.hugeSlabs", pool.huge_slabs),
            ("pool.externalBytes", pool.external_bytes),
            ("pool.pageBytes", pool.held_bytes),
            ("pool.fragmentationBytes", pool.fragmentation_bytes()),
            ("pool.leasedBytes", pool.leased_bytes),
            ("pool.highWaterBytes", pool.high_water_bytes),
            ("pool.acquisitions", pool.acquisitions),
            ("pool.reuseHits", pool.reuse_hits),
            ("pool.exhausted", pool.exhausted),
            ("pool.waits", pool.waits),
            ("pool.slabsMapped", pool.slabs_mapped),
            ("pool.mapNanos", pool.map_ns),
            ("pool.slabsReleased", pool.slabs_released),
            ("pool.registrations", pool.registrations),
            ("pool.registrationNanos", pool.registration_ns),
            ("pool.deregistrations", pool.deregistrations),
            ("pool.registeredBytes", pool.registered_bytes),
            (
                "pool.registeredHighWaterBytes",
                pool.registered_high_water_bytes,
            ),
            ("memory.requestBytes", requests),
            ("memory.pathBytes", paths),
            ("memory.offsetBytes", offsets),
            ("region.hits", region.exits.resident),
            ("region.minorFaults", region.exits.minor),
            ("region.majorFaults", region.exits.major),
            ("region.prefetched", region.prefetched),
            ("region.prefetchHits", region.prefetch_hits),
            ("region.evictions", region.evictions),
            ("region.pagesReleased", region.pages_released),
            ("region.cachedChunks", region.cached_chunks),
            ("region.cachedBytes", region.held_bytes),
        ] {
            all.push((name.to_owned(), value));
        }
        all
    }
}
