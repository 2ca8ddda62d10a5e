//! The client's side: requests of all threads, each to one peer.

use super::usage::ExchangeSide;
use super::{Exchange, PeerAdmission};
use faro_fabric::EndpointId;
use faro_sync::{clock, lock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

struct QueueState<T> {
    admission: PeerAdmission<T>,
    /// Generation of the plan that `admission` follows.
    generation: u64,
    /// Nothing waits any more, everything goes.
    closed: bool,
}

/// Requests that wait for their peer's permit. Shared by all threads of an endpoint.
pub(crate) struct ClientQueue<T> {
    exchange: Arc<Exchange>,
    state: Mutex<QueueState<T>>,
    /// Something waits in `state`.
    waiting: AtomicBool,
    /// Peers count: there is a bound on how many at once.
    bounded: AtomicBool,
}

impl<T> ClientQueue<T> {
    pub(crate) fn new(exchange: Arc<Exchange>) -> Self {
        Self {
            state: Mutex::new(QueueState {
                admission: exchange.admission(),
                generation: 0,
                closed: false,
            }),
            exchange,
            waiting: AtomicBool::new(false),
            bounded: AtomicBool::new(true),
        }
    }

    /// Adds a request. Returns the requests to send now.
    pub(crate) fn submit(&self, peer: EndpointId, request: T) -> Vec<T> {
        let now = clock::now();
        self.exchange.wanted(peer);
        self.with(now, |state, out| match state.closed {
            true => out.push(request),
            false => state.admission.submit(peer, request, now, out),
        })
    }

    /// Notes that a request that was sent has ended. Returns the requests to send now.
    pub(crate) fn ended(&self, peer: EndpointId) -> Vec<T> {
        let now = clock::now();
        self.with(now, |state, out| state.admission.ended(peer, 1, now, out))
    }

    /// Notes that something arrived from a peer that this endpoint reads from.
    pub(crate) fn progress(&self, peer: EndpointId) {
        // Without a bound nothing depends on which peer is slow.
        if self.bounded.load(Ordering::Relaxed) {
            let now = clock::now();
            lock(&self.state).admission.progress(peer, now);
        }
    }

    /// Called as time passes. Returns the requests to send now.
    pub(crate) fn tick(&self, now: Instant) -> Vec<T> {
        self.with(now, |state, out| state.admission.tick(now, out))
    }

    /// Returns whether requests wait here, so that `tick` must be called.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Removes a request that waits.
    pub(crate) fn withdraw(&self, which: impl Fn(&T) -> bool) -> Option<T> {
        if !self.has_waiting() {
            return None;
        }
        let mut state = lock(&self.state);
        let found = state.admission.withdraw(which);
        self.note(&mut state);
        found
    }

    /// Returns all that wait; from now on nothing does.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut state = lock(&self.state);
        state.closed = true;
        let all = state.admission.clear();
        self.note(&mut state);
        all
    }

    /// Lets `work` change what waits.
    fn with(&self, now: Instant, work: impl FnOnce(&mut QueueState<T>, &mut Vec<T>)) -> Vec<T> {
        let mut out = Vec::new();
        let mut state = lock(&self.state);
        if let Some((generation, plan)) = self.exchange.newer_than(state.generation, now) {
            state.generation = generation;
            state.admission.adopt(plan.reads.clone(), now, &mut out);
        }
        work(&mut state, &mut out);
        self.note(&mut state);
        out
    }

    fn note(&self, state: &mut QueueState<T>) {
        self.exchange
            .usage
            .note(&mut state.admission, ExchangeSide::Reads);
        let waiting = state.admission.waits();
        self.waiting.store(waiting, Ordering::Relaxed);
        let bounded = state.admission.is_bounded();
        self.bounded.store(bounded, Ordering::Relaxed);
    }
}
