//! Completions become records in Java's direct buffer, many with one call.
//!
//! A record is never split. Records that do not fit wait here for the next call. If a record is
//! larger than the whole buffer, Java gets its size and calls again with a larger buffer, so neither
//! side needs a bound for the size of a record.

use crate::record::{CompletionRecord, SlabRun, BLOCK_ENTRY_BYTES, RECORD_HEAD_BYTES, SLICE_BYTES};
use crate::registry::Registry;
use faro_endpoint::Completion;
use std::collections::VecDeque;

/// Delivered blocks that are not yet released. Leases keep their arena, so a batch may outlive its
/// endpoint.
pub static BATCHES: Registry<SliceBatch> = Registry::new();

/// The slices of one record that Java still holds.
pub struct SliceBatch {
    /// The slices by their position in the record; `None` after a slice was released.
    slices: Vec<Option<faro_endpoint::BufferSlice>>,
    /// Number of slices that are not released.
    held: usize,
}

impl SliceBatch {
    /// Returns slices that are all held.
    pub fn new(slices: Vec<faro_endpoint::BufferSlice>) -> Self {
        Self {
            held: slices.len(),
            slices: slices.into_iter().map(Some).collect(),
        }
    }

    /// Takes `count` slices from position `first`. Returns `None` and takes nothing if one was
    /// released already or never existed.
    pub fn take(&mut self, first: usize, count: usize) -> Option<Vec<faro_endpoint::BufferSlice>> {
        let range = self.slices.get_mut(first..first.checked_add(count)?)?;
        if range.iter().any(Option::is_none) {
            return None;
        }
        self.held -= count;
        Some(range.iter_mut().filter_map(Option::take).collect())
    }

    /// Returns whether Java holds none of them.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }
}

/// The completions between an endpoint and its one caller of `completions`.
#[derive(Default)]
pub struct Outgoing {
    /// Taken from the endpoint, not yet written; in order.
    pub waiting: VecDeque<Completion>,
    /// The batch of `Endpoint::completions`; empty between calls, kept for its capacity.
    pub taken: Vec<Completion>,
    /// Encoded records of one call; empty between calls, kept for its capacity.
    pub records: Vec<u8>,
    /// One record's slices; empty between records, kept for its capacity.
    slices: Vec<SlabRun>,
}

/// Returns the bytes that `CompletionRecord::encode` will write for a completion.
pub fn encoded_bytes(completion: &Completion) -> usize {
    RECORD_HEAD_BYTES
        + match &completion.outcome {
            Ok(delivery) => {
                delivery.slices.len() * SLICE_BYTES + delivery.blocks.len() * BLOCK_ENTRY_BYTES
            }
            Err(failure) => failure.detail.len().next_multiple_of(8),
        }
}

impl Outgoing {
    /// Encodes the records that fit into `capacity` bytes. Java owns their batches from now on.
    pub fn encode(&mut self, capacity: usize) {
        while let Some(completion) = self.waiting.pop_front() {
            if self.records.len() + encoded_bytes(&completion) > capacity {
                self.waiting.push_front(completion);
                return;
            }
            self.encode_one(completion);
        }
    }

    fn encode_one(&mut self, completion: Completion) {
        let (error, blocks, detail, pieces) = match completion.outcome {
            Ok(delivery) => (None, delivery.blocks, String::new(), delivery.slices),
            Err(failure) => (Some(failure.code), Vec::new(), failure.detail, Vec::new()),
        };
        self.slices.clear();
        self.slices.extend(pieces.iter().map(|piece| SlabRun {
            slab: piece.lease.slab(),
            offset: piece.lease.offset() + piece.offset,
            length: piece.length,
        }));
        let batch = if pieces.is_empty() {
            0
        } else {
            BATCHES.insert(SliceBatch::new(pieces))
        };
        CompletionRecord {
            error,
            request: completion.request,
            first_block: completion.first_block,
            block_count: completion.block_count,
            batch,
            fabric: completion.fabric,
            last: completion.last,
            scarce: completion.scarce,
            slices: &self.slices,
            blocks: &blocks,
            detail: &detail,
        }
        .encode(&mut self.records);
    }
}
