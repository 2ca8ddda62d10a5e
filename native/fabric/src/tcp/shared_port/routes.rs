//! The endpoints behind a shared port: whose key a HELLO was made with.

use super::arrivals::HandoffSender;
use crate::frame::bodies::Hello;
use crate::session::handshake::Handshake;
use crate::{CloseReason, FabricKind, OwnIdentity};
use faro_secure::{HandshakeError, Protection};
use faro_sync::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// One fabric of one endpoint.
pub(super) struct PortRoute {
    identity: OwnIdentity,
    fabric: FabricKind,
    protection: Protection,
    pub(super) entrance: HandoffSender,
}

/// Figures of a shared port: its current endpoints, and counts since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortCounts {
    /// Fabrics behind it now.
    pub endpoints: u64,
    /// Connections that were passed on to one of them.
    pub passed_on: u64,
    /// Connections that had to go because too many had proven nothing.
    pub refused: u64,
    /// Connections that ended without the proof of a key.
    pub failed: u64,
}

/// All of a port.
#[derive(Default)]
pub(super) struct PortRoutes {
    all: Mutex<Vec<Arc<PortRoute>>>,
    /// Relaxed, all of these: they order nothing.
    passed_on: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

impl PortRoutes {
    /// Enters a fabric, which is reached as long as the result lives.
    pub(super) fn add(
        self: &Arc<Self>,
        identity: OwnIdentity,
        fabric: FabricKind,
        protection: Protection,
        entrance: HandoffSender,
    ) -> RouteGuard {
        let route = Arc::new(PortRoute {
            identity,
            fabric,
            protection,
            entrance,
        });
        lock(&self.all).push(Arc::clone(&route));
        let routes = Arc::clone(self);
        RouteGuard { routes, route }
    }

    pub(super) fn counts(&self) -> PortCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PortCounts {
            endpoints: lock(&self.all).len() as u64,
            passed_on: get(&self.passed_on),
            refused: get(&self.refused),
            failed: get(&self.failed),
        }
    }

    /// Finds the fabric with whose key HELLO was made, by trying each.
    ///
    /// # Errors
    /// HELLO fits no key. The error is the reason that the peer gets: the one that an endpoint with its own port gives.
    pub(super) fn find(&self, hello: &Hello) -> Result<Arc<PortRoute>, CloseReason> {
        // Not under the lock, because endpoints' threads take it when they end.
        let all = lock(&self.all).clone();
        let is_for = |route: &&Arc<PortRoute>| {
            Handshake::is_for(&route.identity, route.fabric, route.protection, hello)
        };
        if let Some(found) = all.iter().find(is_for) {
            return Ok(Arc::clone(found));
        }
        let differs = |route: &Arc<PortRoute>| route.protection.byte() != hello.protection;
        Err(match all.first() {
            Some(first) if all.iter().all(differs) => CloseReason::Protection {
                local: first.protection,
            },
            _ => HandshakeError::Unproven { message: "HELLO" }.into(),
        })
    }

    pub(super) fn count_passed_on(&self) {
        self.passed_on.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets what the acceptor has counted since it was made.
    pub(super) fn count_ended(&self, refused: u64, failed: u64) {
        self.refused.store(refused, Ordering::Relaxed);
        self.failed.store(failed, Ordering::Relaxed);
    }
}

/// Ends a route when it is dropped.
pub(crate) struct RouteGuard {
    routes: Arc<PortRoutes>,
    route: Arc<PortRoute>,
}

impl Drop for RouteGuard {
    fn drop(&mut self) {
        lock(&self.routes.all).retain(|route| !Arc::ptr_eq(route, &self.route));
    }
}
