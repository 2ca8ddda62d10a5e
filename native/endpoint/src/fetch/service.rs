//! The fetches of one progress thread: what each event means for them.

use super::attempts::Attempts;
use super::awaiting_room::AwaitingRoom;
use super::busy_servers::BusyServers;
use super::memory_order::PlaceInOrder;
use super::pulls::Pulls;
use super::queue::{FetchCommand, RequestQueue};
use super::request::FetchRequest;
use super::server_activity::ServerActivity;
use super::shortage::Shortage;
use crate::counters::EndpointCounters;
use crate::memory::Memory;
use crate::net::{ClosedConnection, LinkState, MessageSource, Net, ProgressService};
use crossbeam_channel::Receiver;
use faro_fabric::{CloseReason, ConnectionId, EndpointId, Outcome};
use faro_pool::{Lease, Purpose, PAGE_BYTES};
use faro_sync::{clock, HashMap};
use faro_wire::codes::FetchErrorCode;
use faro_wire::message::ToClient;
use faro_wire::WireError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// The client service of one progress thread.
pub(crate) struct FetchService {
    pub(super) queue: Arc<RequestQueue>,
    commands: Receiver<FetchCommand>,
    pub(super) memory: Arc<Memory>,
    pub(super) counters: Arc<EndpointCounters>,
    /// Requests that wait for a connection to open, by peer.
    pub(super) waiting: HashMap<EndpointId, Vec<FetchRequest>>,
    pub(super) attempts: Attempts,
    /// The attempts that wait for arena memory, as pairs of the request's id and the id on the
    /// wire; the oldest request is first.
    pub(super) awaiting_memory: BTreeSet<(u64, u64)>,
    /// The place of this thread among all that wait for memory.
    pub(super) order: PlaceInOrder,
    /// True if a request was refused memory because an older one of another fabric waits for it.
    pub(super) was_held_back: bool,
    /// The attempts that wait for room in the queue of their connection.
    pub(super) awaiting_room: AwaitingRoom,
    /// Requests whose attempts gave up their memory, by id; the oldest is first.
    pub(super) put_back: BTreeMap<u64, FetchRequest>,
    /// True if some attempts may belong to requests whose buffers were taken.
    pub(super) any_taken: bool,
    /// Requests that their servers had no room for, and those that came after them.
    pub(super) busy_servers: BusyServers,
    pub(super) shortage: Shortage,
    pub(super) heard: ServerActivity,
    pub(super) pulls: Pulls,
    /// Size of the largest block that the arena can hold at once, in bytes.
    pub(super) largest_block: u64,
    /// Estimated size of a reply, in bytes, from the last replies.
    pub(super) reply_bytes: u64,
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
            reply_bytes: PAGE_BYTES as u64,
            queue,
            commands,
            memory,
            counters,
            waiting: HashMap::default(),
            attempts: Attempts::default(),
            awaiting_memory: BTreeSet::new(),
            order,
            was_held_back: false,
            awaiting_room: AwaitingRoom::default(),
            put_back: BTreeMap::new(),
            any_taken: false,
            busy_servers: BusyServers::default(),
            shortage: Shortage::new(),
            heard: ServerActivity::default(),
            pulls: Pulls::default(),
        }
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
        self.heard.hear(source.connection, now);
        self.shortage.progress(now);
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
                attempt.request.busy.taken();
                let server = attempt.request.endpoint;
                if too_large {
                    self.tell_server(net, id);
                    self.next_part(net, id);
                    return Ok(());
                }
                let bytes = attempt.total();
                self.busy_servers.taken(server);
                self.call_next(net, server);
                self.note_reply(bytes);
                self.await_memory(id);
                self.offer_buffers(net);
            }
            ToClient::DataWritten(written) => self.written(net, id, &written)?,
            ToClient::Failed(failed) => self.failed(net, id, &failed),
        }
        Ok(())
    }

    fn on_commands(&mut self, net: &mut Net) {
        self.shortage.begin_turn();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                FetchCommand::Start(request, route) => self.start(net, *request, &route),
                FetchCommand::Cancel(request) => self.cancel(net, request),
            }
        }
        if std::mem::take(&mut self.was_held_back) {
            self.offer_buffers(net);
            self.send_put_back();
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
        if self.awaiting_room.has_any(connection) {
            self.heard.hear(connection, clock::now());
            self.has_room(net, connection);
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
        self.heard.closed(closed.connection);
        let attempts = self.attempts.iter();
        let lost = attempts.filter(|(_, a)| a.connection == closed.connection);
        for id in lost.map(|(id, _)| id).collect::<Vec<_>>() {
            self.fault(net, id, code, &closed.reason.to_string());
        }
    }

    fn on_memory(&mut self, net: &mut Net) {
        self.shortage.on_memory();
        self.offer_buffers(net);
        self.send_put_back();
    }

    fn tick(&mut self, net: &mut Net, now: Instant) {
        self.shortage.arrived(self.memory.arrived(), now);
        let first_of_others = self.order.first_of_others();
        self.shortage.others_wait(first_of_others.is_some(), now);
        for connection in self.awaiting_room.connections() {
            self.has_room(net, connection);
        }
        self.look_for_taken();
        self.offer_buffers(net);
        if self.relieve(net, now) {
            self.offer_buffers(net);
        }
        self.send_put_back();
        self.call_due(net, now);
        self.end_overdue(net, now);
    }

    fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.put_back.is_empty() && self.busy_servers.is_empty()
    }

    fn uses(&self, connection: ConnectionId) -> bool {
        self.attempts.values().any(|a| a.connection == connection)
    }

    fn close(&mut self, net: &mut Net) {
        for id in self.attempts.ids().collect::<Vec<_>>() {
            if let Some(request) = self.end(net, id) {
                self.queue.fail_closing(request);
            }
        }
        let waiting = std::mem::take(&mut self.waiting).into_values().flatten();
        let put_back = std::mem::take(&mut self.put_back).into_values();
        let in_line = self.busy_servers.take();
        for request in waiting.chain(put_back).chain(in_line) {
            self.queue.fail_closing(request);
        }
        self.redirect_commands();
    }

    fn redirect_commands(&mut self) {
        // Without a fabric no attempt is left.
        self.order.publish(None);
        let put_back = std::mem::take(&mut self.put_back).into_values();
        for request in put_back.chain(self.busy_servers.take()) {
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
