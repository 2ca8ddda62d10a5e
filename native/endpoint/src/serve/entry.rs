//! What a progress thread knows of one fetch that it serves.

use super::job::Job;
use super::stage::Stage;
use faro_fabric::{ConnectionId, EndpointId};
use std::time::{Duration, Instant};

/// One fetch.
pub(super) struct Entry {
    pub(super) connection: ConnectionId,
    pub(super) endpoint: EndpointId,
    /// The client's id of it.
    pub(super) request: u64,
    pub(super) stage: Stage<Box<Job>>,
    /// Writes posted that have not ended.
    pub(super) writes: usize,
    /// How long the client waits without progress.
    pub(super) idle_timeout: Duration,
    pub(super) deadline: Instant,
    /// The time for which it is in `ServeService::deadlines`.
    pub(super) look_at: Instant,
    /// Of the budget.
    pub(super) bytes: usize,
}

impl Entry {
    pub(super) fn progress(&mut self, now: Instant) {
        self.deadline = now + self.idle_timeout;
    }

    /// Turns and writes under way, as the schedule counts them.
    pub(super) fn under_way(&self) -> usize {
        self.writes + usize::from(matches!(self.stage, Stage::Running { .. }))
    }
}
