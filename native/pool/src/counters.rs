//! What the pool counts. Each counter that many threads change sits on a cache line of its own;
//! all are relaxed, so a snapshot is exact only when the pool is at rest.

use crate::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// Snapshot of the pool's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// The hard cap, bytes.
    pub limit_bytes: u64,
    /// Bytes of slabs mapped now.
    pub mapped_bytes: u64,
    /// Bytes of frames taken, whole or cut; what it exceeds `leased_bytes` by is fragmentation.
    pub held_bytes: u64,
    /// Bytes leased now (by size class, not by use).
    pub leased_bytes: u64,
    /// Most bytes ever leased at once.
    pub high_water_bytes: u64,
    /// Leases given.
    pub acquisitions: u64,
    /// Leases given from memory that had been leased before.
    pub reuse_hits: u64,
    /// Requests that found the pool exhausted.
    pub exhausted: u64,
    /// Blocking requests that had to wait.
    pub waits: u64,
    /// Slabs mapped since the start.
    pub registrations: u64,
    /// Nanoseconds spent mapping them.
    pub registration_ns: u64,
}

/// The counters behind the snapshot.
#[derive(Default)]
pub(crate) struct Counters {
    leased_bytes: CachePadded<AtomicU64>,
    /// Written only when it grows, which is rare in steady state.
    high_water_bytes: CachePadded<AtomicU64>,
    acquisitions: CachePadded<AtomicU64>,
    reuse_hits: CachePadded<AtomicU64>,
    exhausted: AtomicU64,
    waits: AtomicU64,
    mapped_bytes: AtomicU64,
    registrations: AtomicU64,
    registration_ns: AtomicU64,
}

fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn leased(&self, bytes: u64, reused: bool) {
        let now = self.leased_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if self.high_water_bytes.load(Ordering::Relaxed) < now {
            self.high_water_bytes.fetch_max(now, Ordering::Relaxed);
        }
        add(&self.acquisitions, 1);
        if reused {
            add(&self.reuse_hits, 1);
        }
    }

    pub(crate) fn returned(&self, bytes: u64) {
        self.leased_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        add(&self.exhausted, 1);
    }

    pub(crate) fn waited(&self) {
        add(&self.waits, 1);
    }

    /// Before mapping: the cap holds at every instant, also for whoever watches this counter.
    pub(crate) fn mapping(&self, bytes: u64) {
        add(&self.mapped_bytes, bytes);
    }

    pub(crate) fn not_mapped(&self, bytes: u64) {
        self.mapped_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn mapped(&self, ns: u64) {
        add(&self.registrations, 1);
        add(&self.registration_ns, ns);
    }

    pub(crate) fn snapshot(&self, limit_bytes: u64, held_bytes: u64) -> PoolCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PoolCounters {
            limit_bytes,
            mapped_bytes: get(&self.mapped_bytes),
            held_bytes,
            leased_bytes: get(&self.leased_bytes),
            high_water_bytes: get(&self.high_water_bytes),
            acquisitions: get(&self.acquisitions),
            reuse_hits: get(&self.reuse_hits),
            exhausted: get(&self.exhausted),
            waits: get(&self.waits),
            registrations: get(&self.registrations),
            registration_ns: get(&self.registration_ns),
        }
    }
}
