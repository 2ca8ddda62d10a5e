//! Requests that a server had no room for: one line for each server, the oldest request first.
//!
//! A server without memory for requests does not keep those that it refuses, so their order is kept
//! here, by their ids. While a server has a line, new requests to it join the line. The first
//! request is sent when the server has accepted or finished another request of this endpoint,
//! because it may then have room, and otherwise after a delay. So each client asks a full server
//! with one request at a time, and no request overtakes an older one.

use super::FetchRequest;
use crate::limits::MAX_BUSY_DOUBLINGS;
use faro_fabric::EndpointId;
use faro_sync::HashMap;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

struct WaitingLine {
    /// The requests by id; never empty.
    waiting: BTreeMap<u64, FetchRequest>,
    /// The time at which the first request is sent, unless the server is heard of before.
    again: Instant,
    /// Number of refusals since the server last accepted a request.
    refusals: u32,
}

/// The lines of one progress thread.
#[derive(Default)]
pub(super) struct BusyServers(HashMap<EndpointId, WaitingLine>);

impl BusyServers {
    /// Adds a request that its server had no room for. The first request of the line is sent after
    /// `hint`, which doubles with each refusal up to eight times and is spread by the id, so that
    /// clients that were refused together do not return together.
    pub(super) fn refused(&mut self, request: FetchRequest, hint: Duration, now: Instant) {
        let (endpoint, id) = (request.endpoint, request.id);
        let line = self.0.entry(endpoint).or_insert_with(|| WaitingLine {
            waiting: BTreeMap::new(),
            again: now,
            refusals: 0,
        });
        line.waiting.insert(id, request);
        // Only the refusal of the first request changes the delay.
        if line
            .waiting
            .first_key_value()
            .is_some_and(|(first, _)| *first == id)
        {
            let delay = hint.saturating_mul(1 << line.refusals.min(MAX_BUSY_DOUBLINGS));
            line.refusals += 1;
            // Fibonacci hashing (Knuth 6.4): the upper bits of neighbouring ids differ.
            let spread = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
            line.again = now + delay.mul_f64(0.75 + spread as f64 / 512.0);
        }
    }

    /// Returns whether requests wait for room at the server.
    pub(super) fn has(&self, endpoint: EndpointId) -> bool {
        self.0.contains_key(&endpoint)
    }

    /// Adds a new request to the line of its server, which must have one.
    pub(super) fn join(&mut self, mut request: FetchRequest, now: Instant) {
        if let Some(line) = self.0.get_mut(&request.endpoint) {
            request.busy.waits(now);
            line.waiting.insert(request.id, request);
        }
    }

    /// Notes that the server has accepted a request.
    pub(super) fn accepted(&mut self, endpoint: EndpointId) {
        if let Some(line) = self.0.get_mut(&endpoint) {
            line.refusals = 0;
        }
    }

    /// Removes and returns the first request to a server.
    pub(super) fn next(&mut self, endpoint: EndpointId) -> Option<FetchRequest> {
        let line = self.0.get_mut(&endpoint)?;
        let (_, request) = line.waiting.pop_first()?;
        if line.waiting.is_empty() {
            self.0.remove(&endpoint);
        }
        Some(request)
    }

    /// Removes and returns the first request of each line whose delay is over.
    pub(super) fn due(&mut self, hint: Duration, now: Instant) -> Vec<FetchRequest> {
        let mut due = Vec::new();
        self.0.retain(|_, line| {
            if line.again <= now {
                // The answer sets the time again. Without an answer the next request is sent.
                line.again = now + hint.saturating_mul(1 << MAX_BUSY_DOUBLINGS);
                due.extend(line.waiting.pop_first().map(|(_, request)| request));
            }
            !line.waiting.is_empty()
        });
        due
    }

    /// Removes and returns the requests that have waited for their whole timeout.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<FetchRequest> {
        let mut expired = Vec::new();
        self.0.retain(|_, line| {
            while let Some(first) = line.waiting.first_entry() {
                if !first.get().busy.has_waited(now, first.get().idle_timeout) {
                    break;
                }
                expired.push(first.remove());
            }
            !line.waiting.is_empty()
        });
        expired
    }

    /// Removes and returns the request with the caller's id `id`.
    pub(super) fn withdraw(&mut self, id: u64) -> Option<FetchRequest> {
        let mut lines = self.0.iter_mut();
        let (endpoint, request) =
            lines.find_map(|(endpoint, line)| Some((*endpoint, line.waiting.remove(&id)?)))?;
        if self
            .0
            .get(&endpoint)
            .is_some_and(|line| line.waiting.is_empty())
        {
            self.0.remove(&endpoint);
        }
        Some(request)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns all requests.
    pub(super) fn take(&mut self) -> impl Iterator<Item = FetchRequest> {
        let lines = std::mem::take(&mut self.0).into_values();
        lines.flat_map(|line| line.waiting.into_values())
    }
}
