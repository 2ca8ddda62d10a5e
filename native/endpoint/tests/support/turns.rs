//! Endpoints on real fabrics whose threads' turns a test takes itself, with a clock that it moves itself: a timeout that
//! it waits for passes in a moment, and any other one never passes, however slow the machine is.

#![allow(dead_code)] // Each test binary uses its own part.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

use crate::by_hand::fabric_by_hand;
use crate::virtual_time::EndpointDriver;
use faro_endpoint::{Config, Endpoint, FabricChoice, ManualEndpoint};
use faro_fabric::{Event, Fabric, FabricError, Intercept, InterceptedFabric, OwnIdentity};
use faro_secure::{Protection, Secret, StaticKey};
use faro_simulation::Resolver;
use faro_sync::simulated::SimulationGuard;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

/// Time that all turns of a round take: so little that no timeout passes by itself, and enough for what is asked again
/// after a pause.
const ROUND: Duration = Duration::from_micros(10);
/// Interval at which endpoints look at their deadlines.
const TICK: Duration = Duration::from_millis(50);

/// Polls without waiting, so that one thread can take the turns of all endpoints.
struct WithoutWaiting;

impl Intercept for WithoutWaiting {
    fn poll(
        &mut self,
        inner: &mut dyn Fabric,
        events: &mut Vec<Event>,
        _timeout: Duration,
    ) -> Result<(), FabricError> {
        inner.poll(events, Duration::ZERO)
    }
}

/// Endpoints on one real fabric, and their clock.
pub struct Turns {
    endpoints: RefCell<Vec<(ManualEndpoint, Resolver)>>,
    fabric: FabricChoice,
    now: Cell<Duration>,
    // The last one, because endpoints that are dropped ask for the time.
    simulated: SimulationGuard,
}

impl Turns {
    pub fn over(fabric: FabricChoice) -> Self {
        let simulated = SimulationGuard::begin(1, u8::MAX);
        Self {
            endpoints: RefCell::default(),
            fabric,
            now: Cell::default(),
            simulated,
        }
    }

    /// Takes a turn of each endpoint, and does what follows from it.
    pub fn round(&self) {
        self.go_on(ROUND);
        for (endpoint, resolver) in self.endpoints.borrow_mut().iter_mut() {
            endpoint.turn(0);
            while endpoint.has_files_to_read() {
                endpoint.read_files();
            }
            for id in endpoint.endpoint().unresolved(64, Duration::ZERO) {
                if let Some(found) = resolver(id) {
                    endpoint.endpoint().resolve(id, found);
                }
            }
        }
    }

    /// Lets that time pass, during which nothing happens but what depends on time.
    pub fn pass(&self, time: Duration) {
        let end = self.now.get() + time;
        while self.now.get() < end {
            self.go_on(TICK.min(end - self.now.get()));
            self.round();
        }
    }

    fn go_on(&self, time: Duration) {
        self.now.set(self.now.get() + time);
        self.simulated.set(self.now.get());
    }
}

impl EndpointDriver for Turns {
    fn endpoint(&self, config: Config, resolver: Resolver) -> Arc<Endpoint> {
        let (key, secret) = (StaticKey::random().unwrap(), Secret::random().unwrap());
        let endpoint =
            ManualEndpoint::start(config, key, secret, |identity: &OwnIdentity, pool| {
                let (identity, pool) = (identity.clone(), Arc::clone(pool));
                let (_, fabric) = fabric_by_hand(self.fabric, identity, Protection::Clear, pool);
                let fabric: Box<dyn Fabric> =
                    Box::new(InterceptedFabric::new(fabric, WithoutWaiting));
                vec![fabric]
            });
        let endpoint = endpoint.unwrap();
        let shared = Arc::clone(endpoint.endpoint());
        self.endpoints.borrow_mut().push((endpoint, resolver));
        shared
    }

    fn until(&self, what: &str, condition: &mut dyn FnMut() -> bool) {
        crate::support::until(what, || {
            self.round();
            condition()
        });
    }
}
