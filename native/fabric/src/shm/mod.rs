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
//!   looks the key up in the owner's directory, copies, looks again: no step of the owner
//! ```
//! Idea: nobody can write into another process. Memory of ours is mapped by peers read-only (the
//! pool gives descriptors that can only read, or seals its slabs: see its `pages`), and a write is carried out by the target's own
//! progress thread after it has checked the key. So revoking is immediate, and a writer that
//! dies half-way leaves nothing half-written. One copy, no payload through the kernel.
//!
//! Trade-off: the target's CPU does the copying, where a mapping for writing would let the
//! writer do it; and a peer of the same user can read all of a slab that it was handed, not only what was
//! exposed to it. It could do so by ptrace as well; peers of other users are turned away
//! (`SO_PEERCRED`).
//!
//! What `Done` means: for a write that the target has the bytes (or `Refused`, always told).
//! A source is held until the verdict, or until the peer's end of the connection is closed: a
//! peer that is behind may still copy from it after our `Flushed`.
//!
//! Revoking what peers *read*: the owner cannot stop a reader in mid-copy, but the reader can
//! tell. The directory (`directory.rs`) is a seqlock whose sequence number is the key itself: the
//! owner clears the slot before it gives the memory back, the reader copies into a private lease
//! and looks at the slot afterwards. So `Revoked::Now` is right for both kinds of exposure: no read ends `Done` with a byte
//! that was written after `revoke` returned, and nothing of the owner's is changed by readers.
//!
//! A peer can never make us take a SIGBUS: only files sealed against shrinking are mapped, and
//! no huge-page files, which can fault for want of a page.
//!
//! Sources: memfd seals (memfd_create(2), fcntl(2)); seqlock fences after Boehm, "Can seqlocks get
//! along with programming language memory models?" (MSPC 2012).

mod connection;
mod datapath;
mod directory;
mod setup;
mod slabs;
mod socket;

pub use crate::stream::bounds::Bounds;
#[cfg(test)]
pub(crate) use datapath::ShmKind;
pub use setup::{host_identity, same_host, ShmConfig};

crate::stream::facade::reactor_fabric! {
    /// The same-host fabric.
    ShmFabric, datapath::Shm
}
