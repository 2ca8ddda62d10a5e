//! Versions: how a reader without a lock, on another machine, knows which bytes it read.
//!
//! One 64-bit word for each slot, all in one lease, so that one read brings many. Odd: the slot is
//! changing or empty. Even: its bytes are those that were published under that number, which is
//! never used again.
//!
//! ```text
//!   owner                                reader
//!   1. version := odd                    1. is told (slot, even version)
//!   2. fence (release)                   2. reads bytes
//!   3. overwrites bytes                  3. fence (acquire); over RDMA: a later READ of the same queue pair
//!   4. version := next even (release)    4. reads the version: is it the one I was told?
//! ```
//! If step 2 of the reader saw any byte of step 3 of the owner, the fences make its step 4 see the
//! odd version of step 1 or something later, and it discards what it read. So an answer "the same"
//! means that no byte had changed, whatever the bytes are: a payload that looks like a signature
//! or like what was there before cannot fool it. This is a sequence lock (Lameter's, in Linux) of
//! which the reader's first look was made for it by the owner. `tests/loom.rs` explores it; NP-RDMA's
//! signature page alone would miss an eviction in mid-read.

use crate::sync::{fence, AtomicU64, Ordering};

/// A slot's version.
pub type Version = u64;

/// Bytes of one version in memory: a little-endian word.
pub const VERSION_BYTES: usize = 8;

/// Whether bytes under that version may be believed.
#[must_use]
pub fn is_stable(version: Version) -> bool {
    version % 2 == 0
}

/// First step of an overwrite: from here on nobody believes what is in the slot. Only one thread
/// may be between `begin` and `publish` of a word.
pub fn begin(word: &AtomicU64) {
    let now = word.load(Ordering::Relaxed);
    if is_stable(now) {
        word.store(now + 1, Ordering::Relaxed);
    }
    // No store to the bytes may become visible before the one above.
    fence(Ordering::Release);
}

/// Last step of an overwrite: the version under which the bytes may be believed.
pub fn publish(word: &AtomicU64) -> Version {
    let next = word.load(Ordering::Relaxed) + 1;
    debug_assert!(is_stable(next), "published without begin");
    word.store(next, Ordering::Release);
    next
}

/// Step 4 of a reader in this process: whether what it read before is still under `expected`.
pub fn still(word: &AtomicU64, expected: Version) -> bool {
    fence(Ordering::Acquire);
    word.load(Ordering::Relaxed) == expected
}
