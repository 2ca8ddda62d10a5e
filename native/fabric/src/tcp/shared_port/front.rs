//! The reactor that accepts at a shared port. None of its connections is authenticated: those that prove
//! a key are passed on, the others are refused.

use super::hello::{look, FirstFrame};
use super::routes::PortRoutes;
use crate::frame::inbound::BodyShape;
use crate::frame::kinds::TransportKind;
use crate::reactor::driver::{Driver, Owner};
use crate::reactor::event_loop::Reactor;
use crate::session::bounds::{Bounds, TAIL_BYTES};
use crate::session::carrier::Carrier;
use crate::session::context::Context;
use crate::session::transport::{Datapath, Transport};
use crate::{CloseReason, Fabric, FabricError, FabricKind, OwnIdentity, RemoteRange, Waker, Write};
use faro_secure::{Protection, Secret, StaticKey};
use mio::net::{TcpListener, TcpStream};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Accepts connections at a [`super::SharedPort`], when it is polled.
pub struct PortAcceptor {
    reactor: Reactor<Front>,
}

impl PortAcceptor {
    pub(super) fn new(
        listener: TcpListener,
        routes: Arc<PortRoutes>,
        bounds: Bounds,
    ) -> Result<Self, FabricError> {
        let no_key = |detail: String| FabricError::Unavailable {
            fabric: "tcp",
            reason: format!("no key for a shared port: {detail}"),
            absent: false,
        };
        // No peer has a card with this identity, so the reactor refuses all that it receives from.
        let key = StaticKey::random().map_err(|error| no_key(error.to_string()))?;
        let secret = Secret::random().map_err(|error| no_key(error.to_string()))?;
        let identity =
            OwnIdentity::new(key, &secret, None, "").map_err(|error| no_key(error.to_string()))?;
        let front = Front { routes };
        // No card names it: peers have the locations of the endpoints behind it.
        let location = String::new();
        let reactor = Reactor::listening(
            identity,
            Protection::Clear,
            bounds,
            listener,
            location,
            front,
        )?;
        Ok(Self { reactor })
    }

    /// Wakes the thread in `poll`; can be cloned.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.reactor.waker()
    }

    /// Accepts connections, passes on those that prove a key and ends those that do not. Waits up to
    /// `timeout` for them.
    ///
    /// # Errors
    /// `Io`: the port cannot be waited for.
    pub fn poll(&mut self, timeout: Duration) -> Result<(), FabricError> {
        // Unauthenticated connections end without an event.
        let polled = self.reactor.poll(&mut Vec::new(), timeout);
        let counted = self.reactor.counted();
        let (refused, failed) = (counted.connections_refused, counted.handshakes_failed);
        self.reactor.driver().routes.count_ended(refused, failed);
        polled
    }

    /// Returns the counters by name: those of a fabric, `endpoints` (fabrics behind the port) and
    /// `passed_on` (connections).
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.reactor.counters()
    }
}

/// The driver of that reactor. None of its connections opens.
struct Front {
    routes: Arc<PortRoutes>,
}

impl Transport for Front {
    const KIND: FabricKind = FabricKind::Tcp;
    type Socket = TcpStream;
    type State = ();

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counts = self.routes.counts();
        vec![
            ("endpoints", counts.endpoints),
            ("passed_on", counts.passed_on),
        ]
    }
}

impl Carrier for Front {}

impl Driver for Front {
    type Listener = TcpListener;
    type Completion = ();
    const PASSES_ON: bool = true;

    fn start(&mut self, location: &str) -> Result<io::Result<TcpStream>, FabricError> {
        Err(FabricError::BadLocation {
            fabric: "tcp",
            location: location.to_owned(),
            detail: "a shared port connects to none".to_owned(),
        })
    }

    fn owner(&self, socket: &TcpStream) -> Owner<TcpStream> {
        let hello = match look(socket) {
            FirstFrame::Part => return Owner::Later,
            FirstFrame::Other => return Owner::Here,
            FirstFrame::Hello(hello) => hello,
        };
        let route = match self.routes.find(&hello) {
            Ok(route) => route,
            Err(reason) => return Owner::Refused(reason),
        };
        if let Some(limit) = route.entrance.full() {
            return Owner::Refused(CloseReason::Bound {
                what: "connections that wait for their endpoint",
                limit: limit as u64,
            });
        }
        self.routes.count_passed_on();
        Owner::Other(Box::new(move |socket, origin| {
            route.entrance.send(socket, origin);
        }))
    }
}

/// No frames but those of the handshake.
#[derive(Debug, Clone, Copy)]
enum NoFrame {}

impl TransportKind for NoFrame {
    fn decode(_byte: u8) -> Option<Self> {
        None
    }

    fn byte(self) -> u8 {
        match self {}
    }

    fn shape(self) -> (BodyShape, u32) {
        match self {}
    }
}

impl Datapath for Front {
    type Kind = NoFrame;
    type CloseState = ();
    const STAGING_BYTES: usize = TAIL_BYTES;

    fn on_frame(
        &mut self,
        _cx: &mut Context<'_>,
        _state: &mut (),
        kind: NoFrame,
        _id: u64,
        _body: &[u8],
    ) -> Result<(), CloseReason> {
        match kind {}
    }

    // Operations need an open connection.
    fn post_write(&mut self, _cx: &mut Context<'_>, _state: &mut (), _write: Write) {}

    fn post_read(
        &mut self,
        _cx: &mut Context<'_>,
        _state: &mut (),
        _sequence: u64,
        _source: RemoteRange,
    ) {
    }

    fn on_closed(&mut self, _cx: &mut Context<'_>, _state: (), _told: bool) -> Option<()> {
        None
    }
}
