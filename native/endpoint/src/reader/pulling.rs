//! The half of [`Attempts`] that pulls.

use super::attempts::Attempts;
use super::pull::{Pull, Verdict};
use crate::outbox::Outbox;
use faro_fabric::{ConnectionId, Fabric, Outcome, Read, Rejected, RemoteRange};
use faro_pool::{Lease, Purpose};
use faro_wire::codes::FetchErrorCode;
use faro_wire::message::ReadOffer;
use faro_wire::WireError;
use std::time::Instant;

/// Why a read was not posted.
enum NotPosted {
    /// No room in the arena or the fabric's queue: later.
    Later,
    /// Never.
    Impossible,
}

impl Attempts {
    /// Begins to pull an attempt whose layout and extents are known.
    ///
    /// # Errors
    /// The extents are not what the layout says.
    pub(super) fn start_pull(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        id: u64,
        located: ReadOffer,
    ) -> Result<(), WireError> {
        if let Some(attempt) = self.by_id.get_mut(&id) {
            attempt.pull = Some(Pull::new(located, attempt.total())?);
            self.pull_more(fabric, outbox, id);
        }
        Ok(())
    }

    /// Posts what there is memory and room for; true: it has to be tried again.
    pub(super) fn pull_more(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        id: u64,
    ) -> bool {
        let Some(mut attempt) = self.by_id.remove(&id) else {
            return false;
        };
        let peer = attempt.connection;
        let posted = match &mut attempt.pull {
            Some(pull) => self.post_reads(fabric, peer, id, pull),
            None => Ok(()),
        };
        match posted {
            Ok(()) => attempt.dry_since = None,
            Err(NotPosted::Later) => {
                attempt.dry_since.get_or_insert_with(Instant::now);
            }
            Err(NotPosted::Impossible) => {}
        }
        self.by_id.insert(id, attempt);
        match posted {
            Ok(()) => false,
            Err(NotPosted::Later) => true,
            Err(NotPosted::Impossible) => {
                self.router.counters.pulls_stale.add(1);
                self.ask_for_a_push(fabric, outbox, id);
                false
            }
        }
    }

    /// The next batch, or the versions of the one that is here.
    fn post_reads(
        &mut self,
        fabric: &mut dyn Fabric,
        peer: ConnectionId,
        id: u64,
        pull: &mut Pull,
    ) -> Result<(), NotPosted> {
        if let Some(range) = pull.wants_versions() {
            let target = pull.spare.take().ok_or(NotPosted::Impossible)?;
            return match self.post_read(fabric, peer, id, range, target) {
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
        while let Some(range) = pull.next() {
            let posted = self.lease(range.length as usize).and_then(|target| {
                self.post_read(fabric, peer, id, range, target)
                    .map_err(|(refused, _)| refused)
            });
            match posted {
                Ok(token) => pull.posted(token),
                // A smaller batch; the next one takes the rest.
                Err(NotPosted::Later) if !pull.is_between_batches() => break,
                Err(refused) => return Err(refused),
            }
        }
        Ok(())
    }

    fn lease(&self, bytes: usize) -> Result<Lease, NotPosted> {
        self.memory
            .try_lease(bytes, Purpose::Read)
            .map_err(|_| NotPosted::Later)
    }

    fn post_read(
        &mut self,
        fabric: &mut dyn Fabric,
        peer: ConnectionId,
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
        match fabric.read(peer, read) {
            Ok(()) => {
                self.next_token += 1;
                self.reads.insert(token, id);
                Ok(token)
            }
            Err(Rejected::Full(read)) => Err((NotPosted::Later, read.target)),
            Err(Rejected::NotConnected(read, _) | Rejected::TooLarge(read, _)) => {
                Err((NotPosted::Impossible, read.target))
            }
        }
    }

    /// A read of ours ended.
    pub(in crate::reader) fn on_read_ended(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        token: u64,
        target: Lease,
        outcome: &Outcome,
    ) {
        let Some(id) = self.reads.remove(&token) else {
            return;
        };
        // Unknown: the attempt ended while the read was on its way; the lease goes back now.
        let Some(attempt) = self.by_id.get_mut(&id) else {
            return;
        };
        attempt.deadline = Instant::now() + attempt.request.patience;
        let done = *outcome == Outcome::Done;
        let Some(pull) = &mut attempt.pull else {
            return;
        };
        match pull.arrived(token, target, done) {
            Some(versions) => self.judge(fabric, outbox, id, &versions),
            None => self.continue_pull(fabric, outbox, id),
        }
        // The fabric has room for one more, and perhaps somebody waits for that.
        if !self.thirsty.is_empty() {
            self.quench(fabric, outbox);
        }
    }

    /// Ends a batch of which everything is here.
    fn judge(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, id: u64, versions: &Lease) {
        let Some(attempt) = self.by_id.get_mut(&id) else {
            return;
        };
        let Some(mut pull) = attempt.pull.take() else {
            return;
        };
        let verdict = pull.judge(versions, |lease, length| attempt.arrived(lease, length));
        let last = matches!(verdict, Verdict::Right) && pull.is_done();
        attempt.pull = Some(pull);
        if let Some(ready) = attempt.ready(last, &self.memory) {
            self.router
                .deliver(&attempt.request, fabric.kind(), ready, last);
        }
        match verdict {
            Verdict::Right if last => {
                self.router.counters.pulls.add(1);
                self.end(fabric, id);
            }
            Verdict::Right => self.continue_pull(fabric, outbox, id),
            Verdict::Stale => {
                self.router.counters.pulls_stale.add(1);
                self.ask_for_a_push(fabric, outbox, id);
            }
            Verdict::Corrupt { expected, got } => {
                self.distrust(id, expected, got);
                self.ask_for_a_push(fabric, outbox, id);
            }
        }
    }

    fn continue_pull(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, id: u64) {
        if self.pull_more(fabric, outbox, id) && !self.thirsty.contains(&id) {
            self.thirsty.push_back(id);
        }
    }

    /// What was read is not what its owner read, and the version says that nobody changed it: there is
    /// no more pulling on this connection. Its owner writes instead; if that comes wrong as well, it
    /// is the connection's fault.
    fn distrust(&mut self, id: u64, expected: u32, got: u32) {
        self.router.counters.crc_errors.add(1);
        let Some(attempt) = self.by_id.get(&id) else {
            return;
        };
        if self.no_pulls.insert(attempt.connection) {
            log::warn!(
                "bytes that were read from a peer's memory have CRC-32C {got:#010x} where their owner \
                 read {expected:#010x}; it has to write them from now on"
            );
        }
    }

    /// What was not handed out is asked for again, on the same connection, to be written by its
    /// owner. No fault of anybody: frames change hands.
    fn ask_for_a_push(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, id: u64) {
        let Some(connection) = self.by_id.get(&id).map(|attempt| attempt.connection) else {
            return;
        };
        if let Some(mut request) = self.end(fabric, id) {
            request.push_only = true;
            match request.missing().is_empty() {
                // Only bytes of blocks that are complete can be missing nothing.
                true => self.router.fail(
                    request,
                    FetchErrorCode::Protocol,
                    "a pull ended without its last block".to_owned(),
                ),
                false => self.issue(fabric, outbox, connection, request),
            }
        }
    }
}
