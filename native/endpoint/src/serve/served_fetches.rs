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
    /// The peers and bytes of jobs that other threads still have, though their fetches have ended or have been
    /// stopped: a peer that asks and cancels gets no more memory than one that waits.
    away: HashMap<u64, (EndpointId, usize)>,
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
            away: HashMap::default(),
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
        let mut entry = self.by_serial.remove(&serial)?;
        self.deadlines.remove(entry.look_at, serial);
        match entry.stage {
            Stage::Running { .. } => note_away(&mut self.away, serial, &mut entry),
            Stage::Idle(_)
            | Stage::Queued(_)
            | Stage::Starved(_)
            | Stage::Draining
            | Stage::Offered => self.budget.give(entry.endpoint, entry.bytes),
        }
        let key = (entry.connection, entry.request);
        // A draining fetch is not listed, and its client may have used the id again.
        if self.by_request.get(&key) == Some(&serial) {
            self.by_request.remove(&key);
        }
        Some(entry)
    }

    /// Stops a fetch with writes under way: its client's id is free for another one, and nothing more is posted for it.
    /// Returns its stage before.
    pub(super) fn stop(&mut self, serial: u64) -> Option<Stage<Box<ServeJob>>> {
        self.unlist(serial);
        let entry = self.by_serial.get_mut(&serial)?;
        let stage = entry.stage.on_stop();
        if matches!(stage, Stage::Running { .. }) {
            note_away(&mut self.away, serial, entry);
        }
        Some(stage)
    }

    /// Returns the memory of a job that has come back, or is lost, after its fetch had ended or was stopped.
    pub(super) fn came_back(&mut self, serial: u64) {
        if let Some((peer, bytes)) = self.away.remove(&serial) {
            self.budget.give(peer, bytes);
        }
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
        self.away.clear();
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

/// Keeps the bytes of a fetch until its job comes back.
fn note_away(away: &mut HashMap<u64, (EndpointId, usize)>, serial: u64, entry: &mut ServedFetch) {
    let bytes = std::mem::take(&mut entry.bytes);
    away.insert(serial, (entry.endpoint, bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 64 << 10;

    fn fetches() -> ServedFetches {
        ServedFetches {
            by_serial: HashMap::default(),
            by_request: HashMap::default(),
            deadlines: Deadlines::default(),
            budget: ServeBudget::new(LIMIT, Arc::default()),
            away: HashMap::default(),
            next_serial: 0,
        }
    }

    /// Adds a fetch of peer 1 whose turn runs, if there is room for it.
    fn run(fetches: &mut ServedFetches, request: u64, writes: usize) -> Option<u64> {
        let bytes = LIMIT / 8;
        let serial = fetches.begin(QuotaKey::known(1), bytes).ok()?;
        let now = faro_sync::clock::now();
        let entry = ServedFetch {
            connection: ConnectionId(0),
            endpoint: 1,
            request,
            stage: Stage::running(),
            writes,
            idle_timeout: Duration::from_secs(1),
            deadline: now,
            look_at: now,
            bytes,
        };
        fetches.insert(serial, entry);
        Some(serial)
    }

    #[test]
    fn a_job_that_another_thread_has_keeps_its_memory() {
        let mut fetches = fetches();
        let mut ended = Vec::new();
        // Its peer asks and cancels at once.
        while let Some(serial) = run(&mut fetches, 0, 0) {
            fetches.remove(serial);
            ended.push(serial);
            assert!(ended.len() <= 8, "the bound holds");
        }
        assert!(!ended.is_empty());
        for serial in &ended {
            fetches.came_back(*serial);
            fetches.came_back(*serial);
        }
        // Stopped with a write under way, which ends first.
        let again: Vec<u64> = (0..ended.len() as u64)
            .map(|request| run(&mut fetches, request, 1).unwrap())
            .collect();
        for serial in &again {
            assert!(matches!(fetches.stop(*serial), Some(Stage::Running { .. })));
            fetches.remove(*serial);
        }
        assert_eq!(run(&mut fetches, 0, 0), None);
        again.iter().for_each(|serial| fetches.came_back(*serial));
        assert!(run(&mut fetches, 0, 0).is_some());
    }
}
