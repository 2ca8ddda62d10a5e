//! The fetches that one progress thread serves: by serial number and by the client's id, when each is
//! looked at, and the memory that their requests take.

use super::budget::ServeBudget;
use super::job::ServeJob;
use super::stage::Stage;
use crate::deadlines::Deadlines;
use crate::memory::Memory;
use crate::quota_key::QuotaKey;
use faro_fabric::{ConnectionId, EndpointId};
use faro_sync::HashMap;
use faro_wire::WireError;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One fetch.
pub(super) struct ServedFetch {
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
    /// The time of its entry in `ServedFetches::deadlines`.
    pub(super) look_at: Instant,
    /// Bytes charged to the budget.
    pub(super) bytes: usize,
}

impl ServedFetch {
    pub(super) fn progress(&mut self, now: Instant) {
        self.deadline = now + self.idle_timeout;
    }

    /// Returns the number of running turns and posted writes, as the schedule counts them.
    pub(super) fn under_way(&self) -> usize {
        self.writes + turns_under_way(&self.stage)
    }
}

/// Returns the number of running turns, as the schedule counts them. A turn that waits for memory has its permit.
pub(super) fn turns_under_way<J>(stage: &Stage<J>) -> usize {
    usize::from(matches!(stage, Stage::Running { .. } | Stage::Starved(_)))
}

/// The fetches of one progress thread.
pub(super) struct ServedFetches {
    by_serial: HashMap<u64, ServedFetch>,
    /// The serial numbers of those that clients may still name.
    by_request: HashMap<(ConnectionId, u64), u64>,
    /// Each fetch has an entry at its `look_at`.
    deadlines: Deadlines,
    budget: ServeBudget,
    next_serial: u64,
}

impl ServedFetches {
    pub(super) fn new(memory: &Memory) -> Self {
        let (limit, of_all) = (memory.request_limit, Arc::clone(&memory.request_bytes));
        Self {
            by_serial: HashMap::default(),
            by_request: HashMap::default(),
            deadlines: Deadlines::default(),
            budget: ServeBudget::new(limit as usize, of_all),
            next_serial: 0,
        }
    }

    /// Takes memory for a request, and returns a serial number for it. `insert` or `abandon` must
    /// follow.
    ///
    /// # Errors
    /// Fails if the bound of the requests' memory is reached.
    pub(super) fn begin(&mut self, peer: QuotaKey, bytes: usize) -> Result<u64, String> {
        if !self.budget.take(peer, bytes) {
            let (held, limit) = (self.by_request.len(), self.budget.limit() >> 20);
            return Err(format!(
                "{held} requests are being served, with up to {limit} MiB of memory"
            ));
        }
        self.next_serial += 1;
        Ok(self.next_serial - 1)
    }

    /// Returns the memory of a request that is not served.
    pub(super) fn abandon(&mut self, endpoint: EndpointId, bytes: usize) {
        self.budget.give(endpoint, bytes);
    }

    pub(super) fn insert(&mut self, serial: u64, entry: ServedFetch) {
        self.deadlines.put(entry.look_at, serial);
        let key = (entry.connection, entry.request);
        let before = self.by_request.insert(key, serial);
        debug_assert_eq!(before, None, "a client's id names one fetch");
        self.by_serial.insert(serial, entry);
    }

    /// Removes a fetch, with all that is noted of it.
    pub(super) fn remove(&mut self, serial: u64) -> Option<ServedFetch> {
        let entry = self.by_serial.remove(&serial)?;
        self.deadlines.remove(entry.look_at, serial);
        self.budget.give(entry.endpoint, entry.bytes);
        let key = (entry.connection, entry.request);
        // A draining fetch is not listed, and its client may have used the id again.
        if self.by_request.get(&key) == Some(&serial) {
            self.by_request.remove(&key);
        }
        Some(entry)
    }

    /// Makes the client's id of a fetch free for another one, and returns the fetch.
    pub(super) fn unlist(&mut self, serial: u64) -> Option<&mut ServedFetch> {
        let entry = self.by_serial.get_mut(&serial)?;
        let listed = self.by_request.remove(&(entry.connection, entry.request));
        debug_assert_eq!(listed, Some(serial));
        Some(entry)
    }

    /// Returns the serial number of the fetch that a client names.
    pub(super) fn serial(&self, key: (ConnectionId, u64)) -> Option<u64> {
        self.by_request.get(&key).copied()
    }

    pub(super) fn get_mut(&mut self, serial: u64) -> Option<&mut ServedFetch> {
        self.by_serial.get_mut(&serial)
    }

    /// Takes more memory for a fetch.
    ///
    /// # Errors
    /// Fails if its peer alone then has more than the bound.
    pub(super) fn charge(&mut self, serial: u64, bytes: usize) -> Result<(), WireError> {
        let Some(entry) = self.by_serial.get_mut(&serial) else {
            return Ok(());
        };
        entry.bytes += bytes;
        if self.budget.add(entry.endpoint, bytes) {
            return Ok(());
        }
        Err(WireError::TooLarge {
            what: "bytes of a peer's requests",
            got: bytes as u64,
            limit: self.budget.limit() as u64,
        })
    }

    /// Returns the serial numbers of the fetches on a connection.
    pub(super) fn on(&self, connection: ConnectionId) -> impl Iterator<Item = u64> + '_ {
        let entries = self.by_serial.iter();
        let on_it = entries.filter(move |(_, entry)| entry.connection == connection);
        on_it.map(|(serial, _)| *serial)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_serial.is_empty()
    }

    /// Returns a fetch whose time to be looked at has come. `look_again` or `remove` must follow.
    pub(super) fn due(&mut self, now: Instant) -> Option<u64> {
        self.deadlines.due(now)
    }

    /// Looks at a due fetch again at its deadline.
    pub(super) fn look_again(&mut self, serial: u64) {
        if let Some(entry) = self.by_serial.get_mut(&serial) {
            entry.look_at = entry.deadline;
            self.deadlines.put(entry.look_at, serial);
        }
    }

    /// Removes all. Returns those whose clients wait for an answer, as their clients name them.
    pub(super) fn clear(&mut self) -> Vec<(ConnectionId, u64)> {
        let entries = std::mem::take(&mut self.by_serial);
        self.deadlines.clear();
        self.budget.clear();
        // A client's own reads end with the connection.
        let is_offered = |serial: &u64| {
            let entry = entries.get(serial);
            entry.is_some_and(|entry| matches!(entry.stage, Stage::Offered))
        };
        let listed = std::mem::take(&mut self.by_request).into_iter();
        let waiting = listed.filter(|(_, serial)| !is_offered(serial));
        waiting.map(|(key, _)| key).collect()
    }
}
