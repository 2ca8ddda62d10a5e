//! The network without endpoints, driven by the polls of its fabrics: for the conformance suite.
//!
//! A poll that waits runs the network until its site has something to do. So a suite that polls
//! one fabric after the other drives all of them, in virtual time.

use crate::core::Core;
use crate::fabric::{SimulatedFabric, World};
use crate::network::{Conditions, Network, ProcessSpeed};
use crate::sim_rng::SimRng;
use crate::step::RunStep;
use crate::trace::Trace;
use faro_fabric::{Event, Fabric, FabricError, FabricKind, Identity, Intercept, InterceptedFabric};
use faro_sync::lock;
use faro_sync::simulated::SimulationGuard;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Virtual time that a poll without a timeout takes. Otherwise a caller that only polls in
/// this way would never receive a packet.
const POLL: Duration = Duration::from_micros(20);

thread_local! {
    /// The clock of this thread's network. It belongs to its thread, and a fabric must be `Send`,
    /// so no fabric can hold it.
    static CLOCK: RefCell<Option<SimulationGuard>> = const { RefCell::new(None) };
}

/// A network whose fabrics a test polls. Its thread has virtual time until it is dropped.
pub struct DrivenNetwork {
    world: Arc<Mutex<World>>,
    due: Arc<Mutex<BTreeSet<usize>>>,
    kind: FabricKind,
}

impl DrivenNetwork {
    /// Returns a network without faults, between fabrics of one kind.
    ///
    /// # Panics
    /// Panics if this thread simulates already.
    #[must_use]
    pub fn new(kind: FabricKind, seed: u64) -> Self {
        CLOCK.set(Some(SimulationGuard::begin(seed, u8::MAX)));
        let core = Core::new(SimRng::new(seed), Trace::new(false));
        let network = Network::new(Conditions::FAST);
        let world = Arc::new(Mutex::new(World { core, network }));
        let due = Arc::default();
        Self { world, due, kind }
    }

    /// Returns a fabric of a new process, which has that identity.
    #[must_use]
    pub fn fabric(&self, identity: &Identity) -> Box<dyn Fabric> {
        let node = lock(&self.world).network.sites.len();
        let inner = SimulatedFabric::new(
            &self.world,
            (node, 0),
            self.kind,
            identity,
            ProcessSpeed::FAST,
        );
        let drive = Drive {
            world: Arc::clone(&self.world),
            due: Arc::clone(&self.due),
            site: inner.site(),
        };
        Box::new(InterceptedFabric::new(Box::new(inner), drive))
    }
}

impl Drop for DrivenNetwork {
    fn drop(&mut self) {
        CLOCK.set(None);
    }
}

/// Runs the network in the polls of one fabric.
struct Drive {
    world: Arc<Mutex<World>>,
    /// The sites whose threads the network has woken, and that have not polled since.
    due: Arc<Mutex<BTreeSet<usize>>>,
    /// The fabric's.
    site: usize,
}

impl Drive {
    /// Reports what has arrived. Returns whether there was anything.
    fn report(&self, events: &mut Vec<Event>) -> bool {
        let before = events.len();
        let World { core, network } = &mut *lock(&self.world);
        let more = network.report(core, self.site, events);
        events.len() > before || more == Some(true)
    }

    /// Runs the network until this fabric's thread is woken, or for that time.
    fn run_for(&self, time: Duration) {
        let own = self.site;
        let World { core, network } = &mut *lock(&self.world);
        let due = &mut *lock(&self.due);
        let end = core.now + time;
        while !due.remove(&own) && !network.sites[own].take_ring() {
            let next = core.next(end);
            CLOCK.with_borrow(|clock| {
                if let Some(clock) = clock {
                    clock.set(core.now);
                }
            });
            match next {
                None => return,
                Some((_, RunStep::Network(step))) => network.step(core, step),
                Some((at, RunStep::Turn { site })) => {
                    let its = &mut network.sites[site];
                    if its.turn_at == Some(at) {
                        (its.turn_at, its.last_turn) = (None, at);
                        due.insert(site);
                    }
                }
                // All other steps are those of endpoints and plans, which this network lacks.
                Some(_) => {}
            }
        }
    }
}

impl Intercept for Drive {
    fn poll(
        &mut self,
        _inner: &mut dyn Fabric,
        events: &mut Vec<Event>,
        timeout: Duration,
    ) -> Result<(), FabricError> {
        if !self.report(events) {
            self.run_for(timeout.max(POLL));
            self.report(events);
        }
        Ok(())
    }
}
