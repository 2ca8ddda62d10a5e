//! A fabric without an endpoint, for tests that play a peer.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

use faro_endpoint::FabricChoice;
use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{TcpConfig, TcpFabric};
use faro_fabric::verbs::{VerbsConfig, VerbsFabric, VerbsOptions};
use faro_fabric::{Fabric, OwnIdentity};
use faro_pool::Pool;
use faro_secure::Protection;
use std::sync::Arc;

/// Opens a fabric without an endpoint, and returns it with its name in cards.
#[allow(dead_code)] // Each test binary uses its own part.
pub fn fabric_by_hand(
    choice: FabricChoice,
    identity: OwnIdentity,
    protection: Protection,
    pool: Arc<Pool>,
) -> (&'static str, Box<dyn Fabric>) {
    let (bind, advertise) = ("127.0.0.1:0".parse().unwrap(), "127.0.0.1".to_owned());
    match choice {
        FabricChoice::Shm => {
            let config = ShmConfig {
                identity,
                protection,
                pool,
            };
            ("shm", Box::new(ShmFabric::new(config).unwrap()))
        }
        FabricChoice::Verbs => {
            let config = VerbsConfig {
                bind,
                advertise,
                identity,
                protection,
                pool,
                options: VerbsOptions::default(),
            };
            ("verbs", Box::new(VerbsFabric::new(config).unwrap()))
        }
        FabricChoice::Tcp => {
            let config = TcpConfig {
                bind,
                advertise,
                identity,
                protection,
                pool,
            };
            ("tcp", Box::new(TcpFabric::new(config).unwrap()))
        }
        other => panic!("no test makes {other:?} by hand"),
    }
}
