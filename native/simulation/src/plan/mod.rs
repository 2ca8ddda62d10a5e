//! The plan of a run, which its seed decides: processes, requests, faults, and their times.

mod faults;
mod profiles;

pub use profiles::Profile;

use crate::core::Time;
use crate::network::{Conditions, ProcessSpeed};
use crate::outputs::{MapOutputs, Size, UNKNOWN};
use crate::sim_rng::SimRng;
use crate::step::PlannedAction;
use faro_endpoint::{ExchangePolicy, RegionMode};
use faro_fabric::FabricKind;
use faro_wire::BlockId;
use std::collections::BTreeSet;
use std::time::Duration;

/// A request of the plan.
#[derive(Debug, Clone)]
pub(crate) struct PlannedRequest {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) blocks: Vec<BlockId>,
    /// The time for which the caller keeps the blocks.
    pub(crate) keeps: Duration,
    /// True if no fault of the plan affects it. Then it must succeed within `RunPlan::healthy_bound`.
    pub(crate) is_healthy: bool,
}

/// A process of the plan.
#[derive(Debug, Clone)]
pub(crate) struct PlannedNode {
    pub(crate) fabrics: Vec<FabricKind>,
    /// Outputs are cached when they are committed.
    pub(crate) stages_outputs: bool,
    pub(crate) regions: RegionMode,
    pub(crate) pace: ProcessSpeed,
    /// True if a fault of the plan affects it.
    pub(crate) is_disturbed: bool,
}

/// Everything that a seed decides before a run begins.
#[derive(Debug, Clone)]
pub(crate) struct RunPlan {
    pub(crate) profile: Profile,
    pub(crate) conditions: Conditions,
    /// Number of a file's pages in memory, out of 256 that are asked for.
    pub(crate) resident: u8,
    pub(crate) policy: ExchangePolicy,
    pub(crate) connection_idle: Duration,
    pub(crate) idle_release: Duration,
    /// Maximum time of a request without progress.
    pub(crate) timeout: Duration,
    pub(crate) nodes: Vec<PlannedNode>,
    pub(crate) requests: Vec<PlannedRequest>,
    pub(crate) actions: Vec<(Time, PlannedAction)>,
    /// Pairs of processes whose connections are lost.
    pub(crate) bad_pairs: BTreeSet<(usize, usize)>,
    /// Pairs of processes with a slow link, and the factor by which it is slower.
    pub(crate) slow_pairs: Vec<((usize, usize), u64)>,
    /// Maximum time of a healthy request.
    pub(crate) healthy_bound: Duration,
    /// The time after which no fault happens.
    pub(crate) calm: Time,
}

pub(crate) const MILLI: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

impl RunPlan {
    /// Returns the plan of a seed.
    pub(crate) fn roll(profile: Profile, dice: &mut SimRng, outputs: &MapOutputs) -> Self {
        let both = vec![FabricKind::Verbs, FabricKind::Tcp];
        let choices = [
            vec![FabricKind::Tcp],
            vec![FabricKind::Tcp],
            vec![FabricKind::Verbs],
            both,
        ];
        let fabrics = choices[dice.place(choices.len())].clone();
        let node = PlannedNode {
            fabrics,
            stages_outputs: false,
            regions: RegionMode::Unpinned,
            pace: ProcessSpeed::FAST,
            is_disturbed: false,
        };
        let mut plan = Self {
            profile,
            conditions: Conditions::roll(dice),
            resident: dice.one_of(&[0, 128, 240, 255]),
            policy: dice.one_of(&[
                ExchangePolicy::Auto,
                ExchangePolicy::Auto,
                ExchangePolicy::Grouped,
                ExchangePolicy::Rotated,
            ]),
            connection_idle: dice.one_of(&[Duration::ZERO, SECOND, SECOND * 60]),
            idle_release: dice.one_of(&[Duration::ZERO, MILLI * 300]),
            timeout: SECOND * dice.one_of(&[2, 5, 10]),
            nodes: vec![node],
            requests: Vec::new(),
            actions: Vec::new(),
            bad_pairs: BTreeSet::new(),
            slow_pairs: Vec::new(),
            healthy_bound: SECOND * 5,
            calm: SECOND,
        };
        profiles::fill(&mut plan, dice, outputs);
        plan.actions.push((plan.calm, PlannedAction::Calm));
        plan.judge_health();
        plan
    }

    /// Returns a plan of `nodes` processes and no fault, in which `reads` lists who asks whom for
    /// one small block.
    pub(crate) fn of_reads(
        nodes: usize,
        reads: &[(usize, usize)],
        dice: &mut SimRng,
        outputs: &MapOutputs,
    ) -> Self {
        let node = PlannedNode {
            fabrics: vec![FabricKind::Verbs],
            stages_outputs: false,
            regions: RegionMode::Unpinned,
            pace: ProcessSpeed::FAST,
            is_disturbed: false,
        };
        let mut plan = Self {
            profile: Profile::Calm,
            conditions: Conditions::roll(dice),
            resident: 255,
            policy: ExchangePolicy::Auto,
            // No connection is closed before it is counted.
            connection_idle: Duration::ZERO,
            idle_release: Duration::ZERO,
            timeout: SECOND * 10,
            nodes: vec![node; nodes],
            requests: Vec::new(),
            actions: Vec::new(),
            bad_pairs: BTreeSet::new(),
            slow_pairs: Vec::new(),
            healthy_bound: SECOND * 20,
            calm: SECOND,
        };
        for pair in reads {
            let at = dice.time(Duration::ZERO..SECOND);
            plan.ask_for(dice, outputs, *pair, Size::Tiny, 1, at);
        }
        plan.actions.push((plan.calm, PlannedAction::Calm));
        plan.judge_health();
        plan
    }

    /// Plans `count` processes, all like the first one.
    fn processes(&mut self, count: usize) {
        self.nodes = vec![self.nodes[0].clone(); count];
    }

    fn act(&mut self, at: Time, action: PlannedAction) {
        self.actions.push((at, action));
    }

    /// Plans a request of a random number of blocks of that size.
    fn ask(
        &mut self,
        dice: &mut SimRng,
        outputs: &MapOutputs,
        (from, to): (usize, usize),
        size: Size,
        at: Time,
    ) -> usize {
        let blocks = match size {
            Size::Tiny => dice.number(1..200),
            Size::Small => dice.number(1..40),
            Size::Middle => dice.number(1..8),
            Size::Large => dice.number(1..3),
            Size::Huge => 1,
        };
        self.ask_for(dice, outputs, (from, to), size, blocks, at)
    }

    /// Plans a request of `blocks` blocks of that size.
    fn ask_for(
        &mut self,
        dice: &mut SimRng,
        outputs: &MapOutputs,
        (from, to): (usize, usize),
        size: Size,
        blocks: u64,
        at: Time,
    ) -> usize {
        let mut map = MapOutputs::map(dice, size);
        let blocks = (0..blocks).map(|_| {
            if dice.chance(100) {
                map = MapOutputs::map(dice, size);
            }
            let mut block = outputs.block(dice, 0, map);
            if dice.chance(5) {
                block.map_id = (UNKNOWN + map).into();
            }
            block
        });
        let blocks = blocks.collect();
        let keeps = match dice.chance(500) {
            true => Duration::ZERO,
            false => dice.time(MILLI..MILLI * 50),
        };
        self.push_request(
            PlannedRequest {
                from,
                to,
                blocks,
                keeps,
                is_healthy: false,
            },
            at,
        )
    }

    /// Plans a request of the largest block, at the beginning.
    pub(crate) fn ask_largest(
        &mut self,
        outputs: &MapOutputs,
        (from, to): (usize, usize),
        is_healthy: bool,
    ) {
        let request = PlannedRequest {
            from,
            to,
            blocks: vec![outputs.largest()],
            keeps: Duration::ZERO,
            is_healthy,
        };
        self.push_request(request, Duration::ZERO);
    }

    fn push_request(&mut self, request: PlannedRequest, at: Time) -> usize {
        self.requests.push(request);
        let number = self.requests.len() - 1;
        self.act(at, PlannedAction::Ask(number));
        number
    }

    fn cut(&mut self, pair: (usize, usize), at: Time) {
        self.bad_pairs
            .insert((pair.0.min(pair.1), pair.0.max(pair.1)));
        self.act(at, PlannedAction::Cut(pair.0, pair.1));
    }

    fn judge_health(&mut self) {
        let cancelled: BTreeSet<usize> = self
            .actions
            .iter()
            .filter_map(|(_, action)| match action {
                PlannedAction::Cancel(request) => Some(*request),
                _ => None,
            })
            .collect();
        let slow: BTreeSet<_> = self.slow_pairs.iter().map(|(pair, _)| *pair).collect();
        for (number, request) in self.requests.iter_mut().enumerate() {
            let pair = (request.from.min(request.to), request.from.max(request.to));
            let disturbed = |node: usize| self.nodes[node].is_disturbed;
            request.is_healthy = self.conditions.corrupt == 0
                && !disturbed(request.from)
                && !disturbed(request.to)
                && !self.bad_pairs.contains(&pair)
                && !slow.contains(&pair)
                && !cancelled.contains(&number);
        }
    }
}
