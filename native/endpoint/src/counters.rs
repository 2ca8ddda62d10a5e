//! Counters of one endpoint, by the names that Spark's metrics system shows.

use crossbeam_utils::CachePadded;
use faro_fabric::FabricKind;
use std::sync::atomic::{AtomicU64, Ordering};

/// A monotone count. Relaxed: it orders nothing.
#[derive(Default)]
pub(crate) struct Counter(CachePadded<AtomicU64>);

impl Counter {
    pub(crate) fn add(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A level, set by one thread. Relaxed: it orders nothing.
#[derive(Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The highest level that was seen. Relaxed: it orders nothing.
#[derive(Default)]
pub(crate) struct Peak(AtomicU64);

impl Peak {
    pub(crate) fn at_least(&self, level: u64) {
        self.0.fetch_max(level, Ordering::Relaxed);
    }
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of one fabric.
#[derive(Default)]
pub(crate) struct FabricKindCounters {
    /// Blocks that arrived whole and were handed to the caller.
    pub(crate) remote_blocks: Counter,
    /// Their bytes.
    pub(crate) remote_bytes: Counter,
    /// Blocks sent to peers.
    pub(crate) served_blocks: Counter,
    /// Their bytes.
    pub(crate) served_bytes: Counter,
    /// Connections, opening or open, made by either side.
    pub(crate) connections: Gauge,
    /// Bytes of ordinary memory that the connections' buffers take.
    pub(crate) buffer_bytes: Gauge,
}

/// All of them.
#[derive(Default)]
pub(crate) struct EndpointCounters {
    /// The counters of each fabric, by [`FabricKind::index`].
    fabrics: [FabricKindCounters; FabricKind::ALL.len()],
    /// Fetches started.
    pub(crate) requests: Counter,
    /// Fetches that ended in an error.
    pub(crate) requests_failed: Counter,
    /// Fetches sent again after a fault.
    pub(crate) retries: Counter,
    /// Routes (peer and fabric) put to rest after a fault.
    pub(crate) route_backoffs: Counter,
    /// Connections given up because the peer had made a better one at the same time.
    pub(crate) connections_surplus: Counter,
    /// Connections closed because nothing used them.
    pub(crate) connections_idle: Counter,
    /// Bytes of the arena that RDMA connections hold for their rings.
    pub(crate) connection_bytes: Gauge,
    /// Chunks whose CRC disagreed.
    pub(crate) crc_errors: Counter,
    /// Fetches that passed their deadline.
    pub(crate) timeouts: Counter,
    /// Fetches that gave their memory up for older ones, and were asked for again.
    pub(crate) put_back: Counter,
    /// Fetches served.
    pub(crate) served_requests: Counter,
    /// Fetches refused, because too many were waiting.
    pub(crate) busy_refusals: Counter,
    /// Blocks that peers asked for and this endpoint could not give.
    pub(crate) blocks_refused: Counter,
    /// Messages for requests that had ended.
    pub(crate) late_messages: Counter,
    /// Fetches answered by telling where the bytes lie.
    pub(crate) pulls_offered: Counter,
    /// Fetches whose bytes were pulled.
    pub(crate) pulls: Counter,
    /// Pulls of which some bytes were gone when they were read.
    pub(crate) pulls_stale: Counter,
}

impl EndpointCounters {
    pub(crate) fn fabric(&self, kind: FabricKind) -> &FabricKindCounters {
        &self.fabrics[kind.index()]
    }

    pub(crate) fn list(&self) -> Vec<(String, u64)> {
        let mut out: Vec<(String, u64)> = Vec::new();
        for kind in FabricKind::ALL {
            let (name, counters) = (kind.name(), self.fabric(kind));
            out.push((format!("remoteBlocks.{name}"), counters.remote_blocks.get()));
            out.push((format!("remoteBytes.{name}"), counters.remote_bytes.get()));
            out.push((format!("servedBlocks.{name}"), counters.served_blocks.get()));
            out.push((format!("servedBytes.{name}"), counters.served_bytes.get()));
            out.push((format!("connections.{name}"), counters.connections.get()));
        }
        for (name, counter) in [
            ("requests", &self.requests),
            ("requestsFailed", &self.requests_failed),
            ("retries", &self.retries),
            ("routeBackoffs", &self.route_backoffs),
            ("duplicateConnections", &self.connections_surplus),
            ("idleConnections", &self.connections_idle),
            ("crcErrors", &self.crc_errors),
            ("timeouts", &self.timeouts),
            ("putBack", &self.put_back),
            ("servedRequests", &self.served_requests),
            ("busyRefusals", &self.busy_refusals),
            ("blocksRefused", &self.blocks_refused),
            ("lateMessages", &self.late_messages),
            ("readOffers", &self.pulls_offered),
            ("remoteReads", &self.pulls),
            ("remoteReadsStale", &self.pulls_stale),
        ] {
            out.push((name.to_owned(), counter.get()));
        }
        let buffers = self.fabrics.iter().map(|one| one.buffer_bytes.get());
        let buffers: u64 = buffers.sum();
        out.push(("memory.connectionBytes".to_owned(), buffers));
        let held = self.connection_bytes.get();
        out.push(("connectionBytes".to_owned(), held));
        out
    }
}
