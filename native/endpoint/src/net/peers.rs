//! The peers that this endpoint knows by their cards, each with its [`Routes`].
//!
//! Shared by all threads; every method holds the lock for a look-up only, and logs after it.

use super::routes::{Line, Route, Routes};
use crate::counters::Counters;
use crate::fabrics::fabric_name;
use crate::schedule::{host_of, Exchange};
use faro_fabric::shm::same_host;
use faro_fabric::{EndpointId, FabricKind};
use faro_sync::lock;
use faro_wire::Card;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

#[derive(Default)]
struct State {
    routes: HashMap<EndpointId, Routes>,
    /// Handles count from 1.
    handles: HashMap<EndpointId, u64>,
    /// Of handle `n + 1` at `n`.
    endpoints: Vec<EndpointId>,
    /// Fabrics of this endpoint that have failed for good, and why.
    lost: Vec<(FabricKind, String)>,
}

/// The peers by handle and by endpoint id.
pub(crate) struct PeerTable {
    state: Mutex<State>,
    /// This endpoint's fabrics, best first.
    fabrics: Vec<FabricKind>,
    /// Where shm peers reach this endpoint, if it has that fabric.
    shm_location: Option<String>,
    /// Peers are members of the exchange while a connection to them is open.
    exchange: Arc<Exchange>,
    counters: Arc<Counters>,
}

impl PeerTable {
    pub(crate) fn new(
        fabrics: Vec<FabricKind>,
        shm_location: Option<String>,
        exchange: Arc<Exchange>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            state: Mutex::default(),
            fabrics,
            shm_location,
            exchange,
            counters,
        }
    }

    /// The handle of the endpoint on `card`, which is always the same for one endpoint.
    pub(crate) fn add(&self, card: &Card) -> u64 {
        let mut state = self.lock();
        if let Some(handle) = state.handles.get(&card.endpoint) {
            return *handle;
        }
        let routes = self.fabrics.iter();
        let routes = routes.filter_map(|fabric| self.route(*fabric, card));
        let mut routes = Routes::new(card.name.clone(), routes.collect());
        for (fabric, cause) in &state.lost {
            routes.fabric_lost(*fabric, cause);
        }
        state.routes.insert(card.endpoint, routes);
        state.endpoints.push(card.endpoint);
        let handle = state.endpoints.len() as u64;
        state.handles.insert(card.endpoint, handle);
        drop(state);
        self.exchange.join(card.endpoint, host_of(card));
        handle
    }

    fn route(&self, fabric: FabricKind, card: &Card) -> Option<Route> {
        let is_this = |scheme: &str| scheme == fabric_name(fabric);
        let address = card.addresses.iter().find(|a| is_this(&a.scheme))?;
        // Shared memory of another host is no route that fails: it is none.
        let near = |ours: &String| same_host(ours, &address.location);
        if fabric == FabricKind::Shm && !self.shm_location.as_ref().is_some_and(near) {
            return None;
        }
        Some(Route {
            fabric,
            location: address.location.clone(),
            endpoint: card.endpoint,
        })
    }

    /// The endpoint behind a handle.
    pub(crate) fn endpoint(&self, handle: u64) -> Option<EndpointId> {
        let at = usize::try_from(handle).ok()?.checked_sub(1)?;
        self.lock().endpoints.get(at).copied()
    }

    /// The best route to `peer` that is not in back-off.
    ///
    /// # Errors
    /// There is none: why.
    pub(crate) fn route_to(&self, peer: EndpointId) -> Result<Route, String> {
        match self.lock().routes.get(&peer) {
            Some(routes) => routes.choose(Instant::now()).cloned(),
            None => Err("no such peer".to_owned()),
        }
    }

    /// The route failed: its back-off begins.
    pub(crate) fn back_off(&self, peer: EndpointId, fabric: FabricKind, cause: &str) {
        let now = Instant::now();
        let mut state = self.lock();
        let routes = state.routes.get_mut(&peer);
        let line = routes.and_then(|routes| routes.failed(fabric, cause, now));
        drop(state);
        if line.is_some() {
            self.counters.demotions.add(1);
        }
        log(line);
    }

    /// Blocks arrived by that route.
    pub(crate) fn carried(&self, peer: EndpointId, fabric: FabricKind) {
        let mut state = self.lock();
        let routes = state.routes.get_mut(&peer);
        let line = routes.and_then(|routes| routes.carried(fabric, Instant::now()));
        drop(state);
        log(line);
    }

    /// This endpoint's fabric has failed for good: no request takes it again.
    pub(crate) fn fabric_lost(&self, fabric: FabricKind, cause: &str) {
        let mut state = self.lock();
        for routes in state.routes.values_mut() {
            routes.fabric_lost(fabric, cause);
        }
        state.lost.push((fabric, cause.to_owned()));
    }

    /// The last connection to `peer` on a fabric is gone.
    pub(super) fn disconnected(&self, peer: EndpointId) {
        self.exchange.leave(peer);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every critical section leaves the tables whole.
        lock(&self.state)
    }
}

fn log(line: Option<Line>) {
    if let Some((level, text)) = line {
        log::log!(level, "{text}");
    }
}
