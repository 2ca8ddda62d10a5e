//! Which fabric a request takes, and how it ends.
//!
//! A peer has a route per fabric that both sides have, best first. A route that failed rests for a
//! while (doubling up to a minute), so that requests do not queue behind connects that time out;
//! when all rest, a request fails at once and its caller takes the slower path.

use crate::completion::{Completion, Completions, FetchFailure};
use crate::config::limits::{BACKOFF_MAX, BACKOFF_MIN, MAX_REQUESTS};
use crate::config::{fabric_code, fabric_name, EndpointError};
use crate::counters::Counters;
use crate::progress::{Command, Inbox};
use crate::reader::Request;
use faro_fabric::shm::same_host;
use faro_fabric::{EndpointId, FabricKind};
use faro_wire::crossing::{FabricCode, FetchErrorCode};
use faro_wire::Card;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A way to one peer.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) fabric: FabricKind,
    pub(crate) location: String,
    pub(crate) endpoint: EndpointId,
    rests_until: Option<Instant>,
    next_rest: Duration,
    trouble: String,
}

struct Peer {
    name: String,
    /// Best first.
    routes: Vec<Route>,
}

#[derive(Default)]
struct Peers {
    by_handle: HashMap<u64, Peer>,
    handles: HashMap<EndpointId, u64>,
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
    in_flight: AtomicUsize,
    next_id: AtomicU64,
    closing: AtomicBool,
}

impl Router {
    pub(crate) fn new(
        inboxes: Vec<(FabricKind, Arc<Inbox>)>,
        shm_location: Option<String>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            shm_location,
            peers: Mutex::default(),
            inboxes,
            completions: Completions::new(),
            counters,
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
            Some(Route {
                fabric,
                location: address.location.clone(),
                endpoint: card.endpoint,
                rests_until: None,
                next_rest: BACKOFF_MIN,
                trouble: String::new(),
            })
        };
        let routes = self
            .inboxes
            .iter()
            .filter_map(|(fabric, _)| route(*fabric))
            .collect();
        peers.handles.insert(card.endpoint, handle);
        peers.by_handle.insert(
            handle,
            Peer {
                name: card.name.clone(),
                routes,
            },
        );
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
        if !self.lock().by_handle.contains_key(&peer) {
            return Err(EndpointError::UnknownPeer(peer));
        }
        if self.in_flight.fetch_add(1, Ordering::AcqRel) >= MAX_REQUESTS {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
            return Err(EndpointError::Full {
                limit: MAX_REQUESTS,
            });
        }
        self.counters.requests.add(1);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let faults = crate::reader::Faults::default();
        self.dispatch(Request {
            id,
            peer,
            blocks,
            handed_out: 0,
            patience,
            faults,
        });
        Ok(id)
    }

    /// Sends a request on by the best route that does not rest, or fails it.
    pub(crate) fn dispatch(&self, request: Request) {
        if self.closing.load(Ordering::Acquire) {
            return self.fail_closing(request);
        }
        let now = Instant::now();
        let mut peers = self.lock();
        let Some(peer) = peers.by_handle.get_mut(&request.peer) else {
            drop(peers);
            return self.fail(
                request,
                FetchErrorCode::Unreachable,
                "no such peer".to_owned(),
            );
        };
        let free = |route: &&Route| route.rests_until.is_none_or(|until| until <= now);
        if let Some(route) = peer.routes.iter().find(free).cloned() {
            drop(peers);
            if let Some((_, inbox)) = self.inboxes.iter().find(|(kind, _)| *kind == route.fabric) {
                inbox.send(Command::Fetch(request, route));
            }
            return;
        }
        let detail = if peer.routes.is_empty() {
            format!("no fabric in common with {}", peer.name)
        } else {
            let troubles: Vec<String> = peer
                .routes
                .iter()
                .map(|route| format!("{}: {}", fabric_name(route.fabric), route.trouble))
                .collect();
            format!("{} cannot be reached: {}", peer.name, troubles.join("; "))
        };
        drop(peers);
        self.fail(request, FetchErrorCode::Unreachable, detail);
    }

    /// Cancels on whatever fabric the request is.
    pub(crate) fn cancel(&self, request: u64) {
        for (_, inbox) in &self.inboxes {
            inbox.send(Command::Cancel(request));
        }
    }

    /// The route failed: it rests.
    pub(crate) fn rest(&self, peer: u64, fabric: FabricKind, trouble: &str) {
        let mut peers = self.lock();
        let Some(peer) = peers.by_handle.get_mut(&peer) else {
            return;
        };
        let Some(route) = peer.routes.iter_mut().find(|route| route.fabric == fabric) else {
            return;
        };
        route.rests_until = Some(Instant::now() + route.next_rest);
        trouble.clone_into(&mut route.trouble);
        self.counters.demotions.add(1);
        log::info!(
            "{} over {} rests for {} s: {trouble}",
            peer.name,
            fabric_name(fabric),
            route.next_rest.as_secs()
        );
        route.next_rest = (route.next_rest * 2).min(BACKOFF_MAX);
    }

    /// The route works.
    pub(crate) fn works(&self, endpoint: EndpointId, fabric: FabricKind) {
        let mut peers = self.lock();
        let Some(handle) = peers.handles.get(&endpoint).copied() else {
            return;
        };
        let Some(peer) = peers.by_handle.get_mut(&handle) else {
            return;
        };
        if let Some(route) = peer.routes.iter_mut().find(|route| route.fabric == fabric) {
            route.rests_until = None;
            route.next_rest = BACKOFF_MIN;
        }
    }

    /// Hands blocks to the caller.
    pub(crate) fn deliver(
        &self,
        request: &Request,
        kind: FabricKind,
        ready: crate::reader::Ready,
        last: bool,
    ) {
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
    }

    /// Ends a request with an error for all that was not handed out.
    pub(crate) fn fail(&self, request: Request, code: FetchErrorCode, detail: String) {
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
        let detail = "this endpoint is closing".to_owned();
        self.fail(request, FetchErrorCode::Closing, detail);
    }

    /// From now on every request fails with `Closing`.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
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
