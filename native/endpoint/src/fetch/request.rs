//! A caller's request, and the part of it that was handed out.

use super::completion_sink::CompletionSink;
use faro_fabric::{EndpointId, FabricKind};
use faro_wire::codes::FetchErrorCode;
use faro_wire::BlockId;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The error of a request that was dropped before its end.
pub(super) const LOST: FetchErrorCode = FetchErrorCode::ConnectionLost;

/// A caller's request for blocks of one peer. Its last blocks or an error end it, once. If it is
/// dropped before, because a thread panicked, the drop ends it with an error.
pub(crate) struct FetchRequest {
    /// The id that the caller knows.
    pub(crate) id: u64,
    /// The peer that has the blocks.
    pub(crate) endpoint: EndpointId,
    pub(crate) blocks: Vec<BlockId>,
    /// The number of blocks that were handed out, as bytes or as an error.
    pub(crate) handed_out: usize,
    /// True if a block was handed out as an error, or as a status without bytes.
    pub(super) lacks_blocks: bool,
    /// Attempts ask only for the blocks before this position.
    until: usize,
    /// Positions and bytes of the blocks that the arena cannot hold. All positions are at or after
    /// `handed_out`.
    too_large: VecDeque<(usize, u64)>,
    /// Maximum time without progress.
    pub(crate) idle_timeout: Duration,
    /// True if the server must write the bytes, because the pages that it offered had changed.
    pub(crate) writes_only: bool,
    /// True if the caller verifies the blocks by checksums in them.
    pub(crate) reader_verifies: bool,
    pub(crate) faults: RequestFaults,
    pub(crate) busy: BusyWait,
    /// True if an attempt's buffers were taken from its silent server and no bytes have arrived
    /// since.
    pub(super) was_preempted: bool,
    /// The time since which it waits for arena memory, over all attempts on one fabric.
    pub(super) starved_since: Option<Instant>,
    /// The fabric of its last attempt.
    fabric: Option<FabricKind>,
    sink: Arc<CompletionSink>,
    /// True if the caller has its last completion.
    ended: bool,
}

impl FetchRequest {
    pub(crate) fn new(
        id: u64,
        endpoint: EndpointId,
        blocks: Vec<BlockId>,
        idle_timeout: Duration,
        sink: Arc<CompletionSink>,
    ) -> Self {
        let until = blocks.len();
        Self {
            id,
            endpoint,
            blocks,
            handed_out: 0,
            lacks_blocks: false,
            until,
            too_large: VecDeque::new(),
            idle_timeout,
            writes_only: false,
            reader_verifies: false,
            faults: RequestFaults::default(),
            busy: BusyWait::default(),
            was_preempted: false,
            starved_since: None,
            fabric: None,
            sink,
            ended: false,
        }
    }

    /// Notes that the caller has its last completion, or is about to get it.
    pub(super) fn ended(&mut self) {
        self.ended = true;
    }

    /// Notes the fabric of the next attempt. Another fabric's service judges waits by what it has
    /// seen itself, so a wait begins anew there.
    pub(super) fn goes_over(&mut self, fabric: FabricKind) {
        if self.fabric.replace(fabric) != Some(fabric) {
            self.starved_since = None;
        }
    }

    /// Returns the positions of the blocks that were not handed out.
    pub(super) fn missing_range(&self) -> Range<usize> {
        self.handed_out..self.blocks.len()
    }

    /// Returns the blocks that were not handed out.
    pub(crate) fn missing(&self) -> &[BlockId] {
        &self.blocks[self.handed_out..]
    }

    /// Returns the missing blocks that the next attempt asks for.
    pub(super) fn wanted(&self) -> &[BlockId] {
        &self.blocks[self.handed_out..self.until]
    }

    /// Returns whether the attempt's blocks are the last ones of the request.
    pub(super) fn is_last_part(&self) -> bool {
        self.until == self.blocks.len()
    }

    /// Notes the lengths of the `wanted` blocks. Returns true if a block is larger than `room`, so
    /// that the attempt asks for too much.
    pub(super) fn leave_out(&mut self, lengths: &[u64], room: u64) -> bool {
        let at = (self.handed_out..).zip(lengths.iter().copied());
        let mut found: VecDeque<_> = at.filter(|(_, bytes)| *bytes > room).collect();
        let Some((first, _)) = found.front() else {
            return false;
        };
        self.until = *first;
        // The blocks already known as too large come after `wanted`.
        found.append(&mut self.too_large);
        self.too_large = found;
        true
    }

    /// Returns the bytes of the next block, if the arena cannot hold it. The block then counts as
    /// handed out.
    pub(super) fn next_too_large(&mut self) -> Option<u64> {
        let at = self.handed_out;
        let (_, bytes) = *self.too_large.front().filter(|(next, _)| *next == at)?;
        self.too_large.pop_front();
        self.handed_out += 1;
        let next = self.too_large.front();
        self.until = next.map_or(self.blocks.len(), |(at, _)| *at);
        Some(bytes)
    }
}

impl Drop for FetchRequest {
    fn drop(&mut self) {
        if !self.ended {
            self.ended();
            let detail = "a thread that worked on the request panicked".to_owned();
            self.sink
                .failed(self.id, self.missing_range(), LOST, detail);
            self.sink.lost(self.endpoint);
        }
    }
}

/// The time for which the server has had no room for a request.
#[derive(Debug, Default)]
pub(crate) struct BusyWait {
    since: Option<Instant>,
    /// True if the request was first in its line and must now be sent before the others.
    pub(super) is_called: bool,
}

impl BusyWait {
    /// Notes that the request waits for room at the server. The time counts from the first call.
    pub(super) fn waits(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Returns whether the request has waited for `timeout`.
    pub(super) fn has_waited(&self, now: Instant, timeout: Duration) -> bool {
        self.since
            .is_some_and(|since| now.duration_since(since) >= timeout)
    }

    /// Notes that the server has accepted the request.
    pub(super) fn accepted(&mut self) {
        *self = Self::default();
    }
}

/// The faults of a request, counted by fabric.
#[derive(Default)]
pub(crate) struct RequestFaults([u8; FabricKind::ALL.len()]);

/// The next step after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Send it again on the best fabric that is not in back-off, which may be the same one.
    Again,
    /// Put this route in back-off, and send it on another fabric if there is one.
    OtherFabric,
    /// Fail the request.
    GiveUp,
}

impl RequestFaults {
    /// Counts a fault and returns the next step. The third fault on one fabric ends the request.
    pub(crate) fn count(&mut self, fabric: FabricKind) -> NextStep {
        let of_this = &mut self.0[fabric.index()];
        *of_this += 1;
        match of_this {
            1 => NextStep::Again,
            2 => NextStep::OtherFabric,
            _ => NextStep::GiveUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::EndpointCounters;
    use faro_sync::clock;

    #[test]
    fn a_wait_for_memory_begins_anew_on_another_fabric() {
        let sink = CompletionSink::new(Arc::new(EndpointCounters::default()));
        let timeout = Duration::from_secs(1);
        let mut request = FetchRequest::new(1, 7, Vec::new(), timeout, sink);
        request.goes_over(FabricKind::Verbs);
        let since = Some(clock::now());
        request.starved_since = since;
        request.goes_over(FabricKind::Verbs);
        assert_eq!(request.starved_since, since, "requeued on the same one");
        request.goes_over(FabricKind::Tcp);
        assert_eq!(request.starved_since, None);
        request.ended();
    }
}
