//! Ends requests: pushes their last completions and counts them.

use super::completion::{Completion, Completions, FetchFailure};
use crate::counters::EndpointCounters;
use faro_fabric::EndpointId;
use faro_sync::lock;
use faro_wire::codes::{FabricCode, FetchErrorCode};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Receives the failures of requests. The queue and each request share it, so that a request that
/// is dropped can still tell its caller.
pub(crate) struct CompletionSink {
    pub(super) completions: Completions,
    pub(super) in_flight: AtomicUsize,
    counters: Arc<EndpointCounters>,
    /// The peers of requests that were dropped, whose permits must be returned.
    lost: Mutex<Vec<EndpointId>>,
}

impl CompletionSink {
    pub(super) fn new(counters: Arc<EndpointCounters>) -> Arc<Self> {
        Arc::new(Self {
            completions: Completions::new(),
            in_flight: AtomicUsize::new(0),
            counters,
            lost: Mutex::default(),
        })
    }

    /// Tells the caller of request `id` that its `missing` blocks will not arrive, and ends the
    /// request.
    pub(super) fn failed(
        &self,
        id: u64,
        missing: Range<usize>,
        code: FetchErrorCode,
        detail: String,
    ) {
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.counters.requests_failed.add(1);
        self.push_failure(id, missing, true, FetchFailure::new(code, detail));
    }

    /// Tells the caller of request `id` that its block `at` will not arrive because the arena
    /// cannot hold it. If `last` is true, ends the request.
    pub(super) fn failed_block(&self, id: u64, at: usize, detail: String, last: bool) {
        if last {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
            self.counters.requests_failed.add(1);
        }
        let failure = FetchFailure::new(FetchErrorCode::PoolExhausted, detail);
        self.push_failure(id, at..at + 1, last, failure);
    }

    fn push_failure(&self, id: u64, blocks: Range<usize>, last: bool, failure: FetchFailure) {
        self.completions.push(Completion {
            request: id,
            first_block: blocks.start as u32,
            block_count: blocks.len() as u32,
            fabric: FabricCode::NONE,
            last,
            scarce: false,
            outcome: Err(failure),
        });
    }

    /// Notes that a request to this peer was dropped before its end.
    pub(super) fn lost(&self, endpoint: EndpointId) {
        lock(&self.lost).push(endpoint);
    }

    /// Takes the peers whose requests were dropped since the last call.
    pub(super) fn take_lost(&self) -> Vec<EndpointId> {
        std::mem::take(&mut lock(&self.lost))
    }
}
