//! Where a request goes, and how it ends: the peers, each with its [`Routes`], and the way back to
//! the caller.

use crate::collective::{Errand, Hub, Order};
use crate::completion::{Completion, Completions, FetchFailure};
use crate::config::limits::MAX_REQUESTS;
use crate::config::{fabric_code, fabric_name, EndpointError};
use crate::counters::Counters;
use crate::exchange::{host_of, Exchange};
use crate::progress::{Command, Inbox};
use crate::reader::Request;
use crate::routes::{Line, Route, Routes};
use faro_fabric::shm::same_host;
use faro_fabric::{EndpointId, FabricKind};
use faro_wire::codes::{FabricCode, FetchErrorCode};
use faro_wire::Card;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a request says that its caller gave up.
pub(crate) const CANCELLED: &str = "the caller cancelled";
const CLOSING: &str = "this endpoint is closing";

/// A request that could not be sent, and why.
struct Unsent {
    request: Request,
    code: FetchErrorCode,
    why: String,
}

#[derive(Default)]
struct Peers {
    by_handle: HashMap<u64, Routes>,
    handles: HashMap<EndpointId, u64>,
    endpoints: HashMap<u64, EndpointId>,
    /// Fabrics of this endpoint that have failed for good, and why.
    lost: Vec<(FabricKind, String)>,
}

/// See the module's comment.
pub(crate) struct Router {
    peers: Mutex<Peers>,
    /// Of the fabrics that this endpoint has, best first; set once at the start.
    inboxes: Vec<(FabricKind, Arc<Inbox>)>,
    /// Where shm peers reach us, if they can.
    shm_location: Option<String>,
    pub(crate) completions: Completions,
    pub(crate) counters: Arc<Counters>,
    /// The seats of collectives.
    pub(crate) hub: Hub,
    /// Who may be asked now; the others' requests wait there.
    pub(crate) exchange: Arc<Exchange>,
    in_flight: AtomicUsize,
    next_id: AtomicU64,
    closing: AtomicBool,
}

impl Router {
    pub(crate) fn new(
        inboxes: Vec<(FabricKind, Arc<Inbox>)>,
        shm_location: Option<String>,
        counters: Arc<Counters>,
        exchange: Arc<Exchange>,
    ) -> Self {
        Self {
            shm_location,
            peers: Mutex::default(),
            inboxes,
            completions: Completions::new(),
            counters,
            hub: Hub::default(),
            exchange,
            in_flight: AtomicUsize::new(0),
            next_id: AtomicU64::new(1),
            closing: AtomicBool::new(false),
        }
    }

    /// The handle of the endpoint on `card`.
    pub(crate) fn add_peer(&self, card: &Card) -> u64 {
        let mut peers = self.lock();
        if let Some(handle) = peers.handles.get(&card.endpoint) {
            return *handle;
        }
        let handle = self.next_id.fetch_add(1, Ordering::Relaxed);
        let route = |fabric: FabricKind| {
            let address = card
                .addresses
                .iter()
                .find(|address| address.scheme == fabric_name(fabric))?;
            // Another host's shared memory is no route that rests: it is none.
            let near = |ours: &String| same_host(ours, &address.location);
            if fabric == FabricKind::Shm && !self.shm_location.as_ref().is_some_and(near) {
                return None;
            }
            Some(Route::new(fabric, address.location.clone(), card.endpoint))
        };
        let routes = self
            .inboxes
            .iter()
            .filter_map(|(fabric, _)| route(*fabric))
            .collect();
        peers.handles.insert(card.endpoint, handle);
        peers.endpoints.insert(handle, card.endpoint);
        let mut routes = Routes::new(card.name.clone(), routes);
        for (fabric, trouble) in &peers.lost {
            routes.lost(*fabric, trouble);
        }
        peers.by_handle.insert(handle, routes);
        drop(peers);
        self.exchange.join(card.endpoint, host_of(card));
        handle
    }

    /// Admits a new request.
    ///
    /// # Errors
    /// `UnknownPeer`, `Full`, `Closed`.
    pub(crate) fn admit(
        &self,
        peer: u64,
        blocks: Vec<faro_wire::BlockId>,
        patience: Duration,
    ) -> Result<u64, EndpointError> {
        if self.closing.load(Ordering::Acquire) {
            return Err(EndpointError::Closed);
        }
        let endpoint = self.lock().endpoints.get(&peer).copied();
        let endpoint = endpoint.ok_or(EndpointError::UnknownPeer(peer))?;
        if self.in_flight.fetch_add(1, Ordering::AcqRel) >= MAX_REQUESTS {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
            return Err(EndpointError::Full {
                limit: MAX_REQUESTS,
            });
        }
        self.counters.requests.add(1);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let faults = crate::reader::Faults::default();
        self.send_all(self.exchange.submit(Request {
            push_only: false,
            id,
            peer,
            endpoint,
            blocks,
            handed_out: 0,
            patience,
            faults,
        }));
        Ok(id)
    }

    /// Time has passed: requests that waited for others may be due.
    pub(crate) fn tick(&self, now: Instant) {
        if self.exchange.waits() {
            self.send_all(self.exchange.tick(now));
        }
    }

    /// Sends a request on by the best route that does not rest, or fails it.
    pub(crate) fn dispatch(&self, request: Request) {
        self.send_all(vec![request]);
    }

    /// The same, but fails it with what went wrong before. True: it is on its way.
    pub(crate) fn dispatch_or(&self, request: Request, code: FetchErrorCode, detail: &str) -> bool {
        let Err(unsent) = self.send_on(request) else {
            return true;
        };
        match unsent.code {
            FetchErrorCode::Closing => self.fail_closing(unsent.request),
            _ => self.fail(unsent.request, code, detail.to_owned()),
        }
        false
    }

    /// Sends requests on, and those that are due because one of them could not be sent: in a loop,
    /// because each of those may fail as well.
    fn send_all(&self, requests: Vec<Request>) {
        let mut requests = VecDeque::from(requests);
        while let Some(request) = requests.pop_front() {
            if let Err(unsent) = self.send_on(request) {
                let Unsent { request, code, why } = *unsent;
                requests.extend(self.end(request, code, why));
            }
        }
    }

    /// # Errors
    /// It has no route, or this endpoint is closing.
    fn send_on(&self, request: Request) -> Result<(), Box<Unsent>> {
        let unsent = |request, code, why| Err(Box::new(Unsent { request, code, why }));
        if self.closing.load(Ordering::Acquire) {
            return unsent(request, FetchErrorCode::Closing, CLOSING.to_owned());
        }
        let peers = self.lock();
        let chosen = match peers.by_handle.get(&request.peer) {
            Some(routes) => routes.choose(Instant::now()).cloned(),
            None => Err("no such peer".to_owned()),
        };
        drop(peers);
        let route = match chosen {
            Ok(route) => route,
            Err(why) => return unsent(request, FetchErrorCode::Unreachable, why),
        };
        if let Some((_, inbox)) = self.inboxes.iter().find(|(kind, _)| *kind == route.fabric) {
            inbox.send(Command::Fetch(request, route));
        }
        Ok(())
    }

    /// Sends a collective's errand on by the best route that does not rest.
    ///
    /// # Errors
    /// The errand, and why it has no route.
    pub(crate) fn send_errand(&self, errand: Errand) -> Result<(), (Errand, String)> {
        if self.closing.load(Ordering::Acquire) {
            return Err((errand, "this endpoint is closing".to_owned()));
        }
        let chosen = match self.lock().by_handle.get(&errand.to.handle) {
            Some(routes) => routes.choose(Instant::now()).cloned(),
            None => Err("no such peer".to_owned()),
        };
        let route = match chosen {
            Ok(route) => route,
            Err(why) => return Err((errand, why)),
        };
        if let Some((_, inbox)) = self.inboxes.iter().find(|(kind, _)| *kind == route.fabric) {
            inbox.send(Command::Collective(Order::Errand(errand, route)));
        }
        Ok(())
    }

    /// The same, but tells the errand's seat when there is no route.
    pub(crate) fn resend(&self, errand: Errand) {
        if let Err((errand, why)) = self.send_errand(errand) {
            self.hub.lost(&errand, why);
        }
    }

    /// Cancels wherever the request is.
    pub(crate) fn cancel(&self, request: u64) {
        if let Some(request) = self.exchange.withdraw(request) {
            return self.conclude(request, FetchErrorCode::Cancelled, CANCELLED.to_owned());
        }
        for (_, inbox) in &self.inboxes {
            inbox.send(Command::Cancel(request));
        }
    }

    /// The route failed: it rests.
    pub(crate) fn rest(&self, peer: u64, fabric: FabricKind, trouble: &str) {
        let now = Instant::now();
        let mut peers = self.lock();
        let routes = peers.by_handle.get_mut(&peer);
        let line = routes.and_then(|routes| routes.failed(fabric, trouble, now));
        drop(peers);
        if line.is_some() {
            self.counters.demotions.add(1);
        }
        say(line);
    }

    /// The fabric has failed for good: no request takes it again.
    pub(crate) fn lost(&self, fabric: FabricKind, trouble: &str) {
        let mut peers = self.lock();
        for routes in peers.by_handle.values_mut() {
            routes.lost(fabric, trouble);
        }
        peers.lost.push((fabric, trouble.to_owned()));
    }

    /// There is a connection by that route.
    pub(crate) fn works(&self, endpoint: EndpointId, fabric: FabricKind) {
        let mut peers = self.lock();
        let handle = peers.handles.get(&endpoint).copied();
        let routes = handle.and_then(|handle| peers.by_handle.get_mut(&handle));
        let line = routes.and_then(|routes| routes.connected(fabric));
        drop(peers);
        say(line);
    }

    /// Blocks came by that route.
    fn carried(&self, peer: u64, fabric: FabricKind) {
        let mut peers = self.lock();
        let routes = peers.by_handle.get_mut(&peer);
        let line = routes.and_then(|routes| routes.carried(fabric, Instant::now()));
        drop(peers);
        say(line);
    }

    /// Hands blocks to the caller.
    pub(crate) fn deliver(
        &self,
        request: &Request,
        kind: FabricKind,
        ready: crate::reader::Ready,
        last: bool,
    ) {
        self.carried(request.peer, kind);
        let counters = self.counters.fabric(kind);
        let found = |block: &&faro_wire::message::BlockEntry| block.status.get() == 0;
        counters
            .remote_blocks
            .add(ready.delivery.blocks.iter().filter(found).count() as u64);
        counters.remote_bytes.add(
            ready
                .delivery
                .pieces
                .iter()
                .map(|p| u64::from(p.length))
                .sum(),
        );
        if last {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
        }
        self.completions.push(Completion {
            request: request.id,
            first_block: ready.first_block as u32,
            block_count: ready.delivery.blocks.len() as u32,
            fabric: fabric_code(kind),
            last,
            outcome: Ok(ready.delivery),
        });
        if last {
            self.send_all(self.exchange.ended(request.endpoint));
        }
    }

    /// Ends a request with an error for all that was not handed out.
    pub(crate) fn fail(&self, request: Request, code: FetchErrorCode, detail: String) {
        self.send_all(self.end(request, code, detail));
    }

    /// The same; gives those that are due in its place.
    fn end(&self, request: Request, code: FetchErrorCode, detail: String) -> Vec<Request> {
        let endpoint = request.endpoint;
        self.conclude(request, code, detail);
        self.exchange.ended(endpoint)
    }

    /// Tells the caller of an error.
    fn conclude(&self, request: Request, code: FetchErrorCode, detail: String) {
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.counters.requests_failed.add(1);
        self.completions.push(Completion {
            request: request.id,
            first_block: request.handed_out as u32,
            block_count: request.missing().len() as u32,
            fabric: FabricCode::None,
            last: true,
            outcome: Err(FetchFailure::new(code, detail)),
        });
    }

    /// Ends a request because this endpoint ends.
    pub(crate) fn fail_closing(&self, request: Request) {
        self.fail(request, FetchErrorCode::Closing, CLOSING.to_owned());
    }

    /// From now on every request fails with `Closing`.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        for request in self.exchange.close() {
            self.conclude(request, FetchErrorCode::Closing, CLOSING.to_owned());
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub(crate) fn inboxes(&self) -> &[(FabricKind, Arc<Inbox>)] {
        &self.inboxes
    }

    fn lock(&self) -> MutexGuard<'_, Peers> {
        // Every critical section leaves the tables whole.
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn say(line: Option<Line>) {
    if let Some((level, text)) = line {
        log::log!(level, "{text}");
    }
}
