//! One TCP port for the endpoints of several applications in one process.
//!
//! ```text
//!   peer ── connects, HELLO ──▶ PortAcceptor (a reactor with a thread of its own)
//!                                 │ looks at HELLO without receiving it (MSG_PEEK)
//!                                 │ tries the key of each endpoint behind the port (routes)
//!                                 ├── one fits ──▶ arrivals: bounded queue, eventfd ──▶ the endpoint's reactor: HELLO, WELCOME, PROOF
//!                                 └── none fits ─▶ GOODBYE, as from an endpoint with a port of its own
//! ```
//! A reactor of an endpoint takes a connection out of the queue in the place of `accept`. HELLO is
//! still in the socket, so nothing but the listener differs for it, and each endpoint keeps its
//! thread, its memory and its bounds.
//!
//! Why keys are tried instead of named: HELLO is made with the key of the endpoint that is meant,
//! and checking it needs no arithmetic on curves (12 µs; WELCOME needs 0.2 ms), so sixteen
//! applications cost at most as much as a handshake. A name of the key in HELLO would change the
//! wire format, and would show on the path which connections are of the same application.
//!
//! Unauthenticated connections are kept by the acceptor: it has the bounds, deadlines and places that an endpoint's reactor
//! has ([`Bounds`]), and the thread that they use is not an endpoint's. A connection whose HELLO was
//! made with an endpoint's key can be recorded on the path and sent again; the endpoint has it among
//! its own unauthenticated connections until PROOF comes, as it has those that come to a port of its own.

mod arrivals;
mod front;
mod hello;
mod routes;

pub use front::PortAcceptor;
pub use routes::PortCounts;

use super::socket::listen;
use crate::session::bounds::Bounds;
use crate::{FabricError, FabricKind, OwnIdentity};
use faro_secure::Protection;
use routes::{PortRoutes, RouteGuard};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// The listener of an endpoint behind a shared port.
pub(crate) type Arrivals = arrivals::ArrivalQueue<RouteGuard>;

/// A port that fabrics of several endpoints share: see `TcpFabric::behind` and
/// `VerbsFabric::behind`.
#[derive(Clone)]
pub struct SharedPort {
    address: SocketAddr,
    routes: Arc<PortRoutes>,
}

impl SharedPort {
    /// Listens. Connections are accepted as long as the caller polls the [`PortAcceptor`]. Of
    /// `bounds` those count that concern connections before their proof.
    ///
    /// # Errors
    /// `Io` with the address, and `BadLocation` if the address to advertise does not resolve.
    pub fn open(
        bind: SocketAddr,
        advertise: &str,
        bounds: Bounds,
    ) -> Result<(Self, PortAcceptor), FabricError> {
        let (listener, address) = listen(bind, advertise)?;
        let routes = Arc::<PortRoutes>::default();
        let acceptor = PortAcceptor::new(listener, Arc::clone(&routes), bounds)?;
        Ok((Self { address, routes }, acceptor))
    }

    /// Returns the address that peers connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns what it counted, up to the acceptor's last poll.
    #[must_use]
    pub fn counts(&self) -> PortCounts {
        self.routes.counts()
    }

    /// Lets an endpoint's fabric take the connections of peers that know its key, as long as the
    /// result lives. At most `waiting` of them wait until its reactor takes them.
    pub(crate) fn join(
        &self,
        identity: &OwnIdentity,
        fabric: FabricKind,
        protection: Protection,
        waiting: usize,
    ) -> Result<Arrivals, FabricError> {
        let (entrance, queue) = arrivals::queue(waiting).map_err(|source| FabricError::Io {
            what: "eventfd for a shared port".to_owned(),
            source,
        })?;
        let route = self
            .routes
            .add(identity.clone(), fabric, protection, entrance);
        Ok(Arrivals::new(queue, route))
    }
}

impl fmt::Debug for SharedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedPort({})", self.address)
    }
}
