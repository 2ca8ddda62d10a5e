//! The progress loop of a stream fabric: readiness in, system calls out, fair between peers.
//!
//! Edge-triggered: a connection that was cut off by its turn's budget before the kernel said
//! "would block" is remembered in `unread` or `dirty` and served again before the next wait.

use super::bounds::{Bounds, SLICES, TAIL_BYTES};
use super::counters::Counters;
use super::exposure::{ByKey, Exposures};
use super::inbound::Inbound;
use super::session::{Carrier, Context, Phase, Receiver, Session, Shared};
use super::socket::Socket;
use crate::{CloseReason, EndpointId, Event, FabricError, PeerId, Waker};
use std::collections::BTreeSet;
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const LISTENER: mio::Token = mio::Token(usize::MAX);
const WAKER: mio::Token = mio::Token(usize::MAX - 1);

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
    pub(crate) lingering: ByKey<super::lifecycle::Lingering<C::Socket>>,
    pub(crate) shared: Shared,
    pub(crate) carrier: C,
    /// Last peer number given out.
    pub(crate) last_peer: u64,
    /// Connections with bytes left to read.
    unread: Vec<PeerId>,
    /// The listener has more connections for us.
    pub(crate) accept_more: bool,
    /// When something has to be looked at: greetings and lingering connections (and the listener).
    pub(crate) deadlines: BTreeSet<(Instant, u64)>,
    staging: Box<[u8]>,
}

/// How far a turn got.
enum Turn {
    /// Until the kernel had nothing more.
    Drained,
    /// Until the budget was used up.
    CutOff,
}

impl<C: Carrier> Hub<C> {
    pub(crate) fn new(
        endpoint: EndpointId,
        bounds: Bounds,
        mut listener: C::Listener,
        carrier: C,
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
    pub(crate) fn open(&mut self, peer: PeerId) -> Option<(Context<'_, C>, &mut C)> {
        let conn = self.conns.get_mut(&peer.0)?;
        (conn.session.phase == Phase::Open).then_some((
            Context {
                peer,
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
        let busy = !self.shared.events.is_empty()
            || !self.unread.is_empty()
            || !self.shared.dirty.is_empty()
            || self.accept_more;
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
        for peer in std::mem::take(&mut self.unread) {
            if let Some(conn) = self.conns.get_mut(&peer.0) {
                conn.unread = false;
                self.read_turn(peer);
            }
        }
        for event in &ready {
            match event.token() {
                // Cleared before the caller looks at whatever it was woken for.
                WAKER => drop(self.woken.swap(false, Ordering::AcqRel)),
                LISTENER => self.accept_more = true,
                mio::Token(peer) => self.on_ready(PeerId(peer as u64), event),
            }
        }
        self.ready = ready;
        if self.accept_more {
            self.accept();
        }
        self.expire();
        self.flush();
        events.append(&mut self.shared.events);
        Ok(())
    }

    fn on_ready(&mut self, peer: PeerId, event: &mio::event::Event) {
        let Some(conn) = self.conns.get_mut(&peer.0) else {
            return self.linger_on(peer);
        };
        if conn.session.phase == Phase::Connecting && !self.finish_connect(peer) {
            return;
        }
        let Some(conn) = self.conns.get_mut(&peer.0) else {
            return;
        };
        conn.ending |= event.is_read_closed() || event.is_error();
        if event.is_writable() {
            conn.writable = true;
            if !conn.session.outbound.is_empty()
                && !std::mem::replace(&mut conn.session.dirty, true)
            {
                self.shared.dirty.push(peer);
            }
        }
        let read_on = (event.is_readable() || conn.ending) && !conn.unread;
        if read_on {
            self.read_turn(peer);
        }
    }

    /// Reads one connection until it is drained or its turn is over.
    fn read_turn(&mut self, peer: PeerId) {
        match self.read(peer) {
            Ok(Turn::Drained) => {}
            Ok(Turn::CutOff) => {
                if let Some(conn) = self.conns.get_mut(&peer.0) {
                    conn.unread = true;
                    self.unread.push(peer);
                }
            }
            Err(reason) => self.close(peer, reason),
        }
    }

    fn read(&mut self, peer: PeerId) -> Result<Turn, CloseReason> {
        let Some(conn) = self.conns.get_mut(&peer.0) else {
            return Ok(Turn::Drained);
        };
        let mut budget = self.shared.bounds.turn_bytes;
        let mut receiver = Receiver {
            cx: Context {
                peer,
                session: &mut conn.session,
                shared: &mut self.shared,
            },
            carrier: &mut self.carrier,
        };
        loop {
            if budget == 0 {
                return Ok(Turn::CutOff);
            }
            receiver.cx.shared.counters.receive_calls += 1;
            let (offered, landed, staged) = {
                let place = conn.inbound.direct(&mut receiver).unwrap_or_default();
                let tail = if place.is_empty() {
                    C::STAGING
                } else {
                    TAIL_BYTES
                };
                let (place_bytes, offered) = (place.len(), place.len() + tail);
                let slices = &mut [
                    IoSliceMut::new(place),
                    IoSliceMut::new(&mut self.staging[..tail]),
                ];
                let result = conn
                    .socket
                    .receive(&mut slices[usize::from(place_bytes == 0)..]);
                let landed = result.as_ref().map_or(0, |bytes| place_bytes.min(*bytes));
                (offered, landed, result.map(|bytes| bytes - landed))
            };
            // Even if nothing came: the framing takes its buffer back.
            conn.inbound.landed(landed, &mut receiver)?;
            let staged = match staged {
                Ok(0) if landed == 0 => {
                    let detail = "the peer ended the stream".to_owned();
                    return Err(CloseReason::Lost { detail });
                }
                Ok(staged) => staged,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Turn::Drained)
                }
                Err(error) => {
                    let detail = format!("cannot receive: {error}");
                    return Err(CloseReason::Lost { detail });
                }
            };
            C::collect(&mut conn.socket, &mut receiver.cx.session.carrier)?;
            let bytes = landed + staged;
            receiver.cx.shared.counters.bytes_in += bytes as u64;
            budget = budget.saturating_sub(bytes);
            conn.inbound.feed(&self.staging[..staged], &mut receiver)?;
            let work = std::mem::take(&mut receiver.cx.shared.work);
            budget = budget.saturating_sub(work);
            if C::SHORT_MEANS_DRAINED && bytes < offered && !conn.ending {
                return Ok(Turn::Drained);
            }
        }
    }

    /// See [`crate::Fabric::flush`].
    pub(crate) fn flush(&mut self) {
        for peer in std::mem::take(&mut self.shared.dirty) {
            let Some(conn) = self.conns.get_mut(&peer.0) else {
                continue;
            };
            conn.session.dirty = false;
            if let Err(error) = self.write(peer) {
                self.write_failed(peer, &error);
            }
        }
    }

    /// Sends what a connection has queued, as far as the kernel takes it in one turn.
    pub(crate) fn write(&mut self, peer: PeerId) -> io::Result<()> {
        let Some(conn) = self.conns.get_mut(&peer.0) else {
            return Ok(());
        };
        let mut cx = Context::<C> {
            peer,
            session: &mut conn.session,
            shared: &mut self.shared,
        };
        cx.push_verdicts();
        let mut budget = cx.shared.bounds.turn_bytes;
        while conn.writable && !cx.session.outbound.is_empty() {
            if budget == 0 {
                cx.touch();
                return Ok(());
            }
            cx.shared.counters.send_calls += 1;
            let mut slices = [IoSlice::new(&[]); SLICES];
            let (used, total, descriptor) = cx.session.outbound.gather(&mut slices);
            let descriptor = descriptor.map(|descriptor| descriptor.as_fd());
            match conn.socket.send(&slices[..used], descriptor) {
                Ok(sent) => {
                    budget = budget.saturating_sub(sent);
                    cx.shared.counters.bytes_out += sent as u64;
                    conn.writable = sent == total;
                    let mut outbound = std::mem::take(&mut cx.session.outbound);
                    outbound.advance(sent, |ends| {
                        cx.shared.counters.frames_out += 1;
                        cx.ended(ends, false);
                    });
                    cx.session.outbound = outbound;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => conn.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What the peer said last explains a broken connection better than our send's error.
    fn write_failed(&mut self, peer: PeerId, error: &io::Error) {
        loop {
            match self.read(peer) {
                Ok(Turn::CutOff) => {}
                Ok(Turn::Drained) => {
                    let detail = format!("cannot send: {error}");
                    return self.close(peer, CloseReason::Lost { detail });
                }
                Err(reason) => return self.close(peer, reason),
            }
        }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut named = self.shared.counters.named();
        let buffered: usize = self
            .conns
            .values()
            .map(|conn| conn.inbound.buffered())
            .sum();
        named.push((
            "connections",
            (self.conns.len() + self.lingering.len()) as u64,
        ));
        named.push(("buffered_bytes", buffered as u64));
        named.push(("exposures", self.shared.exposures.len() as u64));
        named
    }
}
