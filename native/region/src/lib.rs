//! Unpinned regions: bytes that may be read remotely without being held in memory or registered.
//!
//! A region is a file (a map output). Exporting one costs as much as opening it: O(1), not
//! O(bytes). It need not stay open, because a `Source` opens it for the reads that need it. Its
//! bytes are in one of three places, and each read takes one of three exits:
//!
//! ```text
//!                     ┌────────── chunk cache: chunk → slot, version of each slot
//!   read(region, range)
//!     │ resident ─────┤  the chunk is in a page of the arena: copied, sent from there, or read by the peer
//!     │ minor fault ──┤  it is in the page cache: preadv2(RWF_NOWAIT) brings it, no thread sleeps
//!     └ major fault ──┘  it is on a disk: only a thread that may sleep reads it
//! ```
//! The registered memory is one page for each slot, whatever the size of the shuffle. The idea is
//! NP-RDMA's (arXiv 2310.11062) without its kernel module: user space cannot take a page away from
//! a device, so devices read memory of an arena from which only this crate evicts. The server
//! changes a slot's version *before* it overwrites the slot. A client accepts the bytes only if the
//! version after its read is the one that the server named before (`version`).
//!
//! Files are read by `preadv2`, not through a mapping. A mapped file that becomes shorter ends the
//! process by SIGBUS, while a short read is an error of one request. Also, only `RWF_NOWAIT` reads
//! bytes without a risk to sleep.
//!
//! The crate does no network I/O. The endpoint makes leases readable for peers: one for each slot,
//! and one that holds all versions.

#[cfg(not(loom))]
mod admission;
#[cfg(not(loom))]
mod cache;
mod error;
mod region;

// This module is public only for the loom model.
#[cfg(not(loom))]
mod table;
#[cfg(loom)]
pub mod table;
#[cfg(not(loom))]
mod version;
#[cfg(loom)]
pub mod version;

#[cfg(not(loom))]
pub use cache::{
    ChunkCache, ChunkCacheCounters, FillGuard, ReadGuard, ReadSources, Sleep, StagedFile,
};
pub use error::RegionError;
pub use region::{OpenFile, OpenRegion, Region, RegionId, Source};
pub use version::{is_stable, Version, VERSION_BYTES};

/// Size of a chunk in bytes. A slot holds one chunk, which begins at a multiple of this in the
/// region.
pub const CHUNK_BYTES: u64 = faro_pool::PAGE_BYTES as u64;
/// Maximum number of slots: their versions, and one more that never changes, fill one page.
pub const MAX_SLOTS: usize = faro_pool::PAGE_BYTES / VERSION_BYTES - 1;
