//! The event loop of one progress thread: one fabric and its services. It never blocks but in `poll`.

use crate::fetch::RequestQueue;
use crate::files::Catalog;
use crate::limits::{ENDED_LINES, IDLE, TICK};
use crate::memory::Memory;
use crate::net::{ClosedConnection, Doorbell, MessageSource, Net, PeerTable, ProgressService};
use crate::services::Services;
use faro_fabric::rare_log::RareLog;
use faro_fabric::{CloseReason, ConnectionId, EndpointId, Event, FabricError, FabricKind, Message};
use faro_sync::{clock, panic_message};
use faro_wire::message::Incoming;
use faro_wire::WireError;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// State that all progress threads of an endpoint share.
#[derive(Clone)]
pub(crate) struct ProgressShared {
    pub(crate) queue: Arc<RequestQueue>,
    pub(crate) peers: Arc<PeerTable>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) catalog: Arc<Catalog>,
    /// Time that Java may take to say where a map output is.
    pub(crate) question_timeout: Duration,
}

/// One progress thread.
pub(crate) struct Progress {
    net: Net,
    doorbell: Arc<Doorbell>,
    services: Services,
    shared: ProgressShared,
    last_tick: Instant,
    /// Peers that broke the protocol.
    broken: RareLog,
    /// Connections that ended otherwise than by a goodbye.
    ended: RareLog,
}

impl Progress {
    pub(crate) fn new(
        net: Net,
        doorbell: Arc<Doorbell>,
        services: Services,
        shared: ProgressShared,
    ) -> Self {
        Self {
            net,
            doorbell,
            services,
            shared,
            last_tick: clock::now(),
            broken: RareLog::default(),
            ended: RareLog::up_to(ENDED_LINES),
        }
    }

    pub(crate) fn kind(&self) -> FabricKind {
        self.net.kind()
    }

    /// Runs until the doorbell says close. If the fabric fails for good, or if this code panics,
    /// the fabric is closed, and its requests continue on another fabric or fail at once.
    pub(crate) fn run(mut self) {
        // After a panic only `lose_fabric` touches the state, and it is not trusted either.
        let end = catch_unwind(AssertUnwindSafe(|| self.run_until_end()));
        let detail = match end {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("its thread panicked: {}", panic_message(&*panic)),
        };
        let (kind, doorbell) = (self.net.kind(), Arc::clone(&self.doorbell));
        // A second panic drops the rest of the state. A request that is dropped tells its caller.
        match catch_unwind(AssertUnwindSafe(|| self.lose_fabric(detail))) {
            Ok(mut without) => {
                while without.turn() {
                    doorbell.wait();
                }
            }
            Err(panic) => log::error!(
                "{} fabric: its thread panicked again: {}",
                kind.name(),
                panic_message(&*panic)
            ),
        }
    }

    /// Runs turns until this endpoint closes.
    ///
    /// # Errors
    /// Fails if the fabric has failed for good.
    fn run_until_end(&mut self) -> Result<(), FabricError> {
        let mut events = Vec::new();
        while self.turn(&mut events)? {}
        Ok(())
    }

    /// Runs one turn: commands, events, time. `events` is empty before and after it. Returns false
    /// if this endpoint closes and has told all peers.
    ///
    /// # Errors
    /// Fails if the fabric has failed for good.
    pub(crate) fn turn(&mut self, events: &mut Vec<Event>) -> Result<bool, FabricError> {
        self.take_commands();
        if self.doorbell.is_closing() {
            self.close();
            return Ok(false);
        }
        self.net.flush();
        let timeout = self.timeout();
        self.net.poll(events, timeout)?;
        for event in events.drain(..) {
            self.on_event(event);
        }
        self.tick();
        Ok(true)
    }

    fn take_commands(&mut self) {
        self.doorbell.answer();
        let memory = self.doorbell.take_memory();
        for service in self.services.all() {
            service.on_commands(&mut self.net);
            if memory {
                service.on_memory(&mut self.net);
            }
        }
        self.services.fetch.publish_first();
    }

    /// Returns how long to wait for events: a tick, if anything depends on time.
    fn timeout(&mut self) -> Duration {
        let idle = self.services.all().iter().all(|service| service.is_idle())
            && self.net.is_idle()
            && !self.shared.queue.has_waiting();
        if idle {
            IDLE
        } else {
            TICK
        }
    }

    fn on_event(&mut self, event: Event) {
        let Self { net, services, .. } = self;
        match event {
            Event::Connected {
                connection,
                endpoint,
            } => {
                net.connected(connection);
                self.opened(endpoint);
            }
            Event::Accepted {
                connection,
                endpoint,
            } => {
                net.accepted(connection, endpoint);
                self.opened(endpoint);
            }
            Event::Message {
                connection,
                message,
            } => {
                if let Err(error) = self.on_message(connection, &message) {
                    if let Some(left_out) = self.broken.at(clock::now()) {
                        let id = connection.0;
                        log::warn!("connection {id}: {error}; closing the connection{left_out}");
                    }
                    let reason = CloseReason::Protocol(error);
                    self.net.disconnect(connection, reason);
                }
            }
            Event::WriteEnded {
                connection,
                token,
                outcome,
            } => {
                for service in services.all() {
                    service.on_write_ended(net, connection, token, &outcome);
                }
            }
            Event::ReadEnded {
                connection,
                token,
                target,
                outcome,
            } => services
                .fetch
                .on_read_ended(net, connection, token, target, &outcome),
            Event::Closed { connection, reason } => {
                if !matches!(reason, CloseReason::Local | CloseReason::Peer { .. }) {
                    if let Some(left_out) = self.ended.at(clock::now()) {
                        let (fabric, id) = (net.kind().name(), connection.0);
                        log::info!("{fabric} connection {id}: {reason}{left_out}");
                    }
                }
                self.closed(connection, &reason);
            }
            // No operation is posted that would end in `Written`; a revoked lease is dropped.
            Event::Written { .. } | Event::Revoked { .. } => {}
        }
    }

    fn on_message(&mut self, connection: ConnectionId, message: &Message) -> Result<(), WireError> {
        // A connection that was given up is not known any more; what still arrives is answered on
        // it.
        let source = MessageSource {
            connection,
            endpoint: self.net.endpoint_of(connection).unwrap_or_default(),
        };
        let (id, net) = (message.id, &mut self.net);
        match Incoming::decode(message.kind, &message.body)? {
            Incoming::ToServer(m) => self.services.serve.on_message(net, source, id, m),
            Incoming::ToClient(m) => self.services.fetch.on_message(net, source, id, m),
            Incoming::ToMember(m) => self.services.collective.on_message(net, source, id, m),
            Incoming::ToCommands(m) => self.services.command.on_message(net, source, id, m),
        }
    }

    fn opened(&mut self, endpoint: EndpointId) {
        for service in self.services.all() {
            service.on_open(&mut self.net, endpoint);
        }
    }

    fn closed(&mut self, connection: ConnectionId, reason: &CloseReason) {
        let endpoint = self.net.closed(connection, reason);
        let closed = ClosedConnection {
            connection,
            endpoint,
            reason,
        };
        for service in self.services.all() {
            service.on_closed(&mut self.net, &closed);
        }
    }

    fn tick(&mut self) {
        let now = clock::now();
        if now.duration_since(self.last_tick) < TICK {
            return;
        }
        self.last_tick = now;
        let services = &self.services;
        self.net.close_surplus(|at| services.use_connection(at));
        for service in self.services.all() {
            service.tick(&mut self.net, now);
        }
        let services = &self.services;
        self.net.close_idle(|at| services.keep_connection(at));
        let shared = &self.shared;
        shared.queue.tick(now);
        shared.peers.forget_idle(now);
        shared.catalog.tick(now, shared.question_timeout);
        shared.memory.pool.release_idle();
        self.net.count_buffers();
    }

    /// Answers all peers and closes their connections.
    fn close(&mut self) {
        for service in self.services.all() {
            service.close(&mut self.net);
        }
        self.net.close();
        self.redirect_commands();
    }

    /// Ends all connections, because the fabric has failed for good. Their requests continue on
    /// another one.
    pub(crate) fn lose_fabric(mut self, detail: String) -> WithoutFabric {
        let kind = self.net.kind();
        log::error!(
            "{} fabric: {detail}; until this process ends, blocks take the other fabrics or Spark's \
             own fetch",
            kind.name()
        );
        self.shared.peers.fabric_lost(kind, &detail);
        let reason = CloseReason::Lost { detail };
        for connection in self.net.connections() {
            self.closed(connection, &reason);
        }
        // `net` is dropped here: its sockets close, so that peers notice at once.
        WithoutFabric {
            doorbell: self.doorbell,
            services: self.services,
        }
    }

    fn redirect_commands(&mut self) {
        for service in self.services.all() {
            service.redirect_commands();
        }
    }
}

/// A progress thread whose fabric has failed for good: commands that still come go by another fabric,
/// or fail.
pub(crate) struct WithoutFabric {
    doorbell: Arc<Doorbell>,
    services: Services,
}

impl WithoutFabric {
    /// Redirects the commands that have come. Returns false if this endpoint closes.
    pub(crate) fn turn(&mut self) -> bool {
        if self.doorbell.is_closing() {
            return false;
        }
        self.doorbell.answer();
        for service in self.services.all() {
            service.redirect_commands();
        }
        true
    }
}
