//! The conformance suite on an RDMA device, both ends in this process.
//!
//! Needs a device, and so is run by `tests/softroce/run`: `... -- verbs --ignored`.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_conformance::{fabric_conformance, Bench, Site};
use faro_fabric::verbs::{VerbsConfig, VerbsFabric, VerbsOptions};
use faro_fabric::Identity;
use faro_pool::Pool;
use faro_secure::Protection;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

struct Verbs(Protection);

impl Bench for Verbs {
    fn site(&self) -> Site {
        let pool = Pool::new(128 << 20).unwrap();
        let id = u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64 | 0xfa20;
        let identity = Identity::public(id);
        let config = VerbsConfig {
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise: String::new(),
            identity: identity.clone(),
            protection: self.0,
            pool: pool.clone(),
            options: VerbsOptions::default(),
        };
        Site {
            fabric: Box::new(VerbsFabric::new(config).unwrap()),
            pool,
            identity,
        }
    }

    fn nowhere(&self) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.local_addr().unwrap().to_string()
    }

    fn learns_refusals(&self) -> bool {
        self.0 == Protection::Clear
    }
}

fabric_conformance!(
    #[ignore = "needs an RDMA device: tests/softroce/run"]
    verbs,
    Verbs(Protection::Clear)
);
fabric_conformance!(
    #[ignore = "needs an RDMA device: tests/softroce/run"]
    verbs_sealed,
    Verbs(Protection::Sealed)
);
