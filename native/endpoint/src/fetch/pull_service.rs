//! The part of [`FetchService`] that reads from servers' pages.

use super::attempt::Corrupt;
use super::buffers::Granted;
use super::deliver::Stream;
use super::pull::{Pull, Verdict};
use super::FetchService;
use crate::net::Net;
use faro_fabric::{ConnectionId, Outcome, Read, Rejected, RemoteRange};
use faro_pool::{Lease, PoolError, Purpose};
use faro_sync::clock;
use faro_wire::codes::FetchErrorCode;

/// Why a read was not posted.
enum NotPosted {
    /// No room in the arena.
    NoMemory,
    /// No room in the connection's queue.
    NoRoom,
    /// The fabric will never take it.
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
    /// Posts what there is memory and room for, if the attempt is pulling.
    pub(super) fn pull_more(&mut self, net: &mut Net, id: u64) -> Granted {
        let Some(mut attempt) = self.attempts.remove(&id) else {
            return Granted::Served;
        };
        let connection = attempt.connection;
        let waits_behind = self.awaiting_room.has_older(connection, attempt.request.id);
        let posted = match attempt.pull() {
            // Others are before it, and it takes no memory while it waits.
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

    /// The next batch, or the versions of the one that has arrived.
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
                    // A smaller batch; the next one takes the rest.
                    match refused {
                        NotPosted::NoRoom if !pull.is_between_batches() => break,
                        NotPosted::NoRoom => {
                            // It holds no memory while it waits for its peer.
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

    /// A read of ours ended.
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
        // Unknown: the attempt ended while the read was under way; the lease is returned now.
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
        // An attempt that has ended has returned memory.
        self.offer_buffers(net);
    }

    /// Ends a batch that has arrived as a whole, with its versions.
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
            Verdict::Corrupt { expected, got } => {
                self.stop_pulls(id, Corrupt { expected, got });
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

    /// The bytes that were read are not those of the server, although the version says that they did not
    /// change: this connection reads no more. The server writes instead; if that brings wrong bytes as
    /// well, the connection is at fault.
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

    /// Asks for what was not handed out again, on the same connection, to be written by the server. This
    /// is no fault: pages change their contents.
    fn ask_for_writes(&mut self, net: &mut Net, id: u64) {
        let Some(connection) = self.attempts.get(&id).map(|attempt| attempt.connection) else {
            return;
        };
        self.tell_server(net, id);
        let Some(mut request) = self.end(net, id) else {
            return;
        };
        if request.wanted().is_empty() {
            // All blocks were handed out, so that no bytes can be missing.
            let detail = "a pull ended without its last block".to_owned();
            return self.queue.fail(request, FetchErrorCode::Protocol, detail);
        }
        request.writes_only = true;
        self.issue(net, connection, request);
    }
}
