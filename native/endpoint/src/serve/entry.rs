//! A progress thread's state of one fetch that it serves.

use super::job::ServeJob;
use super::stage::Stage;
use faro_fabric::{ConnectionId, EndpointId};
use std::time::{Duration, Instant};

/// One fetch.
pub(super) struct FetchEntry {
    pub(super) connection: ConnectionId,
    pub(super) endpoint: EndpointId,
    /// The client's id of it.
    pub(super) request: u64,
    pub(super) stage: Stage<Box<ServeJob>>,
    /// Writes posted that have not ended.
    pub(super) writes: usize,
    /// Maximum time without progress: the client's time, but no longer than this server's own.
    pub(super) idle_timeout: Duration,
    pub(super) deadline: Instant,
    /// The time for which it is in `ServeService::deadlines`.
    pub(super) look_at: Instant,
    /// Bytes charged to the budget.
    pub(super) bytes: usize,
}

impl FetchEntry {
    pub(super) fn progress(&mut self, now: Instant) {
        self.deadline = now + self.idle_timeout;
    }

    /// Returns the number of running turns and posted writes, as the schedule counts them. A turn
    /// that waits for memory has its permit.
    pub(super) fn under_way(&self) -> usize {
        let turn = matches!(self.stage, Stage::Running { .. } | Stage::Starved(_));
        self.writes + usize::from(turn)
    }
}
