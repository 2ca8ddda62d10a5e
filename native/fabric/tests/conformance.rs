//! The conformance suite, on every fabric of this crate.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_conformance::{fabric_conformance, Bench, Site};
use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{TcpConfig, TcpFabric};
use faro_fabric::OwnIdentity;
use faro_pool::Pool;
use faro_secure::Protection;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

fn endpoint() -> u128 {
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64 | 0xfa20
}

struct Tcp(IpAddr, Protection);

impl Tcp {
    fn on(host: &str) -> Self {
        Self(host.parse().unwrap(), Protection::Clear)
    }

    fn sealed() -> Self {
        Self(IpAddr::from([127, 0, 0, 1]), Protection::Sealed)
    }
}

impl Bench for Tcp {
    fn site(&self) -> Site {
        let pool = Pool::new(128 << 20).unwrap();
        let identity = OwnIdentity::public(endpoint());
        let config = TcpConfig {
            bind: SocketAddr::new(self.0, 0),
            advertise: String::new(),
            identity: identity.clone(),
            protection: self.1,
            pool: pool.clone(),
        };
        Site {
            fabric: Box::new(TcpFabric::new(config).unwrap()),
            pool,
            identity,
        }
    }

    fn nowhere(&self) -> String {
        // A port that was free a moment ago.
        let listener = TcpListener::bind(SocketAddr::new(self.0, 0)).unwrap();
        listener.local_addr().unwrap().to_string()
    }

    fn learns_refusals(&self) -> bool {
        false
    }
}

struct Shm;

impl Bench for Shm {
    fn site(&self) -> Site {
        let pool = Pool::new(128 << 20).unwrap();
        let identity = OwnIdentity::public(endpoint());
        let config = ShmConfig {
            identity: identity.clone(),
            protection: Protection::Clear,
            pool: pool.clone(),
        };
        Site {
            fabric: Box::new(ShmFabric::new(config).unwrap()),
            pool,
            identity,
        }
    }

    fn nowhere(&self) -> String {
        let host = faro_fabric::shm::host_identity().unwrap();
        format!("{host}/faro-{:032x}", 0)
    }

    fn learns_refusals(&self) -> bool {
        true
    }
}

fabric_conformance!(tcp_v4, Tcp::on("127.0.0.1"));
fabric_conformance!(tcp_v6, Tcp::on("::1"));
fabric_conformance!(tcp_sealed, Tcp::sealed());
fabric_conformance!(shm, Shm);
