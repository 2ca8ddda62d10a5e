//! All attempts that one progress thread has on their way: what goes out, comes in, runs out.

use super::attempt::{Attempt, Trouble};
use super::{Next, Request};
use crate::config::fabric_name;
use crate::config::limits::MEMORY_WAIT;
use crate::memory::Memory;
use crate::outbox::{Outbox, Post};
use crate::router::{Router, CANCELLED};
use faro_fabric::{CloseReason, ConnectionId, Exposure, Fabric, Message, Revoked};
use faro_pool::{Purpose, PAGE_BYTES};
use faro_wire::codes::FetchErrorCode;
use faro_wire::message::{
    DataWritten, Failed, FailureCode, Fetch, FetchResponse, MoreBuffers, ReadOffer, RemoteBuffer,
};
use faro_wire::{kind, WireError};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// See the module's comment.
pub(super) struct Attempts {
    pub(super) router: Arc<Router>,
    pub(super) memory: Arc<Memory>,
    /// By the id on the wire, which every attempt has its own of.
    pub(super) by_id: HashMap<u64, Attempt>,
    /// Ids on the wire of those that wait for arena memory, oldest first.
    pub(super) thirsty: VecDeque<u64>,
    /// Reads under way: the id on the wire of whose they are (or were).
    pub(super) reads: HashMap<u64, u64>,
    /// Connections on which a read brought what its owner never had.
    pub(super) no_pulls: HashSet<ConnectionId>,
    /// Of the next read.
    pub(super) next_token: u64,
    next_wire_id: u64,
    /// Bytes of the largest block that the arena can hold at once.
    largest_block: u64,
}

impl Attempts {
    pub(super) fn new(router: Arc<Router>, memory: Arc<Memory>) -> Self {
        // A block that begins in mid-frame touches one more.
        let largest_block = memory
            .pool
            .share_bytes(Purpose::Read)
            .saturating_sub(2 * PAGE_BYTES as u64);
        Self {
            largest_block,
            router,
            memory,
            by_id: HashMap::new(),
            thirsty: VecDeque::new(),
            reads: HashMap::new(),
            no_pulls: HashSet::new(),
            next_token: 1,
            next_wire_id: 1,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Is anything under way on that connection?
    pub(super) fn any_on(&self, peer: ConnectionId) -> bool {
        self.by_id.values().any(|a| a.connection == peer)
    }

    /// Starts an attempt at `request` on an open connection.
    pub(super) fn issue(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: ConnectionId,
        mut request: Request,
    ) {
        request.push_only |= self.no_pulls.contains(&peer);
        let id = self.next_wire_id;
        self.next_wire_id += 1;
        let deadline_ms = u32::try_from(request.patience.as_millis()).unwrap_or(u32::MAX);
        let mut attempt = Attempt::new(request, peer, Instant::now());
        // One frame at once: a thousand tiny blocks then take a single round trip.
        let credits = self
            .grant(fabric, &mut attempt, PAGE_BYTES)
            .into_iter()
            .collect();
        let fetch = Fetch {
            deadline_ms,
            writes_only: attempt.request.push_only,
            buffers: credits,
            blocks: attempt.request.missing().to_vec(),
        };
        self.by_id.insert(id, attempt);
        let message = Message {
            kind: kind::FETCH,
            id,
            body: fetch.encode(),
        };
        outbox.post(fabric, peer, Post::Message(message));
    }

    /// Exposes one lease to the owner.
    fn grant(
        &self,
        fabric: &mut dyn Fabric,
        attempt: &mut Attempt,
        bytes: usize,
    ) -> Option<RemoteBuffer> {
        let lease = self.memory.try_lease(bytes, Purpose::Read).ok()?;
        let range = fabric
            .expose(attempt.connection, Exposure::Writable(lease))
            .ok()?;
        attempt.granted(range.key, range.length);
        Some(RemoteBuffer {
            key: range.key.into(),
            offset: range.offset.into(),
            length: range.length.into(),
            reserved: 0.into(),
        })
    }

    /// `FETCH_RESPONSE`, `DATA_WRITTEN`, `READ_OFFER` and `FAILED`.
    ///
    /// # Errors
    /// What the peer sent breaks the protocol.
    pub(super) fn on_message(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: ConnectionId,
        message: &Message,
    ) -> Result<(), WireError> {
        let id = message.id;
        match self.by_id.get_mut(&id) {
            Some(attempt) if attempt.connection == peer => {
                attempt.deadline = Instant::now() + attempt.request.patience;
                match message.kind {
                    kind::FETCH_RESPONSE => {
                        attempt.on_layout(FetchResponse::decode(&message.body)?)?;
                        let (block, room) = (attempt.largest_block(), self.largest_block);
                        if block > room {
                            let detail =
                                format!("a block of {block} bytes, the arena has room for {room}");
                            let code = FetchErrorCode::PoolExhausted;
                            self.give_up(fabric, outbox, id, code, &detail);
                            return Ok(());
                        }
                        let located = attempt.located.take();
                        if let Some(located) = located {
                            self.start_pull(fabric, outbox, id, located)?;
                        }
                        self.thirsty.push_back(id);
                        self.quench(fabric, outbox);
                    }
                    kind::READ_OFFER => attempt.on_located(ReadOffer::decode(&message.body)?)?,
                    kind::DATA_WRITTEN => {
                        self.pushed(fabric, outbox, id, &DataWritten::decode(&message.body)?)?
                    }
                    _ => self.failed(fabric, id, Failed::decode(&message.body)?),
                }
            }
            _ => self.router.counters.late_messages.add(1),
        }
        Ok(())
    }

    fn pushed(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        id: u64,
        pushed: &DataWritten,
    ) -> Result<(), WireError> {
        let Some(attempt) = self.by_id.get_mut(&id) else {
            return Ok(());
        };
        for chunk in &pushed.buffers {
            let grant = attempt.expect(chunk)?;
            let taken = match fabric.revoke(grant.key) {
                Revoked::Now(Exposure::Writable(lease)) => attempt.take(lease, chunk),
                // A grant is ours until it is revoked, and revoking needs no close once the
                // owner said that the write is done.
                _ => Err(Trouble::Protocol(WireError::BadValue {
                    what: "key of a grant",
                    got: grant.key,
                })),
            };
            match taken {
                Ok(()) => {}
                Err(Trouble::Protocol(error)) => return Err(error),
                Err(Trouble::Corrupt { expected, got }) => {
                    self.corrupt(fabric, outbox, id, expected, got);
                    return Ok(());
                }
            }
        }
        attempt.check_last(pushed.last)?;
        if let Some(ready) = attempt.ready(pushed.last, &self.memory) {
            self.router
                .deliver(&attempt.request, fabric.kind(), ready, pushed.last);
        }
        if pushed.last {
            self.end(fabric, id);
        } else {
            if !self.thirsty.contains(&id) {
                self.thirsty.push_back(id);
            }
            self.quench(fabric, outbox);
        }
        Ok(())
    }

    fn failed(&mut self, fabric: &mut dyn Fabric, id: u64, failed: Failed) {
        let Some(request) = self.end(fabric, id) else {
            return;
        };
        let code = match failed.code {
            FailureCode::DeadlinePassed => FetchErrorCode::TimedOut,
            _ => FetchErrorCode::Refused,
        };
        let detail = format!("the owner says {:?}: {}", failed.code, failed.detail);
        self.router.fail(request, code, detail);
    }

    /// Gives credit to those who wait for memory, in order, until there is none.
    pub(super) fn quench(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox) {
        while let Some(id) = self.thirsty.pop_front() {
            if self.by_id.get(&id).is_some_and(|a| a.pull.is_some()) {
                if self.pull_more(fabric, outbox, id) {
                    self.thirsty.push_front(id);
                    return self.note_the_dry();
                }
                continue;
            }
            let Some(mut attempt) = self.by_id.remove(&id) else {
                continue;
            };
            let (mut credits, mut refused) = (Vec::new(), false);
            loop {
                let bytes = attempt.next_credit_bytes();
                if bytes == 0 {
                    break;
                }
                match self.grant(fabric, &mut attempt, bytes) {
                    Some(credit) => credits.push(credit),
                    None => {
                        refused = true;
                        break;
                    }
                }
            }
            attempt.dry_since = attempt.dry_since.filter(|_| credits.is_empty());
            let peer = attempt.connection;
            self.by_id.insert(id, attempt);
            if !credits.is_empty() {
                let body = MoreBuffers { buffers: credits }.encode();
                outbox.post(
                    fabric,
                    peer,
                    Post::Message(Message {
                        kind: kind::MORE_BUFFERS,
                        id,
                        body,
                    }),
                );
            }
            if refused {
                self.thirsty.push_front(id);
                return self.note_the_dry();
            }
        }
    }

    /// Those who have no credit at all and cannot get any: their patience is shorter.
    fn note_the_dry(&mut self) {
        for id in &self.thirsty {
            if let Some(attempt) = self.by_id.get_mut(id).filter(|a| a.grants.is_empty()) {
                attempt.dry_since.get_or_insert_with(Instant::now);
            }
        }
    }

    /// False: the caller's request is not among these.
    pub(super) fn cancel(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        request: u64,
    ) -> bool {
        let mut attempts = self.by_id.iter();
        let Some(id) = attempts
            .find(|(_, a)| a.request.id == request)
            .map(|(id, _)| *id)
        else {
            return false;
        };
        self.give_up(fabric, outbox, id, FetchErrorCode::Cancelled, CANCELLED);
        true
    }

    pub(super) fn tick(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, now: Instant) {
        self.quench(fabric, outbox);
        let mut ended = Vec::new();
        for (id, attempt) in &self.by_id {
            if attempt.deadline <= now {
                let patience = attempt.request.patience.as_millis();
                let detail = format!("no progress for {patience} ms");
                ended.push((*id, FetchErrorCode::TimedOut, detail));
            } else if attempt
                .dry_since
                .is_some_and(|since| now.duration_since(since) >= MEMORY_WAIT)
            {
                let detail = format!("no arena memory for {} ms", MEMORY_WAIT.as_millis());
                ended.push((*id, FetchErrorCode::PoolExhausted, detail));
            }
        }
        for (id, code, detail) in ended {
            if code == FetchErrorCode::TimedOut {
                self.router.counters.timeouts.add(1);
            }
            self.give_up(fabric, outbox, id, code, &detail);
        }
    }

    /// The connection is gone, and with it what was under way on it.
    pub(super) fn on_closed(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: ConnectionId,
        reason: &CloseReason,
    ) {
        let code = match reason {
            CloseReason::Protocol(_) => FetchErrorCode::Protocol,
            _ => FetchErrorCode::ConnectionLost,
        };
        self.no_pulls.remove(&peer);
        let lost: Vec<u64> = self
            .by_id
            .iter()
            .filter(|(_, a)| a.connection == peer)
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            self.fault(fabric, outbox, id, code, &reason.to_string());
        }
    }

    /// Ends everything.
    pub(super) fn close(&mut self, fabric: &mut dyn Fabric) {
        let ids: Vec<u64> = self.by_id.keys().copied().collect();
        for id in ids {
            if let Some(request) = self.end(fabric, id) {
                self.router.fail_closing(request);
            }
        }
    }

    /// A fault: what was not handed out is asked for again, on this fabric and then on the next.
    fn fault(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        id: u64,
        code: FetchErrorCode,
        detail: &str,
    ) {
        self.tell_owner(fabric, outbox, id);
        let kind = fabric.kind();
        let Some(mut request) = self.end(fabric, id) else {
            return;
        };
        let next = request.faults.count(kind);
        if next != Next::Again {
            self.router.rest(request.peer, kind, detail);
        }
        if next == Next::GiveUp {
            return self.router.fail(request, code, detail.to_owned());
        }
        let (caller, missing) = (request.id, request.missing().len());
        let (of, name) = (request.blocks.len(), fabric_name(kind));
        if self.router.dispatch_or(request, code, detail) {
            self.router.counters.retries.add(1);
            log::info!(
                "fetch {caller} over {name}: {detail}; asking again for {missing} of {of} blocks"
            );
        }
    }

    /// Bytes that are not those that the owner read.
    pub(super) fn corrupt(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        id: u64,
        expected: u32,
        got: u32,
    ) {
        self.router.counters.crc_errors.add(1);
        let detail =
            format!("bytes arrived with CRC-32C {got:#010x} where the owner read {expected:#010x}");
        self.fault(fabric, outbox, id, FetchErrorCode::Corrupt, &detail);
    }

    fn give_up(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        id: u64,
        code: FetchErrorCode,
        detail: &str,
    ) {
        self.tell_owner(fabric, outbox, id);
        if let Some(request) = self.end(fabric, id) {
            self.router.fail(request, code, detail.to_owned());
        }
    }

    fn tell_owner(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, id: u64) {
        let Some(attempt) = self.by_id.get(&id) else {
            return;
        };
        // After `Closed` there is nobody to tell, and the post vanishes.
        let message = Message {
            kind: kind::CANCEL,
            id,
            body: Vec::new(),
        };
        outbox.post(fabric, attempt.connection, Post::Message(message));
    }

    /// Removes the attempt and takes its grants back.
    pub(super) fn end(&mut self, fabric: &mut dyn Fabric, id: u64) -> Option<Request> {
        let attempt = self.by_id.remove(&id)?;
        for grant in attempt.grants {
            // `Later`: the fabric keeps the lease until no write can reach it.
            drop(fabric.revoke(grant.key));
        }
        Some(attempt.request)
    }
}
