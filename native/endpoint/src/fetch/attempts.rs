//! The attempts of one progress thread, and when each of them is looked at.

use super::attempt::Attempt;
use crate::deadlines::Deadlines;
use crate::limits::MEMORY_WAIT;
use faro_sync::{clock, HashMap};
use std::time::Instant;

/// Attempts by id on the wire, which is different for each attempt.
pub(super) struct Attempts {
    by_id: HashMap<u64, Attempt>,
    /// The current attempt's id on the wire, by the request's id.
    by_request: HashMap<u64, u64>,
    /// Each attempt has an entry at its `look_at`.
    deadlines: Deadlines,
    next_id: u64,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            by_id: HashMap::default(),
            by_request: HashMap::default(),
            deadlines: Deadlines::default(),
            next_id: 1,
        }
    }
}

impl Attempts {
    /// Adds an attempt, and returns its id on the wire.
    pub(super) fn begin(&mut self, attempt: Attempt) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.deadlines.put(attempt.look_at, id);
        let before = self.by_request.insert(attempt.request.id, id);
        debug_assert_eq!(before, None, "a request has one attempt at a time");
        self.by_id.insert(id, attempt);
        id
    }

    /// Removes an attempt that ends.
    pub(super) fn end(&mut self, id: u64) -> Option<Attempt> {
        let attempt = self.by_id.remove(&id)?;
        self.deadlines.remove(attempt.look_at, id);
        self.by_request.remove(&attempt.request.id);
        Some(attempt)
    }

    /// Takes an attempt out, for work that needs the service as well. `put_in` must follow.
    pub(super) fn take_out(&mut self, id: u64) -> Option<Attempt> {
        self.by_id.remove(&id)
    }

    /// Ends a `take_out`.
    pub(super) fn put_in(&mut self, id: u64, attempt: Attempt) {
        debug_assert_eq!(self.of_request(attempt.request.id), Some(id));
        self.by_id.insert(id, attempt);
    }

    pub(super) fn get(&self, id: u64) -> Option<&Attempt> {
        self.by_id.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Attempt> {
        self.by_id.get_mut(&id)
    }

    /// Returns the id of the current attempt at a request.
    pub(super) fn of_request(&self, request: u64) -> Option<u64> {
        self.by_request.get(&request).copied()
    }

    /// Returns all attempts, with their ids, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Attempt)> {
        self.by_id.iter().map(|(id, attempt)| (*id, attempt))
    }

    /// Returns all attempts, in no order.
    pub(super) fn values(&self) -> impl Iterator<Item = &Attempt> {
        self.by_id.values()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Returns an attempt whose time to be looked at has come. `look_at` or `end` must follow.
    pub(super) fn due(&mut self, now: Instant) -> Option<u64> {
        self.deadlines.due(now)
    }

    /// Looks at a due attempt again at that time.
    pub(super) fn look_at(&mut self, id: u64, at: Instant) {
        self.deadlines.put(at, id);
        if let Some(attempt) = self.by_id.get_mut(&id) {
            attempt.look_at = at;
        }
    }

    /// Notes that an attempt waits for arena memory. It has no deadline until it has the memory.
    pub(super) fn starve(&mut self, id: u64) {
        let starving = self.by_id.get_mut(&id);
        let Some(attempt) = starving.filter(|a| a.starved_since.is_none()) else {
            return;
        };
        let now = clock::now();
        attempt.starved_since = Some(now);
        attempt.request.starved_since.get_or_insert(now);
        let at = now + MEMORY_WAIT.min(attempt.request.idle_timeout / 2);
        if at < attempt.look_at {
            self.deadlines.remove(attempt.look_at, id);
            attempt.look_at = at;
            self.deadlines.put(at, id);
        }
    }
}
