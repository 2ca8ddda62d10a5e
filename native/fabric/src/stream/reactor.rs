//! The event loop of a stream fabric: waits for readiness, then serves each connection for a turn.
//!
//! Edge-triggered: a connection that was cut off by its turn's budget before the kernel said
//! "would block" is remembered in `unread` or `dirty` and served again before the next wait.

use super::bounds::Bounds;
use super::counters::Counters;
use super::driver::{FramePath, TransportDriver};
use super::exposure::{ByKey, Exposures};
use super::inbound::Inbound;
use super::kinds::FrameKind;
use super::rare_logs::RareLogs;
use super::sealed::{seals, Sealed, BATCH_BYTES};
use super::session::{Context, Phase, Session, Shared};
use super::strangers::Strangers;
use crate::{ConnectionId, Event, FabricError, OwnIdentity, Waker};
use faro_secure::Protection;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const LISTENER: mio::Token = mio::Token(usize::MAX);
const WAKER: mio::Token = mio::Token(usize::MAX - 1);
/// For the descriptors of a device.
pub(crate) const DEVICE: [mio::Token; 2] = [mio::Token(usize::MAX - 2), mio::Token(usize::MAX - 3)];

/// One connection.
pub(crate) struct Conn<D: TransportDriver> {
    pub(crate) socket: D::Socket,
    pub(crate) inbound: Inbound<FrameKind<D::Kind>>,
    pub(crate) session: Session,
    /// Its records, once there are some.
    pub(crate) sealed: Option<Box<Sealed>>,
    /// The driver's.
    pub(crate) state: D::Connection,
    /// The kernel takes bytes: no send was cut short since it said so.
    pub(crate) writable: bool,
    /// The peer's end of stream (or an error) is announced: a short read is not the last one.
    pub(crate) ending: bool,
    /// On the reactor's list of connections to read on.
    pub(crate) unread: bool,
}

impl<D: TransportDriver> Conn<D> {
    /// Whether the kernel does not have all that is queued.
    pub(crate) fn has_unsent(&self) -> bool {
        let sealed = self.sealed.as_ref();
        !self.session.outbound.is_empty() || sealed.is_some_and(|sealed| !sealed.is_sent())
    }
}

/// An open connection, split into what is worked on side by side.
pub(crate) struct Open<'a, D: TransportDriver> {
    pub(crate) cx: Context<'a>,
    pub(crate) driver: &'a mut D,
    pub(crate) state: &'a mut D::Connection,
}

/// One fabric instance.
pub(crate) struct Reactor<D: TransportDriver> {
    pub(crate) poll: mio::Poll,
    ready: mio::Events,
    waker: Waker,
    /// Set while a wake-up is under way, so that a second one costs no system call.
    woken: Arc<AtomicBool>,
    pub(crate) listener: D::Listener,
    pub(crate) conns: ByKey<Conn<D>>,
    /// Connections that have ended for the caller, while the peer may still receive our GOODBYE.
    pub(crate) lingering: ByKey<super::end::Lingering<D>>,
    pub(crate) shared: Shared,
    pub(crate) driver: D,
    /// Last connection number given out.
    pub(crate) last_connection: u64,
    /// Connections with bytes left to read.
    pub(crate) unread: Vec<ConnectionId>,
    /// The listener has more connections for us.
    pub(crate) accept_more: bool,
    pub(crate) rare_logs: RareLogs,
    /// Deadlines of greetings, lingering connections and the listener's pause: `(time, token)`.
    pub(crate) deadlines: BTreeSet<(Instant, u64)>,
    /// Receives what is not received in place; holds nothing between turns.
    pub(crate) staging: Box<[u8]>,
    /// Where records are sealed and opened; holds nothing between turns.
    pub(crate) records: Box<[u8]>,
}

impl<D: TransportDriver> Reactor<D> {
    pub(crate) fn new(
        identity: OwnIdentity,
        protection: Protection,
        bounds: Bounds,
        mut listener: D::Listener,
        mut driver: D,
    ) -> Result<Self, FabricError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            |source| FabricError::Io { what, source }
        };
        let poll = mio::Poll::new().map_err(failed("epoll_create"))?;
        let eventfd = mio::Waker::new(poll.registry(), WAKER).map_err(failed("eventfd"))?;
        poll.registry()
            .register(&mut listener, LISTENER, mio::Interest::READABLE)
            .map_err(failed("epoll_ctl for the listener"))?;
        D::Path::watch(&mut driver, poll.registry()).map_err(failed("epoll_ctl for the device"))?;
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
        let strangers = Strangers::new(bounds.strangers, bounds.strangers_of_one);
        let records = match seals(D::KIND, protection) {
            false => 0,
            true => BATCH_BYTES,
        };
        Ok(Self {
            poll,
            ready: mio::Events::with_capacity(256),
            waker,
            woken,
            listener,
            conns: ByKey::default(),
            lingering: ByKey::default(),
            shared: Shared {
                fabric: D::KIND,
                identity,
                protection,
                bounds,
                strangers,
                exposures: Exposures::new()?,
                events: Vec::new(),
                counters: Counters::default(),
                work: 0,
                room: false,
                dirty: Vec::new(),
            },
            driver,
            last_connection: 0,
            unread: Vec::new(),
            accept_more: false,
            rare_logs: RareLogs::default(),
            deadlines: BTreeSet::new(),
            staging: vec![0; D::STAGING_BYTES].into_boxed_slice(),
            records: vec![0; records].into_boxed_slice(),
        })
    }

    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// An open connection; `None` if it is not (or no longer) open.
    pub(crate) fn open(&mut self, connection: ConnectionId) -> Option<Open<'_, D>> {
        let conn = self.conns.get_mut(&connection.0)?;
        (conn.session.phase == Phase::Open).then_some(Open {
            cx: Context {
                connection,
                session: &mut conn.session,
                shared: &mut self.shared,
            },
            driver: &mut self.driver,
            state: &mut conn.state,
        })
    }

    /// A connection in whatever phase.
    pub(crate) fn context(&mut self, connection: ConnectionId) -> Option<(Context<'_>, Phase)> {
        let conn = self.conns.get_mut(&connection.0)?;
        let phase = conn.session.phase;
        let cx = Context {
            connection,
            session: &mut conn.session,
            shared: &mut self.shared,
        };
        Some((cx, phase))
    }

    /// See [`crate::Fabric::poll`].
    pub(crate) fn poll(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Duration,
    ) -> Result<(), FabricError> {
        self.flush();
        // Out of `self` while the sockets are served, which needs all of `self`.
        let mut ready = std::mem::replace(&mut self.ready, mio::Events::with_capacity(0));
        let result = self.wait(&mut ready, timeout);
        if result.is_ok() {
            self.serve(&ready);
        }
        self.ready = ready;
        result?;
        if self.accept_more {
            self.accept();
        }
        self.expire();
        self.flush();
        // This call returns, so the caller tries again in any case.
        self.shared.room = false;
        events.append(&mut self.shared.events);
        Ok(())
    }

    fn wait(&mut self, ready: &mut mio::Events, timeout: Duration) -> Result<(), FabricError> {
        let busy = std::mem::take(&mut self.shared.room)
            || !self.shared.events.is_empty()
            || !self.unread.is_empty()
            || !self.shared.dirty.is_empty()
            || self.accept_more
            || (!timeout.is_zero() && D::Path::before_wait(self));
        let now = Instant::now();
        let timeout = match self.deadlines.first() {
            _ if busy => Duration::ZERO,
            Some((deadline, _)) => timeout.min(deadline.saturating_duration_since(now)),
            None => timeout,
        };
        self.shared.counters.poll_calls += 1;
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

    /// The device first, then connections that were cut off before, then those that are ready.
    fn serve(&mut self, ready: &mio::Events) {
        for event in ready {
            if DEVICE.contains(&event.token()) {
                D::Path::signalled(&mut self.driver, event.token());
            }
        }
        D::Path::after_wait(self);
        for connection in std::mem::take(&mut self.unread) {
            if let Some(conn) = self.conns.get_mut(&connection.0) {
                conn.unread = false;
                self.read_turn(connection);
            }
        }
        for event in ready {
            match event.token() {
                // Cleared before the caller looks at what it was woken for.
                WAKER => drop(self.woken.swap(false, Ordering::AcqRel)),
                LISTENER => self.accept_more = true,
                token if DEVICE.contains(&token) => {}
                mio::Token(connection) => self.on_ready(ConnectionId(connection as u64), event),
            }
        }
    }

    fn on_ready(&mut self, connection: ConnectionId, event: &mio::event::Event) {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return self.linger_on(connection);
        };
        if conn.session.phase == Phase::Connecting && !self.finish_connect(connection) {
            return;
        }
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return;
        };
        conn.ending |= event.is_read_closed() || event.is_error();
        if event.is_writable() {
            conn.writable = true;
            if conn.has_unsent() && !std::mem::replace(&mut conn.session.dirty, true) {
                self.shared.dirty.push(connection);
            }
        }
        let read_on = (event.is_readable() || conn.ending) && !conn.unread;
        if read_on {
            self.read_turn(connection);
        }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut named = self.shared.counters.named();
        let conns = || self.conns.values();
        let sealed = |conn: &Conn<D>| conn.sealed.as_ref().map_or(0, |sealed| sealed.buffered());
        let buffered: usize = conns()
            .map(|conn| conn.inbound.buffered() + sealed(conn))
            .sum();
        let unsent: usize = conns().map(|conn| conn.session.outbound.buffered()).sum();
        let memory = buffered + unsent + self.staging.len() + self.records.len();
        let queued: usize = conns().map(|conn| conn.session.outbound.len()).sum();
        let connections = self.conns.len() + self.lingering.len();
        named.push(("connections", connections as u64));
        named.push(("queued_frames", queued as u64));
        named.push(("buffered_bytes", buffered as u64));
        named.push(("memory_bytes", memory as u64));
        named.push(("exposures", self.shared.exposures.len() as u64));
        named.extend(self.driver.counters());
        named
    }
}
