//! When the arena last had memory for attempts, and when something last arrived for any.

use crate::limits::{MEMORY_WAIT_BYTES, RELIEF_WAIT, TICK};
use faro_sync::clock;
use std::time::Instant;

/// The times by which a shortage of memory is judged.
pub(super) struct Shortage {
    /// The time of the last arrival for any attempt.
    last_progress: Instant,
    /// The time at which memory last returned to the arena after a lease was refused.
    memory_returned: Instant,
    /// The time at which enough bytes had arrived, on all fabrics together, and their number then.
    enough_arrived: (Instant, u64),
    /// The time at which an attempt in line last found no memory.
    short_at: Instant,
    /// The time since which requests of other fabrics have waited for memory.
    others_wait_since: Option<Instant>,
    /// True if the service, in this turn of its thread, has returned memory that a connection had
    /// no room for.
    gave_back: bool,
    /// The value of `gave_back` in the last turn: a report of returned memory may be about that
    /// memory.
    own_return: bool,
}

impl Shortage {
    pub(super) fn new() -> Self {
        let now = clock::now();
        Self {
            last_progress: now,
            memory_returned: now,
            enough_arrived: (now, 0),
            short_at: now,
            others_wait_since: None,
            gave_back: false,
            own_return: false,
        }
    }

    /// A turn of the service's thread begins.
    pub(super) fn begin_turn(&mut self) {
        self.own_return = std::mem::take(&mut self.gave_back);
    }

    /// Notes that the service has returned memory that a connection had no room for.
    pub(super) fn gave_back(&mut self) {
        self.gave_back = true;
    }

    /// Notes a report that memory has returned to the arena, unless it may be about the service's
    /// own.
    pub(super) fn on_memory(&mut self) {
        if !self.own_return {
            self.memory_returned = clock::now();
        }
    }

    /// Notes that something has arrived for an attempt.
    pub(super) fn progress(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// Notes the bytes that have arrived so far, on all fabrics.
    pub(super) fn arrived(&mut self, bytes: u64, now: Instant) {
        if bytes - self.enough_arrived.1 >= MEMORY_WAIT_BYTES {
            self.enough_arrived = (now, bytes);
        }
    }

    /// Notes that an attempt in line has found no memory.
    pub(super) fn found_none(&mut self) {
        self.short_at = clock::now();
    }

    /// Notes whether requests of other fabrics wait for memory.
    pub(super) fn others_wait(&mut self, they_wait: bool, now: Instant) {
        let since = self.others_wait_since.unwrap_or(now);
        self.others_wait_since = they_wait.then_some(since);
    }

    /// Returns the time since which requests of other fabrics have waited for memory.
    pub(super) fn others_wait_since(&self) -> Option<Instant> {
        self.others_wait_since
    }

    /// Returns whether something has arrived for an attempt within the last tick.
    pub(super) fn progressed_lately(&self, now: Instant) -> bool {
        now.duration_since(self.last_progress) < TICK
    }

    /// Returns the time at which memory last returned to the arena.
    pub(super) fn memory_returned(&self) -> Instant {
        self.memory_returned
    }

    /// Returns the time at which the last [`MEMORY_WAIT_BYTES`] had arrived.
    pub(super) fn enough_arrived(&self) -> Instant {
        self.enough_arrived.0
    }

    /// Returns whether no attempt in line has found no memory for a while.
    pub(super) fn is_over(&self) -> bool {
        clock::now().duration_since(self.short_at) >= RELIEF_WAIT
    }
}
