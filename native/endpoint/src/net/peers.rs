//! The peers that this endpoint knows by their cards, each with its [`Routes`] and its
//! [`PeerBackoff`].
//!
//! Shared by all threads; every method holds the lock for a look-up only, and logs after it.
//!
//! Executors come and go for months. A peer that was not asked for anything for [`PEER_IDLE`] is
//! forgotten, and its handle is unknown from then on; the caller adds its card again.

use super::card_routes::CardRoutes;
use super::peer_backoff::{blames_peer, PeerBackoff};
use super::routes::{LogEntry, Route, RouteFailure, Routes};
use crate::counters::EndpointCounters;
use crate::limits::{CONNECT_TIMEOUT, PEER_IDLE};
use crate::schedule::{host_of, Exchange};
use faro_fabric::{EndpointId, FabricKind};
use faro_secure::KeyError;
use faro_sync::{clock, lock, HashMap};
use faro_wire::codes::FetchErrorCode;
use faro_wire::Card;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

struct Peer {
    routes: Routes,
    backoff: PeerBackoff,
    /// Handles count from 1, and none is used twice.
    handle: u64,
    /// Time when something was last asked of it.
    used: Instant,
}

#[derive(Default)]
struct PeersState {
    peers: HashMap<EndpointId, Peer>,
    by_handle: HashMap<u64, EndpointId>,
    last_handle: u64,
    /// Time when idle peers were last looked for.
    looked: Option<Instant>,
    /// Fabrics of this endpoint that have failed for good, and why.
    lost: Vec<(FabricKind, String)>,
}

/// The peers by handle and by endpoint id.
pub(crate) struct PeerTable {
    state: Mutex<PeersState>,
    card_routes: CardRoutes,
    /// Peers are members of the exchange while a connection to them is open.
    exchange: Arc<Exchange>,
    counters: Arc<EndpointCounters>,
}

impl PeerTable {
    pub(crate) fn new(
        card_routes: CardRoutes,
        exchange: Arc<Exchange>,
        counters: Arc<EndpointCounters>,
    ) -> Self {
        Self {
            state: Mutex::default(),
            card_routes,
            exchange,
            counters,
        }
    }

    /// Returns the handle of the endpoint on `card`, which is the same for one endpoint until it is
    /// forgotten. `known_at` are addresses of its host as this host sees them; they are tried
    /// before the card's.
    ///
    /// # Errors
    /// `KeyError`.
    pub(crate) fn add(&self, card: &Card, known_at: &[IpAddr]) -> Result<u64, KeyError> {
        let used = clock::now();
        let mut state = self.lock();
        if let Some(peer) = state.peers.get_mut(&card.endpoint) {
            peer.used = used;
            return Ok(peer.handle);
        }
        let mut routes = self.card_routes.of(card, known_at)?;
        for (fabric, cause) in &state.lost {
            routes.fabric_lost(*fabric, cause);
        }
        state.last_handle += 1;
        let handle = state.last_handle;
        let peer = Peer {
            routes,
            backoff: PeerBackoff::default(),
            handle,
            used,
        };
        state.peers.insert(card.endpoint, peer);
        state.by_handle.insert(handle, card.endpoint);
        drop(state);
        self.exchange.join(card.endpoint, host_of(card));
        Ok(handle)
    }

    /// Returns whether the card of that endpoint was added, and not forgotten.
    pub(crate) fn has_card_of(&self, endpoint: EndpointId) -> bool {
        self.lock().peers.contains_key(&endpoint)
    }

    /// Returns the endpoint behind a handle, which is about to get a request.
    pub(crate) fn endpoint(&self, handle: u64) -> Option<EndpointId> {
        let mut state = self.lock();
        let endpoint = *state.by_handle.get(&handle)?;
        state.peers.get_mut(&endpoint)?.used = clock::now();
        Some(endpoint)
    }

    /// Returns whether requests to the peer failed a short time ago. Of an unknown handle: no.
    pub(crate) fn is_backed_off(&self, handle: u64) -> bool {
        let state = self.lock();
        let endpoint = state.by_handle.get(&handle);
        let peer = endpoint.and_then(|endpoint| state.peers.get(endpoint));
        peer.is_some_and(|peer| peer.backoff.is_on(clock::now()))
    }

    /// Notes a failure of the peer that the caller saw and this endpoint could not.
    pub(crate) fn blame(&self, handle: u64) {
        let mut state = self.lock();
        let endpoint = state.by_handle.get(&handle).copied();
        if let Some(peer) = endpoint.and_then(|endpoint| state.peers.get_mut(&endpoint)) {
            peer.backoff.failed(clock::now());
        }
    }

    /// Notes that a request to `peer` failed.
    pub(crate) fn request_failed(&self, peer: EndpointId, code: FetchErrorCode) {
        if blames_peer(code) {
            if let Some(peer) = self.lock().peers.get_mut(&peer) {
                peer.backoff.failed(clock::now());
            }
        }
    }

    /// Notes that a request to `peer` brought all its blocks.
    pub(crate) fn request_succeeded(&self, peer: EndpointId) {
        if let Some(peer) = self.lock().peers.get_mut(&peer) {
            peer.backoff.succeeded();
        }
    }

    /// Forgets the peers that were not asked for anything for `PEER_IDLE`. Looks a few times in that time.
    pub(crate) fn forget_idle(&self, now: Instant) {
        let mut state = self.lock();
        let since = now.saturating_duration_since(*state.looked.get_or_insert(now));
        if since < PEER_IDLE / 8 {
            return;
        }
        state.looked = Some(now);
        let idle = |peer: &Peer| now.saturating_duration_since(peer.used) >= PEER_IDLE;
        let peers = state.peers.iter().filter(|(_, peer)| idle(peer));
        let gone: Vec<_> = peers.map(|(id, peer)| (*id, peer.handle)).collect();
        for (endpoint, handle) in &gone {
            state.peers.remove(endpoint);
            state.by_handle.remove(handle);
        }
        drop(state);
        for (endpoint, _) in gone {
            self.exchange.forget(endpoint);
        }
    }

    /// The best route to `peer` that is not in back-off.
    ///
    /// # Errors
    /// There is none: why.
    pub(crate) fn route_to(&self, peer: EndpointId) -> Result<Route, String> {
        match self.lock().peers.get(&peer) {
            Some(peer) => peer.routes.choose(clock::now()).cloned(),
            None => Err("no such peer".to_owned()),
        }
    }

    /// Returns how long connecting to `peer` by that fabric may take.
    pub(crate) fn connect_timeout(&self, peer: EndpointId, fabric: FabricKind) -> Duration {
        match self.lock().peers.get(&peer) {
            Some(peer) => peer.routes.connect_timeout(fabric),
            None => CONNECT_TIMEOUT,
        }
    }

    /// Starts the back-off of a route that failed.
    pub(crate) fn back_off(&self, peer: EndpointId, fabric: FabricKind, cause: &str) {
        let now = clock::now();
        let mut state = self.lock();
        let peer = state.peers.get_mut(&peer);
        let failure = peer.and_then(|peer| peer.routes.failed(fabric, cause, now));
        drop(state);
        log(failure.map(|failure| match failure {
            RouteFailure::Elsewhere(line) => line,
            RouteFailure::BackOff(line) => {
                self.counters.route_backoffs.add(1);
                line
            }
        }));
    }

    /// Notes that blocks arrived by a route.
    pub(crate) fn carried(&self, peer: EndpointId, fabric: FabricKind) {
        let mut state = self.lock();
        let peer = state.peers.get_mut(&peer);
        let line = peer.and_then(|peer| peer.routes.carried(fabric, clock::now()));
        drop(state);
        log(line);
    }

    /// Notes that this endpoint's fabric has failed for good: no request uses it again.
    pub(crate) fn fabric_lost(&self, fabric: FabricKind, cause: &str) {
        let mut state = self.lock();
        for peer in state.peers.values_mut() {
            peer.routes.fabric_lost(fabric, cause);
        }
        state.lost.push((fabric, cause.to_owned()));
    }

    /// Notes that the last connection to `peer` on a fabric was closed.
    pub(super) fn disconnected(&self, peer: EndpointId) {
        let known = self.lock().peers.contains_key(&peer);
        self.exchange.leave(peer);
        if !known {
            self.exchange.forget(peer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, PeersState> {
        // Every critical section leaves the tables whole.
        lock(&self.state)
    }
}

fn log(line: Option<LogEntry>) {
    if let Some((level, text)) = line {
        log::log!(level, "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::card_routes::CardSecrets;
    use super::*;
    use crate::schedule::ExchangeConfig;
    use std::time::Duration;

    #[test]
    fn a_peer_that_is_asked_for_nothing_is_forgotten() {
        let timeout = Duration::from_secs(1);
        let config = ExchangeConfig::default();
        let exchange = Arc::new(Exchange::new(1, String::new(), config, timeout));
        let counters = Arc::new(EndpointCounters::default());
        let routes = CardRoutes::new(vec![FabricKind::Tcp], None, CardSecrets::default());
        let peers = PeerTable::new(routes, exchange, counters);
        let card = |endpoint| Card {
            endpoint,
            name: "executor".to_owned(),
            addresses: Vec::new(),
            secret: faro_secure::Secret::new([0; 32]),
        };
        let (first, second) = (
            peers.add(&card(10), &[]).unwrap(),
            peers.add(&card(20), &[]).unwrap(),
        );
        assert_eq!(peers.add(&card(10), &[]), Ok(first));
        let start = Instant::now();
        peers.forget_idle(start);
        peers.forget_idle(start + PEER_IDLE / 2);
        assert_eq!(peers.endpoint(first), Some(10));
        // The other was used a moment before; nothing has passed for it in this test's clock.
        let late = Instant::now() + PEER_IDLE;
        peers.forget_idle(late);
        assert_eq!(
            (peers.endpoint(first), peers.endpoint(second)),
            (None, None)
        );
        let again = peers.add(&card(20), &[]).unwrap();
        assert!(again != second && again != first, "no handle is used twice");
        assert_eq!(peers.endpoint(again), Some(20));
    }
}
