//! Endpoints and peers that follow a script, on the simulated network, for a test that says itself
//! what happens when.
//!
//! The test makes requests, and lets virtual time pass until a condition holds. Timeouts,
//! back-offs and rates have the lengths that ship, and take no time. What a test sees of them does
//! not depend on the speed of the machine.

use crate::core::{Core, Time};
use crate::fabric::{SimulatedFabric, World};
use crate::network::{Conditions, Network, ProcessSpeed};
use crate::node::PlannedSteps;
use crate::sim_rng::SimRng;
use crate::step::RunStep;
use crate::trace::Trace;
use faro_endpoint::{Config, Endpoint, EndpointError, ManualEndpoint, OutputFiles, Turn};
use faro_fabric::{Fabric, FabricKind, Identity, OwnIdentity};
use faro_secure::{Secret, StaticKey};
use faro_sync::lock;
use faro_sync::simulated::SimulationGuard;
use faro_wire::OutputId;
use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Virtual time within which a condition must come about.
const PATIENCE: Duration = Duration::from_secs(2 * 3_600);
/// Time that a read of a file and an answer of the Java side take.
const SHORT: Duration = Duration::from_micros(100);

/// Says where map outputs are, as the Java side of an endpoint does. `None`: it gives no answer.
pub type Resolver = Box<dyn Fn(OutputId) -> Option<Option<OutputFiles>>>;

/// A process of the network.
enum VirtualProcess {
    Endpoint {
        endpoint: Box<ManualEndpoint>,
        resolver: Resolver,
        planned: PlannedSteps,
    },
    /// Takes a turn, in which it may poll its fabric.
    Peer(Box<dyn FnMut()>),
    /// It takes its turn, or did not start.
    Absent,
}

/// A network without faults, whose processes run only while the test waits. Its thread has virtual
/// time until it is dropped.
pub struct VirtualNetwork {
    world: Arc<Mutex<World>>,
    /// By the number of the site of their first fabric. The sites of their other fabrics follow.
    processes: RefCell<Vec<VirtualProcess>>,
    /// The kind of fabric of a process for which the test names none.
    kind: FabricKind,
    // The last one, because processes that are dropped ask for the time.
    simulated: SimulationGuard,
}

impl VirtualNetwork {
    /// Returns a network between fabrics of that kind. `endpoint_on` adds endpoints with others.
    ///
    /// # Panics
    /// Panics if this thread simulates already.
    #[must_use]
    pub fn new(kind: FabricKind) -> Self {
        let simulated = SimulationGuard::begin(1, u8::MAX);
        let core = Core::new(SimRng::new(1), Trace::new(false));
        let network = Network::new(Conditions::FAST);
        Self {
            world: Arc::new(Mutex::new(World { core, network })),
            processes: RefCell::default(),
            kind,
            simulated,
        }
    }

    /// Starts an endpoint. Of `config`, what opens fabrics is not used.
    ///
    /// # Errors
    /// Fails as `Endpoint::start` does.
    pub fn endpoint(
        &self,
        config: Config,
        resolver: Resolver,
    ) -> Result<Arc<Endpoint>, EndpointError> {
        self.endpoint_on(&[self.kind], config, resolver)
    }

    /// Starts an endpoint with fabrics of these kinds, best first.
    ///
    /// # Errors
    /// Fails as `Endpoint::start` does.
    pub fn endpoint_on(
        &self,
        kinds: &[FabricKind],
        config: Config,
        resolver: Resolver,
    ) -> Result<Arc<Endpoint>, EndpointError> {
        let site = self.next_site();
        let number = site as u128 + 1;
        let key = StaticKey::public(number).map_err(|_| EndpointError::Closed)?;
        let secret = Secret::new([number as u8; 32]);
        let stepped = ManualEndpoint::start(config, key, secret, |identity, _| {
            let fabrics = kinds.iter().enumerate().map(|(place, kind)| {
                Box::new(self.fabric((site, place), *kind, identity)) as Box<dyn Fabric>
            });
            fabrics.collect()
        })?;
        let endpoint = Arc::clone(stepped.endpoint());
        let process = VirtualProcess::Endpoint {
            endpoint: Box::new(stepped),
            resolver,
            planned: PlannedSteps::default(),
        };
        self.enter(site, process);
        Ok(endpoint)
    }

    /// Adds a peer. `play` takes its fabric and returns what it does in a turn. It has one when
    /// something has happened and when its last poll has waited for long enough.
    pub fn peer(&self, own: &OwnIdentity, play: impl FnOnce(Box<dyn Fabric>) -> Box<dyn FnMut()>) {
        let site = self.next_site();
        let play = play(Box::new(self.fabric((site, 0), self.kind, own)));
        self.enter(site, VirtualProcess::Peer(play));
    }

    /// Returns the time since the network began.
    #[must_use]
    pub fn now(&self) -> Duration {
        lock(&self.world).core.now
    }

    /// Lets time pass until the condition holds. It is looked at after each step.
    ///
    /// # Panics
    /// Panics if it does not hold within two hours.
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let end = self.now() + PATIENCE;
        while !condition() {
            assert!(self.step(end), "{what} did not come about in two hours");
        }
    }

    /// Lets that time pass.
    pub fn pass(&self, time: Duration) {
        let end = self.now() + time;
        while self.step(end) {}
    }

    fn next_site(&self) -> usize {
        lock(&self.world).network.sites.len()
    }

    fn fabric(
        &self,
        place: (usize, usize),
        kind: FabricKind,
        identity: &Identity,
    ) -> SimulatedFabric {
        SimulatedFabric::new(&self.world, place, kind, identity, ProcessSpeed::FAST)
    }

    fn enter(&self, site: usize, process: VirtualProcess) {
        let mut processes = self.processes.borrow_mut();
        processes.resize_with(site, || VirtualProcess::Absent);
        processes.push(process);
        let World { core, network } = &mut *lock(&self.world);
        for site in site..network.sites.len() {
            network.wake(core, site);
        }
    }

    /// Takes the next step before `end`. Returns false if no step remains.
    fn step(&self, end: Time) -> bool {
        let step = {
            let mut world = lock(&self.world);
            let World { core, network } = &mut *world;
            for site in 0..network.sites.len() {
                if network.sites[site].take_ring() {
                    network.wake(core, site);
                }
            }
            let step = core.next(end);
            self.simulated.set(core.now);
            match step {
                None => return false,
                Some((_, RunStep::Network(step))) => {
                    network.step(core, step);
                    return true;
                }
                Some((at, RunStep::Turn { site })) => {
                    let its = &mut network.sites[site];
                    if its.turn_at != Some(at) {
                        return true;
                    }
                    (its.turn_at, its.last_turn) = (None, at);
                    let (process, thread) = (its.node, its.place);
                    drop(world);
                    self.with(process, |process| process.turn(thread));
                    return true;
                }
                Some((_, step)) => step,
            }
        };
        match step {
            RunStep::Files { node } => self.with(node, VirtualProcess::read_files),
            RunStep::Questions { node } => self.with(node, VirtualProcess::answer_questions),
            // All other steps are those of plans, which this network has not.
            _ => {}
        }
        true
    }

    /// Lets a process do something, and plans what follows from it.
    fn with(&self, site: usize, act: impl FnOnce(&mut VirtualProcess)) {
        // A peer's turn may add processes.
        let absent = VirtualProcess::Absent;
        let mut process = std::mem::replace(&mut self.processes.borrow_mut()[site], absent);
        act(&mut process);
        process.follow(site, &mut lock(&self.world).core);
        self.processes.borrow_mut()[site] = process;
    }
}

impl VirtualProcess {
    /// Takes a turn of a progress thread.
    fn turn(&mut self, thread: usize) {
        match self {
            Self::Endpoint { endpoint, .. } => match endpoint.turn(thread) {
                Turn::Goes | Turn::WithoutFabric | Turn::Ended => {}
            },
            Self::Peer(turn) => turn(),
            Self::Absent => {}
        }
    }

    fn read_files(&mut self) {
        if let Self::Endpoint {
            endpoint, planned, ..
        } = self
        {
            planned.files = false;
            endpoint.read_files();
        }
    }

    fn answer_questions(&mut self) {
        if let Self::Endpoint {
            endpoint,
            resolver,
            planned,
        } = self
        {
            planned.questions = false;
            let endpoint = endpoint.endpoint();
            for id in endpoint.unresolved(64, Duration::ZERO) {
                if let Some(found) = resolver(id) {
                    endpoint.resolve(id, found);
                }
            }
        }
    }

    /// Plans the steps that follow from the last one of the process at that site.
    fn follow(&mut self, node: usize, core: &mut Core) {
        let Self::Endpoint {
            endpoint, planned, ..
        } = self
        else {
            return;
        };
        if endpoint.has_files_to_read() && !std::mem::replace(&mut planned.files, true) {
            core.at(core.now + SHORT, RunStep::Files { node });
        }
        if endpoint.has_questions() && !std::mem::replace(&mut planned.questions, true) {
            core.at(core.now + SHORT, RunStep::Questions { node });
        }
    }
}
