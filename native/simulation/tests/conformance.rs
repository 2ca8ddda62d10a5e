//! The conformance suite, on the simulated fabric: it must do what real fabrics do, or simulations
//! would show nothing about them. Time is virtual, so that no wait takes any.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

use faro_conformance::{fabric_conformance, Bench, Site};
use faro_fabric::{FabricKind, OwnIdentity};
use faro_pool::Pool;
use faro_simulation::DrivenNetwork;
use std::cell::Cell;

struct SimulatedBench {
    network: DrivenNetwork,
    kind: FabricKind,
    /// Number of the next endpoint.
    next: Cell<u128>,
}

impl SimulatedBench {
    fn like(kind: FabricKind) -> Self {
        Self {
            network: DrivenNetwork::new(kind, 0xfa20),
            kind,
            next: Cell::new(1),
        }
    }
}

impl Bench for SimulatedBench {
    fn site(&self) -> Site {
        let number = self.next.replace(self.next.get() + 1);
        let identity = OwnIdentity::public(number << 64 | 0xfa20);
        Site {
            fabric: self.network.fabric(&identity),
            pool: Pool::new(128 << 20).unwrap(),
            identity,
        }
    }

    fn nowhere(&self) -> String {
        "node-1000000:0".to_owned()
    }

    fn learns_refusals(&self) -> bool {
        self.kind.is_by_device()
    }
}

fabric_conformance!(like_tcp, SimulatedBench::like(FabricKind::Tcp));
fabric_conformance!(like_verbs, SimulatedBench::like(FabricKind::Verbs));
