//! The pool's counters. All are relaxed atomics, so a snapshot is exact only while no thread leases
//! or returns. A counter that many threads change has its own cache line.

use crossbeam_utils::CachePadded;
use faro_sync::atomic::{AtomicU64, Ordering};

/// A snapshot of the pool's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// The hard cap, in bytes.
    pub limit_bytes: u64,
    /// Bytes of slabs that have memory: mapped slabs without those whose pages were released.
    pub mapped_bytes: u64,
    /// Bytes of idle slabs, which are de-registered or about to be, with their pages or without.
    pub idle_bytes: u64,
    /// Number of slabs on reserved huge pages of 2 MiB.
    pub huge_slabs: u64,
    /// Bytes of external memory, wrapped or allocated to be registered lazily.
    pub external_bytes: u64,
    /// Bytes of pages taken, whole or split, and the part of the cap that external memory takes.
    /// The difference to `leased_bytes` is fragmentation.
    pub held_bytes: u64,
    /// Bytes leased now; each lease counts with its size class.
    pub leased_bytes: u64,
    /// Maximum of `leased_bytes` since the start.
    pub high_water_bytes: u64,
    /// Number of leases since the start.
    pub acquisitions: u64,
    /// Number of leases of memory that had been leased before.
    pub reuse_hits: u64,
    /// Number of requests that found the pool exhausted.
    pub exhausted: u64,
    /// Number of blocking requests that had to wait.
    pub waits: u64,
    /// Number of slabs mapped since the start.
    pub slabs_mapped: u64,
    /// Nanoseconds spent mapping slabs.
    pub map_ns: u64,
    /// Number of times that an idle slab's pages were released to the system.
    pub slabs_released: u64,
    /// Number of registrations with devices since the start: of slabs, also after they were idle,
    /// and of external memory.
    pub registrations: u64,
    /// Nanoseconds spent registering.
    pub registration_ns: u64,
    /// Number of de-registrations.
    pub deregistrations: u64,
    /// Bytes registered with devices now; memory registered with two devices counts twice.
    pub registered_bytes: u64,
    /// Maximum of `registered_bytes` since the start.
    pub registered_high_water_bytes: u64,
}

impl PoolCounters {
    /// Returns the bytes that are taken and not leased: free small buffers of split pages, and the
    /// rest of external memory's last slab.
    #[must_use]
    pub fn fragmentation_bytes(&self) -> u64 {
        self.held_bytes.saturating_sub(self.leased_bytes)
    }
}

/// The counters behind the snapshot.
#[derive(Default)]
pub(crate) struct AtomicCounters {
    /// Written only when it grows, which is rare after the start.
    high_water_bytes: CachePadded<AtomicU64>,
    /// Number of leases of memory that was never leased before; all others are reuse hits. Counting
    /// the rare case saves a locked instruction in the common one.
    first_uses: AtomicU64,
    exhausted: AtomicU64,
    waits: AtomicU64,
    mapped_bytes: AtomicU64,
    huge_slabs: AtomicU64,
    external_bytes: AtomicU64,
    /// Number of leases of external memory since the start.
    wraps: AtomicU64,
    slabs_mapped: AtomicU64,
    map_ns: AtomicU64,
    slabs_released: AtomicU64,
    registrations: AtomicU64,
    registration_ns: AtomicU64,
    deregistrations: AtomicU64,
    registered_bytes: AtomicU64,
    registered_high_water_bytes: AtomicU64,
}

fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Ordering::Relaxed);
}

fn subtract(counter: &AtomicU64, value: u64) {
    counter.fetch_sub(value, Ordering::Relaxed);
}

/// Raises a maximum. The load saves the locked instruction if there is nothing to raise.
fn raise(mark: &AtomicU64, now: u64) {
    if mark.load(Ordering::Relaxed) < now {
        mark.fetch_max(now, Ordering::Relaxed);
    }
}

impl AtomicCounters {
    /// Counts a lease. `now` is the number of bytes leased with it.
    pub(crate) fn leased(&self, now: u64, reused: bool) {
        raise(&self.high_water_bytes, now);
        if !reused {
            add(&self.first_uses, 1);
        }
    }

    pub(crate) fn refused(&self) {
        add(&self.exhausted, 1);
    }

    pub(crate) fn waited(&self) {
        add(&self.waits, 1);
    }

    /// Counts a slab before it is mapped, so that no reader of the counter sees less than is
    /// mapped.
    pub(crate) fn mapping(&self, bytes: u64) {
        add(&self.mapped_bytes, bytes);
    }

    pub(crate) fn not_mapped(&self, bytes: u64) {
        subtract(&self.mapped_bytes, bytes);
    }

    /// Counts a slab that was mapped in `ns` nanoseconds. Returns whether it is the first on huge
    /// pages.
    pub(crate) fn mapped(&self, ns: u64, huge: bool) -> bool {
        add(&self.slabs_mapped, 1);
        add(&self.map_ns, ns);
        huge && self.huge_slabs.fetch_add(1, Ordering::Relaxed) == 0
    }

    pub(crate) fn slab_released(&self) {
        add(&self.slabs_released, 1);
    }

    pub(crate) fn wrapped(&self, bytes: u64, now: u64) {
        add(&self.external_bytes, bytes);
        raise(&self.high_water_bytes, now);
        add(&self.wraps, 1);
    }

    pub(crate) fn unwrapped(&self, bytes: u64) {
        subtract(&self.external_bytes, bytes);
    }

    pub(crate) fn registered(&self, bytes: u64, ns: u64) {
        let now = self.registered_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        raise(&self.registered_high_water_bytes, now);
        add(&self.registrations, 1);
        add(&self.registration_ns, ns);
    }

    pub(crate) fn deregistered(&self, bytes: u64) {
        subtract(&self.registered_bytes, bytes);
        add(&self.deregistrations, 1);
    }

    /// Returns a snapshot without the fields that only the arena knows. `leases` is the number of
    /// leases of slabs since the start, `released` the bytes of slabs whose pages were released.
    pub(crate) fn snapshot(&self, leases: u64, released: u64) -> PoolCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let first_uses = get(&self.first_uses);
        PoolCounters {
            mapped_bytes: get(&self.mapped_bytes).saturating_sub(released),
            huge_slabs: get(&self.huge_slabs),
            external_bytes: get(&self.external_bytes),
            high_water_bytes: get(&self.high_water_bytes),
            acquisitions: leases + get(&self.wraps),
            reuse_hits: leases.saturating_sub(first_uses),
            exhausted: get(&self.exhausted),
            waits: get(&self.waits),
            slabs_mapped: get(&self.slabs_mapped),
            map_ns: get(&self.map_ns),
            slabs_released: get(&self.slabs_released),
            registrations: get(&self.registrations),
            registration_ns: get(&self.registration_ns),
            deregistrations: get(&self.deregistrations),
            registered_bytes: get(&self.registered_bytes),
            registered_high_water_bytes: get(&self.registered_high_water_bytes),
            ..PoolCounters::default()
        }
    }
}
