//! Requests that a server had no room for: a line for each server, the oldest request first.
//!
//! A server that is out of memory for requests keeps none of those that it refuses, so their order is kept here, by
//! their ids. While there is a line, new requests to that server join it. The first of a line goes when the server has
//! taken or finished another request of this endpoint, which is when it may have room, and otherwise now and then. So a
//! server without room is asked by one request of each client, and no request is overtaken by a newer one.

use super::Request;
use crate::limits::MAX_BUSY_DOUBLINGS;
use faro_fabric::EndpointId;
use faro_sync::HashMap;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

struct Line {
    /// By id. Never empty.
    waiting: BTreeMap<u64, Request>,
    /// When the first one is sent, if nothing is heard of the server before.
    again: Instant,
    /// Refusals since the server last took a request.
    refusals: u32,
}

/// The lines of one progress thread.
#[derive(Default)]
pub(super) struct BusyServers(HashMap<EndpointId, Line>);

impl BusyServers {
    /// The server had no room. The first of the line is sent after `hint`, doubled with each refusal up to eight times
    /// as long and spread by its id, so that clients that were refused together do not come together.
    pub(super) fn refused(&mut self, request: Request, hint: Duration, now: Instant) {
        let (endpoint, id) = (request.endpoint, request.id);
        let line = self.0.entry(endpoint).or_insert_with(|| Line {
            waiting: BTreeMap::new(),
            again: now,
            refusals: 0,
        });
        line.waiting.insert(id, request);
        // A refusal of one that is not the first says nothing new.
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

    /// Requests wait for room at that server.
    pub(super) fn has(&self, endpoint: EndpointId) -> bool {
        self.0.contains_key(&endpoint)
    }

    /// A new request joins the line of its server, which `has` one.
    pub(super) fn join(&mut self, mut request: Request, now: Instant) {
        if let Some(line) = self.0.get_mut(&request.endpoint) {
            request.busy.waits(now);
            line.waiting.insert(request.id, request);
        }
    }

    /// The server has taken a request.
    pub(super) fn taken(&mut self, endpoint: EndpointId) {
        if let Some(line) = self.0.get_mut(&endpoint) {
            line.refusals = 0;
        }
    }

    /// Removes and returns the first request to a server.
    pub(super) fn next(&mut self, endpoint: EndpointId) -> Option<Request> {
        let line = self.0.get_mut(&endpoint)?;
        let (_, request) = line.waiting.pop_first()?;
        if line.waiting.is_empty() {
            self.0.remove(&endpoint);
        }
        Some(request)
    }

    /// Removes and returns the first requests of the lines whose time has come.
    pub(super) fn due(&mut self, hint: Duration, now: Instant) -> Vec<Request> {
        let mut due = Vec::new();
        self.0.retain(|_, line| {
            if line.again <= now {
                // Its answer sets the time anew; without an answer the next one goes.
                line.again = now + hint.saturating_mul(1 << MAX_BUSY_DOUBLINGS);
                due.extend(line.waiting.pop_first().map(|(_, request)| request));
            }
            !line.waiting.is_empty()
        });
        due
    }

    /// Removes and returns the requests that have waited for as long as they may.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<Request> {
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

    /// Removes and returns the caller's request of that id.
    pub(super) fn withdraw(&mut self, id: u64) -> Option<Request> {
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

    /// Removes and returns all.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Request> {
        let lines = std::mem::take(&mut self.0).into_values();
        lines.flat_map(|line| line.waiting.into_values())
    }
}
