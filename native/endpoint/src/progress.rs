//! One progress thread per fabric: it owns the fabric, and never blocks but in `poll`.

use crate::collective::{Order, Room};
use crate::config::fabric_name;
use crate::config::limits::{IDLE, TICK};
use crate::exchange::Serving;
use crate::files::Catalog;
use crate::memory::Memory;
use crate::outbox::Outbox;
use crate::owner::{IoPool, Job, Owner, Turn};
use crate::reader::{Reader, Request};
use crate::router::Router;
use crate::routes::Route;
use crossbeam_channel::{Receiver, Sender};
use faro_fabric::{
    CloseReason, ConnectionId, EndpointId, Event, Fabric, FabricError, Message, Waker,
};
use faro_wire::{kind, WireError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What other threads ask of a progress thread.
pub(crate) enum Command {
    /// Start on a request by this route.
    Fetch(Request, Route),
    /// Forget the caller's request of this id, if it is here.
    Cancel(u64),
    /// An I/O thread is done with a turn.
    Turn(Box<Job>, Turn),
    /// A collective's.
    Collective(Order),
    /// The arena got memory back that somebody had waited for.
    Memory,
    /// End everything.
    Close,
}

/// The way to a progress thread. The channel's bound is that of what it carries: requests, jobs
/// (each at most once), and one `Memory` per burst of refusals.
pub(crate) struct Inbox {
    sender: Sender<Command>,
    waker: Waker,
    /// Set by the first sender after the thread looked; saves the others a system call.
    rung: AtomicBool,
}

impl Inbox {
    pub(crate) fn new(waker: Waker) -> (Arc<Self>, Receiver<Command>) {
        let (sender, receiver) = crossbeam_channel::unbounded();
        (
            Arc::new(Self {
                sender,
                waker,
                rung: AtomicBool::new(false),
            }),
            receiver,
        )
    }

    pub(crate) fn send(&self, command: Command) {
        // An error means that the thread has ended, and with it everything it had.
        if self.sender.send(command).is_ok() && !self.rung.swap(true, Ordering::AcqRel) {
            (self.waker)();
        }
    }
}

/// What all progress threads of an endpoint share.
#[derive(Clone)]
pub(crate) struct Parts {
    /// Who we are.
    pub(crate) endpoint: EndpointId,
    pub(crate) router: Arc<Router>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) io: Arc<IoPool>,
    /// How long the Java side may take to say where a map output lies.
    pub(crate) question_age: Duration,
}

/// See the module's comment.
pub(crate) struct Progress {
    fabric: Box<dyn Fabric>,
    inbox: Arc<Inbox>,
    commands: Receiver<Command>,
    outbox: Outbox,
    reader: Reader,
    owner: Owner,
    collective: Room,
    parts: Parts,
    last_tick: Instant,
}

impl Progress {
    pub(crate) fn new(
        fabric: Box<dyn Fabric>,
        inbox: Arc<Inbox>,
        commands: Receiver<Command>,
        parts: Parts,
    ) -> Self {
        let counters = Arc::clone(&parts.router.counters);
        Self {
            fabric,
            owner: Owner::new(
                Arc::clone(&parts.io),
                Arc::clone(&inbox),
                counters,
                Arc::clone(&parts.memory),
                Serving::new(Arc::clone(&parts.router.exchange)),
            ),
            inbox,
            commands,
            collective: Room::new(Arc::clone(&parts.router)),
            outbox: Outbox::default(),
            reader: Reader::new(
                parts.endpoint,
                Arc::clone(&parts.router),
                Arc::clone(&parts.memory),
            ),
            parts,
            last_tick: Instant::now(),
        }
    }

    /// Runs until `Close`.
    pub(crate) fn run(mut self) {
        let mut events = Vec::new();
        loop {
            if self.take_commands() {
                self.close();
                return;
            }
            self.outbox.retry(&mut *self.fabric);
            self.fabric.flush();
            let busy = !self.reader.is_idle()
                || !self.owner.is_idle()
                || !self.outbox.is_empty()
                || self.parts.router.exchange.waits();
            if let Err(error) = self
                .fabric
                .poll(&mut events, if busy { TICK } else { IDLE })
            {
                self.fail_over(&error);
                self.pass_on();
                return;
            }
            for event in events.drain(..) {
                self.on_event(event);
            }
            self.tidy_connections();
            let now = Instant::now();
            if now.duration_since(self.last_tick) >= TICK {
                self.last_tick = now;
                self.reader.tick(&mut *self.fabric, &mut self.outbox, now);
                self.owner.tick(&mut *self.fabric, &mut self.outbox, now);
                self.parts.router.tick(now);
                self.parts.catalog.tick(now, self.parts.question_age);
                self.parts.memory.pool.release_idle();
            }
        }
    }

    /// True: time to go.
    fn take_commands(&mut self) -> bool {
        // Cleared first: a command sent after the last `try_recv` rings again. A swap and not a
        // store, because reading the sender's `true` is what makes its command visible here.
        self.inbox.rung.swap(false, Ordering::AcqRel);
        let mut memory = false;
        while let Ok(command) = self.commands.try_recv() {
            let (fabric, outbox) = (&mut *self.fabric, &mut self.outbox);
            match command {
                Command::Fetch(request, route) => {
                    self.reader.start(fabric, outbox, request, &route)
                }
                Command::Cancel(id) => self.reader.cancel(fabric, outbox, id),
                Command::Turn(job, turn) => self.owner.on_turn(fabric, outbox, job, turn),
                Command::Collective(order) => {
                    let reader = &mut self.reader;
                    self.collective.on_order(fabric, outbox, reader, order);
                }
                Command::Memory => memory = true,
                Command::Close => return true,
            }
        }
        if memory {
            self.reader.quench(&mut *self.fabric, &mut self.outbox);
            self.owner.on_memory();
        }
        false
    }

    fn on_event(&mut self, event: Event) {
        let (fabric, outbox) = (&mut *self.fabric, &mut self.outbox);
        match event {
            Event::Connected {
                connection: peer,
                endpoint,
            } => {
                self.reader.on_connected(fabric, outbox, peer, endpoint);
                let reader = &mut self.reader;
                self.collective.on_open(fabric, outbox, reader, endpoint);
            }
            Event::Accepted {
                connection: peer,
                endpoint,
            } => {
                self.reader.on_accepted(fabric, outbox, peer, endpoint);
                let reader = &mut self.reader;
                self.collective.on_open(fabric, outbox, reader, endpoint);
            }
            Event::Message {
                connection: peer,
                message,
            } => {
                if let Err(error) = self.on_message(peer, &message) {
                    log::warn!("peer {}: {error}; closing the connection", peer.0);
                    self.fabric.disconnect(peer, CloseReason::Protocol(error));
                }
            }
            Event::WriteEnded { token, outcome, .. } => self.owner.on_write_ended(token, &outcome),
            Event::Closed {
                connection: peer,
                reason,
            } => {
                if !matches!(reason, CloseReason::Local | CloseReason::Peer { .. }) {
                    log::info!(
                        "{} connection {}: {reason}",
                        fabric_name(fabric.kind()),
                        peer.0
                    );
                }
                self.closed(peer, &reason);
            }
            Event::ReadEnded {
                connection: peer,
                token,
                target,
                outcome,
            } => {
                let owner = self.reader.endpoint_of(peer).unwrap_or_default();
                self.parts.router.exchange.sign(owner);
                self.reader
                    .on_read_ended(fabric, outbox, token, target, &outcome);
            }
            // Nothing is posted that would end in `Written`; a revoked lease is simply dropped.
            Event::Written { .. } | Event::Revoked { .. } => {}
        }
    }

    /// Everybody who has something on that connection.
    fn closed(&mut self, peer: ConnectionId, reason: &CloseReason) {
        let (fabric, outbox) = (&mut *self.fabric, &mut self.outbox);
        let endpoint = self.reader.endpoint_of(peer);
        outbox.closed(peer);
        self.owner.on_closed(fabric, peer);
        let reader = &mut self.reader;
        reader.on_closed(fabric, outbox, peer, reason);
        self.collective
            .on_closed(fabric, outbox, reader, endpoint, peer, reason);
        if let Some(gone) = endpoint.filter(|endpoint| !self.reader.is_linked(*endpoint)) {
            self.parts.router.exchange.leave(gone);
        }
    }

    /// One connection to each peer is enough.
    fn tidy_connections(&mut self) {
        let (reader, owner, collective) = (&mut self.reader, &self.owner, &self.collective);
        let used = |peer| owner.serves(peer) || collective.uses(peer);
        reader.give_up_surplus(&mut *self.fabric, used);
        let counters = self.parts.router.counters.fabric(self.fabric.kind());
        counters.connections.set(reader.connection_count() as u64);
    }

    fn on_message(&mut self, peer: ConnectionId, message: &Message) -> Result<(), WireError> {
        let (fabric, outbox) = (&mut *self.fabric, &mut self.outbox);
        // A connection that was given up has no end any more; what still comes is answered by nobody.
        let endpoint = self.reader.endpoint_of(peer).unwrap_or_default();
        match message.kind {
            kind::FETCH | kind::MORE_BUFFERS | kind::CANCEL => {
                self.owner
                    .on_message(fabric, outbox, (peer, endpoint), message)
            }
            kind::FETCH_RESPONSE | kind::DATA_WRITTEN | kind::READ_OFFER | kind::FAILED => {
                self.parts.router.exchange.sign(endpoint);
                self.reader.on_message(fabric, outbox, peer, message)
            }
            kind::JOIN | kind::CLEAR_TO_SEND | kind::DATA_READY | kind::ABORT => {
                self.collective.on_message(fabric, outbox, peer, message)
            }
            got => Err(WireError::UnknownKind { got }),
        }
    }

    /// Answers and says goodbye to everybody, as far as the kernel takes it at once.
    fn close(&mut self) {
        let peers = self.reader.connections();
        self.reader.close(&mut *self.fabric);
        self.owner.close(&mut *self.fabric, &mut self.outbox);
        for peer in peers {
            self.fabric.disconnect(peer, CloseReason::Local);
        }
        self.tidy_connections();
        let mut events = Vec::new();
        if let Err(error) = self.fabric.poll(&mut events, Duration::ZERO) {
            log::debug!("last poll: {error}");
        }
        while let Ok(command) = self.commands.try_recv() {
            if let Command::Fetch(request, _) = command {
                self.parts.router.dispatch(request);
            }
        }
    }

    /// The fabric failed for good: what is under way on it goes on by another one.
    fn fail_over(&mut self, error: &FabricError) {
        let (kind, detail) = (self.fabric.kind(), error.to_string());
        log::error!(
            "{} fabric: {detail}; blocks take the other fabrics or Spark's own fetch until this \
             process ends",
            fabric_name(kind)
        );
        self.parts.router.lost(kind, &detail);
        let reason = CloseReason::Lost { detail };
        for peer in self.reader.connections() {
            self.closed(peer, &reason);
        }
        self.tidy_connections();
    }

    /// Without a fabric: what still comes takes another route or none.
    fn pass_on(self) {
        let Self {
            fabric,
            commands,
            parts,
            ..
        } = self;
        // Its sockets close, so that peers learn at once that nobody is there.
        drop(fabric);
        while let Ok(command) = commands.recv() {
            match command {
                Command::Fetch(request, _) => parts.router.dispatch(request),
                Command::Collective(Order::Errand(errand, _)) => parts.router.resend(errand),
                Command::Close => return,
                _ => {}
            }
        }
    }
}
