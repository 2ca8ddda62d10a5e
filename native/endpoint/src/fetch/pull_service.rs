//! Reads from servers' pages: the part of [`FetchService`] for pulls.

use super::buffers::Granted;
use super::checksum::Corrupt;
use super::deliver::Stream;
use super::pull::{Pull, Verdict};
use super::FetchService;
use crate::net::Net;
use faro_fabric::{ConnectionId, Outcome, Read, Rejected, RemoteRange};
use faro_pool::{Lease, PoolError, Purpose};
use faro_sync::clock;
use faro_wire::codes::FetchErrorCode;

/// The reason that a read was not posted.
enum NotPosted {
    /// The arena has no memory.
    NoMemory,
    /// The connection's queue is full.
    NoRoom,
    /// The fabric will never accept the read.
    Impossible,
}

impl NotPosted {
    fn of(refused: PoolError) -> Self {
        match refused {
            PoolError::Exhausted { .. } => Self::NoMemory,
            _ => Self::Impossible,
        }
    }
}

impl FetchService {
    /// Posts the reads that memory and room allow, if the attempt is pulling.
    pub(super) fn pull_more(&mut self, net: &mut Net, id: u64) -> Granted {
        let Some(mut attempt) = self.attempts.remove(&id) else {
            return Granted::Served;
        };
        let connection = attempt.connection;
        let waits_behind = self.awaiting_room.has_older(connection, attempt.request.id);
        let posted = match attempt.pull() {
            // Older attempts wait for room on the connection. This one takes no memory while it
            // waits.
            Some((_, pull)) if waits_behind && pull.is_between_batches() => Err(NotPosted::NoRoom),
            Some((stream, pull)) => self.post_reads(net, connection, id, stream, pull),
            None => Ok(()),
        };
        if posted.is_ok() {
            attempt.memory_granted();
        }
        self.attempts.insert(id, attempt);
        match posted {
            Ok(()) => Granted::Served,
            Err(NotPosted::NoRoom) => Granted::NoRoom,
            Err(NotPosted::NoMemory) => {
                self.starved(id);
                Granted::NoMemory
            }
            Err(NotPosted::Impossible) => {
                self.counters.pulls_stale.add(1);
                self.ask_for_writes(net, id);
                Granted::Served
            }
        }
    }

    /// Posts the reads of the next batch, or of the versions of the batch that has arrived.
    fn post_reads(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        id: u64,
        stream: &Stream,
        pull: &mut Pull,
    ) -> Result<(), NotPosted> {
        if let Some(range) = pull.wants_versions() {
            let target = pull.spare.take().ok_or(NotPosted::Impossible)?;
            return match self.post_read(net, connection, id, range, target) {
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
            match self.post_read(net, connection, id, range, target) {
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
                            self.gave_back = true;
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

    fn post_read(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        id: u64,
        source: RemoteRange,
        target: Lease,
    ) -> Result<u64, (NotPosted, Lease)> {
        let token = self.next_token;
        let read = Read {
            token,
            source,
            target,
        };
        match net.read(connection, read) {
            Ok(()) => {
                self.next_token += 1;
                self.reads.insert(token, id);
                Ok(token)
            }
            Err(Rejected::Full(read)) => Err((NotPosted::NoRoom, read.target)),
            Err(Rejected::NotConnected(read, _) | Rejected::TooLarge(read, _)) => {
                Err((NotPosted::Impossible, read.target))
            }
        }
    }

    /// Handles the end of a read that this service posted.
    pub(super) fn read_ended(
        &mut self,
        net: &mut Net,
        token: u64,
        target: Lease,
        outcome: &Outcome,
    ) {
        let Some(id) = self.reads.remove(&token) else {
            return;
        };
        // If the attempt ended while its read was posted, the lease is returned now.
        let Some(attempt) = self.attempts.get_mut(&id) else {
            return;
        };
        let now = clock::now();
        attempt.progress(now);
        attempt.request.was_taken = false;
        let connection = attempt.connection;
        self.hear(connection, now);
        self.last_progress = now;
        let Some(attempt) = self.attempts.get_mut(&id) else {
            return;
        };
        self.queue.progress(attempt.request.endpoint);
        let Some((_, pull)) = attempt.pull() else {
            return;
        };
        match pull.arrived(token, target, *outcome == Outcome::Done) {
            Some(versions) => self.judge(net, id, &versions),
            None => self.continue_pull(net, id),
        }
        // If the attempt has ended, it has returned memory.
        self.offer_buffers(net);
    }

    /// Judges a batch that has arrived completely, by its versions.
    fn judge(&mut self, net: &mut Net, id: u64, versions: &Lease) {
        let Some(attempt) = self.attempts.get_mut(&id) else {
            return;
        };
        let Some((stream, pull)) = attempt.pull() else {
            return;
        };
        let verdict = pull.judge(versions, |lease, length| stream.push(lease, length));
        let last = matches!(verdict, Verdict::Right) && pull.is_done();
        if let Some(ready) = attempt.ready(last, &self.memory) {
            let request = &mut attempt.request;
            let last = last && request.is_last_part();
            self.queue.deliver(request, net.kind(), ready, last);
        }
        match verdict {
            Verdict::Right if last => {
                self.counters.pulls.add(1);
                self.tell_server(net, id);
                self.next_part(net, id);
            }
            Verdict::Right => self.continue_pull(net, id),
            Verdict::Stale => {
                self.counters.pulls_stale.add(1);
                self.ask_for_writes(net, id);
            }
            Verdict::Corrupt(corrupt) => {
                self.stop_pulls(id, corrupt);
                self.ask_for_writes(net, id);
            }
        }
    }

    fn continue_pull(&mut self, net: &mut Net, id: u64) {
        match self.pull_more(net, id) {
            Granted::Served => {}
            Granted::NoRoom => self.await_room(id),
            Granted::NoMemory => self.await_memory(id),
        }
    }

    /// Stops reads on a connection whose reads brought wrong bytes, although the version says that
    /// the page did not change. The server writes instead. If that brings wrong bytes as well, the
    /// connection is at fault.
    fn stop_pulls(&mut self, id: u64, Corrupt { expected, got }: Corrupt) {
        self.counters.crc_errors.add(1);
        let Some(attempt) = self.attempts.get(&id) else {
            return;
        };
        if self.no_pulls.insert(attempt.connection) {
            if let Some(left_out) = self.corrupt_reads.at(clock::now()) {
                log::warn!(
                    "bytes read from a peer's memory have CRC-32C {got:#010x} where the peer read \
                     {expected:#010x} from its file; from now on it writes them on this connection{left_out}"
                );
            }
        }
    }

    /// Asks the server to write the blocks that were not handed out, on the same connection. This
    /// counts as no fault: pages change their contents.
    fn ask_for_writes(&mut self, net: &mut Net, id: u64) {
        let Some(connection) = self.attempts.get(&id).map(|attempt| attempt.connection) else {
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
