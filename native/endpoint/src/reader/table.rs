//! All fetches that one progress thread has on their way.

use super::attempt::{Attempt, Trouble};
use super::Request;
use crate::config::fabric_code;
use crate::config::limits::{CONNECT_TIMEOUT, MEMORY_WAIT};
use crate::outbox::{Outbox, Post};
use crate::router::{Route, Router};
use faro_fabric::{CloseReason, Exposure, Fabric, Message, PeerId, Revoked};
use faro_pool::{Pool, Purpose, FRAME_BYTES};
use faro_wire::crossing::FetchErrorCode;
use faro_wire::message::{Credit, Failed, FailureCode, Fetch, Layout, MoreCredit, Pushed};
use faro_wire::{kind, WireError};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// A connection of ours to one peer.
enum Link {
    /// Requests wait for it.
    Connecting(Vec<Request>),
    Ready,
}

/// See the module's comment.
pub(crate) struct Reader {
    router: Arc<Router>,
    pool: Arc<Pool>,
    links: HashMap<PeerId, (u64, Link)>,
    /// By peer handle.
    by_peer: HashMap<u64, PeerId>,
    /// By the id on the wire, which every attempt has its own of.
    attempts: HashMap<u64, Attempt>,
    /// Ids on the wire of those that wait for arena memory, oldest first.
    thirsty: VecDeque<u64>,
    next_wire_id: u64,
    /// Bytes of the largest block that the arena can hold at once.
    largest_block: u64,
}

impl Reader {
    pub(crate) fn new(router: Arc<Router>, pool: Arc<Pool>) -> Self {
        // A block that begins in mid-frame touches one more.
        let largest_block = pool
            .share_bytes(Purpose::Read)
            .saturating_sub(2 * FRAME_BYTES as u64);
        Self {
            largest_block,
            router,
            pool,
            links: HashMap::new(),
            by_peer: HashMap::new(),
            attempts: HashMap::new(),
            thirsty: VecDeque::new(),
            next_wire_id: 1,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.attempts.is_empty()
    }

    /// All connections that this side made.
    pub(crate) fn connections(&self) -> Vec<PeerId> {
        self.links.keys().copied().collect()
    }

    /// Starts on `request`, connecting first if there is need.
    pub(crate) fn start(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        request: Request,
        route: &Route,
    ) {
        if let Some(peer) = self.by_peer.get(&request.peer).copied() {
            match self.links.get_mut(&peer) {
                Some((_, Link::Connecting(waiting))) => waiting.push(request),
                _ => self.issue(fabric, outbox, peer, request),
            }
            return;
        }
        let deadline = Instant::now() + CONNECT_TIMEOUT.min(request.patience);
        match fabric.connect(&route.location, route.endpoint, deadline) {
            Ok(peer) => {
                self.by_peer.insert(request.peer, peer);
                self.links
                    .insert(peer, (request.peer, Link::Connecting(vec![request])));
            }
            Err(error) => {
                self.router
                    .rest(request.peer, fabric.kind(), &error.to_string());
                self.router.dispatch(request);
            }
        }
    }

    pub(crate) fn on_connected(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: PeerId,
    ) {
        let Some((handle, link)) = self.links.get_mut(&peer) else {
            return;
        };
        self.router.works(*handle, fabric.kind());
        if let Link::Connecting(waiting) = std::mem::replace(link, Link::Ready) {
            for request in waiting {
                self.issue(fabric, outbox, peer, request);
            }
        }
    }

    fn issue(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: PeerId,
        request: Request,
    ) {
        let id = self.next_wire_id;
        self.next_wire_id += 1;
        let deadline_ms = u32::try_from(request.patience.as_millis()).unwrap_or(u32::MAX);
        let mut attempt = Attempt::new(request, peer, Instant::now());
        // One frame at once: a thousand tiny blocks then take a single round trip.
        let credits = self
            .grant(fabric, &mut attempt, FRAME_BYTES)
            .into_iter()
            .collect();
        let fetch = Fetch {
            deadline_ms,
            credits,
            blocks: attempt.request.missing().to_vec(),
        };
        self.attempts.insert(id, attempt);
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
    ) -> Option<Credit> {
        let lease = self.pool.try_lease(bytes, Purpose::Read).ok()?;
        let range = fabric
            .expose(attempt.connection, Exposure::Writable(lease))
            .ok()?;
        attempt.granted(range.key, range.length);
        Some(Credit {
            key: range.key.into(),
            offset: range.offset.into(),
            length: range.length.into(),
            reserved: 0.into(),
        })
    }

    /// `LAYOUT`, `PUSHED` and `FAILED`.
    ///
    /// # Errors
    /// What the peer sent breaks the protocol.
    pub(crate) fn on_message(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: PeerId,
        message: &Message,
    ) -> Result<(), WireError> {
        let id = message.id;
        match self.attempts.get_mut(&id) {
            Some(attempt) if attempt.connection == peer => {
                attempt.deadline = Instant::now() + attempt.request.patience;
                match message.kind {
                    kind::LAYOUT => {
                        attempt.on_layout(Layout::decode(&message.body)?)?;
                        let (block, room) = (attempt.largest_block(), self.largest_block);
                        if block > room {
                            let detail =
                                format!("a block of {block} bytes, the arena has room for {room}");
                            let code = FetchErrorCode::PoolExhausted;
                            self.give_up(fabric, outbox, id, code, &detail);
                            return Ok(());
                        }
                        self.thirsty.push_back(id);
                        self.quench(fabric, outbox);
                    }
                    kind::PUSHED => {
                        self.pushed(fabric, outbox, id, &Pushed::decode(&message.body)?)?
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
        pushed: &Pushed,
    ) -> Result<(), WireError> {
        let Some(attempt) = self.attempts.get_mut(&id) else {
            return Ok(());
        };
        for chunk in &pushed.chunks {
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
                    self.router.counters.crc_errors.add(1);
                    let detail = format!(
                        "{} bytes arrived with CRC-32C {got:#010x} where the owner read {expected:#010x}",
                        chunk.length.get()
                    );
                    self.fault(fabric, outbox, id, FetchErrorCode::Corrupt, &detail);
                    return Ok(());
                }
            }
        }
        attempt.check_last(pushed.last)?;
        if let Some(ready) = attempt.ready(pushed.last, &self.pool) {
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
    pub(crate) fn quench(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox) {
        while let Some(id) = self.thirsty.pop_front() {
            let Some(mut attempt) = self.attempts.remove(&id) else {
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
            self.attempts.insert(id, attempt);
            if !credits.is_empty() {
                let body = MoreCredit { credits }.encode();
                outbox.post(
                    fabric,
                    peer,
                    Post::Message(Message {
                        kind: kind::CREDIT,
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
            if let Some(attempt) = self.attempts.get_mut(id).filter(|a| a.grants.is_empty()) {
                attempt.dry_since.get_or_insert_with(Instant::now);
            }
        }
    }

    pub(crate) fn cancel(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, request: u64) {
        let found = self
            .attempts
            .iter()
            .find(|(_, a)| a.request.id == request)
            .map(|(id, _)| *id);
        if let Some(id) = found {
            self.give_up(
                fabric,
                outbox,
                id,
                FetchErrorCode::Cancelled,
                "the caller cancelled",
            );
            return;
        }
        for (_, link) in self.links.values_mut() {
            if let Link::Connecting(waiting) = link {
                if let Some(at) = waiting.iter().position(|r| r.id == request) {
                    let request = waiting.swap_remove(at);
                    let detail = "the caller cancelled".to_owned();
                    return self.router.fail(request, FetchErrorCode::Cancelled, detail);
                }
            }
        }
    }

    pub(crate) fn tick(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, now: Instant) {
        self.quench(fabric, outbox);
        let mut ended = Vec::new();
        for (id, attempt) in &self.attempts {
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

    pub(crate) fn on_closed(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: PeerId,
        reason: &CloseReason,
    ) {
        let Some((handle, link)) = self.links.remove(&peer) else {
            return;
        };
        if self.by_peer.get(&handle) == Some(&peer) {
            self.by_peer.remove(&handle);
        }
        if let Link::Connecting(waiting) = link {
            self.router.rest(handle, fabric.kind(), &reason.to_string());
            for request in waiting {
                self.router.dispatch(request);
            }
        }
        let code = match reason {
            CloseReason::Protocol(_) => FetchErrorCode::Protocol,
            _ => FetchErrorCode::ConnectionLost,
        };
        let lost: Vec<u64> = self
            .attempts
            .iter()
            .filter(|(_, a)| a.connection == peer)
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            self.fault(fabric, outbox, id, code, &reason.to_string());
        }
    }

    /// Ends everything.
    pub(crate) fn close(&mut self, fabric: &mut dyn Fabric) {
        let ids: Vec<u64> = self.attempts.keys().copied().collect();
        for id in ids {
            if let Some(request) = self.end(fabric, id) {
                self.router.fail_closing(request);
            }
        }
        for (_, (_, link)) in self.links.drain() {
            if let Link::Connecting(waiting) = link {
                for request in waiting {
                    self.router.fail_closing(request);
                }
            }
        }
        self.by_peer.clear();
    }

    /// A fault that a request survives once: what was not handed out is asked for again.
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
        if request.faults.survive() {
            self.router.counters.retries.add(1);
            log::info!(
                "fetch {} over {:?}: {detail}; asking again for {} of {} blocks",
                request.id,
                fabric_code(kind),
                request.missing().len(),
                request.blocks.len()
            );
            self.router.dispatch(request);
        } else {
            self.router.rest(request.peer, kind, detail);
            self.router.fail(request, code, detail.to_owned());
        }
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
        let Some(attempt) = self.attempts.get(&id) else {
            return;
        };
        // After `Closed` there is nobody to tell.
        if self.links.contains_key(&attempt.connection) {
            let message = Message {
                kind: kind::CANCEL,
                id,
                body: Vec::new(),
            };
            outbox.post(fabric, attempt.connection, Post::Message(message));
        }
    }

    /// Removes the attempt and takes its grants back.
    fn end(&mut self, fabric: &mut dyn Fabric, id: u64) -> Option<Request> {
        let attempt = self.attempts.remove(&id)?;
        for grant in attempt.grants {
            // `Later`: the fabric keeps the lease until no write can reach it.
            drop(fabric.revoke(grant.key));
        }
        Some(attempt.request)
    }
}
