//! The progress loop of a stream fabric: readiness in, system calls out, fair between peers.
//!
//! Edge-triggered: a connection that was cut off by its turn's budget before the kernel said
//! "would block" is remembered in `unread` or `dirty` and served again before the next wait.

use super::bounds::Bounds;
use super::counters::Counters;
use super::exposure::{ByKey, Exposures};
use super::inbound::Inbound;
use super::session::{Carrier, Context, Phase, Session, Shared};
use crate::{ConnectionId, EndpointId, Event, FabricError, Waker};
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const LISTENER: mio::Token = mio::Token(usize::MAX);
const WAKER: mio::Token = mio::Token(usize::MAX - 1);
/// For what a carrier watches.
pub(crate) const CARRIER: [mio::Token; 2] =
    [mio::Token(usize::MAX - 2), mio::Token(usize::MAX - 3)];

/// One connection.
pub(crate) struct Conn<C: Carrier> {
    pub(crate) socket: C::Socket,
    pub(crate) inbound: Inbound,
    pub(crate) session: Session<C::Peer>,
    /// The kernel takes bytes, as far as we know.
    pub(crate) writable: bool,
    /// The peer's end of stream (or an error) is announced: a short read is not the last one.
    pub(crate) ending: bool,
    /// On the hub's list of connections to read on.
    pub(crate) unread: bool,
}

/// One fabric instance.
pub(crate) struct Hub<C: Carrier> {
    pub(crate) poll: mio::Poll,
    ready: mio::Events,
    waker: Waker,
    /// Set while a wake-up is under way, so that a second one costs no system call.
    woken: Arc<AtomicBool>,
    pub(crate) listener: C::Listener,
    pub(crate) conns: ByKey<Conn<C>>,
    /// Connections that are over for the caller, but may still fetch our GOODBYE.
    pub(crate) lingering: ByKey<super::lifecycle::Lingering<C>>,
    pub(crate) shared: Shared,
    pub(crate) carrier: C,
    /// Last peer number given out.
    pub(crate) last_peer: u64,
    /// Connections with bytes left to read.
    pub(crate) unread: Vec<ConnectionId>,
    /// The listener has more connections for us.
    pub(crate) accept_more: bool,
    /// When something has to be looked at: greetings and lingering connections (and the listener).
    pub(crate) deadlines: BTreeSet<(Instant, u64)>,
    /// Where frames arrive that are not received in place; empty between turns.
    pub(crate) staging: Box<[u8]>,
}

impl<C: Carrier> Hub<C> {
    pub(crate) fn new(
        endpoint: EndpointId,
        bounds: Bounds,
        mut listener: C::Listener,
        mut carrier: C,
    ) -> Result<Self, FabricError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            |source| FabricError::Io { what, source }
        };
        let poll = mio::Poll::new().map_err(failed("epoll_create"))?;
        let bell = mio::Waker::new(poll.registry(), WAKER).map_err(failed("eventfd"))?;
        poll.registry()
            .register(&mut listener, LISTENER, mio::Interest::READABLE)
            .map_err(failed("epoll_ctl for the listener"))?;
        carrier
            .watch(poll.registry())
            .map_err(failed("epoll_ctl for the device"))?;
        let woken = Arc::new(AtomicBool::new(false));
        let waker: Waker = Arc::new({
            let woken = woken.clone();
            move || {
                if !woken.swap(true, Ordering::AcqRel) {
                    if let Err(error) = bell.wake() {
                        log::error!("cannot wake the progress thread: {error}");
                    }
                }
            }
        });
        Ok(Self {
            poll,
            ready: mio::Events::with_capacity(256),
            waker,
            woken,
            listener,
            conns: ByKey::default(),
            lingering: ByKey::default(),
            shared: Shared {
                endpoint,
                bounds,
                exposures: Exposures::new()?,
                events: Vec::new(),
                counters: Counters::default(),
                work: 0,
                room: false,
                dirty: Vec::new(),
            },
            carrier,
            last_peer: 0,
            unread: Vec::new(),
            accept_more: false,
            deadlines: BTreeSet::new(),
            staging: vec![0; C::STAGING].into_boxed_slice(),
        })
    }

    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// An open connection, to do something with; `None` if it is not (or no longer) open.
    pub(crate) fn open(&mut self, connection: ConnectionId) -> Option<(Context<'_, C>, &mut C)> {
        let conn = self.conns.get_mut(&connection.0)?;
        (conn.session.phase == Phase::Open).then_some((
            Context {
                connection,
                session: &mut conn.session,
                shared: &mut self.shared,
            },
            &mut self.carrier,
        ))
    }

    /// See [`crate::Fabric::poll`].
    pub(crate) fn poll(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Duration,
    ) -> Result<(), FabricError> {
        self.flush();
        let busy = std::mem::take(&mut self.shared.room)
            || !self.shared.events.is_empty()
            || !self.unread.is_empty()
            || !self.shared.dirty.is_empty()
            || self.accept_more
            || (!timeout.is_zero() && C::before_wait(self)?);
        let now = Instant::now();
        let timeout = match self.deadlines.first() {
            _ if busy => Duration::ZERO,
            Some((deadline, _)) => timeout.min(deadline.saturating_duration_since(now)),
            None => timeout,
        };
        self.shared.counters.poll_calls += 1;
        let mut ready = std::mem::replace(&mut self.ready, mio::Events::with_capacity(0));
        match self.poll.poll(&mut ready, Some(timeout)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => ready.clear(),
            Err(source) => {
                self.ready = ready;
                let what = "epoll_wait".to_owned();
                return Err(FabricError::Io { what, source });
            }
        }
        for event in &ready {
            if CARRIER.contains(&event.token()) {
                self.carrier.signalled(event.token());
            }
        }
        if let Err(error) = C::turn(self) {
            self.ready = ready;
            return Err(error);
        }
        for connection in std::mem::take(&mut self.unread) {
            if let Some(conn) = self.conns.get_mut(&connection.0) {
                conn.unread = false;
                self.read_turn(connection);
            }
        }
        for event in &ready {
            match event.token() {
                // Cleared before the caller looks at whatever it was woken for.
                WAKER => drop(self.woken.swap(false, Ordering::AcqRel)),
                LISTENER => self.accept_more = true,
                token if CARRIER.contains(&token) => {}
                mio::Token(connection) => self.on_ready(ConnectionId(connection as u64), event),
            }
        }
        self.ready = ready;
        if self.accept_more {
            self.accept();
        }
        self.expire();
        self.flush();
        // This call returns: no news for the next one.
        self.shared.room = false;
        events.append(&mut self.shared.events);
        Ok(())
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
            if !conn.session.outbound.is_empty()
                && !std::mem::replace(&mut conn.session.dirty, true)
            {
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
        let buffered: usize = conns().map(|conn| conn.inbound.buffered()).sum();
        let queued: usize = conns().map(|conn| conn.session.outbound.len()).sum();
        let connections = self.conns.len() + self.lingering.len();
        named.push(("connections", connections as u64));
        named.push(("queued_frames", queued as u64));
        named.push(("buffered_bytes", buffered as u64));
        named.push(("exposures", self.shared.exposures.len() as u64));
        named.extend(self.carrier.counters());
        named
    }
}
