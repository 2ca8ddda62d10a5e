//! Versions tell a reader on another machine, without a lock, which bytes it has read.
//!
//! Each slot has a version, one 64-bit word. All versions lie in one lease, so that one remote READ
//! reads many. An odd version means that the slot is empty or being overwritten. An even version
//! means that the slot holds the bytes that were published under it. No version is used twice.
//!
//! ```text
//!   server                               client
//!   1. version := odd                    1. learns slot and even version from a message
//!   2. device write barrier              2. reads the bytes
//!   3. overwrites the bytes              3. waits until the last byte has arrived
//!   4. device write barrier              4. reads the version: is it the one of step 1?
//!   5. version := next even
//! ```
//! The client discards the bytes unless the version is the same. If the client read any byte of the
//! server's step 3, its own step 4 finds the odd version of step 1 or a later one: the barrier makes
//! the odd version visible before the first new byte, and the client asks for the version only after
//! it has the bytes. So "the same version" means that no byte had changed, whatever the bytes look
//! like.
//!
//! Step 3 of the client is a wait, not an order of posting. Two READs posted one after the other on
//! one queue pair are not enough: PCI Express does not order the reads of a device, so the server's
//! NIC may fetch the version before it fetches the bytes. The client therefore posts the READ of
//! the versions when the READs of the bytes have completed (`pull.rs` in the endpoint). A reader in
//! the server's own process has an acquire fence instead ([`still`]).
//!
//! Step 2 of the server must order stores for a device, which a release fence does not do on every
//! architecture (see [`device_write_barrier`]).
//!
//! This is a sequence lock (as in Linux) in which the server reads the first version for the
//! client. `tests/loom.rs` explores it.

use faro_sync::atomic::{fence, AtomicU64, Ordering};
use faro_sync::device_write_barrier;

/// A slot's version.
pub type Version = u64;

/// Size of a version in memory, in bytes: a little-endian word.
pub const VERSION_BYTES: usize = 8;

/// Returns whether bytes were published under this version: it is even.
#[must_use]
pub fn is_stable(version: Version) -> bool {
    version % 2 == 0
}

/// Does steps 1 and 2 of the server: makes the version odd, before the slot's bytes are
/// overwritten. If it is odd already, only the barrier remains. Only one thread may be between
/// `begin` and `publish` of one word.
pub fn begin(word: &AtomicU64) {
    let now = word.load(Ordering::Relaxed);
    if is_stable(now) {
        debug_assert!(now < Version::MAX - 1, "a version is used once");
        word.store(now + 1, Ordering::Relaxed);
    }
    // No new byte may become visible before the odd version.
    device_write_barrier();
}

/// Does steps 4 and 5 of the server: publishes the slot's bytes. Returns the version under which
/// they are published.
pub fn publish(word: &AtomicU64) -> Version {
    let next = word.load(Ordering::Relaxed) + 1;
    debug_assert!(is_stable(next), "published without begin");
    // The even version must not become visible before any of the bytes.
    device_write_barrier();
    word.store(next, Ordering::Release);
    next
}

/// Does steps 3 and 4 of a client in the server's process: returns whether the bytes that it has
/// read are those published under `expected`.
pub fn still(word: &AtomicU64, expected: Version) -> bool {
    fence(Ordering::Acquire);
    word.load(Ordering::Relaxed) == expected
}
