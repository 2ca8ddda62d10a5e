//! How connections begin: connecting and accepting.

use super::bounds::ACCEPTS;
use super::driver::TransportDriver;
use super::inbound::Inbound;
use super::reactor::{Conn, Reactor, LISTENER};
use super::session::{Context, Phase, Session};
use super::socket::{Accepted, Listener, Socket};
use super::strangers::Origin;
use crate::{CloseReason, ConnectionId, Event, FabricError, Identity};
use std::io;
use std::time::{Duration, Instant};

/// How long the listener pauses when the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl<D: TransportDriver> Reactor<D> {
    fn total(&self) -> usize {
        self.conns.len() + self.lingering.len()
    }

    /// Registers a socket as a new connection.
    fn adopt(&mut self, mut socket: D::Socket, session: Session) -> io::Result<ConnectionId> {
        self.last_connection += 1;
        let connection = ConnectionId(self.last_connection);
        let interest = mio::Interest::READABLE | mio::Interest::WRITABLE;
        let token = mio::Token(connection.0 as usize);
        self.poll
            .registry()
            .register(&mut socket, token, interest)?;
        self.deadlines.insert((session.deadline, connection.0));
        let conn = Conn {
            socket,
            inbound: Inbound::new(),
            session,
            sealed: None,
            state: D::Connection::default(),
            writable: false,
            ending: false,
            unread: false,
        };
        self.conns.insert(connection.0, conn);
        Ok(connection)
    }

    /// See [`crate::Fabric::connect`].
    pub(crate) fn connect(
        &mut self,
        location: &str,
        expected: &Identity,
        deadline: Instant,
    ) -> Result<ConnectionId, FabricError> {
        let started = self.driver.start(location)?;
        if self.total() >= self.shared.bounds.connections {
            return Err(FabricError::Bound {
                what: "connections",
                limit: self.shared.bounds.connections as u64,
            });
        }
        let expected = Some((expected.clone(), location.to_owned()));
        let session = Session::new(Phase::Connecting, expected, deadline);
        match started.and_then(|socket| self.adopt(socket, session)) {
            Ok(connection) => Ok(connection),
            Err(error) => {
                self.last_connection += 1;
                let connection = ConnectionId(self.last_connection);
                let reason = CloseReason::Unreachable {
                    location: location.to_owned(),
                    detail: error.to_string(),
                };
                self.shared.counters.handshakes_failed += 1;
                self.shared
                    .events
                    .push(Event::Closed { connection, reason });
                Ok(connection)
            }
        }
    }

    /// If the socket is connected, sends HELLO. False: it is not, or the connection ended.
    pub(crate) fn finish_connect(&mut self, connection: ConnectionId) -> bool {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return false;
        };
        match conn.socket.connect_finished() {
            Ok(false) => return false,
            Ok(true) => {}
            Err(error) => {
                let detail = error.to_string();
                self.close(connection, CloseReason::Lost { detail });
                return false;
            }
        }
        conn.session.phase = Phase::Greeting;
        let mut cx = Context {
            connection,
            session: &mut conn.session,
            shared: &mut self.shared,
        };
        if let Err(reason) = cx.say_hello() {
            self.close(connection, reason);
            return false;
        }
        true
    }

    /// A stranger's connection: it has a while to prove who it is, and until then others may take its place.
    fn accepted(&mut self, socket: D::Socket, origin: Origin) {
        if let Some(displaced) = self.shared.strangers.displaced_by(origin) {
            self.shared.counters.connections_refused += 1;
            let detail = "it has not proven who it is, and others wait".to_owned();
            self.close(displaced, CloseReason::Lost { detail });
        }
        let deadline = Instant::now() + self.shared.bounds.hello_timeout;
        let session = Session::new(Phase::AwaitHello, None, deadline);
        match self.adopt(socket, session) {
            Ok(connection) => self.shared.strangers.came(connection, origin),
            Err(error) => {
                if let Some(left_out) = self.rare_logs.not_watched.at(Instant::now()) {
                    log::warn!("cannot watch a new connection: {error}{left_out}");
                }
            }
        }
    }

    /// Accepts waiting connections, up to `ACCEPTS` of them.
    pub(crate) fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            match self.listener.accept() {
                Ok(Accepted::Refused(error)) => {
                    self.shared.counters.connections_refused += 1;
                    if let Some(left_out) = self.rare_logs.refused.at(Instant::now()) {
                        log::warn!("refused a same-host connection: {error}{left_out}");
                    }
                }
                Ok(Accepted::Taken(..)) if self.total() >= self.shared.bounds.connections => {
                    self.shared.counters.connections_refused += 1;
                }
                Ok(Accepted::Taken(socket, origin)) => self.accepted(socket, origin),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.accept_more = false;
                    return;
                }
                // The peer ended the connection before we accepted it.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => {
                    if let Some(left_out) = self.rare_logs.not_accepted.at(Instant::now()) {
                        log::warn!("cannot accept connections for now: {error}{left_out}");
                    }
                    self.accept_more = false;
                    let token = LISTENER.0 as u64;
                    self.deadlines
                        .insert((Instant::now() + ACCEPT_PAUSE, token));
                    return;
                }
            }
        }
    }
}
