//! The completions of a request: blocks or errors, exactly one of them for each block.

use crossbeam_channel::{Receiver, Sender};
use faro_pool::Lease;
use faro_wire::codes::{FabricCode, FetchErrorCode};
use faro_wire::message::BlockEntry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Blocks of a request that arrived, or an error for blocks that will not arrive.
pub struct Completion {
    /// Id of the request, as returned when it was made.
    pub request: u64,
    /// Position of the first block in the request.
    pub first_block: u32,
    /// Number of blocks.
    pub block_count: u32,
    /// The fabric that carried the bytes.
    pub fabric: FabricCode,
    /// True if this is the request's last completion.
    pub last: bool,
    /// True if at least half of the arena is in use. A caller that does not use the blocks at once
    /// should then copy them and drop this, because other requests may wait for the memory.
    pub scarce: bool,
    /// The blocks, or the reason that they will not arrive.
    pub outcome: Result<Delivery, FetchFailure>,
}

/// Delivered blocks. The concatenated slices are the concatenated blocks.
pub struct Delivery {
    /// Status and length of each block.
    pub blocks: Vec<BlockEntry>,
    /// The slices of memory that hold the blocks' bytes, in order.
    pub slices: Vec<BufferSlice>,
}

/// A slice of a lease.
#[derive(Clone)]
pub struct BufferSlice {
    /// The lease. If it ends inside a block, adjacent deliveries share it.
    pub lease: Arc<Lease>,
    /// Offset of the first byte in the lease, in bytes.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
}

/// The reason that blocks will not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchFailure {
    /// The kind of failure.
    pub code: FetchErrorCode,
    /// A message for the user's log.
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

/// Maximum number of completion queues.
pub const MAX_COMPLETION_QUEUES: usize = 8;

/// Completions on their way to the caller's threads, in one queue or in one for each thread. All
/// completions of a request are in one queue, in order.
///
/// The channels are unbounded, because a progress thread must not wait for a caller. Their length
/// is bounded nevertheless: each completion holds arena memory or is the last of its request, so
/// there are at most (arena / smallest size class + `MAX_REQUESTS`) of them.
pub(crate) struct Completions {
    queues: [(Sender<Completion>, Receiver<Completion>); MAX_COMPLETION_QUEUES],
    /// Number of queues in use.
    used: AtomicU64,
}

impl Completions {
    /// Returns completions with one queue.
    pub(crate) fn new() -> Self {
        Self {
            queues: std::array::from_fn(|_| crossbeam_channel::unbounded()),
            used: AtomicU64::new(1),
        }
    }

    /// Uses `queues` queues, at least 1 and at most `MAX_COMPLETION_QUEUES`. Call it before the
    /// first request: otherwise a request's completions could be in two queues.
    pub(crate) fn split(&self, queues: usize) {
        let queues = queues.clamp(1, MAX_COMPLETION_QUEUES) as u64;
        self.used.store(queues, Ordering::Release);
    }

    pub(crate) fn push(&self, completion: Completion) {
        let at = completion.request % self.used.load(Ordering::Acquire);
        // The send cannot fail, because this struct holds a receiver.
        let _ = self.queues[at as usize].0.send(completion);
    }

    /// Returns whether the first queue has a completion.
    #[cfg(feature = "simulation")]
    pub(crate) fn has_any(&self) -> bool {
        !self.queues[0].1.is_empty()
    }

    /// Waits for a queue's first completion up to `timeout`, then takes up to `max` without
    /// waiting. Returns without one if the queue does not exist.
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
            fabric: FabricCode::NONE,
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
