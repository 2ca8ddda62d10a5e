//! The fetches of one progress thread: what each event means for them.

use super::arena_queue::{ArenaQueue, MemoryGrant, Relief, WaitVerdict};
use super::attempt::Attempt;
use super::attempts::Attempts;
use super::busy_servers::BusyServers;
use super::deliver::Stream;
use super::memory_order::PlaceInOrder;
use super::pull::{BatchResult, Pull};
use super::pulls::{NotPosted, Pulls};
use super::queue::{FetchCommand, RequestQueue, CANCELLED};
use super::request::{FetchRequest, NextStep};
use crate::counters::EndpointCounters;
use crate::limits::{BUSY_RETRY, MAX_BUSY_RETRY};
use crate::memory::Memory;
use crate::net::{ClosedConnection, LinkState, MessageSource, Net, ProgressService, Route};
use crossbeam_channel::Receiver;
use faro_fabric::{CloseReason, ConnectionId, EndpointId, Exposure, Outcome, RevokeStatus};
use faro_pool::{Lease, Purpose, PAGE_BYTES};
use faro_sync::{clock, HashMap};
use faro_wire::codes::FetchErrorCode;
use faro_wire::message::{
    DataWritten, Failed, FailureCode, Fetch, MoreBuffers, RemoteBuffer, ToClient, ToServer,
};
use faro_wire::WireError;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The client service of one progress thread.
pub(crate) struct FetchService {
    queue: Arc<RequestQueue>,
    commands: Receiver<FetchCommand>,
    memory: Arc<Memory>,
    counters: Arc<EndpointCounters>,
    /// Requests that wait for a connection to open, by peer.
    waiting: HashMap<EndpointId, Vec<FetchRequest>>,
    attempts: Attempts,
    arena: ArenaQueue,
    /// Requests that their servers had no room for, and those that came after them.
    busy_servers: BusyServers,
    pulls: Pulls,
    /// Size of the largest block that the arena can hold at once, in bytes.
    largest_block: u64,
}

impl FetchService {
    pub(crate) fn new(
        queue: Arc<RequestQueue>,
        commands: Receiver<FetchCommand>,
        memory: Arc<Memory>,
        order: PlaceInOrder,
        counters: Arc<EndpointCounters>,
    ) -> Self {
        // A block that begins inside a page extends into one more page.
        let largest_block = memory
            .pool
            .share_bytes(Purpose::Read)
            .saturating_sub(2 * PAGE_BYTES as u64);
        Self {
            largest_block,
            queue,
            commands,
            arena: ArenaQueue::new(Arc::clone(&memory), order),
            memory,
            counters,
            waiting: HashMap::default(),
            attempts: Attempts::default(),
            busy_servers: BusyServers::default(),
            pulls: Pulls::default(),
        }
    }

    /// Publishes the oldest request that waits for memory. Called in each turn, before the thread
    /// waits for events.
    pub(crate) fn publish_first(&self) {
        self.arena.publish_first(&self.attempts);
    }

    /// Starts `request`, and connects first if there is no connection.
    fn start(&mut self, net: &mut Net, mut request: FetchRequest, route: &Route) {
        let is_called = std::mem::take(&mut request.busy.is_called);
        if !is_called && self.busy_servers.has(request.endpoint) {
            return self.busy_servers.join(request, clock::now());
        }
        match net.open_to(route, request.idle_timeout) {
            LinkState::Open(connection) => self.issue(net, connection, request),
            LinkState::Opening => {
                let waiting = self.waiting.entry(route.peer.endpoint).or_default();
                waiting.push(request);
            }
            LinkState::None => self.queue.dispatch(request),
        }
    }

    /// Starts an attempt at `request` on an open connection.
    fn issue(&mut self, net: &mut Net, connection: ConnectionId, request: FetchRequest) {
        let deadline = clock::now() + request.idle_timeout;
        // With a buffer in the request, a thousand tiny blocks take a single round trip.
        self.ask(net, connection, request, deadline, true);
    }

    /// Starts an attempt, and sends FETCH.
    fn ask(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        mut request: FetchRequest,
        deadline: Instant,
        with_buffer: bool,
    ) {
        request.goes_over(net.kind());
        request.writes_only |= self.pulls.are_stopped(connection);
        self.arena.on_attempt(&request);
        let idle_timeout = request.idle_timeout.as_millis();
        let mut attempt = Attempt::new(request, connection, deadline);
        let buffer = with_buffer.then(|| self.first_buffer(net, &mut attempt));
        let fetch = Fetch {
            deadline_ms: u32::try_from(idle_timeout).unwrap_or(u32::MAX),
            writes_only: attempt.request.writes_only,
            reader_verifies: attempt.request.reader_verifies,
            buffers: buffer.flatten().into_iter().collect(),
            blocks: attempt.request.wanted().to_vec(),
        };
        let id = self.attempts.begin(attempt);
        net.send(connection, id, ToServer::Fetch(fetch));
    }

    /// Exposes a buffer that is sent with a request, if there should be one and memory for it.
    fn first_buffer(&mut self, net: &mut Net, attempt: &mut Attempt) -> Option<RemoteBuffer> {
        let lease = self.arena.first_lease(attempt)?;
        let capacity = lease.capacity() as u32;
        let buffer = offer(net, attempt, lease, capacity);
        if buffer.is_none() {
            self.arena.gave_back();
        }
        buffer
    }

    /// Handles the server's report that it has written into offered buffers.
    fn written(&mut self, net: &mut Net, id: u64, written: &DataWritten) -> Result<(), WireError> {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return Ok(());
        };
        let connection = attempt.connection;
        for buffer in &written.buffers {
            let key = attempt.expect(buffer)?.key;
            // The lease returns only when its buffer is revoked. Once the server has reported the
            // write, that takes effect at once.
            let RevokeStatus::Now(Exposure::Writable(lease)) = net.revoke(key) else {
                let what = "key of an offered buffer";
                return Err(WireError::BadValue { what, got: key });
            };
            if let Err(corrupt) = attempt.take(lease, buffer) {
                self.counters.crc_errors.add(1);
                let detail = format!(
                    "bytes arrived with CRC-32C {:#010x} where the server read {:#010x}",
                    corrupt.got, corrupt.expected
                );
                self.fault(net, id, FetchErrorCode::Corrupt, &detail);
                return Ok(());
            }
            self.memory.note_arrived(buffer.length.get().into());
        }
        attempt.request.was_preempted = false;
        attempt.check_last(written.last)?;
        if let Some(ready) = attempt.ready(written.last, &self.memory) {
            let request = &mut attempt.request;
            let last = written.last && request.is_last_part();
            self.queue.deliver(request, net.kind(), ready, last);
        }
        if written.last {
            self.next_part(net, id);
        } else {
            self.arena.join(&mut self.attempts, id);
            self.grant_memory(net);
        }
        // The revoked buffers no longer take room on the connection.
        self.has_room(net, connection);
        Ok(())
    }

    /// Handles the end of a read that this service posted.
    fn read_ended(&mut self, net: &mut Net, token: u64, target: Lease, outcome: &Outcome) {
        let Some(id) = self.pulls.ended(token) else {
            return;
        };
        // If the attempt ended while its read was posted, the lease is returned now.
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let now = clock::now();
        attempt.progress(now);
        attempt.request.was_preempted = false;
        self.arena.on_arrival(attempt.connection, now);
        self.queue.progress(attempt.request.endpoint);
        let Some((_, pull)) = attempt.pull() else {
            return;
        };
        let is_done = *outcome == Outcome::Done;
        if is_done {
            self.memory.note_arrived(target.capacity() as u64);
        }
        match pull.arrived(token, target, is_done) {
            Some(versions) => self.judge(net, id, &versions),
            None => {
                self.grant(net, id);
            }
        }
        // If the attempt has ended, it has returned memory.
        self.grant_memory(net);
    }

    /// Judges a batch that has arrived completely, by its versions.
    fn judge(&mut self, net: &mut Net, id: u64, versions: &Lease) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let Some((stream, pull)) = attempt.pull() else {
            return;
        };
        let verdict = pull.judge(versions, |lease, length| stream.push(lease, length));
        let last = matches!(verdict, BatchResult::Right) && pull.is_done();
        if let Some(ready) = attempt.ready(last, &self.memory) {
            let request = &mut attempt.request;
            let last = last && request.is_last_part();
            self.queue.deliver(request, net.kind(), ready, last);
        }
        match verdict {
            BatchResult::Right if last => {
                self.counters.pulls.add(1);
                self.tell_server(net, id);
                self.next_part(net, id);
            }
            BatchResult::Right => {
                self.grant(net, id);
            }
            BatchResult::Stale => {
                self.counters.pulls_stale.add(1);
                self.ask_for_writes(net, id);
            }
            BatchResult::Corrupt(corrupt) => {
                self.counters.crc_errors.add(1);
                if let Some(attempt) = self.attempts.get(id) {
                    self.pulls.stop(attempt.connection, corrupt);
                }
                self.ask_for_writes(net, id);
            }
        }
    }

    /// Asks the server to write the blocks that were not handed out, on the same connection. This
    /// counts as no fault: pages change their contents.
    fn ask_for_writes(&mut self, net: &mut Net, id: u64) {
        let Some(connection) = self.attempts.get(id).map(|attempt| attempt.connection) else {
            return;
        };
        self.tell_server(net, id);
        let Some(mut request) = self.end(net, id) else {
            return;
        };
        if request.wanted().is_empty() {
            // All blocks were handed out, so no bytes can be missing.
            let detail = "a pull ended without its last block".to_owned();
            return self.queue.fail(request, FetchErrorCode::Protocol, detail);
        }
        request.writes_only = true;
        self.issue(net, connection, request);
    }

    /// Grants memory to waiting attempts in order, until no memory or no attempt is left.
    fn grant_memory(&mut self, net: &mut Net) {
        let mut round = self.arena.begin_round(&self.attempts);
        while let Some(id) = self.arena.next(&mut round) {
            round.last = self.grant(net, id);
        }
    }

    /// Grants an attempt the memory that it should have now.
    fn grant(&mut self, net: &mut Net, id: u64) -> MemoryGrant {
        let granted = match self.attempts.get(id) {
            None => MemoryGrant::Served,
            Some(attempt) if attempt.is_pulling() => self.pull_more(net, id),
            Some(_) => self.offer_more(net, id),
        };
        self.arena.granted(&mut self.attempts, id, granted);
        granted
    }

    /// Called when work on the connection has ended, so that there may be room for more.
    fn has_room(&mut self, net: &mut Net, connection: ConnectionId) {
        if self.arena.has_room(connection) {
            self.grant_memory(net);
        }
    }

    /// Sends the requests that were requeued, as soon as no older one waits for memory.
    fn send_requeued(&mut self) {
        for request in self.arena.take_due(&self.attempts) {
            self.queue.dispatch(request);
        }
    }

    /// Lets attempts give up memory that others wait for. Returns whether any did.
    fn relieve(&mut self, net: &mut Net, now: Instant) -> bool {
        let relieved = self.arena.relieve(&self.attempts, now);
        for (id, relief) in &relieved {
            match relief {
                Relief::AskAgain => self.ask_again(net, *id),
                Relief::Requeue => self.requeue(net, *id),
            }
        }
        !relieved.is_empty()
    }

    /// Ends an attempt. Its request is sent again when no older one waits for memory.
    fn requeue(&mut self, net: &mut Net, id: u64) {
        self.tell_server(net, id);
        if let Some(request) = self.end(net, id) {
            self.counters.put_back.add(1);
            self.arena.requeue(request);
        }
    }

    /// Ends an attempt and sends its request again on the same connection, without a buffer.
    fn ask_again(&mut self, net: &mut Net, id: u64) {
        self.tell_server(net, id);
        let attempt = self.attempts.get(id);
        let Some((connection, deadline)) = attempt.map(|a| (a.connection, a.deadline)) else {
            return;
        };
        if let Some(mut request) = self.end(net, id) {
            request.was_preempted = true;
            self.counters.put_back.add(1);
            self.ask(net, connection, request, deadline, false);
        }
    }

    /// Offers an attempt all the buffers that it should have now, as far as memory and room allow.
    fn offer_more(&mut self, net: &mut Net, id: u64) -> MemoryGrant {
        let Some(connection) = self.attempts.get(id).map(|attempt| attempt.connection) else {
            return MemoryGrant::Served;
        };
        let offer = |attempt: &mut Attempt, lease, capacity| offer(net, attempt, lease, capacity);
        let (granted, buffers) = self.arena.offer_more(&mut self.attempts, id, offer);
        if !buffers.is_empty() {
            let more = MoreBuffers { buffers };
            net.send(connection, id, ToServer::MoreBuffers(more));
        }
        granted
    }

    /// Posts the reads that memory and room allow, if the attempt is pulling.
    fn pull_more(&mut self, net: &mut Net, id: u64) -> MemoryGrant {
        let Some(mut attempt) = self.attempts.take_out(id) else {
            return MemoryGrant::Served;
        };
        let (connection, request) = (attempt.connection, attempt.request.id);
        let waits_behind = self.arena.older_waits_for_room(connection, request);
        let posted = match attempt.pull() {
            // Older attempts wait for room on the connection. This one takes no memory while it
            // waits.
            Some((_, pull)) if waits_behind && pull.is_between_batches() => Err(NotPosted::NoRoom),
            Some((stream, pull)) => self.post_reads(net, connection, (request, id), stream, pull),
            None => Ok(()),
        };
        self.attempts.put_in(id, attempt);
        match posted {
            Ok(()) => MemoryGrant::Served,
            Err(NotPosted::NoRoom) => MemoryGrant::NoRoom,
            Err(NotPosted::NoMemory) => MemoryGrant::NoMemory,
            Err(NotPosted::Impossible) => {
                self.counters.pulls_stale.add(1);
                self.ask_for_writes(net, id);
                MemoryGrant::Served
            }
        }
    }

    fn post_reads(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        (request, id): (u64, u64),
        stream: &Stream,
        pull: &mut Pull,
    ) -> Result<(), NotPosted> {
        if pull.needs_memory() && self.arena.is_held_back(&self.attempts, request) {
            return Err(NotPosted::NoMemory);
        }
        pull.lease(stream, &self.memory)?;
        let pulls = &mut self.pulls;
        let posted = pull.post(|range, target| pulls.post(net, connection, id, range, target));
        if matches!(posted, Err(NotPosted::NoRoom)) && pull.give_back() {
            self.arena.gave_back();
        }
        posted
    }

    /// Ends the attempts whose deadline has passed.
    fn end_overdue(&mut self, net: &mut Net, now: Instant) {
        while let Some(id) = self.attempts.due(now) {
            let Some(attempt) = self.attempts.get(id) else {
                continue;
            };
            match self.arena.judge(attempt, now) {
                WaitVerdict::Later(at) => self.attempts.look_at(id, at),
                WaitVerdict::Requeue => self.requeue(net, id),
                WaitVerdict::NoMemory(wait) => {
                    let wait = wait.as_millis();
                    let detail = format!("no memory returned to the arena for {wait} ms");
                    self.give_up(net, id, FetchErrorCode::PoolExhausted, &detail);
                }
                WaitVerdict::TimedOut { is_silent } => self.time_out(net, id, is_silent),
            }
        }
    }

    fn time_out(&mut self, net: &mut Net, id: u64, is_silent: bool) {
        let Some(attempt) = self.attempts.get(id) else {
            return;
        };
        let (connection, endpoint) = (attempt.connection, attempt.request.endpoint);
        let timeout = attempt.request.idle_timeout;
        let detail = format!("no progress for {} ms", timeout.as_millis());
        self.counters.timeouts.add(1);
        self.give_up(net, id, FetchErrorCode::TimedOut, &detail);
        if is_silent {
            // Nothing at all has arrived on the connection. Its other requests take another route
            // now, instead of each waiting for its own deadline.
            net.back_off(endpoint, &detail);
            net.disconnect(connection, CloseReason::Lost { detail });
        }
    }

    fn failed(&mut self, net: &mut Net, id: u64, failed: &Failed) {
        let Some(mut request) = self.end(net, id) else {
            return;
        };
        let code = match failed.code {
            FailureCode::DeadlinePassed => FetchErrorCode::TimedOut,
            FailureCode::Busy if failed.retry_ms > 0 => {
                let now = clock::now();
                request.busy.waits(now);
                if !request.busy.has_waited(now, request.idle_timeout) {
                    let hint = Duration::from_millis(u64::from(failed.retry_ms));
                    return self
                        .busy_servers
                        .refused(request, hint.min(MAX_BUSY_RETRY), now);
                }
                FetchErrorCode::Refused
            }
            FailureCode::Cancelled
            | FailureCode::Busy
            | FailureCode::Internal
            | FailureCode::Closing => FetchErrorCode::Refused,
        };
        let server = request.endpoint;
        let detail = format!("the server says {:?}: {}", failed.code, failed.detail);
        self.queue.fail(request, code, detail);
        self.call_next(net, server);
    }

    /// Sends the first request that waits for room at the server. Called when the server has
    /// accepted or finished a request, because it may have room then.
    fn call_next(&mut self, net: &mut Net, server: EndpointId) {
        if let Some(request) = self.busy_servers.next(server) {
            self.call(net, request);
        }
    }

    /// Sends the requests whose delay for a full server is over, and fails those whose timeout has
    /// passed.
    fn call_due(&mut self, net: &mut Net, now: Instant) {
        for request in self.busy_servers.expired(now) {
            let timeout = request.idle_timeout.as_millis();
            let detail = format!("the server had no room for {timeout} ms");
            self.queue.fail(request, FetchErrorCode::Refused, detail);
        }
        for request in self.busy_servers.due(BUSY_RETRY, now) {
            self.call(net, request);
        }
    }

    fn call(&mut self, net: &mut Net, mut request: FetchRequest) {
        match net.link(request.endpoint) {
            LinkState::Open(connection) => self.issue(net, connection, request),
            LinkState::Opening | LinkState::None => {
                request.busy.is_called = true;
                self.queue.dispatch(request);
            }
        }
    }

    fn cancel(&mut self, net: &mut Net, request: u64) {
        if let Some(id) = self.attempts.of_request(request) {
            return self.give_up(net, id, FetchErrorCode::Cancelled, CANCELLED);
        }
        if let Some(request) = self.withdraw(request) {
            let (code, why) = (FetchErrorCode::Cancelled, CANCELLED.to_owned());
            self.queue.fail(request, code, why);
        }
    }

    /// Removes and returns a request that has no attempt now.
    fn withdraw(&mut self, id: u64) -> Option<FetchRequest> {
        let request = self.arena.withdraw(id);
        if let Some(request) = request.or_else(|| self.busy_servers.withdraw(id)) {
            return Some(request);
        }
        self.waiting.values_mut().find_map(|waiting| {
            let at = waiting.iter().position(|r| r.id == id)?;
            Some(waiting.swap_remove(at))
        })
    }

    /// Handles a fault: asks for the missing blocks again, on this fabric first and then on the
    /// next one.
    fn fault(&mut self, net: &mut Net, id: u64, code: FetchErrorCode, detail: &str) {
        self.tell_server(net, id);
        let Some(mut request) = self.end(net, id) else {
            return;
        };
        match request.faults.count(net.kind()) {
            NextStep::Again => {}
            NextStep::OtherFabric => net.back_off(request.endpoint, detail),
            NextStep::GiveUp => {
                net.back_off(request.endpoint, detail);
                return self.queue.fail(request, code, detail.to_owned());
            }
        }
        let (caller, missing) = (request.id, request.missing().len());
        let (of, name) = (request.blocks.len(), net.kind().name());
        if self.queue.dispatch_or(request, code, detail) {
            self.counters.retries.add(1);
            log::info!(
                "fetch {caller} over {name}: {detail}; asking again for {missing} of {of} blocks"
            );
        }
    }

    /// Ends an attempt that has brought all its blocks. If its request has more, each block that
    /// the arena cannot hold gets an error, and a new attempt asks for the others.
    fn next_part(&mut self, net: &mut Net, id: u64) {
        let Some(connection) = self.attempts.get(id).map(|attempt| attempt.connection) else {
            return;
        };
        let Some(mut request) = self.end(net, id) else {
            return;
        };
        while let Some(bytes) = request.next_too_large() {
            let room = self.largest_block;
            let detail = format!("a block of {bytes} bytes, the arena has room for {room}");
            self.queue.fail_block(&mut request, detail);
        }
        match request.wanted().is_empty() {
            true => self.call_next(net, request.endpoint),
            false => self.issue(net, connection, request),
        }
    }

    /// Ends a request with an error.
    fn give_up(&mut self, net: &mut Net, id: u64, code: FetchErrorCode, detail: &str) {
        self.tell_server(net, id);
        if let Some(request) = self.end(net, id) {
            let server = request.endpoint;
            self.queue.fail(request, code, detail.to_owned());
            self.call_next(net, server);
        }
    }

    /// Tells the server to stop, or that the client has read what it was offered. On a closed
    /// connection the message is dropped.
    fn tell_server(&mut self, net: &mut Net, id: u64) {
        if let Some(attempt) = self.attempts.get(id) {
            net.send(attempt.connection, id, ToServer::Cancel);
        }
    }

    /// Removes the attempt and revokes its buffers.
    fn end(&mut self, net: &mut Net, id: u64) -> Option<FetchRequest> {
        let attempt = self.attempts.end(id)?;
        let connection = attempt.connection;
        let (request, keys) = attempt.end();
        self.arena.leave(connection, request.id, id);
        for key in keys {
            // If the result is `RevokeStatus::Later`, the fabric keeps the lease until no write can
            // reach it.
            drop(net.revoke(key));
        }
        Some(request)
    }
}

impl ProgressService for FetchService {
    type Message = ToClient;

    fn on_message(
        &mut self,
        net: &mut Net,
        source: MessageSource,
        id: u64,
        message: ToClient,
    ) -> Result<(), WireError> {
        self.queue.progress(source.endpoint);
        let now = clock::now();
        self.arena.on_arrival(source.connection, now);
        let attempt = self.attempts.get_mut(id);
        let Some(attempt) = attempt.filter(|a| a.connection == source.connection) else {
            self.counters.late_messages.add(1);
            return Ok(());
        };
        attempt.progress(now);
        match message {
            ToClient::ReadOffer(offer) => attempt.on_read_offer(offer)?,
            ToClient::FetchResponse(response) => {
                let too_large = attempt.on_response(response, self.largest_block)?;
                attempt.request.busy.accepted();
                let server = attempt.request.endpoint;
                if too_large {
                    self.tell_server(net, id);
                    self.next_part(net, id);
                    return Ok(());
                }
                let bytes = attempt.total();
                self.busy_servers.accepted(server);
                self.call_next(net, server);
                self.arena.on_reply(&mut self.attempts, id, bytes);
                self.grant_memory(net);
            }
            ToClient::DataWritten(written) => self.written(net, id, &written)?,
            ToClient::Failed(failed) => self.failed(net, id, &failed),
        }
        Ok(())
    }

    fn on_commands(&mut self, net: &mut Net) {
        let was_held_back = self.arena.begin_turn();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                FetchCommand::Start(request, route) => self.start(net, *request, &route),
                FetchCommand::Cancel(request) => self.cancel(net, request),
            }
        }
        if was_held_back {
            self.grant_memory(net);
            self.send_requeued();
        }
    }

    fn on_open(&mut self, net: &mut Net, endpoint: EndpointId) {
        if let LinkState::Open(connection) = net.link(endpoint) {
            for request in self.waiting.remove(&endpoint).unwrap_or_default() {
                self.issue(net, connection, request);
            }
        }
    }

    fn on_read_ended(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        token: u64,
        target: Lease,
        outcome: &Outcome,
    ) {
        self.read_ended(net, token, target, outcome);
        self.has_room(net, connection);
    }

    fn on_write_ended(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        _token: u64,
        _outcome: &Outcome,
    ) {
        if self.arena.on_write_ended(connection) {
            self.grant_memory(net);
        }
    }

    /// Retries the requests whose connection was lost.
    fn on_closed(&mut self, net: &mut Net, closed: &ClosedConnection<'_>) {
        if let Some(endpoint) = closed.endpoint {
            match net.link(endpoint) {
                LinkState::Opening => {}
                // The peer has connected to this endpoint, even if this endpoint could not connect
                // to it.
                LinkState::Open(_) => self.on_open(net, endpoint),
                LinkState::None => {
                    for request in self.waiting.remove(&endpoint).unwrap_or_default() {
                        self.queue.dispatch(request);
                    }
                }
            }
        }
        let code = match closed.reason {
            CloseReason::Protocol(_) => FetchErrorCode::Protocol,
            _ => FetchErrorCode::ConnectionLost,
        };
        self.pulls.closed(closed.connection);
        self.arena.on_closed(closed.connection);
        let attempts = self.attempts.iter();
        let lost = attempts.filter(|(_, a)| a.connection == closed.connection);
        for id in lost.map(|(id, _)| id).collect::<Vec<_>>() {
            self.fault(net, id, code, &closed.reason.to_string());
        }
    }

    fn on_memory(&mut self, net: &mut Net) {
        self.arena.on_memory();
        self.grant_memory(net);
        self.send_requeued();
    }

    fn tick(&mut self, net: &mut Net, now: Instant) {
        for connection in self.arena.tick(&self.attempts, now) {
            self.has_room(net, connection);
        }
        self.grant_memory(net);
        if self.relieve(net, now) {
            self.grant_memory(net);
        }
        self.send_requeued();
        self.call_due(net, now);
        self.end_overdue(net, now);
    }

    fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.arena.is_empty() && self.busy_servers.is_empty()
    }

    fn uses(&self, connection: ConnectionId) -> bool {
        self.attempts.values().any(|a| a.connection == connection)
    }

    fn close(&mut self, net: &mut Net) {
        let ids: Vec<u64> = self.attempts.iter().map(|(id, _)| id).collect();
        for id in ids {
            if let Some(request) = self.end(net, id) {
                self.queue.fail_closing(request);
            }
        }
        let waiting = std::mem::take(&mut self.waiting).into_values().flatten();
        let busy = self.busy_servers.take();
        for request in waiting.chain(self.arena.close()).chain(busy) {
            self.queue.fail_closing(request);
        }
        self.redirect_commands();
    }

    fn redirect_commands(&mut self) {
        // Without a fabric no attempt is left.
        for request in self.arena.close().chain(self.busy_servers.take()) {
            self.queue.dispatch(request);
        }
        while let Ok(command) = self.commands.try_recv() {
            match command {
                // The queue knows that this endpoint is closing, or that this fabric is lost.
                FetchCommand::Start(request, _) => self.queue.dispatch(*request),
                FetchCommand::Cancel(_) => {}
            }
        }
    }
}

/// Exposes the first `capacity` bytes of a lease to the attempt's server.
fn offer(
    net: &mut Net,
    attempt: &mut Attempt,
    lease: Lease,
    capacity: u32,
) -> Option<RemoteBuffer> {
    let range = net.expose(attempt.connection, Exposure::Writable(lease))?;
    let capacity = capacity.min(range.length);
    attempt.offered(range.key, capacity);
    Some(RemoteBuffer {
        key: range.key.into(),
        offset: range.offset.into(),
        length: capacity.into(),
        reserved: 0.into(),
    })
}
