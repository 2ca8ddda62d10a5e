//! Reads from servers' pages: the part of [`FetchService`] for pulls.

use super::buffers::MemoryGrant;
use super::deliver::Stream;
use super::pull::{BatchResult, Pull};
use super::pulls::NotPosted;
use super::FetchService;
use crate::net::Net;
use faro_fabric::{ConnectionId, Outcome};
use faro_pool::{Lease, Purpose};
use faro_sync::clock;
use faro_wire::codes::FetchErrorCode;

impl FetchService {
    /// Posts the reads that memory and room allow, if the attempt is pulling.
    pub(super) fn pull_more(&mut self, net: &mut Net, id: u64) -> MemoryGrant {
        let Some(mut attempt) = self.attempts.take_out(id) else {
            return MemoryGrant::Served;
        };
        let (connection, request) = (attempt.connection, attempt.request.id);
        let waits_behind = self.awaiting_room.has_older(connection, request);
        let posted = match attempt.pull() {
            // Older attempts wait for room on the connection. This one takes no memory while it
            // waits.
            Some((_, pull)) if waits_behind && pull.is_between_batches() => Err(NotPosted::NoRoom),
            Some((stream, pull)) => self.post_reads(net, connection, (request, id), stream, pull),
            None => Ok(()),
        };
        if posted.is_ok() {
            attempt.memory_granted();
        }
        self.attempts.put_in(id, attempt);
        match posted {
            Ok(()) => MemoryGrant::Served,
            Err(NotPosted::NoRoom) => MemoryGrant::NoRoom,
            Err(NotPosted::NoMemory) => {
                self.starved(id);
                MemoryGrant::NoMemory
            }
            Err(NotPosted::Impossible) => {
                self.counters.pulls_stale.add(1);
                self.ask_for_writes(net, id);
                MemoryGrant::Served
            }
        }
    }

    /// Posts the reads of the next batch, or of the versions of the batch that has arrived.
    fn post_reads(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        (request, id): (u64, u64),
        stream: &Stream,
        pull: &mut Pull,
    ) -> Result<(), NotPosted> {
        if let Some(range) = pull.wants_versions() {
            let target = pull.spare.take().ok_or(NotPosted::Impossible)?;
            return match self.pulls.post(net, connection, id, range, target) {
                Ok(token) => {
                    pull.versions_posted(token);
                    Ok(())
                }
                Err((refused, target)) => {
                    pull.spare = Some(target);
                    Err(refused)
                }
            };
        }
        if !pull.is_between_batches() {
            return Ok(());
        }
        if pull.reserved.is_empty() && self.is_held_back(request) {
            return Err(NotPosted::NoMemory);
        }
        if pull.spare.is_none() {
            pull.spare = Some(self.lease(pull.versions_bytes())?);
        }
        if pull.reserved.is_empty() {
            let end = stream.whole_blocks(pull.position());
            let leases = self
                .memory
                .try_lease_each(&pull.lengths_to(end), Purpose::Read);
            pull.reserved = leases.map_err(NotPosted::of)?.into();
        }
        while let Some(range) = pull.next() {
            let Some(target) = pull.reserved.pop_front() else {
                break;
            };
            match self.pulls.post(net, connection, id, range, target) {
                Ok(token) => pull.posted(token),
                Err((refused, target)) => {
                    pull.reserved.push_front(target);
                    // The batch becomes smaller, and the next one takes the rest.
                    match refused {
                        NotPosted::NoRoom if !pull.is_between_batches() => break,
                        NotPosted::NoRoom => {
                            // The attempt holds no memory while it waits for its peer.
                            pull.reserved.clear();
                            pull.spare = None;
                            self.shortage.gave_back();
                            return Err(refused);
                        }
                        NotPosted::NoMemory | NotPosted::Impossible => return Err(refused),
                    }
                }
            }
        }
        Ok(())
    }

    fn lease(&self, bytes: usize) -> Result<Lease, NotPosted> {
        let lease = self.memory.try_lease(bytes, Purpose::Read);
        lease.map_err(NotPosted::of)
    }

    /// Handles the end of a read that this service posted.
    pub(super) fn read_ended(
        &mut self,
        net: &mut Net,
        token: u64,
        target: Lease,
        outcome: &Outcome,
    ) {
        let Some(id) = self.pulls.ended(token) else {
            return;
        };
        // If the attempt ended while its read was posted, the lease is returned now.
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let now = clock::now();
        attempt.progress(now);
        attempt.request.was_taken = false;
        let connection = attempt.connection;
        self.heard.hear(connection, now);
        self.shortage.progress(now);
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        self.queue.progress(attempt.request.endpoint);
        let Some((_, pull)) = attempt.pull() else {
            return;
        };
        let is_done = *outcome == Outcome::Done;
        if is_done {
            self.memory.note_arrived(target.capacity() as u64);
        }
        match pull.arrived(token, target, is_done) {
            Some(versions) => self.judge(net, id, &versions),
            None => self.continue_pull(net, id),
        }
        // If the attempt has ended, it has returned memory.
        self.offer_buffers(net);
    }

    /// Judges a batch that has arrived completely, by its versions.
    fn judge(&mut self, net: &mut Net, id: u64, versions: &Lease) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let Some((stream, pull)) = attempt.pull() else {
            return;
        };
        let verdict = pull.judge(versions, |lease, length| stream.push(lease, length));
        let last = matches!(verdict, BatchResult::Right) && pull.is_done();
        if let Some(ready) = attempt.ready(last, &self.memory) {
            let request = &mut attempt.request;
            let last = last && request.is_last_part();
            self.queue.deliver(request, net.kind(), ready, last);
        }
        match verdict {
            BatchResult::Right if last => {
                self.counters.pulls.add(1);
                self.tell_server(net, id);
                self.next_part(net, id);
            }
            BatchResult::Right => self.continue_pull(net, id),
            BatchResult::Stale => {
                self.counters.pulls_stale.add(1);
                self.ask_for_writes(net, id);
            }
            BatchResult::Corrupt(corrupt) => {
                self.counters.crc_errors.add(1);
                if let Some(attempt) = self.attempts.get(id) {
                    self.pulls.stop(attempt.connection, corrupt);
                }
                self.ask_for_writes(net, id);
            }
        }
    }

    fn continue_pull(&mut self, net: &mut Net, id: u64) {
        match self.pull_more(net, id) {
            MemoryGrant::Served => {}
            MemoryGrant::NoRoom => self.await_room(id),
            MemoryGrant::NoMemory => self.await_memory(id),
        }
    }

    /// Asks the server to write the blocks that were not handed out, on the same connection. This
    /// counts as no fault: pages change their contents.
    fn ask_for_writes(&mut self, net: &mut Net, id: u64) {
        let Some(connection) = self.attempts.get(id).map(|attempt| attempt.connection) else {
            return;
        };
        self.tell_server(net, id);
        let Some(mut request) = self.end(net, id) else {
            return;
        };
        if request.wanted().is_empty() {
            // All blocks were handed out, so no bytes can be missing.
            let detail = "a pull ended without its last block".to_owned();
            return self.queue.fail(request, FetchErrorCode::Protocol, detail);
        }
        request.writes_only = true;
        self.issue(net, connection, request);
    }
}
