//! The collective's room on one progress thread: what seats here send, and what comes for them.
//!
//! Nothing here waits or computes. Connections are the reader's (`reader/links.rs`), whose rules hold
//! for a `CLEAR_TO_SEND` as they do for a `FETCH`: it takes the best connection, and what answers it takes the
//! same one.

use super::hub::{nobody, Event, Hub, Reply};
use crate::outbox::{Outbox, Post};
use crate::reader::{Link, Reader};
use crate::router::Router;
use crate::routes::Route;
use faro_fabric::{
    CloseReason, ConnectionId, EndpointId, Exposure, Fabric, Message, RemoteRange, Revoked, Write,
};
use faro_pool::Lease;
use faro_wire::message::{Abort, ClearToSend, ClearToSendHead, DataReady, Join, RemoteBuffer};
use faro_wire::{kind, WireError};
use std::collections::HashMap;
use std::sync::Arc;

/// The token of all writes: nobody waits for their end, because a lost one shows in its receiver.
const TOKEN: u64 = u64::MAX;
/// Times that a knock is repeated because its connection ended, before its member counts as lost.
const MAX_KNOCKS: u8 = 5;

/// Another member, as its partner here sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Partner {
    /// The router's handle for its endpoint.
    pub(crate) handle: u64,
    pub(super) seat: u64,
    pub(super) rank: u32,
}

/// A lease, and how many of its bytes are to be written.
pub(super) type Memory = (Lease, u32);

/// What is to be sent to a partner, wherever the router sends it.
pub(crate) struct Errand {
    /// The seat here that wants it.
    pub(super) seat: u64,
    pub(crate) to: Partner,
    pub(super) what: What,
}

impl Errand {
    /// It holds nothing, and its partner waits for it even if the seat is through with its rounds.
    fn outlives_its_seat(&self) -> bool {
        matches!(&self.what, What::ClearToSend { leases, .. } if leases.is_empty())
    }
}

pub(super) enum What {
    Join {
        knock: Join,
        tries: u8,
    },
    ClearToSend {
        head: Box<ClearToSendHead>,
        leases: Vec<Memory>,
    },
}

/// A part's chunk, on its way to who granted memory for it.
pub(crate) struct Posting {
    pub(super) seat: u64,
    pub(super) peer: ConnectionId,
    pub(super) source: Arc<Lease>,
    pub(super) target: RemoteRange,
    pub(super) to: u64,
    pub(super) landed: DataReady,
}

/// What a progress thread is asked for.
pub(crate) enum Order {
    Errand(Errand, Route),
    Post(Posting),
    /// A seat is gone.
    Leave(u64, Abort),
}

/// Memory that a partner may write.
struct Landing {
    peer: ConnectionId,
    key: u64,
    bytes: u32,
    round: u64,
    step: u32,
}

/// See the module's comment.
pub(crate) struct Room {
    router: Arc<Router>,
    /// Errands that wait for a connection, each with the route it was sent by.
    waiting: HashMap<EndpointId, Vec<(Errand, Route)>>,
    /// By seat, rank of the writer, chunk.
    landings: HashMap<(u64, u32, u32), Landing>,
    /// Knocks that were sent, by own and other seat, and the connection they took.
    knocks: HashMap<(u64, u64), (ConnectionId, Errand)>,
    /// Who knocked at a seat here: the connection, and their seat.
    visitors: HashMap<u64, Vec<(ConnectionId, u64)>>,
    /// Chunks that were granted to a seat here and are not sent, by connection.
    owed: HashMap<(ConnectionId, u64), u32>,
}

impl Room {
    pub(crate) fn new(router: Arc<Router>) -> Self {
        Self {
            router,
            waiting: HashMap::new(),
            landings: HashMap::new(),
            knocks: HashMap::new(),
            visitors: HashMap::new(),
            owed: HashMap::new(),
        }
    }

    /// Is anything under way on that connection?
    pub(crate) fn uses(&self, peer: ConnectionId) -> bool {
        self.landings.values().any(|landing| landing.peer == peer)
            || self.owed.keys().any(|(at, _)| *at == peer)
    }

    pub(crate) fn on_order(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        reader: &mut Reader,
        order: Order,
    ) {
        match order {
            Order::Errand(errand, route) => self.run(fabric, outbox, reader, errand, route),
            Order::Post(posting) => self.post(fabric, outbox, posting),
            Order::Leave(seat, farewell) => self.leave(fabric, outbox, seat, &farewell),
        }
    }

    fn run(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        reader: &mut Reader,
        errand: Errand,
        route: Route,
    ) {
        match reader.link(route.endpoint) {
            Link::Open(peer) => return self.issue(fabric, outbox, peer, errand),
            Link::Begun => {}
            Link::None => {
                if let Err(error) = reader.begin(fabric, &route) {
                    return self.pass_on(errand, Some((&route, &error.to_string())));
                }
            }
        }
        let waiting = self.waiting.entry(route.endpoint).or_default();
        waiting.push((errand, route));
    }

    /// Another way is looked for, if there is one; `trouble` is why this one rests.
    fn pass_on(&self, errand: Errand, trouble: Option<(&Route, &str)>) {
        if let Some((route, trouble)) = trouble {
            self.router.rest(errand.to.handle, route.fabric, trouble);
        }
        self.router.resend(errand);
    }

    fn hub(&self) -> &Hub {
        &self.router.hub
    }

    fn issue(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: ConnectionId,
        errand: Errand,
    ) {
        // The seat may have ended while this waited; then nobody takes its leases back later.
        if !errand.outlives_its_seat() && self.hub().find(errand.seat).is_err() {
            return;
        }
        let (seat, to) = (errand.seat, errand.to);
        match errand.what {
            What::Join { knock, tries } => {
                let body = knock.encode();
                let again = Errand {
                    what: What::Join { knock, tries },
                    ..errand
                };
                self.knocks.insert((seat, to.seat), (peer, again));
                send(fabric, outbox, peer, kind::JOIN, to.seat, body);
            }
            What::ClearToSend { head, leases } => {
                let mut credits = Vec::with_capacity(leases.len());
                for ((lease, bytes), chunk) in leases.into_iter().zip(head.first_chunk.get()..) {
                    let Ok(range) = fabric.expose(peer, Exposure::Writable(lease)) else {
                        let detail = "no memory can be exposed to it".to_owned();
                        let rank = to.rank;
                        return self.hub().tell(seat, Event::Lost { rank, detail });
                    };
                    let landing = Landing {
                        peer,
                        key: range.key,
                        bytes,
                        round: head.round.get(),
                        step: head.step.get(),
                    };
                    self.landings.insert((seat, to.rank, chunk), landing);
                    credits.push(RemoteBuffer {
                        key: range.key.into(),
                        offset: range.offset.into(),
                        length: bytes.into(),
                        reserved: 0.into(),
                    });
                }
                let body = ClearToSend {
                    head: *head,
                    buffers: credits,
                }
                .encode();
                send(fabric, outbox, peer, kind::CLEAR_TO_SEND, to.seat, body);
            }
        }
    }

    fn post(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, posting: Posting) {
        let peer = posting.peer;
        if let Some(owed) = self.owed.get_mut(&(peer, posting.seat)) {
            *owed = owed.saturating_sub(1);
            if *owed == 0 {
                self.owed.remove(&(peer, posting.seat));
            }
        }
        let write = Write {
            token: TOKEN,
            source: posting.source,
            offset: 0,
            length: posting.target.length as usize,
            target: posting.target,
            immediate: None,
            last: true,
        };
        outbox.post(fabric, peer, Post::Write(write));
        let body = posting.landed.encode();
        send(fabric, outbox, peer, kind::DATA_READY, posting.to, body);
    }

    fn leave(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, seat: u64, farewell: &Abort) {
        self.waiting.retain(|_, errands| {
            errands.retain(|(errand, _)| errand.seat != seat || errand.outlives_its_seat());
            !errands.is_empty()
        });
        self.knocks.retain(|(own, _), _| *own != seat);
        self.owed.retain(|(_, own), _| *own != seat);
        self.landings.retain(|(own, _, _), landing| {
            if *own == seat {
                // `Later`: the fabric keeps the lease until no write can reach it.
                drop(fabric.revoke(landing.key));
            }
            *own != seat
        });
        for (peer, theirs) in self.visitors.remove(&seat).unwrap_or_default() {
            send(fabric, outbox, peer, kind::ABORT, theirs, farewell.encode());
        }
    }

    /// There is an open connection to that endpoint.
    pub(crate) fn on_open(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        reader: &mut Reader,
        endpoint: EndpointId,
    ) {
        for (errand, route) in self.waiting.remove(&endpoint).unwrap_or_default() {
            self.run(fabric, outbox, reader, errand, route);
        }
    }

    /// A connection is gone, and the reader has forgotten it.
    pub(crate) fn on_closed(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        reader: &mut Reader,
        endpoint: Option<EndpointId>,
        peer: ConnectionId,
        reason: &CloseReason,
    ) {
        self.owed.retain(|(at, _), _| *at != peer);
        for visitors in self.visitors.values_mut() {
            visitors.retain(|(at, _)| *at != peer);
        }
        let router = Arc::clone(&self.router);
        self.landings.retain(|(seat, rank, _), landing| {
            if landing.peer == peer {
                drop(fabric.revoke(landing.key));
                let (rank, detail) = (*rank, reason.to_string());
                router.hub.tell(*seat, Event::Lost { rank, detail });
            }
            landing.peer != peer
        });
        let silent: Vec<(u64, u64)> = self
            .knocks
            .iter()
            .filter(|(_, (at, _))| *at == peer)
            .map(|(key, _)| *key)
            .collect();
        for key in silent {
            if let Some((_, errand)) = self.knocks.remove(&key) {
                self.knock_again(errand, reason);
            }
        }
        let Some(endpoint) = endpoint else { return };
        match reader.link(endpoint) {
            Link::Open(_) => self.on_open(fabric, outbox, reader, endpoint),
            Link::Begun => {}
            Link::None => {
                let trouble = reason.to_string();
                for (errand, route) in self.waiting.remove(&endpoint).unwrap_or_default() {
                    self.pass_on(errand, Some((&route, &trouble)));
                }
            }
        }
    }

    /// Whether the member is still there is found out by trying.
    fn knock_again(&self, mut errand: Errand, reason: &CloseReason) {
        if let What::Join { tries, .. } = &mut errand.what {
            *tries += 1;
            if *tries > MAX_KNOCKS {
                return self.hub().lost(&errand, reason.to_string());
            }
        }
        self.pass_on(errand, None);
    }

    /// `JOIN`, `CLEAR_TO_SEND`, `DATA_READY` and `ABORT`.
    ///
    /// # Errors
    /// What the peer sent breaks the protocol.
    pub(crate) fn on_message(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: ConnectionId,
        message: &Message,
    ) -> Result<(), WireError> {
        let (seat, body) = (message.id, &message.body);
        match message.kind {
            kind::JOIN => self.knocked(fabric, outbox, peer, seat, Join::decode(body)?),
            kind::CLEAR_TO_SEND => {
                let grant = ClearToSend::decode(body)?;
                let chunks = grant.head.buffers.get();
                let reply = Reply {
                    fabric: fabric.kind(),
                    peer,
                };
                if self.deliver(seat, Event::Granted(reply, grant))? && chunks > 0 {
                    *self.owed.entry((peer, seat)).or_default() += chunks;
                }
                Ok(())
            }
            kind::DATA_READY => self.landed(fabric, peer, seat, &DataReady::decode(body)?),
            _ => {
                let farewell = Abort::decode(body)?;
                self.deliver(seat, Event::Abort(farewell)).map(drop)
            }
        }
    }

    /// False: the seat is gone, and its partners are told so by its farewell.
    fn deliver(&self, seat: u64, event: Event) -> Result<bool, WireError> {
        let Ok(mailbox) = self.hub().find(seat) else {
            self.router.counters.late_messages.add(1);
            return Ok(false);
        };
        if mailbox.is_full() {
            return Err(WireError::BadValue {
                what: "messages that wait for seat",
                got: seat,
            });
        }
        mailbox.push(event);
        Ok(true)
    }

    fn knocked(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: ConnectionId,
        seat: u64,
        knock: Join,
    ) -> Result<(), WireError> {
        let theirs = knock.from_member.get();
        match self.hub().find(seat) {
            Ok(_) => {
                let visitors = self.visitors.entry(seat).or_default();
                visitors.retain(|(_, other)| *other != theirs);
                visitors.push((peer, theirs));
                self.deliver(seat, Event::Knocked(knock)).map(drop)
            }
            Err(farewell) => {
                let farewell = farewell.unwrap_or_else(|| nobody(knock.to_rank.get()));
                send(fabric, outbox, peer, kind::ABORT, theirs, farewell.encode());
                Ok(())
            }
        }
    }

    fn landed(
        &mut self,
        fabric: &mut dyn Fabric,
        peer: ConnectionId,
        seat: u64,
        landed: &DataReady,
    ) -> Result<(), WireError> {
        let Ok(mailbox) = self.hub().find(seat) else {
            self.router.counters.late_messages.add(1);
            return Ok(());
        };
        for chunk in &landed.buffers {
            let place = (seat, landed.from_rank, chunk.buffer.get());
            let bad = |what, got| WireError::BadValue { what, got };
            let landing = self
                .landings
                .remove(&place)
                .ok_or(bad("chunk of DATA_READY", u64::from(chunk.buffer.get())))?;
            let key = landing.key;
            let Revoked::Now(Exposure::Writable(lease)) = fabric.revoke(key) else {
                return Err(bad("key of a landing", key));
            };
            if landing.peer != peer || (landing.round, landing.step) != (landed.round, landed.step)
            {
                return Err(bad("round of DATA_READY", landed.round));
            }
            if landing.bytes != chunk.length.get() {
                return Err(bad("length of a chunk", u64::from(chunk.length.get())));
            }
            let rank = landed.from_rank;
            let chunk = *chunk;
            mailbox.push(Event::DataReady { rank, chunk, lease });
        }
        Ok(())
    }
}

fn send(
    fabric: &mut dyn Fabric,
    outbox: &mut Outbox,
    peer: ConnectionId,
    kind: u8,
    id: u64,
    body: Vec<u8>,
) {
    outbox.post(fabric, peer, Post::Message(Message { kind, id, body }));
}
