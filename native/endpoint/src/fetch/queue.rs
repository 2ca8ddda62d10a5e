//! The requests of an endpoint, on their way from the caller to a progress thread and back.

use super::completion::{Completion, Completions};
use super::completion_sink::CompletionSink;
use super::deliver::ReadyBlocks;
use super::request::{FetchRequest, LOST};
use crate::counters::EndpointCounters;
use crate::limits::MAX_REQUESTS;
use crate::net::{Inbox, PeerTable, Route};
use crate::schedule::{ClientQueue, Exchange};
use faro_fabric::{EndpointId, FabricKind};
use faro_wire::codes::FetchErrorCode;
use faro_wire::BlockId;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The message that the caller gets for a request that it cancelled.
pub(super) const CANCELLED: &str = "the caller cancelled";
const CLOSING: &str = "this endpoint is closing";

/// A command of the queue to the [`FetchService`](super::FetchService) of a progress thread.
pub(crate) enum FetchCommand {
    /// Start a request on this route.
    Start(Box<FetchRequest>, Route),
    /// Cancel the request with this caller's id, if it is on this thread.
    Cancel(u64),
}

/// The reason that a request was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmitError {
    UnknownPeer(u64),
    Full { limit: usize },
    Closed,
}

/// A request that could not be sent, and the reason.
struct UnsentRequest {
    request: FetchRequest,
    code: FetchErrorCode,
    why: String,
}

/// The requests of one endpoint, shared by all its threads.
pub(crate) struct RequestQueue {
    peers: Arc<PeerTable>,
    /// The inboxes of the progress threads, one for each fabric that this endpoint has.
    inboxes: Vec<(FabricKind, Inbox<FetchCommand>)>,
    /// Requests that wait for their peer's permit.
    scheduled: ClientQueue<FetchRequest>,
    sink: Arc<CompletionSink>,
    counters: Arc<EndpointCounters>,
    next_id: AtomicU64,
    closing: AtomicBool,
}

impl RequestQueue {
    pub(crate) fn new(
        peers: Arc<PeerTable>,
        inboxes: Vec<(FabricKind, Inbox<FetchCommand>)>,
        exchange: Arc<Exchange>,
        counters: Arc<EndpointCounters>,
    ) -> Self {
        Self {
            peers,
            inboxes,
            scheduled: ClientQueue::new(exchange),
            sink: CompletionSink::new(Arc::clone(&counters)),
            counters,
            next_id: AtomicU64::new(1),
            closing: AtomicBool::new(false),
        }
    }

    /// Admits a new request to the peer with the handle `peer`, and returns the request's id.
    ///
    /// # Errors
    /// Fails if the peer is unknown, if `MAX_REQUESTS` are in flight, or if the endpoint is
    /// closing.
    pub(crate) fn admit(
        &self,
        peer: u64,
        blocks: Vec<BlockId>,
        idle_timeout: Duration,
        reader_verifies: bool,
    ) -> Result<u64, AdmitError> {
        if self.is_closing() {
            return Err(AdmitError::Closed);
        }
        let endpoint = self.peers.endpoint(peer);
        let endpoint = endpoint.ok_or(AdmitError::UnknownPeer(peer))?;
        let in_flight = &self.sink.in_flight;
        if in_flight.fetch_add(1, Ordering::AcqRel) >= MAX_REQUESTS {
            in_flight.fetch_sub(1, Ordering::AcqRel);
            let limit = MAX_REQUESTS;
            return Err(AdmitError::Full { limit });
        }
        self.counters.requests.add(1);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let sink = Arc::clone(&self.sink);
        let mut request = FetchRequest::new(id, endpoint, blocks, idle_timeout, sink);
        request.reader_verifies = reader_verifies;
        self.send_all(self.scheduled.submit(endpoint, request));
        Ok(id)
    }

    /// Sends a request on the best route that is not in back-off, or fails it.
    pub(super) fn dispatch(&self, request: FetchRequest) {
        self.send_all(vec![request]);
    }

    /// Sends a request like `dispatch`, but fails it with the fault that it had before. Returns
    /// whether it was sent.
    pub(super) fn dispatch_or(
        &self,
        request: FetchRequest,
        code: FetchErrorCode,
        detail: &str,
    ) -> bool {
        let Err(unsent) = self.send(request) else {
            return true;
        };
        match unsent.code {
            FetchErrorCode::Closing => self.fail_closing(unsent.request),
            _ => self.fail(unsent.request, code, detail.to_owned()),
        }
        false
    }

    /// Sends requests. If one fails, those that become due in its place are sent too. This is a
    /// loop because they may fail as well.
    fn send_all(&self, requests: Vec<FetchRequest>) {
        let mut requests = VecDeque::from(requests);
        while let Some(request) = requests.pop_front() {
            if let Err(unsent) = self.send(request) {
                let UnsentRequest { request, code, why } = *unsent;
                requests.extend(self.end(request, code, why));
            }
        }
    }

    /// Sends a request to the progress thread of its route.
    ///
    /// # Errors
    /// Fails if the request has no route or this endpoint is closing.
    fn send(&self, request: FetchRequest) -> Result<(), Box<UnsentRequest>> {
        let unsent = |request, code, why| Err(Box::new(UnsentRequest { request, code, why }));
        if self.is_closing() {
            return unsent(request, FetchErrorCode::Closing, CLOSING.to_owned());
        }
        let route = match self.peers.route_to(request.endpoint) {
            Ok(route) => route,
            Err(why) => return unsent(request, FetchErrorCode::Unreachable, why),
        };
        let inbox = self.inboxes.iter().find(|(kind, _)| *kind == route.fabric);
        if let Some((_, inbox)) = inbox {
            inbox.send(FetchCommand::Start(Box::new(request), route));
        }
        Ok(())
    }

    /// Cancels a request, on whichever thread it is.
    pub(crate) fn cancel(&self, request: u64) {
        if let Some(request) = self.scheduled.withdraw(|waiting| waiting.id == request) {
            return self.conclude(request, FetchErrorCode::Cancelled, CANCELLED.to_owned());
        }
        for (_, inbox) in &self.inboxes {
            inbox.send(FetchCommand::Cancel(request));
        }
    }

    /// Notes that something arrived from a peer that this endpoint reads from.
    pub(super) fn progress(&self, endpoint: EndpointId) {
        self.scheduled.progress(endpoint);
    }

    /// Sends requests that have become due with time or in place of dropped ones.
    pub(crate) fn tick(&self, now: Instant) {
        for endpoint in self.sink.take_lost() {
            self.peers.request_failed(endpoint, LOST);
            self.send_all(self.scheduled.ended(endpoint));
        }
        if self.has_waiting() {
            self.send_all(self.scheduled.tick(now));
        }
    }

    /// Returns whether requests wait for their peer's permit, so that `tick` must be called.
    pub(crate) fn has_waiting(&self) -> bool {
        self.scheduled.has_waiting()
    }

    /// Hands blocks to the caller.
    pub(super) fn deliver(
        &self,
        request: &mut FetchRequest,
        kind: FabricKind,
        ready: ReadyBlocks,
        last: bool,
    ) {
        self.peers.carried(request.endpoint, kind);
        let delivery = ready.delivery;
        let counters = self.counters.fabric(kind);
        let found = delivery.blocks.iter().filter(|b| b.status.get() == 0);
        let found = found.count();
        request.lacks_blocks |= found < delivery.blocks.len();
        counters.remote_blocks.add(found as u64);
        let lengths = delivery.slices.iter().map(|s| u64::from(s.length));
        counters.remote_bytes.add(lengths.sum());
        if last {
            if !request.lacks_blocks {
                self.peers.request_succeeded(request.endpoint);
            }
            request.ended();
            self.sink.in_flight.fetch_sub(1, Ordering::AcqRel);
        }
        self.sink.completions.push(Completion {
            request: request.id,
            first_block: ready.first_block as u32,
            block_count: delivery.blocks.len() as u32,
            fabric: kind.code(),
            last,
            scarce: ready.scarce,
            outcome: Ok(delivery),
        });
        if last {
            self.send_all(self.scheduled.ended(request.endpoint));
        }
    }

    /// Ends a request with an error for all blocks that were not handed out.
    pub(super) fn fail(&self, request: FetchRequest, code: FetchErrorCode, detail: String) {
        self.send_all(self.end(request, code, detail));
    }

    /// Ends a request with an error, and returns the requests that become due in its place.
    fn end(
        &self,
        request: FetchRequest,
        code: FetchErrorCode,
        detail: String,
    ) -> Vec<FetchRequest> {
        let endpoint = request.endpoint;
        self.conclude(request, code, detail);
        self.scheduled.ended(endpoint)
    }

    /// Tells the caller of an error.
    fn conclude(&self, mut request: FetchRequest, code: FetchErrorCode, detail: String) {
        request.ended();
        // This comes before its completion: a caller that sees the failure of a request sees the peer's back-off.
        self.peers.request_failed(request.endpoint, code);
        self.sink
            .failed(request.id, request.missing_range(), code, detail);
    }

    /// Hands out an error for the block before `handed_out`, which the arena cannot hold.
    pub(super) fn fail_block(&self, request: &mut FetchRequest, detail: String) {
        let last = request.missing().is_empty();
        request.lacks_blocks = true;
        if last {
            request.ended();
        }
        self.sink
            .failed_block(request.id, request.handed_out - 1, detail, last);
        if last {
            self.send_all(self.scheduled.ended(request.endpoint));
        }
    }

    /// Ends a request because this endpoint closes.
    pub(super) fn fail_closing(&self, request: FetchRequest) {
        self.fail(request, FetchErrorCode::Closing, CLOSING.to_owned());
    }

    /// Returns the queues of completions, for the caller's threads.
    pub(crate) fn completions(&self) -> &Completions {
        &self.sink.completions
    }

    /// Returns the number of requests that have not ended.
    #[cfg(feature = "simulation")]
    pub(crate) fn in_flight(&self) -> usize {
        self.sink.in_flight.load(Ordering::Acquire)
    }

    /// Fails all waiting requests, and every later one, with `Closing`.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        for request in self.scheduled.close() {
            self.conclude(request, FetchErrorCode::Closing, CLOSING.to_owned());
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}
