//! The fetches that one progress thread serves.

use super::budget::ServeBudget;
use super::entry::FetchEntry;
use super::exposed::ExposedPages;
use super::memory_queue::MemoryQueue;
use super::stage::Stage;
use super::work::ReturnedWork;
use super::IoPool;
use crate::counters::EndpointCounters;
use crate::deadlines::Deadlines;
use crate::limits::RECALLED_PAGES;
use crate::memory::Memory;
use crate::net::{ClosedConnection, Inbox, MessageSource, Net, ProgressService};
use crate::schedule::ServerQueue;
use crossbeam_channel::Receiver;
use faro_fabric::{ConnectionId, EndpointId, Outcome};
use faro_sync::{clock, HashMap};
use faro_wire::message::{Failed, FailureCode, ToClient, ToServer};
use faro_wire::WireError;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The server's side of all fetches of one progress thread.
pub(crate) struct ServeService {
    pub(super) io: Arc<IoPool>,
    /// Inbox to which I/O threads return jobs.
    pub(super) inbox: Inbox<ReturnedWork>,
    returned: Receiver<ReturnedWork>,
    pub(super) counters: Arc<EndpointCounters>,
    pub(super) memory: Arc<Memory>,
    pub(super) exposed: ExposedPages,
    /// The shortage of the arena for which pages of `exposed` were last revoked.
    shortage: u64,
    /// The recall of everything for which `exposed` was last revoked.
    #[cfg(feature = "research")]
    recall: u64,
    /// Turns that wait for their peer's permit.
    pub(super) schedule: ServerQueue,
    /// Jobs by serial number.
    pub(super) entries: HashMap<u64, FetchEntry>,
    /// The serial numbers of those that clients may still name.
    pub(super) by_request: HashMap<(ConnectionId, u64), u64>,
    pub(super) budget: ServeBudget,
    pub(super) deadlines: Deadlines,
    /// Turns that have their permit and wait for memory.
    pub(super) starved: MemoryQueue,
    /// The arena has refused memory to the first of them: it is asked again when some has returned.
    pub(super) arena_is_empty: bool,
    /// The time at which each connected peer last took bytes.
    pub(super) taken: HashMap<EndpointId, Instant>,
    /// Time for which a peer may take no bytes, whatever it asks for.
    pub(super) longest_wait: Duration,
    pub(super) next_serial: u64,
}

impl ServeService {
    pub(crate) fn new(
        io: Arc<IoPool>,
        (inbox, returned): (Inbox<ReturnedWork>, Receiver<ReturnedWork>),
        counters: Arc<EndpointCounters>,
        memory: Arc<Memory>,
        schedule: ServerQueue,
        longest_wait: Duration,
    ) -> Self {
        let budget = ServeBudget::new(
            memory.request_limit as usize,
            Arc::clone(&memory.request_bytes),
        );
        Self {
            io,
            inbox,
            returned,
            counters,
            shortage: memory.shortages(),
            #[cfg(feature = "research")]
            recall: memory.recalls(),
            memory,
            exposed: ExposedPages::default(),
            schedule,
            entries: HashMap::default(),
            by_request: HashMap::default(),
            budget,
            deadlines: Deadlines::default(),
            starved: MemoryQueue::default(),
            arena_is_empty: false,
            taken: HashMap::default(),
            longest_wait,
            next_serial: 0,
        }
    }

    /// Ends a fetch that the client can no longer name: all its bytes are in posted writes.
    pub(super) fn drain(&mut self, serial: u64) {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        self.by_request.remove(&(entry.connection, entry.request));
        entry.stage.on_last_turn();
        let endpoint = entry.endpoint;
        if entry.writes == 0 {
            self.take_entry(serial);
        }
        self.ended(endpoint, 1);
    }

    /// Removes an entry, and what the service has noted of it.
    fn take_entry(&mut self, serial: u64) -> Option<FetchEntry> {
        let entry = self.entries.remove(&serial)?;
        self.deadlines.remove(entry.look_at, serial);
        self.budget.give(entry.endpoint, entry.bytes);
        Some(entry)
    }

    pub(super) fn remove(&mut self, serial: u64) -> Option<FetchEntry> {
        let entry = self.take_entry(serial)?;
        let key = (entry.connection, entry.request);
        // A draining fetch is not listed, and its client may have used the id again.
        if self.by_request.get(&key) == Some(&serial) {
            self.by_request.remove(&key);
        }
        match entry.stage {
            Stage::Queued(_) => self.schedule.withdraw(serial),
            Stage::Starved(_) => self.starved.remove(entry.endpoint, serial),
            Stage::Idle(_) | Stage::Running { .. } | Stage::Draining | Stage::Offered => {}
        }
        self.ended(entry.endpoint, entry.under_way());
        Some(entry)
    }

    fn serials_of(&self, which: impl Fn(&FetchEntry) -> bool) -> Vec<u64> {
        let entries = self.entries.iter().filter(|(_, entry)| which(entry));
        entries.map(|(serial, _)| *serial).collect()
    }
}

impl ProgressService for ServeService {
    type Message = ToServer;

    fn on_message(
        &mut self,
        net: &mut Net,
        source: MessageSource,
        id: u64,
        message: ToServer,
    ) -> Result<(), WireError> {
        match message {
            ToServer::Fetch(fetch) => self.fetch(net, source, id, fetch),
            ToServer::MoreBuffers(more) => self.more_buffers((source.connection, id), more),
            ToServer::Cancel => {
                self.cancel(net, (source.connection, id));
                Ok(())
            }
        }
    }

    fn on_commands(&mut self, net: &mut Net) {
        while let Ok(returned) = self.returned.try_recv() {
            match returned {
                ReturnedWork::Turned(job, turn) => self.on_turn(net, job, turn),
                ReturnedWork::Lost(serial) => {
                    if let Some(entry) = self.remove(serial) {
                        let (connection, request) = (entry.connection, entry.request);
                        let detail = "a thread of the server panicked".to_owned();
                        fail(net, connection, request, FailureCode::Internal, detail);
                    }
                }
            }
        }
    }

    fn on_write_ended(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        serial: u64,
        outcome: &Outcome,
    ) {
        let peer = net.endpoint_of(connection);
        if let Some(peer) = peer {
            if *outcome == Outcome::Done {
                self.taken.insert(peer, clock::now());
            }
            // The write may be of a fetch that has ended.
            self.starved.has_room(peer);
        }
        let Some(entry) = self.entries.get_mut(&serial) else {
            return self.begin_starved();
        };
        entry.writes = entry.writes.saturating_sub(1);
        let endpoint = entry.endpoint;
        if *outcome == Outcome::Done {
            let now = clock::now();
            entry.progress(now);
            self.schedule.progress(endpoint, now);
        }
        if entry.writes == 0 && matches!(entry.stage, Stage::Draining) {
            self.take_entry(serial);
        }
        self.advance(serial);
        self.ended(endpoint, 1);
        self.begin_starved();
    }

    fn on_closed(&mut self, net: &mut Net, closed: &ClosedConnection<'_>) {
        self.exposed.revoke(net, closed.connection);
        for serial in self.serials_of(|entry| entry.connection == closed.connection) {
            self.remove(serial);
        }
        if let Some(peer) = closed.endpoint {
            self.taken.remove(&peer);
            self.memory.forget_accounts();
        }
        self.begin_starved();
    }

    fn on_memory(&mut self, _net: &mut Net) {
        self.arena_is_empty = false;
        self.begin_starved();
    }

    fn tick(&mut self, net: &mut Net, now: Instant) {
        self.memory.look_again();
        // Bytes of a peer may have become free on another fabric, and its share may have grown.
        self.starved.all_have_room();
        self.arena_is_empty = false;
        self.begin_starved();
        let due = self.schedule.tick(now);
        self.start_turns(due);
        #[cfg(feature = "research")]
        if self.recall != self.memory.recalls() {
            self.recall = self.memory.recalls();
            self.exposed.revoke_all(net);
        }
        let shortages = self.memory.shortages();
        if shortages != self.shortage {
            self.shortage = shortages;
            let pages = self.memory.cache.shown_pages(RECALLED_PAGES);
            self.exposed.revoke_pages(net, &pages);
        }
        self.remove_overdue(net, now);
    }

    fn is_idle(&self) -> bool {
        self.entries.is_empty()
    }

    fn uses(&self, connection: ConnectionId) -> bool {
        let mut entries = self.entries.values();
        entries.any(|entry| entry.connection == connection)
    }

    /// Tells every client that this endpoint is closing.
    fn close(&mut self, net: &mut Net) {
        for ((connection, request), serial) in std::mem::take(&mut self.by_request) {
            // A client's own reads end with the connection.
            let entry = self.entries.get(&serial);
            if entry.is_some_and(|entry| matches!(entry.stage, Stage::Offered)) {
                continue;
            }
            let (code, detail) = (FailureCode::Closing, String::new());
            fail(net, connection, request, code, detail);
        }
        self.entries.clear();
        self.deadlines.clear();
        self.budget.clear();
        self.starved.clear();
    }

    fn redirect_commands(&mut self) {
        // The fetches ended with their connections.
        while self.returned.try_recv().is_ok() {}
    }
}

pub(super) fn fail(
    net: &mut Net,
    connection: ConnectionId,
    id: u64,
    code: FailureCode,
    detail: String,
) {
    let failed = Failed {
        code,
        retry_ms: 0,
        detail,
    };
    net.send(connection, id, ToClient::Failed(failed));
}
