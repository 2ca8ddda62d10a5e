//! Unpinned regions: bytes that may be read remotely and are neither held nor registered.
//!
//! A region is a file (a map output). Exporting one costs no more than opening it: O(1), not O(bytes).
//! Its bytes are in one of three places, and every read of them leaves by one of three exits:
//!
//! ```text
//!                     ┌────────── residency: chunk → slot, version of each slot
//!   read(region, range)
//!     │ resident ─────┤  the chunk is in a page of the arena: copied, or read one-sidedly by the peer
//!     │ minor fault ──┤  it is in the page cache: preadv2(RWF_NOWAIT) brings it, nobody sleeps
//!     └ major fault ──┘  it is on a disk: only a thread that may sleep goes on
//! ```
//! The registered footprint is the number of slots, whatever the size of the shuffle. The idea is
//! NP-RDMA's (arXiv 2310.11062) without its kernel module: user space cannot take a page away under
//! a device, so the memory that a device reads is an arena whose only evictor is this crate. It
//! bumps a slot's version *before* it overwrites the slot, and a reader believes only bytes whose
//! version was the same after the read as the owner named before it. See `version`.
//!
//! Files are read by `preadv2`, never through a mapping: a file that is truncated under a mapping ends the
//! process by SIGBUS, while a short read is an error of one request; and only `RWF_NOWAIT` can ask
//! for bytes without the risk of sleeping for them.
//!
//! The crate does no network I/O. What a peer may read one-sidedly are leases, which the endpoint
//! exposes: one for each slot, and one that holds all versions.

#[cfg(not(loom))]
mod admission;
#[cfg(not(loom))]
mod cache;
mod error;
mod region;

// Public for the model only.
#[cfg(not(loom))]
mod table;
#[cfg(loom)]
pub mod table;
#[cfg(not(loom))]
mod version;
#[cfg(loom)]
pub mod version;

#[cfg(not(loom))]
pub use cache::{ChunkCache, ChunkCacheCounters, Exits, FillGuard, ReadGuard, Sleep};
pub use error::RegionError;
pub use region::{Region, RegionId};
pub use version::{is_stable, Version, VERSION_BYTES};

/// Bytes of a chunk: what one slot holds, from a multiple of it in the region.
pub const CHUNK_BYTES: u64 = faro_pool::PAGE_BYTES as u64;
/// Most slots: their versions, and one more that never changes, fill one page.
pub const MAX_SLOTS: usize = faro_pool::PAGE_BYTES / VERSION_BYTES - 1;
