//! Ends attempts before their last block: the server refuses, the caller cancels, or a fault
//! occurs.

use super::queue::CANCELLED;
use super::request::{FetchRequest, NextStep};
use super::FetchService;
use crate::limits::{BUSY_RETRY, MAX_BUSY_RETRY};
use crate::net::{LinkState, Net};
use faro_fabric::EndpointId;
use faro_sync::clock;
use faro_wire::codes::FetchErrorCode;
use faro_wire::message::{Failed, FailureCode, ToServer};
use std::time::{Duration, Instant};

impl FetchService {
    pub(super) fn failed(&mut self, net: &mut Net, id: u64, failed: &Failed) {
        let Some(mut request) = self.end(net, id) else {
            return;
        };
        let code = match failed.code {
            FailureCode::DeadlinePassed => FetchErrorCode::TimedOut,
            FailureCode::Busy if failed.retry_ms > 0 => {
                let now = clock::now();
                request.busy.waits(now);
                if !request.busy.has_waited(now, request.idle_timeout) {
                    let hint = Duration::from_millis(u64::from(failed.retry_ms));
                    return self
                        .busy_servers
                        .refused(request, hint.min(MAX_BUSY_RETRY), now);
                }
                FetchErrorCode::Refused
            }
            FailureCode::Cancelled
            | FailureCode::Busy
            | FailureCode::Internal
            | FailureCode::Closing => FetchErrorCode::Refused,
        };
        let detail = format!("the server says {:?}: {}", failed.code, failed.detail);
        self.queue.fail(request, code, detail);
    }

    /// Sends the first request that waits for room at the server. Called when the server has
    /// accepted or finished a request, because it may have room then.
    pub(super) fn call_next(&mut self, net: &mut Net, server: EndpointId) {
        if let Some(request) = self.busy_servers.next(server) {
            self.call(net, request);
        }
    }

    /// Sends the requests whose delay for a full server is over, and fails those whose timeout has
    /// passed.
    pub(super) fn call_due(&mut self, net: &mut Net, now: Instant) {
        for request in self.busy_servers.expired(now) {
            let timeout = request.idle_timeout.as_millis();
            let detail = format!("the server had no room for {timeout} ms");
            self.queue.fail(request, FetchErrorCode::Refused, detail);
        }
        for request in self.busy_servers.due(BUSY_RETRY, now) {
            self.call(net, request);
        }
    }

    fn call(&mut self, net: &mut Net, mut request: FetchRequest) {
        match net.link(request.endpoint) {
            LinkState::Open(connection) => self.issue(net, connection, request),
            LinkState::Opening | LinkState::None => {
                request.busy.is_called = true;
                self.queue.dispatch(request);
            }
        }
    }

    pub(super) fn cancel(&mut self, net: &mut Net, request: u64) {
        if let Some(id) = self.attempts.of_request(request) {
            return self.give_up(net, id, FetchErrorCode::Cancelled, CANCELLED);
        }
        if let Some(request) = self.withdraw(request) {
            let (code, why) = (FetchErrorCode::Cancelled, CANCELLED.to_owned());
            self.queue.fail(request, code, why);
        }
    }

    /// Removes and returns a request that has no attempt now.
    fn withdraw(&mut self, id: u64) -> Option<FetchRequest> {
        let request = self.put_back.remove(&id);
        if let Some(request) = request.or_else(|| self.busy_servers.withdraw(id)) {
            return Some(request);
        }
        self.waiting.values_mut().find_map(|waiting| {
            let at = waiting.iter().position(|r| r.id == id)?;
            Some(waiting.swap_remove(at))
        })
    }

    /// Handles a fault: asks for the missing blocks again, on this fabric first and then on the
    /// next one.
    pub(super) fn fault(&mut self, net: &mut Net, id: u64, code: FetchErrorCode, detail: &str) {
        self.tell_server(net, id);
        let Some(mut request) = self.end(net, id) else {
            return;
        };
        match request.faults.count(net.kind()) {
            NextStep::Again => {}
            NextStep::OtherFabric => net.back_off(request.endpoint, detail),
            NextStep::GiveUp => {
                net.back_off(request.endpoint, detail);
                return self.queue.fail(request, code, detail.to_owned());
            }
        }
        let (caller, missing) = (request.id, request.missing().len());
        let (of, name) = (request.blocks.len(), net.kind().name());
        if self.queue.dispatch_or(request, code, detail) {
            self.counters.retries.add(1);
            log::info!(
                "fetch {caller} over {name}: {detail}; asking again for {missing} of {of} blocks"
            );
        }
    }

    /// Ends an attempt that has brought all its blocks. If its request has more, each block that
    /// the arena cannot hold gets an error, and a new attempt asks for the others.
    pub(super) fn next_part(&mut self, net: &mut Net, id: u64) {
        let Some(connection) = self.attempts.get(id).map(|attempt| attempt.connection) else {
            return;
        };
        let Some(mut request) = self.end(net, id) else {
            return;
        };
        while let Some(bytes) = request.next_too_large() {
            let room = self.largest_block;
            let detail = format!("a block of {bytes} bytes, the arena has room for {room}");
            self.queue.fail_block(&mut request, detail);
        }
        match request.wanted().is_empty() {
            true => self.call_next(net, request.endpoint),
            false => self.issue(net, connection, request),
        }
    }

    /// Ends a request with an error.
    pub(super) fn give_up(&mut self, net: &mut Net, id: u64, code: FetchErrorCode, detail: &str) {
        self.tell_server(net, id);
        if let Some(request) = self.end(net, id) {
            let server = request.endpoint;
            self.queue.fail(request, code, detail.to_owned());
            self.call_next(net, server);
        }
    }

    /// Tells the server to stop, or that the client has read what it was offered. On a closed
    /// connection the message is dropped.
    pub(super) fn tell_server(&mut self, net: &mut Net, id: u64) {
        if let Some(attempt) = self.attempts.get(id) {
            net.send(attempt.connection, id, ToServer::Cancel);
        }
    }

    /// Removes the attempt and revokes its buffers.
    pub(super) fn end(&mut self, net: &mut Net, id: u64) -> Option<FetchRequest> {
        let attempt = self.attempts.end(id)?;
        let connection = attempt.connection;
        let (request, keys) = attempt.end();
        self.awaiting_memory.remove(&(request.id, id));
        self.awaiting_room.remove(connection, (request.id, id));
        for key in keys {
            // If the result is `RevokeStatus::Later`, the fabric keeps the lease until no write can
            // reach it.
            drop(net.revoke(key));
        }
        Some(request)
    }
}
