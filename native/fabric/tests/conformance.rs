//! The conformance suite, on every fabric of this crate.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

mod front;

use faro_conformance::{fabric_conformance, Bench, Site};
use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{Bounds, TcpConfig, TcpFabric};
use faro_fabric::OwnIdentity;
use faro_pool::Pool;
use faro_secure::Protection;
use front::Front;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

fn endpoint() -> u128 {
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64 | 0xfa20
}

struct Tcp {
    host: IpAddr,
    protection: Protection,
    /// The port that all fabrics share; without it, each has its own.
    front: Option<Front>,
}

impl Tcp {
    fn on(host: &str) -> Self {
        Self {
            host: host.parse().unwrap(),
            protection: Protection::Clear,
            front: None,
        }
    }

    fn sealed() -> Self {
        Self {
            protection: Protection::Sealed,
            ..Self::on("127.0.0.1")
        }
    }

    fn behind_one_port(self) -> Self {
        Self {
            front: Some(Front::on(self.host)),
            ..self
        }
    }
}

impl Bench for Tcp {
    fn site(&self) -> Site {
        let pool = Pool::new(128 << 20).unwrap();
        let identity = OwnIdentity::public(endpoint());
        let config = TcpConfig {
            bind: SocketAddr::new(self.host, 0),
            advertise: String::new(),
            identity: identity.clone(),
            protection: self.protection,
            pool: pool.clone(),
        };
        let fabric = match &self.front {
            Some(front) => TcpFabric::behind(&front.port, config, Bounds::default()),
            None => TcpFabric::new(config),
        };
        Site {
            fabric: Box::new(fabric.unwrap()),
            pool,
            identity,
        }
    }

    fn nowhere(&self) -> String {
        // A port that was free a moment ago.
        let listener = TcpListener::bind(SocketAddr::new(self.host, 0)).unwrap();
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
fabric_conformance!(
    #[ignore = "make test-all"]
    tcp_v6,
    Tcp::on("::1")
);
fabric_conformance!(
    #[ignore = "make test-all"]
    tcp_sealed,
    Tcp::sealed()
);
fabric_conformance!(
    #[ignore = "make test-all"]
    tcp_behind_one_port,
    Tcp::on("127.0.0.1").behind_one_port()
);
fabric_conformance!(tcp_sealed_behind_one_port, Tcp::sealed().behind_one_port());
fabric_conformance!(shm, Shm);
