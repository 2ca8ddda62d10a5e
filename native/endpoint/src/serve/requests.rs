//! Takes clients' requests to [`ServeService`], and ends requests that are past their deadline.

use super::budget::{bytes_of_buffers, bytes_of_request};
use super::entry::FetchEntry;
use super::job::ServeJob;
use super::service::{fail, ServeService};
use super::stage::{Buffers, Stage};
use crate::limits::{BUSY_RETRY, MAX_BUFFERS_HELD};
use crate::memory::Staging;
use crate::net::{MessageSource, Net};
use faro_fabric::{CloseReason, ConnectionId};
use faro_sync::clock;
use faro_wire::message::{Failed, FailureCode, Fetch, MoreBuffers, ToClient};
use faro_wire::WireError;
use std::time::{Duration, Instant};

impl ServeService {
    pub(super) fn fetch(
        &mut self,
        net: &mut Net,
        source: MessageSource,
        request: u64,
        fetch: Fetch,
    ) -> Result<(), WireError> {
        let MessageSource {
            connection,
            endpoint,
        } = source;
        if self.by_request.contains_key(&(connection, request)) {
            return Err(WireError::BadValue {
                what: "request id of FETCH (in use)",
                got: request,
            });
        }
        let payer = net.payer(endpoint);
        let bytes = bytes_of_request(fetch.blocks.len(), fetch.buffers.len());
        if !self.budget.take(payer, bytes) {
            let (held, limit) = (self.by_request.len(), self.budget.limit() >> 20);
            let detail =
                format!("{held} requests are being served, with up to {limit} MiB of memory");
            self.refuse(net, connection, request, detail);
            return Ok(());
        }
        let (serial, now) = (self.next_serial, clock::now());
        self.next_serial += 1;
        let wanted = Duration::from_millis(u64::from(fetch.deadline_ms));
        let idle_timeout = wanted.min(self.longest_wait);
        let account = self.memory.account_of(endpoint);
        let job = match ServeJob::new(serial, payer, account, fetch) {
            Ok(job) => Box::new(job),
            Err(error) => {
                self.budget.give(endpoint, bytes);
                return Err(error);
            }
        };
        self.by_request.insert((connection, request), serial);
        let due = self.schedule.submit(endpoint, serial, now);
        let (stage, at_once) = match due.contains(&serial) {
            true => (Stage::running(), Some(job)),
            false => {
                if self.memory.staging == Staging::Planned {
                    self.io.prefetch_for(&job);
                }
                (Stage::queued(job), None)
            }
        };
        let entry = FetchEntry {
            connection,
            endpoint,
            request,
            stage,
            writes: 0,
            idle_timeout,
            deadline: now + idle_timeout,
            look_at: now + idle_timeout,
            bytes,
        };
        self.deadlines.put(entry.look_at, serial);
        self.entries.insert(serial, entry);
        self.counters.served_requests.add(1);
        self.start_turns(due);
        if let Some(mut job) = at_once {
            job.may_lease(!self.starved.must_wait(endpoint));
            match self.io.at_once(job) {
                Ok((job, turn)) => self.on_turn(net, job, turn),
                Err(job) => self.io.submit(job, &self.inbox),
            }
        }
        Ok(())
    }

    pub(super) fn more_buffers(
        &mut self,
        key: (ConnectionId, u64),
        more: MoreBuffers,
    ) -> Result<(), WireError> {
        // The request may have ended while the message was on its way.
        let Some(&serial) = self.by_request.get(&key) else {
            return Ok(());
        };
        let Some(entry) = self.entries.get_mut(&serial) else {
            return Ok(());
        };
        let now = clock::now();
        // A peer that offers memory and takes no bytes into what it has offered makes no progress.
        if entry.writes == 0 {
            entry.progress(now);
        }
        self.schedule.progress(entry.endpoint, now);
        let bytes = bytes_of_buffers(more.buffers.len());
        entry.bytes += bytes;
        if !self.budget.add(entry.endpoint, bytes) {
            return Err(WireError::TooLarge {
                what: "bytes of a peer's requests",
                got: bytes as u64,
                limit: self.budget.limit() as u64,
            });
        }
        match entry.stage.on_buffers(more.buffers) {
            Buffers::Job(job, buffers) => job.add_buffers(buffers)?,
            Buffers::Kept(kept) => WireError::check_limit(
                "buffers of a request",
                kept as u64,
                MAX_BUFFERS_HELD as u64,
            )?,
            Buffers::NotNeeded => {}
        }
        self.advance(serial);
        Ok(())
    }

    pub(super) fn cancel(&mut self, net: &mut Net, (connection, request): (ConnectionId, u64)) {
        let found = self.by_request.get(&(connection, request)).copied();
        let removed = found.and_then(|serial| self.remove(serial));
        // A client that has read what it was offered waits for no word.
        if removed.is_some_and(|entry| !matches!(entry.stage, Stage::Offered)) {
            let (code, detail) = (FailureCode::Cancelled, String::new());
            fail(net, connection, request, code, detail);
        }
    }

    /// Refuses a request, because there is no room for one more: its client asks again later.
    pub(super) fn refuse(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        request: u64,
        detail: String,
    ) {
        self.counters.busy_refusals.add(1);
        let failed = Failed {
            code: FailureCode::Busy,
            retry_ms: BUSY_RETRY.as_millis() as u32,
            detail,
        };
        net.send(connection, request, ToClient::Failed(failed));
    }

    /// Ends what is past its deadline. A peer that does not take bytes into the buffers it offered is
    /// disconnected, because pages on their way to it cannot be used again until then.
    pub(super) fn remove_overdue(&mut self, net: &mut Net, now: Instant) {
        while let Some(serial) = self.deadlines.due(now) {
            if let Some(entry) = self.entries.get_mut(&serial) {
                // A turn that waits for its peer to take the bytes of others waits as long as it does.
                if matches!(entry.stage, Stage::Starved(_)) {
                    if let Some(taken) = self.taken.get(&entry.endpoint) {
                        entry.deadline = entry.deadline.max(*taken + entry.idle_timeout);
                    }
                }
                if entry.deadline > now {
                    entry.look_at = entry.deadline;
                    self.deadlines.put(entry.look_at, serial);
                    continue;
                }
            }
            let Some(entry) = self.remove(serial) else {
                continue;
            };
            if matches!(entry.stage, Stage::Offered) {
                continue;
            }
            let timeout = entry.idle_timeout.as_millis() as u64;
            if entry.writes > 0 {
                let what = "milliseconds without progress of a peer that offered buffers";
                let limit = timeout;
                net.disconnect(entry.connection, CloseReason::Bound { what, limit });
                continue;
            }
            let detail = format!("no progress for {timeout} ms");
            let code = FailureCode::DeadlinePassed;
            fail(net, entry.connection, entry.request, code, detail);
        }
    }
}
