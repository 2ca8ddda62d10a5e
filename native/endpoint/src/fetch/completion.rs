//! What a caller gets back: blocks or an error, never both for the same block, never twice.

use crossbeam_channel::{Receiver, Sender};
use faro_pool::Lease;
use faro_wire::codes::{FabricCode, FetchErrorCode};
use faro_wire::message::BlockEntry;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Blocks that arrived, or an error for all that will not.
pub struct Completion {
    /// Request.
    pub request: u64,
    /// Position of the first block.
    pub first_block: u32,
    /// Number of blocks.
    pub block_count: u32,
    /// Where the bytes came from.
    pub fabric: FabricCode,
    /// Nothing follows for this request.
    pub last: bool,
    /// At least half of the arena is in use: unless the caller uses the blocks at once, it should copy
    /// them and drop this, because other requests may wait for the memory.
    pub scarce: bool,
    /// The bytes, or why not.
    pub outcome: Result<Delivery, FetchFailure>,
}

/// Delivered blocks: the slices, one after the other, are the blocks' bytes, one after the other.
pub struct Delivery {
    /// Status and length of each block.
    pub blocks: Vec<BlockEntry>,
    /// Where the bytes are.
    pub slices: Vec<BufferSlice>,
}

/// Bytes in a lease.
#[derive(Clone)]
pub struct BufferSlice {
    /// Shared with the deliveries before and after when a lease ends in mid-block.
    pub lease: Arc<Lease>,
    /// First byte.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

/// Why blocks will not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchFailure {
    /// The kind of failure.
    pub code: FetchErrorCode,
    /// What a person should read.
    pub detail: String,
}

impl FetchFailure {
    pub(crate) fn new(code: FetchErrorCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }
}

/// Finished work on its way to the caller's thread.
///
/// The channel has no bound of its own, because a progress thread must not wait for a caller. It is
/// bounded all the same: a completion holds arena memory or is the last of its request, so there are
/// at most (arena / smallest size class + `MAX_REQUESTS`) of them.
pub(crate) struct Completions {
    sender: Sender<Completion>,
    receiver: Receiver<Completion>,
}

impl Completions {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Self { sender, receiver }
    }

    pub(crate) fn push(&self, completion: Completion) {
        // Cannot fail: this struct holds a receiver.
        let _ = self.sender.send(completion);
    }

    /// Waits for the first one, then takes what is there.
    pub(crate) fn take(&self, max: usize, timeout: Duration, out: &mut Vec<Completion>) {
        let deadline = Instant::now() + timeout;
        while out.len() < max {
            let next = if out.is_empty() {
                self.receiver.recv_deadline(deadline).ok()
            } else {
                self.receiver.try_recv().ok()
            };
            match next {
                Some(completion) => out.push(completion),
                None => return,
            }
        }
    }
}
