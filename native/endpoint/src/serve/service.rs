//! The fetches that one progress thread serves: what each event means for them.

use super::budget::{bytes_of_buffers, bytes_of_request};
use super::exposed::ExposedPages;
use super::job::{JobTurn, ServeJob};
use super::memory_queue::MemoryQueue;
use super::offer::ResidentSlice;
use super::remote_buffers::FilledBuffer;
use super::served_fetches::{turns_under_way, ServedFetch, ServedFetches};
use super::stage::{Buffers, PermittedStep, Stage};
use super::work::ReturnedWork;
use super::IoPool;
use crate::counters::EndpointCounters;
use crate::limits::{
    BUSY_RETRY, MAX_BUFFERS_HELD, MAX_UNRESOLVED, MAX_UNRESOLVED_OF_PEER, WRITE_WINDOW,
};
use crate::memory::{Memory, NoLease};
use crate::net::{ClosedConnection, EncodedMessage, Inbox, MessageSource, Net, ProgressService};
use crate::schedule::ServerQueue;
use crossbeam_channel::Receiver;
use faro_fabric::{CloseReason, ConnectionId, EndpointId, Outcome, RemoteRange, Write};
use faro_sync::{clock, HashMap};
use faro_wire::message::{
    DataWritten, Failed, FailureCode, Fetch, MoreBuffers, ToClient, ToServer, WrittenBuffer,
};
use faro_wire::WireError;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The server's side of all fetches of one progress thread.
pub(crate) struct ServeService {
    io: Arc<IoPool>,
    /// Inbox to which I/O threads return jobs.
    inbox: Inbox<ReturnedWork>,
    returned: Receiver<ReturnedWork>,
    counters: Arc<EndpointCounters>,
    memory: Arc<Memory>,
    fetches: ServedFetches,
    exposed: ExposedPages,
    /// Turns that wait for their peer's permit.
    schedule: ServerQueue,
    /// Turns that have their permit and wait for memory.
    starved: MemoryQueue,
    /// The time at which each connected peer last took bytes.
    taken: HashMap<EndpointId, Instant>,
    /// Time for which a peer may take no bytes, whatever it asks for.
    longest_wait: Duration,
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
        Self {
            io,
            inbox,
            returned,
            counters,
            fetches: ServedFetches::new(&memory),
            exposed: ExposedPages::new(Arc::clone(&memory)),
            memory,
            schedule,
            starved: MemoryQueue::default(),
            taken: HashMap::default(),
            longest_wait,
        }
    }

    fn fetch(
        &mut self,
        net: &mut Net,
        source: MessageSource,
        request: u64,
        fetch: Fetch,
    ) -> Result<(), WireError> {
        let MessageSource {
            connection,
            endpoint,
        } = source;
        if self.fetches.serial((connection, request)).is_some() {
            return Err(WireError::BadValue {
                what: "request id of FETCH (in use)",
                got: request,
            });
        }
        let peer = net.quota_key(endpoint);
        let bytes = bytes_of_request(fetch.blocks.len(), fetch.buffers.len());
        let serial = match self.fetches.begin(peer, bytes) {
            Ok(serial) => serial,
            Err(detail) => {
                self.refuse(net, connection, request, detail);
                return Ok(());
            }
        };
        let now = clock::now();
        let wanted = Duration::from_millis(u64::from(fetch.deadline_ms));
        let idle_timeout = wanted.min(self.longest_wait);
        let account = self.memory.account_of(endpoint);
        let sources = net.write_sources(connection);
        let job = match ServeJob::new(serial, peer, account, fetch, sources) {
            Ok(job) => Box::new(job),
            Err(error) => {
                self.fetches.abandon(endpoint, bytes);
                return Err(error);
            }
        };
        let due = self.schedule.submit(endpoint, serial, now);
        let (stage, at_once) = match due.contains(&serial) {
            true => (Stage::running(), Some(job)),
            false => (Stage::Queued(job), None),
        };
        let entry = ServedFetch {
            connection,
            endpoint,
            request,
            stage,
            writes: 0,
            idle_timeout,
            deadline: now + idle_timeout,
            look_at: now + idle_timeout,
            bytes,
        };
        self.fetches.insert(serial, entry);
        self.counters.served_requests.add(1);
        self.start_turns(due);
        if let Some(mut job) = at_once {
            job.may_lease(!self.starved.must_wait(endpoint));
            match self.io.at_once(job) {
                Ok(returned) => self.on_returned(net, returned),
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
        // The request may have ended while the message was on its way.
        let Some(serial) = self.fetches.serial(key) else {
            return Ok(());
        };
        self.fetches
            .charge(serial, bytes_of_buffers(more.buffers.len()))?;
        let Some(entry) = self.fetches.get_mut(serial) else {
            return Ok(());
        };
        let now = clock::now();
        // A peer that offers memory and takes no bytes into what it has offered makes no progress.
        if entry.writes == 0 {
            entry.progress(now);
        }
        self.schedule.progress(entry.endpoint, now);
        match entry.stage.on_buffers(more.buffers) {
            Buffers::Job(job, buffers) => job.add_buffers(buffers)?,
            Buffers::Kept(kept) => WireError::check_limit(
                "buffers of a request",
                kept as u64,
                MAX_BUFFERS_HELD as u64,
            )?,
            Buffers::NotNeeded => {}
        }
        self.advance(serial);
        Ok(())
    }

    fn cancel(&mut self, net: &mut Net, (connection, request): (ConnectionId, u64)) {
        let Some(serial) = self.fetches.serial((connection, request)) else {
            return;
        };
        let Some(entry) = self.fetches.get_mut(serial) else {
            return;
        };
        // A client that has read what it was offered waits for no word.
        let is_offered = matches!(entry.stage, Stage::Offered);
        self.stop(serial);
        if !is_offered {
            let (code, detail) = (FailureCode::Cancelled, String::new());
            fail(net, connection, request, code, detail);
        }
    }

    /// Stops a fetch: nothing more is posted for it. With writes under way it keeps its deadline, because their pages
    /// cannot be used again until the client takes them or is disconnected.
    fn stop(&mut self, serial: u64) {
        let Some(entry) = self.fetches.get_mut(serial) else {
            return;
        };
        if entry.writes == 0 {
            self.remove(serial);
            return;
        }
        let endpoint = entry.endpoint;
        if let Some(stage) = self.fetches.stop(serial) {
            self.leave_queues(serial, endpoint, &stage);
            self.ended(endpoint, turns_under_way(&stage));
        }
    }

    /// Refuses a request, because there is no room for one more: its client asks again later.
    fn refuse(&mut self, net: &mut Net, connection: ConnectionId, request: u64, detail: String) {
        self.counters.busy_refusals.add(1);
        let failed = Failed {
            code: FailureCode::Busy,
            retry_ms: BUSY_RETRY.as_millis() as u32,
            detail,
        };
        net.send(connection, request, ToClient::Failed(failed));
    }

    /// Ends what is past its deadline. A peer that does not take bytes into the buffers it offered is
    /// disconnected, because pages on their way to it cannot be used again until then.
    fn remove_overdue(&mut self, net: &mut Net, now: Instant) {
        while let Some(serial) = self.fetches.due(now) {
            if let Some(entry) = self.fetches.get_mut(serial) {
                // A turn that waits for its peer to take the bytes of others waits as long as it does.
                if matches!(entry.stage, Stage::Starved(_)) {
                    if let Some(taken) = self.taken.get(&entry.endpoint) {
                        entry.deadline = entry.deadline.max(*taken + entry.idle_timeout);
                    }
                }
                if entry.deadline > now {
                    self.fetches.look_again(serial);
                    continue;
                }
            }
            let Some(entry) = self.remove(serial) else {
                continue;
            };
            if matches!(entry.stage, Stage::Offered) {
                continue;
            }
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

    /// Queues the job's next turn if there is something to do and room to do it.
    fn advance(&mut self, serial: u64) {
        let Some(entry) = self.fetches.get_mut(serial) else {
            return;
        };
        if entry.writes < WRITE_WINDOW && entry.stage.queue(|job| job.can_turn()) {
            let due = self.schedule.submit(entry.endpoint, serial, clock::now());
            self.start_turns(due);
        }
    }

    /// Starts the turns of fetches that have their permit.
    fn start_turns(&mut self, due: Vec<u64>) {
        for serial in due {
            let Some(entry) = self.fetches.get_mut(serial) else {
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
    fn begin_starved(&mut self) {
        while let Some((_, serial)) = self.starved.first() {
            let (entry, memory) = (self.fetches.get_mut(serial), &self.memory);
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
                Some(Err(NoLease::Arena(_))) => self.starved.arena_is_empty(),
            }
        }
    }

    fn on_returned(&mut self, net: &mut Net, returned: ReturnedWork) {
        match returned {
            ReturnedWork::Turned(job, turn) => self.on_turn(net, job, turn),
            ReturnedWork::Lost(serial) => self.on_lost(net, serial),
        }
    }

    /// Fails a fetch whose turn panicked.
    fn on_lost(&mut self, net: &mut Net, serial: u64) {
        let Some(entry) = self.fetches.get_mut(serial) else {
            return self.fetches.came_back(serial);
        };
        let (connection, request, endpoint) = (entry.connection, entry.request, entry.endpoint);
        // A fetch that its client cancelled has had its reply, and its writes are still under way.
        if matches!(entry.stage, Stage::Running { .. }) {
            self.stop(serial);
            let detail = "a thread of the server panicked".to_owned();
            fail(net, connection, request, FailureCode::Internal, detail);
        }
        // There is no job any more; what its turn had reserved is free.
        self.fetches.came_back(serial);
        self.has_room(endpoint);
    }

    /// Notes that pages in flight to the peer are free.
    fn has_room(&mut self, peer: EndpointId) {
        self.starved.has_room(peer);
        self.begin_starved();
    }

    /// Turns and writes of a peer have ended: others may be due.
    fn ended(&mut self, endpoint: EndpointId, pieces: usize) {
        if pieces > 0 {
            let due = self.schedule.ended(endpoint, pieces, clock::now());
            self.start_turns(due);
        }
    }

    /// Handles the end of a turn.
    fn on_turn(&mut self, net: &mut Net, job: Box<ServeJob>, turn: JobTurn) {
        let serial = job.serial;
        let entry = self.fetches.get_mut(serial);
        let running = entry.filter(|entry| matches!(entry.stage, Stage::Running { .. }));
        // Cancelled, past its deadline, or the connection has closed: nothing more is posted or said.
        let Some(entry) = running else {
            let peer = job.peer.endpoint;
            drop((job, turn));
            self.fetches.came_back(serial);
            return self.has_room(peer);
        };
        let (connection, request, endpoint) = (entry.connection, entry.request, entry.endpoint);
        match turn {
            JobTurn::Cold => self.io.submit(job, &self.inbox),
            JobTurn::Busy => {
                drop(job);
                self.stop(serial);
                self.fetches.came_back(serial);
                let detail = format!(
                    "Java has not said where {MAX_UNRESOLVED_OF_PEER} map outputs are that this peer asked for, or \
                     {MAX_UNRESOLVED} of all peers"
                );
                self.refuse(net, connection, request, detail);
            }
            JobTurn::Broken { detail } => {
                drop(job);
                self.stop(serial);
                self.fetches.came_back(serial);
                fail(net, connection, request, FailureCode::Internal, detail);
            }
            JobTurn::Offered { response, slices } => self.offer(net, job, response, &slices),
            JobTurn::Filled {
                response,
                filled,
                last,
                starved,
            } => {
                let buffers = self.write(net, serial, filled);
                if let Some(response) = response {
                    net.send(connection, request, response);
                }
                if last || !buffers.is_empty() {
                    let written = DataWritten { buffers, last };
                    net.send(connection, request, ToClient::DataWritten(written));
                }
                match last {
                    true => {
                        self.count_served(net, &job);
                        self.drain(serial);
                    }
                    false => self.turned(net, job, starved),
                }
            }
        }
        // Memory that the turn did not use is free.
        self.has_room(endpoint);
    }

    /// Offers the client to read bytes that are all in the chunk cache; the client says when it
    /// needs nothing more. Bytes that cannot be exposed are written.
    fn offer(
        &mut self,
        net: &mut Net,
        mut job: Box<ServeJob>,
        response: EncodedMessage,
        slices: &[ResidentSlice],
    ) {
        let serial = job.serial;
        let Some(entry) = self.fetches.get_mut(serial) else {
            return;
        };
        let (connection, id, endpoint) = (entry.connection, entry.request, entry.endpoint);
        let Some(offer) = self.exposed.offer(net, connection, slices) else {
            job.write_instead(response);
            return self.io.submit(job, &self.inbox);
        };
        net.send(connection, id, ToClient::ReadOffer(offer));
        net.send(connection, id, response);
        self.counters.pulls_offered.add(1);
        self.count_served(net, &job);
        if let Some(entry) = self.fetches.get_mut(serial) {
            entry.progress(clock::now());
            entry.stage.on_offer();
        }
        self.ended(endpoint, 1);
    }

    /// Writes what a turn filled into the client's memory. Returns the list for `DATA_WRITTEN`.
    fn write(
        &mut self,
        net: &mut Net,
        serial: u64,
        filled: Vec<FilledBuffer>,
    ) -> Vec<WrittenBuffer> {
        let Some(entry) = self.fetches.get_mut(serial) else {
            return Vec::new();
        };
        let (connection, count) = (entry.connection, filled.len());
        entry.writes += count;
        let mut buffers = Vec::with_capacity(count);
        for buffer in filled {
            buffers.push(buffer.written);
            let token = serial;
            let target = RemoteRange {
                key: buffer.target.key.get(),
                offset: buffer.target.offset.get(),
                length: buffer.target.length.get(),
            };
            let write = Write {
                token,
                source: buffer.source,
                target,
                immediate: None,
                // A buffer is filled once.
                last: true,
            };
            net.write(connection, write);
        }
        self.schedule.posted(entry.endpoint, count);
        buffers
    }

    /// Handles a turn that ended with more to do.
    fn turned(&mut self, net: &mut Net, job: Box<ServeJob>, starved: bool) {
        let serial = job.serial;
        let Some(entry) = self.fetches.get_mut(serial) else {
            return;
        };
        let (connection, endpoint) = (entry.connection, entry.endpoint);
        let Some(kept) = entry.stage.on_turn(job, starved) else {
            return;
        };
        let added = match entry.stage.on_buffers(kept) {
            Buffers::Job(job, buffers) => job.add_buffers(buffers),
            Buffers::Kept(_) | Buffers::NotNeeded => Ok(()),
        };
        match added {
            Ok(()) if starved => {}
            Ok(()) => self.advance(serial),
            Err(error) => net.disconnect(connection, CloseReason::Protocol(error)),
        }
        match starved {
            // It keeps its permit while it waits for memory.
            true => self.starved.push(endpoint, serial),
            false => self.ended(endpoint, 1),
        }
    }

    fn count_served(&self, net: &Net, job: &ServeJob) {
        let counters = self.counters.fabric(net.kind());
        counters.served_blocks.add(job.served.blocks);
        counters.served_bytes.add(job.served.bytes);
        self.counters.blocks_refused.add(job.served.refused);
    }

    /// Ends a fetch that the client can no longer name: all its bytes are in posted writes.
    fn drain(&mut self, serial: u64) {
        let Some(entry) = self.fetches.unlist(serial) else {
            return;
        };
        entry.stage.on_last_turn();
        let endpoint = entry.endpoint;
        if entry.writes == 0 {
            self.fetches.remove(serial);
        }
        self.ended(endpoint, 1);
    }

    fn remove(&mut self, serial: u64) -> Option<ServedFetch> {
        let entry = self.fetches.remove(serial)?;
        self.leave_queues(serial, entry.endpoint, &entry.stage);
        self.ended(entry.endpoint, entry.under_way());
        Some(entry)
    }

    /// Removes the turn of a fetch that ends in that stage from the queue in which it waits.
    fn leave_queues(&mut self, serial: u64, endpoint: EndpointId, stage: &Stage<Box<ServeJob>>) {
        match stage {
            Stage::Queued(_) => self.schedule.withdraw(serial),
            Stage::Starved(_) => self.starved.remove(endpoint, serial),
            Stage::Idle(_) | Stage::Running { .. } | Stage::Draining | Stage::Offered => {}
        }
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
            self.on_returned(net, returned);
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
        let Some(entry) = self.fetches.get_mut(serial) else {
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
            self.fetches.remove(serial);
        }
        self.advance(serial);
        self.ended(endpoint, 1);
        self.begin_starved();
    }

    fn on_closed(&mut self, net: &mut Net, closed: &ClosedConnection<'_>) {
        self.exposed.revoke(net, closed.connection);
        for serial in self.fetches.on(closed.connection).collect::<Vec<_>>() {
            self.remove(serial);
        }
        if let Some(peer) = closed.endpoint {
            self.taken.remove(&peer);
            self.memory.forget_accounts();
        }
        self.begin_starved();
    }

    fn on_memory(&mut self, _net: &mut Net) {
        self.starved.arena_has_room();
        self.begin_starved();
    }

    fn tick(&mut self, net: &mut Net, now: Instant) {
        self.memory.cache.look_again();
        // Bytes of a peer may have become free on another fabric, and its share may have grown.
        self.starved.all_have_room();
        self.begin_starved();
        let due = self.schedule.tick(now);
        self.start_turns(due);
        self.exposed.recall(net);
        self.remove_overdue(net, now);
    }

    fn is_idle(&self) -> bool {
        self.fetches.is_empty()
    }

    fn uses(&self, connection: ConnectionId) -> bool {
        self.fetches.on(connection).next().is_some()
    }

    /// Tells every client that this endpoint is closing.
    fn close(&mut self, net: &mut Net) {
        for (connection, request) in self.fetches.clear() {
            let (code, detail) = (FailureCode::Closing, String::new());
            fail(net, connection, request, code, detail);
        }
        self.starved.clear();
    }

    fn redirect_commands(&mut self) {
        // The fetches ended with their connections.
        while let Ok(returned) = self.returned.try_recv() {
            self.fetches.came_back(returned.serial());
        }
    }
}

fn fail(net: &mut Net, connection: ConnectionId, id: u64, code: FailureCode, detail: String) {
    let failed = Failed {
        code,
        retry_ms: 0,
        detail,
    };
    net.send(connection, id, ToClient::Failed(failed));
}
