//! The turns that begin: each needs a permit of the schedule and, except for a job's first one, memory.

use super::service::ServeService;
use super::stage::PermittedStep;
use crate::limits::WRITE_WINDOW;
use crate::memory::NoLease;
use faro_fabric::EndpointId;
use faro_sync::clock;

impl ServeService {
    /// Queues the job's next turn if there is something to do and room to do it.
    pub(super) fn advance(&mut self, serial: u64) {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        if entry.writes < WRITE_WINDOW && entry.stage.queue(|job| job.can_turn()) {
            let due = self.schedule.submit(entry.endpoint, serial, clock::now());
            self.start_turns(due);
        }
    }

    /// Starts the turns of fetches that have their permit.
    pub(super) fn start_turns(&mut self, due: Vec<u64>) {
        for serial in due {
            let Some(entry) = self.entries.get_mut(&serial) else {
                continue;
            };
            match entry.stage.on_permit(|job| !job.is_new()) {
                PermittedStep::Begins(mut job) => {
                    job.may_lease(!self.starved.must_wait(entry.endpoint));
                    self.io.submit(job, &self.inbox);
                }
                PermittedStep::Waits => self.starved.push(entry.endpoint, serial),
                PermittedStep::Nothing => {}
            }
        }
        self.begin_starved();
    }

    /// Begins the turns that wait for memory, in order, as far as memory allows. After the arena
    /// has refused, the next return of memory calls `on_memory`; if the peer's share was the
    /// reason, the next end of its writes does.
    pub(super) fn begin_starved(&mut self) {
        while let Some((_, serial)) = self.starved.first().filter(|_| !self.arena_is_empty) {
            let (entry, memory) = (self.entries.get_mut(&serial), &self.memory);
            let reserved = entry.map(|entry| entry.stage.on_memory(|job| job.reserve(memory)));
            match reserved {
                Some(Ok(Some(mut job))) => {
                    self.starved.first_began();
                    job.may_lease(false);
                    self.io.submit(job, &self.inbox);
                }
                // A fetch that has ended has removed its turn.
                None | Some(Ok(None)) => self.starved.first_began(),
                Some(Err(NoLease::HasItsShare)) => self.starved.first_has_its_share(),
                Some(Err(NoLease::Arena(_))) => self.arena_is_empty = true,
            }
        }
    }

    /// Notes that pages in flight to the peer are free.
    pub(super) fn has_room(&mut self, peer: EndpointId) {
        self.starved.has_room(peer);
        self.begin_starved();
    }

    /// Turns and writes of a peer have ended: others may be due.
    pub(super) fn ended(&mut self, endpoint: EndpointId, pieces: usize) {
        if pieces > 0 {
            let due = self.schedule.ended(endpoint, pieces, clock::now());
            self.start_turns(due);
        }
    }
}
