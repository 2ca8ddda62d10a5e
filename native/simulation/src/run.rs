//! Runs a seed step by step: its processes, its network and its plan.

use crate::core::{Core, Time};
use crate::fabric::World;
use crate::network::Network;
use crate::node::{no_lease_is_out, Node};
use crate::outputs::MapOutputs;
use crate::plan::{Profile, RunPlan, MILLI, SECOND};
use crate::report::{Report, Violation};
use crate::results::RequestResults;
use crate::sim_rng::SimRng;
use crate::step::RunStep;
use crate::trace::Trace;
use faro_endpoint::Turn;
use faro_sync::lock;
use faro_sync::simulated::SimulationGuard;
use std::sync::{Arc, Mutex};

/// Maximum number of steps: a run with more makes no progress.
const MAX_STEPS: u64 = 20_000_000;

/// One run of a seed.
pub(crate) struct Run<'a> {
    pub(crate) plan: RunPlan,
    pub(crate) outputs: &'a MapOutputs,
    pub(crate) world: Arc<Mutex<World>>,
    simulated: SimulationGuard,
    pub(crate) nodes: Vec<Node>,
    pub(crate) results: RequestResults,
}

impl<'a> Run<'a> {
    /// Prepares a run of a seed.
    ///
    /// # Errors
    /// Fails if an endpoint does not start.
    pub(crate) fn new(
        seed: u64,
        profile: Option<Profile>,
        prints: bool,
        outputs: &'a MapOutputs,
    ) -> Result<Self, Violation> {
        let mut dice = SimRng::new(seed);
        let rolled = Profile::ALL[dice.place(Profile::ALL.len())];
        let plan = RunPlan::roll(profile.unwrap_or(rolled), &mut dice, outputs);
        Self::of(plan, dice, prints, outputs)
    }

    /// Prepares a run of a plan.
    ///
    /// # Errors
    /// Fails if an endpoint does not start.
    pub(crate) fn of(
        plan: RunPlan,
        mut dice: SimRng,
        prints: bool,
        outputs: &'a MapOutputs,
    ) -> Result<Self, Violation> {
        let simulated = SimulationGuard::begin(dice.next(), plan.resident);
        let mut network = Network::new(plan.conditions.clone());
        network.slow.extend(plan.slow_pairs.iter().copied());
        let mut core = Core::new(dice, Trace::new(prints));
        core.note(format_args!(
            "{:?}, {} processes",
            plan.profile,
            plan.nodes.len()
        ));
        for (at, action) in &plan.actions {
            core.at(*at, RunStep::Plan(action.clone()));
        }
        let world = Arc::new(Mutex::new(World { core, network }));
        let mut run = Self {
            outputs,
            simulated,
            nodes: Vec::new(),
            results: RequestResults::new(plan.requests.len()),
            plan,
            world,
        };
        for node in 0..run.plan.nodes.len() {
            let started = Node::start(&run.world, &run.plan, node, 0);
            run.nodes.push(started.map_err(Violation::before)?);
            run.wake_all(node);
        }
        Ok(run)
    }

    /// Runs the plan to its end, then checks the final state.
    ///
    /// # Errors
    /// Fails if an invariant is violated.
    pub(crate) fn finish(mut self) -> Result<Report, Violation> {
        let result = self.go();
        let World { core, .. } = &mut *lock(&self.world);
        let (profile, at) = (self.plan.profile, core.now);
        result.map_err(|what| Violation {
            profile: Some(profile),
            at,
            what,
        })?;
        Ok(Report {
            profile,
            trace: core.trace.hash(),
            steps: core.steps(),
            time: at,
            right: self.results.right,
            failed: self.results.failed,
            slowest_healthy: self.results.slowest_healthy,
        })
    }

    fn go(&mut self) -> Result<(), String> {
        self.until_all_have_ended()?;
        // Work that waits for a lost peer ends by its deadline.
        let quiet = self.now() + self.plan.timeout * 2 + SECOND * 6;
        self.run_until(quiet)?;
        self.nothing_is_left()?;
        self.close()
    }

    /// Runs the plan until each of its requests has ended.
    ///
    /// # Errors
    /// Fails if one does not end, or an invariant is violated.
    pub(crate) fn until_all_have_ended(&mut self) -> Result<(), String> {
        let calm = self.plan.calm;
        self.run_until(calm)?;
        // After the last fault, all requests must end without help.
        let bound = calm + self.plan.bound_of_a_request();
        while self.now() < bound && self.results.first_open().is_some() {
            let next = self.now() + SECOND;
            self.run_until(next)?;
        }
        self.all_have_ended()
    }

    pub(crate) fn now(&self) -> Time {
        lock(&self.world).core.now
    }

    fn run_until(&mut self, end: Time) -> Result<(), String> {
        loop {
            let next = {
                let mut world = lock(&self.world);
                if world.core.steps() > MAX_STEPS {
                    return Err(format!("more than {MAX_STEPS} steps"));
                }
                let next = world.core.next(end);
                self.simulated.set(world.core.now);
                next
            };
            let Some((at, step)) = next else {
                return Ok(());
            };
            self.step(at, step)?;
        }
    }

    fn step(&mut self, at: Time, step: RunStep) -> Result<(), String> {
        match step {
            RunStep::Network(step) => {
                let World { core, network } = &mut *lock(&self.world);
                network.step(core, step);
            }
            RunStep::Turn { site } => self.turn(at, site)?,
            RunStep::Files { node } => {
                if !self.sleeps(node, RunStep::Files { node }) {
                    self.nodes[node].planned.files = false;
                    self.nodes[node].endpoint.read_files();
                    self.follow(node);
                }
            }
            RunStep::Questions { node } => {
                if !self.sleeps(node, RunStep::Questions { node }) {
                    self.nodes[node].planned.questions = false;
                    self.nodes[node].answer_questions(self.outputs);
                    self.follow(node);
                }
            }
            RunStep::Completions { node } => {
                if !self.sleeps(node, RunStep::Completions { node }) {
                    self.nodes[node].planned.completions = false;
                    self.take_completions(node)?;
                    self.follow(node);
                }
            }
            RunStep::Release { node } => {
                if !self.sleeps(node, RunStep::Release { node }) {
                    self.nodes[node].release(at, self.outputs)?;
                }
            }
            RunStep::Plan(action) => self.act(action)?,
        }
        self.hear_rings();
        Ok(())
    }

    /// If a process sleeps, puts its step off until it wakes. Returns whether it sleeps.
    fn sleeps(&self, node: usize, step: RunStep) -> bool {
        let Some(until) = self.nodes[node].asleep_until else {
            return false;
        };
        let core = &mut lock(&self.world).core;
        core.at(until, step);
        true
    }

    /// Runs a progress thread's turn, if it is the planned one.
    fn turn(&mut self, at: Time, site: usize) -> Result<(), String> {
        let (node, place) = {
            let World { network, .. } = &mut *lock(&self.world);
            let its = &mut network.sites[site];
            if its.turn_at != Some(at) {
                return Ok(());
            }
            (its.node, its.place)
        };
        if self.nodes[node].sites.get(place) != Some(&site) {
            return Ok(());
        }
        if let Some(until) = self.nodes[node].asleep_until {
            let World { core, network } = &mut *lock(&self.world);
            network.sites[site].turn_at = Some(until);
            core.at(until, RunStep::Turn { site });
            return Ok(());
        }
        {
            let World { network, .. } = &mut *lock(&self.world);
            let its = &mut network.sites[site];
            (its.turn_at, its.last_turn) = (None, at);
        }
        match self.nodes[node].endpoint.turn(place) {
            // `poll` has planned the next turn.
            Turn::Goes => {}
            Turn::WithoutFabric | Turn::Ended => {}
        }
        self.follow(node);
        Ok(())
    }

    /// Plans the steps that follow from a process's last step.
    pub(crate) fn follow(&mut self, node: usize) {
        let its = &mut self.nodes[node];
        let core = &mut lock(&self.world).core;
        let planned = &mut its.planned;
        if its.endpoint.has_files_to_read() && !std::mem::replace(&mut planned.files, true) {
            let takes = core.dice.one_of(&[MILLI / 50, MILLI / 10, MILLI * 2]);
            core.at(core.now + takes, RunStep::Files { node });
        }
        if its.endpoint.has_questions() && !std::mem::replace(&mut planned.questions, true) {
            let takes = core.dice.time(MILLI / 20..MILLI * 5);
            core.at(core.now + takes, RunStep::Questions { node });
        }
        if its.endpoint.has_completions() && !std::mem::replace(&mut planned.completions, true) {
            let takes = core.dice.time(MILLI / 1_000..MILLI / 5);
            core.at(core.now + takes, RunStep::Completions { node });
        }
    }

    /// Plans a turn of each progress thread that another thread has rung.
    fn hear_rings(&mut self) {
        let World { core, network } = &mut *lock(&self.world);
        for site in self.nodes.iter().flat_map(|node| &node.sites) {
            if network.sites[*site].take_ring() {
                network.wake(core, *site);
            }
        }
    }

    pub(crate) fn wake_all(&mut self, node: usize) {
        let World { core, network } = &mut *lock(&self.world);
        for site in &self.nodes[node].sites {
            // The turn planned before is dropped.
            network.sites[*site].turn_at = None;
            network.wake(core, *site);
        }
    }

    /// Closes all endpoints, and checks that no memory is leased.
    pub(crate) fn close(&mut self) -> Result<(), String> {
        for node in &mut self.nodes {
            node.kept.clear();
            node.endpoint.endpoint().close();
        }
        self.hear_rings();
        let end = self.now() + SECOND;
        self.run_until(end)?;
        for (place, node) in self.nodes.drain(..).enumerate() {
            let pool = Arc::clone(&node.pool);
            drop(node);
            no_lease_is_out(&pool).map_err(|what| format!("node {place}, closed: {what}"))?;
        }
        Ok(())
    }
}
