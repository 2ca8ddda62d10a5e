//! What a caller wants, and what was handed out of it.

use super::completion_sink::CompletionSink;
use faro_fabric::{EndpointId, FabricKind};
use faro_wire::codes::FetchErrorCode;
use faro_wire::BlockId;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A caller's request for blocks of one peer. It is ended once, by its last blocks or by an error;
/// if it is dropped before, because a thread panicked, the drop ends it with an error.
pub(crate) struct Request {
    /// The caller's name for it.
    pub(crate) id: u64,
    /// The peer that has the blocks.
    pub(crate) endpoint: EndpointId,
    pub(crate) blocks: Vec<BlockId>,
    /// The first `handed_out` blocks were handed out, or an error for them.
    pub(crate) handed_out: usize,
    /// Attempts ask for the blocks before this one only.
    until: usize,
    /// Blocks that the arena cannot hold, by position, with their bytes. All come after
    /// `handed_out`.
    too_large: VecDeque<(usize, u64)>,
    /// How long it may go without progress.
    pub(crate) idle_timeout: Duration,
    /// The server has to write the bytes: what it offered to be read was gone.
    pub(crate) writes_only: bool,
    pub(crate) faults: Faults,
    pub(crate) busy: Busy,
    /// The buffers of an attempt were taken from its silent server, and no bytes have arrived since.
    pub(super) was_taken: bool,
    sink: Arc<CompletionSink>,
    /// The caller has its last completion.
    ended: bool,
}

impl Request {
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
            until,
            too_large: VecDeque::new(),
            idle_timeout,
            writes_only: false,
            faults: Faults::default(),
            busy: Busy::default(),
            was_taken: false,
            sink,
            ended: false,
        }
    }

    /// The caller has, or is about to get, its last completion.
    pub(super) fn ended(&mut self) {
        self.ended = true;
    }

    /// The positions of the blocks that were not handed out.
    pub(super) fn missing_range(&self) -> Range<usize> {
        self.handed_out..self.blocks.len()
    }

    /// The blocks that were not handed out.
    pub(crate) fn missing(&self) -> &[BlockId] {
        &self.blocks[self.handed_out..]
    }

    /// Those of them that an attempt asks for.
    pub(super) fn wanted(&self) -> &[BlockId] {
        &self.blocks[self.handed_out..self.until]
    }

    /// Nothing comes after what attempts ask for.
    pub(super) fn is_last_part(&self) -> bool {
        self.until == self.blocks.len()
    }

    /// The lengths of `wanted` are known. True: some block is above `room`, so that the attempt
    /// asks for too much.
    pub(super) fn leave_out(&mut self, lengths: &[u64], room: u64) -> bool {
        let at = (self.handed_out..).zip(lengths.iter().copied());
        let mut found: VecDeque<_> = at.filter(|(_, bytes)| *bytes > room).collect();
        let Some((first, _)) = found.front() else {
            return false;
        };
        self.until = *first;
        // Those that are known come after `wanted`.
        found.append(&mut self.too_large);
        self.too_large = found;
        true
    }

    /// The bytes of the next block, if it is one that the arena cannot hold. It counts as handed
    /// out.
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

impl Drop for Request {
    fn drop(&mut self) {
        if !self.ended {
            self.ended();
            let detail = "a thread that worked on the request panicked".to_owned();
            let code = FetchErrorCode::ConnectionLost;
            self.sink
                .failed(self.id, self.missing_range(), code, detail);
            self.sink.lost(self.endpoint);
        }
    }
}

/// How long the server has had no room for a request.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    since: Option<Instant>,
    /// It was first in the line and goes to the server now, past the others.
    pub(super) is_called: bool,
}

impl Busy {
    /// It waits for room at the server from now on, if it did not before.
    pub(super) fn waits(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// It has waited for `timeout`.
    pub(super) fn has_waited(&self, now: Instant, timeout: Duration) -> bool {
        self.since
            .is_some_and(|since| now.duration_since(since) >= timeout)
    }

    /// The server has taken it.
    pub(super) fn taken(&mut self) {
        *self = Self::default();
    }
}

/// Faults of a request that was under way, counted by fabric.
#[derive(Default)]
pub(crate) struct Faults([u8; FabricKind::ALL.len()]);

/// What follows from a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The best fabric that is not in back-off, which may be the same one.
    Again,
    /// This route's back-off begins; another fabric, if there is one.
    OtherFabric,
    /// The request fails.
    GiveUp,
}

impl Faults {
    /// Counts one more. The third on one fabric ends the request.
    pub(crate) fn count(&mut self, fabric: FabricKind) -> Next {
        let of_this = &mut self.0[fabric.index()];
        *of_this += 1;
        match of_this {
            1 => Next::Again,
            2 => Next::OtherFabric,
            _ => Next::GiveUp,
        }
    }
}
