//! Starts attempts at requests: connects first if there is no connection, and sends FETCH.

use super::attempt::Attempt;
use super::request::FetchRequest;
use super::FetchService;
use crate::net::{LinkState, Net, Route};
use faro_fabric::ConnectionId;
use faro_sync::clock;
use faro_wire::message::{Fetch, RemoteBuffer, ToServer};
use std::time::Instant;

impl FetchService {
    /// Starts `request`, and connects first if there is no connection.
    pub(super) fn start(&mut self, net: &mut Net, mut request: FetchRequest, route: &Route) {
        let is_called = std::mem::take(&mut request.busy.is_called);
        if !is_called && self.busy_servers.has(request.endpoint) {
            return self.busy_servers.join(request, clock::now());
        }
        match net.open_to(route, request.idle_timeout) {
            LinkState::Open(connection) => self.issue(net, connection, request),
            LinkState::Opening => {
                let waiting = self.waiting.entry(route.peer.endpoint).or_default();
                waiting.push(request);
            }
            LinkState::None => self.queue.dispatch(request),
        }
    }

    /// Starts an attempt at `request` on an open connection.
    pub(super) fn issue(&mut self, net: &mut Net, connection: ConnectionId, request: FetchRequest) {
        let deadline = clock::now() + request.idle_timeout;
        let mut attempt = self.attempt(net, connection, request, deadline);
        // With a buffer in the request, a thousand tiny blocks take a single round trip.
        let buffer = self.first_buffer(net, &mut attempt);
        self.ask(net, attempt, buffer);
    }

    /// Starts an attempt without a buffer, and with the deadline of an earlier attempt.
    pub(super) fn issue_before(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        request: FetchRequest,
        deadline: Instant,
    ) {
        let attempt = self.attempt(net, connection, request, deadline);
        self.ask(net, attempt, None);
    }

    fn attempt(
        &mut self,
        net: &Net,
        connection: ConnectionId,
        mut request: FetchRequest,
        deadline: Instant,
    ) -> Attempt {
        request.goes_over(net.kind());
        request.writes_only |= self.pulls.are_stopped(connection);
        self.any_taken |= request.was_taken;
        Attempt::new(request, connection, deadline)
    }

    fn ask(&mut self, net: &mut Net, attempt: Attempt, buffer: Option<RemoteBuffer>) {
        let idle_timeout = attempt.request.idle_timeout.as_millis();
        let deadline_ms = u32::try_from(idle_timeout).unwrap_or(u32::MAX);
        let fetch = Fetch {
            deadline_ms,
            writes_only: attempt.request.writes_only,
            buffers: buffer.into_iter().collect(),
            blocks: attempt.request.wanted().to_vec(),
        };
        let connection = attempt.connection;
        let id = self.attempts.begin(attempt);
        net.send(connection, id, ToServer::Fetch(fetch));
    }
}
