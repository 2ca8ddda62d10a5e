//! The event loop of a fabric: waits for readiness, then serves each connection for a turn.
//!
//! Edge-triggered, so that a wake-up costs no re-arming: a connection that was cut off by its
//! turn's budget before the kernel said "would block" is remembered by the table and served again
//! before the next wait.

use super::acceptor::{AcceptResult, ListenerState};
use super::device_turn;
use super::driver::{Driver, Owner, DEVICE};
use super::table::ConnectionTable;
use crate::session::bounds::{Bounds, ACCEPTS};
use crate::session::connection::Common;
use crate::session::counters::FabricCounters;
use crate::session::operations::{self, NotExposed};
use crate::session::state::FabricShared;
use crate::{
    CloseReason, ConnectionId, Event, Exposure, Fabric, FabricError, FabricKind, Identity, Message,
    OwnIdentity, Read, RejectedPost, RemoteRange, RevokeStatus, Waker, Write, WriteSources,
};
use faro_pool::Lease;
use faro_secure::Protection;
use faro_sync::clock;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LISTENER: mio::Token = mio::Token(usize::MAX);
const WAKER: mio::Token = mio::Token(usize::MAX - 1);

/// One fabric instance: TCP, shared memory or verbs, by its driver. Only this crate has drivers.
#[allow(private_bounds)]
pub struct Reactor<D: Driver> {
    poll: mio::Poll,
    ready: mio::Events,
    waker: Waker,
    /// Set from a wake-up until it is handled, so that a second one costs no system call.
    woken: Arc<AtomicBool>,
    acceptor: ListenerState<D::Listener>,
    table: ConnectionTable<D>,
    /// See [`Fabric::location`].
    location: String,
}

#[allow(private_bounds)]
impl<D: Driver> Reactor<D> {
    /// Begins to accept at `listener`, which peers reach at `location`.
    pub(crate) fn listening(
        identity: OwnIdentity,
        protection: Protection,
        bounds: Bounds,
        mut listener: D::Listener,
        location: String,
        mut driver: D,
    ) -> Result<Self, FabricError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            |source| FabricError::Io { what, source }
        };
        let poll = mio::Poll::new().map_err(failed("epoll_create"))?;
        let registry = poll.registry();
        let eventfd = mio::Waker::new(registry, WAKER).map_err(failed("eventfd"))?;
        registry
            .register(&mut listener, LISTENER, mio::Interest::READABLE)
            .map_err(failed("epoll_ctl for the listener"))?;
        driver
            .watch(registry)
            .map_err(failed("epoll_ctl for the device"))?;
        let woken = Arc::new(AtomicBool::new(false));
        let waker: Waker = Arc::new({
            let woken = woken.clone();
            move || {
                if !woken.swap(true, Ordering::AcqRel) {
                    if let Err(error) = eventfd.wake() {
                        log::error!("cannot wake the progress thread: {error}");
                    }
                }
            }
        });
        let shared = FabricShared::new(D::KIND, identity, protection, bounds)?;
        let registry = registry.try_clone().map_err(failed("dup of the epoll"))?;
        Ok(Self {
            ready: mio::Events::with_capacity(256),
            waker,
            woken,
            acceptor: ListenerState::new(listener),
            table: ConnectionTable::new(registry, Common::new(driver, shared)),
            poll,
            location,
        })
    }

    pub(crate) fn driver(&self) -> &D {
        &self.table.common.driver
    }

    pub(crate) fn driver_mut(&mut self) -> &mut D {
        &mut self.table.common.driver
    }

    fn wait(&mut self, ready: &mut mio::Events, timeout: Duration) -> Result<(), FabricError> {
        let shared = &mut self.table.common.shared;
        let busy = std::mem::take(&mut shared.room)
            || !shared.events.is_empty()
            || !shared.dirty.is_empty()
            || self.table.has_unread()
            || self.acceptor.has_more()
            || (!timeout.is_zero() && device_turn::arm(&mut self.table));
        let now = clock::now();
        let deadlines = [self.table.next_deadline(), self.acceptor.paused_until()];
        let timeout = match deadlines.into_iter().flatten().min() {
            _ if busy => Duration::ZERO,
            Some(deadline) => timeout.min(deadline.saturating_duration_since(now)),
            None => timeout,
        };
        self.table.common.shared.counters.poll_calls += 1;
        match self.poll.poll(ready, Some(timeout)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                ready.clear();
                Ok(())
            }
            Err(source) => {
                let what = "epoll_wait".to_owned();
                Err(FabricError::Io { what, source })
            }
        }
    }

    /// Serves the device first, then connections that were cut off before, then those that are
    /// ready.
    fn serve(&mut self, ready: &mio::Events) {
        for event in ready {
            if DEVICE.contains(&event.token()) {
                self.driver_mut().signalled(event.token());
            }
        }
        device_turn::take_turn(&mut self.table);
        self.table.receive_unread();
        for event in ready {
            match event.token() {
                // Cleared before the caller looks at what it was woken for.
                WAKER => drop(self.woken.swap(false, Ordering::AcqRel)),
                LISTENER => self.acceptor.ready(),
                token if DEVICE.contains(&token) => {}
                mio::Token(connection) => {
                    let connection = ConnectionId(connection as u64);
                    if self.table.ready(connection, event) && self.is_received_here(connection) {
                        self.table.receive(connection);
                    }
                }
            }
        }
    }

    /// Returns whether this reactor receives from a connection. If it is another one's, the driver
    /// hands it over; if it is none's, it ends.
    fn is_received_here(&mut self, connection: ConnectionId) -> bool {
        if !D::PASSES_ON {
            return true;
        }
        let Some(found) = self.table.before_hello(connection) else {
            return true;
        };
        let ending = found.ending;
        match self.driver().owner(&found.socket) {
            Owner::Here => return true,
            // No more will come.
            Owner::Later => return ending,
            Owner::Refused(reason) => self.table.close(connection, reason),
            Owner::Other(hand_over) => {
                if let Some((socket, origin)) = self.table.take_out(connection) {
                    hand_over(socket, origin);
                }
            }
        }
        false
    }

    /// Accepts waiting connections, up to `ACCEPTS` of them.
    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            match self.acceptor.accept() {
                AcceptResult::Taken(socket, origin) if !self.table.is_full() => {
                    self.table.accepted(socket, origin);
                }
                AcceptResult::Taken(..) | AcceptResult::Refused => {
                    self.table.common.shared.counters.connections_refused += 1;
                }
                AcceptResult::Gone => {}
                AcceptResult::Nothing => return,
            }
        }
    }

    /// Returns those counters that are counted, and not looked for among the connections.
    pub(crate) fn counted(&self) -> &FabricCounters {
        &self.table.common.shared.counters
    }
}

impl<D: Driver> Fabric for Reactor<D>
where
    Self: Send,
{
    fn kind(&self) -> FabricKind {
        D::KIND
    }

    fn location(&self) -> String {
        self.location.clone()
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn connect(
        &mut self,
        location: &str,
        expected: &Identity,
        deadline: Instant,
    ) -> Result<ConnectionId, FabricError> {
        let started = self.driver_mut().start(location)?;
        self.table.connect(started, location, expected, deadline)
    }

    fn disconnect(&mut self, connection: ConnectionId, reason: CloseReason) {
        self.table.close(connection, reason);
    }

    fn connection_bytes(&self) -> u64 {
        self.driver().connection_bytes()
    }

    fn wants_fewer_connections(&self) -> bool {
        self.driver().wants_fewer_connections()
    }

    fn register(&mut self, lease: &Lease) -> Result<(), FabricError> {
        self.driver_mut().register(lease)
    }

    fn expose(
        &mut self,
        connection: ConnectionId,
        exposure: Exposure,
    ) -> Result<RemoteRange, RejectedPost<Exposure>> {
        let open = self.table.open(connection);
        operations::expose(open, connection, exposure).map_err(|not| match not {
            NotExposed::Rejected(rejected) => rejected,
            NotExposed::Broken(exposure, reason) => {
                self.table.close(connection, reason);
                RejectedPost::NotConnected(exposure, connection)
            }
        })
    }

    fn revoke(&mut self, key: u64) -> RevokeStatus {
        self.table.revoke(key)
    }

    fn send(
        &mut self,
        connection: ConnectionId,
        message: Message,
    ) -> Result<(), RejectedPost<Message>> {
        operations::send(self.table.open(connection), connection, message)
    }

    fn write(&mut self, connection: ConnectionId, write: Write) -> Result<(), RejectedPost<Write>> {
        operations::write(self.table.open(connection), connection, write)
    }

    fn write_sources(&mut self, connection: ConnectionId) -> WriteSources {
        operations::write_sources(self.table.open(connection))
    }

    fn read(&mut self, connection: ConnectionId, read: Read) -> Result<(), RejectedPost<Read>> {
        operations::read(self.table.open(connection), connection, read)
    }

    fn flush(&mut self) {
        self.table.flush();
    }

    fn poll(&mut self, events: &mut Vec<Event>, timeout: Duration) -> Result<(), FabricError> {
        self.table.flush();
        // Out of `self` while the sockets are served, which needs all of `self`.
        let mut ready = std::mem::replace(&mut self.ready, mio::Events::with_capacity(0));
        let result = self.wait(&mut ready, timeout);
        if result.is_ok() {
            self.serve(&ready);
        }
        self.ready = ready;
        result?;
        self.table.note_proven();
        if self.acceptor.has_more() {
            self.accept();
        }
        let now = clock::now();
        self.acceptor.expire(now);
        self.table.expire(now);
        self.table.flush();
        let shared = &mut self.table.common.shared;
        // This call returns, so the caller tries again in any case.
        shared.room = false;
        events.append(&mut shared.events);
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.table.counters()
    }
}
