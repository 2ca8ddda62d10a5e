//! Same-host: frames over a Unix socket, payload by reference to shared memory.
//!
//! ```text
//!   writer                                         target
//!   SLAB_REPLY + descriptor (once per slab) ----->  maps it, read-only
//!   WRITE_REF {key, offset, slab, source} ------->  exposure table -> copies slab to lease
//!                        <------- WRITE_ACK {...}   many verdicts in one frame
//!
//!   reader                                         owner
//!   SLAB_REQUEST (once per slab) ---------------->
//!                        <- SLAB_REPLY + descriptor
//!   looks the key up in the owner's directory, copies, looks again: the owner does nothing
//! ```
//! Idea: no process can write into another. Peers map this side's memory read-only (the pool gives
//! descriptors that can only read, or seals its slabs: see its `pages`), and the target's own
//! progress thread carries out a write after it has checked the key. So a revocation is immediate,
//! and a writer that dies leaves no half-written bytes. One copy, no payload through the kernel.
//!
//! Trade-off: the target's CPU does the copying; with a writable mapping the writer could. And a
//! peer of the same user can read all of a slab that it was handed, not only what was exposed to
//! it. It could do so by ptrace as well; connections of other users are refused (`SO_PEERCRED`).
//!
//! `Done` of a write means that the target has the bytes; a refusal is always reported. A source is
//! held until the verdict, or until the peer has ended its side of the connection, because a slow
//! peer may still copy from it after this side's `Flushed`.
//!
//! Revoking what peers *read*: the owner cannot stop a reader in the middle of a copy, but the
//! reader notices. The directory (`directory.rs`) is a seqlock whose sequence number is the key
//! itself: the owner clears the slot before it gives the memory back, and the reader copies into a
//! lease of its own and looks at the slot again afterwards. So `RevokeStatus::Now` is right for both
//! kinds of exposure: no read ends `Done` with a byte that was written after `revoke` returned.
//!
//! A peer can never cause a SIGBUS here: only files sealed against shrinking are mapped, and files
//! of huge pages only if they have no hole and can get none.
//!
//! Sources: memfd seals (memfd_create(2), fcntl(2)); seqlock fences after Boehm, "Can seqlocks get
//! along with programming language memory models?" (MSPC 2012).

mod connection;
mod datapath;
mod directory;
mod exported;
mod location;
mod operations;
mod setup;
mod slabs;
mod socket;

pub use crate::session::bounds::Bounds;
#[cfg(test)]
pub(crate) use datapath::ShmKind;
pub use location::{host_identity, same_host};
pub use setup::ShmConfig;

/// The same-host fabric.
pub type ShmFabric = crate::reactor::event_loop::Reactor<datapath::Shm>;
