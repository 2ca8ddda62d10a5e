//! What a caller gets back: blocks or an error, never both for the same block, never twice.

use crossbeam_channel::{Receiver, Sender};
use faro_pool::Lease;
use faro_wire::codes::{FabricCode, FetchErrorCode};
use faro_wire::message::BlockEntry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Blocks that arrived, or an error for some that will not.
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

/// Most queues of completions.
pub const MAX_COMPLETION_QUEUES: usize = 8;

/// Finished work on its way to the caller's threads: one queue, or several with a thread of the caller
/// for each. All completions of a request are in one queue, in order.
///
/// The channels have no bound of their own, because a progress thread must not wait for a caller. They
/// are bounded all the same: a completion holds arena memory or is the last of its request, so there
/// are at most (arena / smallest size class + `MAX_REQUESTS`) of them.
pub(crate) struct Completions {
    queues: [(Sender<Completion>, Receiver<Completion>); MAX_COMPLETION_QUEUES],
    /// How many of the queues are in use.
    used: AtomicU64,
}

impl Completions {
    /// One queue.
    pub(crate) fn new() -> Self {
        Self {
            queues: std::array::from_fn(|_| crossbeam_channel::unbounded()),
            used: AtomicU64::new(1),
        }
    }

    /// Uses `queues` queues (1 to `MAX_COMPLETION_QUEUES`, others are rounded to that). To be called
    /// before the first request: later, the completions of a request could be in two queues.
    pub(crate) fn split(&self, queues: usize) {
        let queues = queues.clamp(1, MAX_COMPLETION_QUEUES) as u64;
        self.used.store(queues, Ordering::Release);
    }

    pub(crate) fn push(&self, completion: Completion) {
        let at = completion.request % self.used.load(Ordering::Acquire);
        // Cannot fail: this struct holds a receiver.
        let _ = self.queues[at as usize].0.send(completion);
    }

    /// Some wait in the first queue.
    #[cfg(feature = "simulation")]
    pub(crate) fn has_any(&self) -> bool {
        !self.queues[0].1.is_empty()
    }

    /// Waits for the first one of a queue, then takes what is there. A queue that does not exist never
    /// has one.
    pub(crate) fn take(
        &self,
        queue: usize,
        max: usize,
        timeout: Duration,
        out: &mut Vec<Completion>,
    ) {
        let Some((_, receiver)) = self.queues.get(queue) else {
            return;
        };
        while out.len() < max {
            let next = if out.is_empty() {
                receiver.recv_timeout(timeout).ok()
            } else {
                receiver.try_recv().ok()
            };
            match next {
                Some(completion) => out.push(completion),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(request: u64, first_block: u32) -> Completion {
        Completion {
            request,
            first_block,
            block_count: 1,
            fabric: FabricCode::None,
            last: false,
            scarce: false,
            outcome: Err(FetchFailure::new(FetchErrorCode::Cancelled, "")),
        }
    }

    #[test]
    fn a_request_has_one_queue_in_which_its_completions_are_in_order() {
        let completions = Completions::new();
        completions.split(3);
        for first_block in 0..5 {
            for request in 1..=9 {
                completions.push(completion(request, first_block));
            }
        }
        let mut seen = Vec::new();
        for queue in 0..MAX_COMPLETION_QUEUES + 1 {
            let mut out = Vec::new();
            completions.take(queue, usize::MAX, Duration::ZERO, &mut out);
            assert_eq!(out.len(), if queue < 3 { 15 } else { 0 });
            for request in 1..=9 {
                let blocks = out.iter().filter(|one| one.request == request);
                let blocks: Vec<u32> = blocks.map(|one| one.first_block).collect();
                if !blocks.is_empty() {
                    assert_eq!(blocks, [0, 1, 2, 3, 4]);
                    seen.push(request);
                }
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn without_a_split_there_is_one_queue() {
        let completions = Completions::new();
        completions.push(completion(1, 0));
        completions.push(completion(2, 0));
        let mut out = Vec::new();
        completions.take(0, 1, Duration::ZERO, &mut out);
        assert_eq!(out.len(), 1, "no more than asked for");
        completions.take(0, 16, Duration::ZERO, &mut out);
        assert_eq!(out.len(), 2);
    }
}
