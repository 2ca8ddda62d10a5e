//! The server's side: the turns of the fetches that one progress thread serves.

use super::usage::ExchangeSide;
use super::{Exchange, PeerAdmission};
use faro_fabric::EndpointId;
use std::sync::Arc;
use std::time::Instant;

/// Turns that wait for their peer's permit, by the serial number of their fetch. A turn is a piece
/// of running work, and so is each write that it posted.
pub(crate) struct ServerQueue {
    exchange: Arc<Exchange>,
    admission: PeerAdmission<u64>,
    /// Generation of the plan that `admission` follows.
    generation: u64,
}

impl ServerQueue {
    pub(crate) fn new(exchange: Arc<Exchange>) -> Self {
        Self {
            admission: exchange.admission(),
            exchange,
            generation: 0,
        }
    }

    /// Submits the next turn of a peer's fetch. Returns the fetches that have their turn now.
    pub(crate) fn submit(&mut self, peer: EndpointId, serial: u64, now: Instant) -> Vec<u64> {
        self.with(now, |admission, out| {
            admission.submit(peer, serial, now, out)
        })
    }

    /// Notes that a fetch has ended without the turn that it waited for.
    pub(crate) fn withdraw(&mut self, serial: u64) {
        self.admission.withdraw(|waiting| *waiting == serial);
    }

    /// Counts the writes that a turn has posted.
    pub(crate) fn posted(&mut self, peer: EndpointId, writes: usize) {
        self.admission.more(peer, writes);
    }

    /// Notes that the peer took bytes, or offered buffers.
    pub(crate) fn progress(&mut self, peer: EndpointId, now: Instant) {
        self.admission.progress(peer, now);
    }

    /// Notes that this many turns and writes have ended. Returns the fetches whose turn it is now.
    pub(crate) fn ended(&mut self, peer: EndpointId, pieces: usize, now: Instant) -> Vec<u64> {
        self.with(now, |admission, out| {
            admission.ended(peer, pieces, now, out)
        })
    }

    /// Called as time passes. Returns the fetches whose turn it is now.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<u64> {
        self.with(now, |admission, out| admission.tick(now, out))
    }

    fn with(
        &mut self,
        now: Instant,
        work: impl FnOnce(&mut PeerAdmission<u64>, &mut Vec<u64>),
    ) -> Vec<u64> {
        let mut out = Vec::new();
        if let Some((generation, plan)) = self.exchange.newer_than(self.generation, now) {
            self.generation = generation;
            self.admission.adopt(plan.serves.clone(), now, &mut out);
        }
        work(&mut self.admission, &mut out);
        self.exchange
            .usage
            .note(&mut self.admission, ExchangeSide::Serves);
        out
    }
}
