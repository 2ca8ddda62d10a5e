//! The fetches that one progress thread serves.

use super::exposed::ExposedBuffers;
use super::job::{Job, Turn};
use super::stage::{Buffers, Stage};
use super::IoPool;
use crate::counters::Counters;
use crate::limits::{MAX_BUFFERS_HELD, MAX_SERVING, WRITE_WINDOW};
use crate::memory::{Memory, Staging};
use crate::net::{Closed, Inbox, Net, Service, Source};
use crate::schedule::ServerQueue;
use crossbeam_channel::Receiver;
use faro_fabric::{CloseReason, ConnectionId, EndpointId, Outcome};
use faro_wire::message::{Failed, FailureCode, Fetch, MoreBuffers, ToClient, ToServer};
use faro_wire::WireError;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A job that an I/O thread returns, and what its turn gave.
pub(crate) type Returned = (Box<Job>, Turn);

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
    idle_timeout: Duration,
    deadline: Instant,
}

impl Entry {
    fn progress(&mut self, now: Instant) {
        self.deadline = now + self.idle_timeout;
    }

    /// Turns and writes under way, as the schedule counts them.
    fn under_way(&self) -> usize {
        self.writes + usize::from(matches!(self.stage, Stage::Running { .. }))
    }
}

/// The server service; see the module's comment.
pub(crate) struct ServeService {
    pub(super) io: Arc<IoPool>,
    /// Where I/O threads return jobs to.
    pub(super) inbox: Inbox<Returned>,
    returned: Receiver<Returned>,
    pub(super) counters: Arc<Counters>,
    pub(super) memory: Arc<Memory>,
    pub(super) exposed: ExposedBuffers,
    /// The shortage of the arena for which `exposed` was last revoked.
    shortage: u64,
    /// Turns that wait for their peer's permit.
    pub(super) schedule: ServerQueue,
    /// By serial number.
    pub(super) entries: HashMap<u64, Entry>,
    /// The serial numbers of those that clients may still name.
    by_request: HashMap<(ConnectionId, u64), u64>,
    next_serial: u64,
}

impl ServeService {
    pub(crate) fn new(
        io: Arc<IoPool>,
        (inbox, returned): (Inbox<Returned>, Receiver<Returned>),
        counters: Arc<Counters>,
        memory: Arc<Memory>,
        schedule: ServerQueue,
    ) -> Self {
        Self {
            io,
            inbox,
            returned,
            counters,
            shortage: memory.shortages(),
            memory,
            exposed: ExposedBuffers::default(),
            schedule,
            entries: HashMap::new(),
            by_request: HashMap::new(),
            next_serial: 0,
        }
    }

    fn fetch(
        &mut self,
        net: &mut Net,
        source: Source,
        request: u64,
        fetch: Fetch,
    ) -> Result<(), WireError> {
        let Source {
            connection,
            endpoint,
        } = source;
        if self.by_request.contains_key(&(connection, request)) {
            return Err(WireError::BadValue {
                what: "request id of FETCH (in use)",
                got: request,
            });
        }
        if self.by_request.len() >= MAX_SERVING {
            self.counters.busy_refusals.add(1);
            let detail = format!("{MAX_SERVING} requests are being served");
            fail(net, connection, request, FailureCode::Busy, detail);
            return Ok(());
        }
        let (serial, now) = (self.next_serial, Instant::now());
        self.next_serial += 1;
        let idle_timeout = Duration::from_millis(u64::from(fetch.deadline_ms));
        let job = Box::new(Job::new(serial, fetch)?);
        self.by_request.insert((connection, request), serial);
        let due = self.schedule.submit(endpoint, serial, now);
        let (stage, at_once) = match due.contains(&serial) {
            true => (Stage::running(), Some(job)),
            false => {
                if self.memory.staging == Staging::Planned {
                    self.io.prefetch_for(&job);
                }
                (Stage::queued(job), None)
            }
        };
        let entry = Entry {
            connection,
            endpoint,
            request,
            stage,
            writes: 0,
            idle_timeout,
            deadline: now + idle_timeout,
        };
        self.entries.insert(serial, entry);
        self.counters.served_requests.add(1);
        self.start_turns(due);
        if let Some(job) = at_once {
            match self.io.at_once(job) {
                Ok((job, turn)) => self.on_turn(net, job, turn),
                Err(job) => self.io.submit(job, &self.inbox),
            }
        }
        Ok(())
    }

    fn more_buffers(
        &mut self,
        key: (ConnectionId, u64),
        more: MoreBuffers,
    ) -> Result<(), WireError> {
        // Unknown: the request ended while the message was under way.
        let Some(&serial) = self.by_request.get(&key) else {
            return Ok(());
        };
        let Some(entry) = self.entries.get_mut(&serial) else {
            return Ok(());
        };
        let now = Instant::now();
        entry.progress(now);
        self.schedule.progress(entry.endpoint, now);
        match entry.stage.on_buffers(more.buffers) {
            Buffers::Job(job, buffers) => job.add_buffers(buffers)?,
            Buffers::Kept(kept) if kept > MAX_BUFFERS_HELD => {
                return Err(WireError::TooLarge {
                    what: "buffers of a request",
                    got: kept as u64,
                    limit: MAX_BUFFERS_HELD as u64,
                });
            }
            Buffers::Kept(_) | Buffers::NotNeeded => {}
        }
        self.advance(serial);
        Ok(())
    }

    fn cancel(&mut self, net: &mut Net, (connection, request): (ConnectionId, u64)) {
        let found = self.by_request.get(&(connection, request)).copied();
        if let Some(serial) = found {
            self.remove(serial);
            let (code, detail) = (FailureCode::Cancelled, String::new());
            fail(net, connection, request, code, detail);
        }
    }

    /// Queues the job's next turn if there is something to do and room to do it.
    pub(super) fn advance(&mut self, serial: u64) {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        if entry.writes < WRITE_WINDOW && entry.stage.queue(|job| job.can_turn()) {
            let due = self.schedule.submit(entry.endpoint, serial, Instant::now());
            self.start_turns(due);
        }
    }

    /// These have their permit.
    fn start_turns(&mut self, due: Vec<u64>) {
        for serial in due {
            let entry = self.entries.get_mut(&serial);
            if let Some(job) = entry.and_then(|entry| entry.stage.on_permit()) {
                self.io.submit(job, &self.inbox);
            }
        }
    }

    /// Turns and writes of a peer have ended: others may be due.
    pub(super) fn ended(&mut self, endpoint: EndpointId, pieces: usize) {
        if pieces > 0 {
            let due = self.schedule.ended(endpoint, pieces, Instant::now());
            self.start_turns(due);
        }
    }

    /// The client can no longer name the fetch: all its bytes are in posted writes.
    pub(super) fn drain(&mut self, serial: u64) {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        self.by_request.remove(&(entry.connection, entry.request));
        entry.stage.on_last_turn();
        let endpoint = entry.endpoint;
        if entry.writes == 0 {
            self.entries.remove(&serial);
        }
        self.ended(endpoint, 1);
    }

    pub(super) fn remove(&mut self, serial: u64) -> Option<Entry> {
        let entry = self.entries.remove(&serial)?;
        let key = (entry.connection, entry.request);
        // A draining fetch is not listed, and its client may have used the id again.
        if self.by_request.get(&key) == Some(&serial) {
            self.by_request.remove(&key);
        }
        if let Stage::Queued(_) = entry.stage {
            self.schedule.withdraw(serial);
        }
        self.ended(entry.endpoint, entry.under_way());
        Some(entry)
    }

    /// Ends what is past its deadline. A peer that does not take bytes into the buffers it offered is
    /// disconnected, because pages on their way to it cannot be used again until then.
    fn remove_overdue(&mut self, net: &mut Net, now: Instant) {
        let entries = self.entries.iter();
        let overdue = entries.filter(|(_, entry)| entry.deadline <= now);
        for serial in overdue.map(|(serial, _)| *serial).collect::<Vec<_>>() {
            let Some(entry) = self.remove(serial) else {
                continue;
            };
            let timeout = entry.idle_timeout.as_millis() as u64;
            if entry.writes > 0 {
                let what = "milliseconds without progress of a peer that offered buffers";
                let limit = timeout;
                net.disconnect(entry.connection, CloseReason::Bound { what, limit });
                continue;
            }
            let detail = format!("no progress for {timeout} ms");
            let code = FailureCode::DeadlinePassed;
            fail(net, entry.connection, entry.request, code, detail);
        }
    }

    fn serials_of(&self, which: impl Fn(&Entry) -> bool) -> Vec<u64> {
        let entries = self.entries.iter().filter(|(_, entry)| which(entry));
        entries.map(|(serial, _)| *serial).collect()
    }
}

impl Service for ServeService {
    type Message = ToServer;

    fn on_message(
        &mut self,
        net: &mut Net,
        source: Source,
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
        while let Ok((job, turn)) = self.returned.try_recv() {
            self.on_turn(net, job, turn);
        }
    }

    fn on_write_ended(&mut self, _net: &mut Net, serial: u64, outcome: &Outcome) {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        entry.writes = entry.writes.saturating_sub(1);
        let endpoint = entry.endpoint;
        if *outcome == Outcome::Done {
            let now = Instant::now();
            entry.progress(now);
            self.schedule.progress(endpoint, now);
        }
        if entry.writes == 0 && matches!(entry.stage, Stage::Draining) {
            self.entries.remove(&serial);
        }
        self.advance(serial);
        self.ended(endpoint, 1);
    }

    fn on_closed(&mut self, net: &mut Net, closed: &Closed<'_>) {
        self.exposed.revoke(net, closed.connection);
        for serial in self.serials_of(|entry| entry.connection == closed.connection) {
            self.remove(serial);
        }
    }

    fn on_memory(&mut self, _net: &mut Net) {
        let mut back = Vec::new();
        for (serial, entry) in &mut self.entries {
            if entry.stage.on_memory() {
                back.push(*serial);
            }
        }
        for serial in back {
            self.advance(serial);
        }
    }

    fn tick(&mut self, net: &mut Net, now: Instant) {
        self.on_memory(net);
        let due = self.schedule.tick(now);
        self.start_turns(due);
        let shortages = self.memory.shortages();
        if shortages != self.shortage {
            self.shortage = shortages;
            self.exposed.revoke_all(net);
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
        for (connection, request) in std::mem::take(&mut self.by_request).into_keys() {
            let (code, detail) = (FailureCode::Closing, String::new());
            fail(net, connection, request, code, detail);
        }
        self.entries.clear();
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
    net.send(connection, id, ToClient::Failed(Failed { code, detail }));
}
