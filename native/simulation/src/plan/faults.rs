//! Faults that are added to the traffic of a run.

use super::{RunPlan, MILLI, SECOND};
use crate::network::ProcessSpeed;
use crate::sim_rng::SimRng;
use crate::step::PlannedAction;
use std::time::Duration;

/// Chooses a process for a fault, and marks it as disturbed.
pub(super) fn victim(plan: &mut RunPlan, dice: &mut SimRng) -> usize {
    let node = dice.place(plan.nodes.len());
    plan.nodes[node].is_disturbed = true;
    node
}

/// Plans connections that are lost, and sometimes bits that flip and a slow link.
pub(super) fn network(plan: &mut RunPlan, dice: &mut SimRng) {
    plan.conditions.corrupt = dice.one_of(&[0, 0, 5, 50]);
    plan.conditions.silent_losses = dice.one_of(&[0, 100, 500, 1_000]);
    let count = plan.nodes.len();
    for _ in 0..dice.number(1..12) {
        let from = dice.place(count);
        let to = (from + 1 + dice.place(count - 1)) % count;
        let within = dice.one_of(&[MILLI * 2, MILLI * 20, MILLI * 600]);
        let at = dice.time(Duration::ZERO..within);
        plan.cut((from, to), at);
    }
    if dice.chance(300) {
        let pair = (0, 1 + dice.place(count - 1));
        let slower = dice.one_of(&[20, 200]);
        plan.slow_pairs.push((pair, slower));
    }
}

/// Plans processes that take blocks slowly.
pub(super) fn slow_readers(plan: &mut RunPlan, dice: &mut SimRng) {
    for _ in 0..dice.number(1..3) {
        let node = victim(plan, dice);
        plan.nodes[node].pace = ProcessSpeed {
            pause: dice.time(MILLI..MILLI * 20),
            packets: 1 + dice.place(8),
        };
    }
}

/// Plans arenas that are full for a while, and callers that keep blocks.
pub(super) fn shortage(plan: &mut RunPlan, dice: &mut SimRng) {
    for _ in 0..dice.number(1..5) {
        let node = victim(plan, dice);
        let at = dice.time(Duration::ZERO..MILLI * 200);
        let pages = 40 + dice.place(100);
        plan.act(at, PlannedAction::Hog { node, pages });
        let after = dice.one_of(&[MILLI * 30, SECOND, SECOND * 8]);
        plan.act(at + after, PlannedAction::Unhog(node));
    }
    // Blocks that callers keep hold memory that others wait for.
    for request in &mut plan.requests {
        if dice.chance(200) {
            request.keeps = dice.time(MILLI..SECOND);
        }
    }
    plan.calm = SECOND * 10;
}

/// Plans processes that are killed, each with another one in its place.
pub(super) fn restarts(plan: &mut RunPlan, dice: &mut SimRng) {
    for _ in 0..dice.number(1..5) {
        let node = victim(plan, dice);
        let within = dice.one_of(&[MILLI * 2, MILLI * 20, MILLI * 600]);
        let at = dice.time(Duration::ZERO..within);
        plan.act(at, PlannedAction::Restart(node));
    }
    plan.conditions.silent_losses = dice.one_of(&[0, 100, 1_000]);
}

/// Plans devices that are lost for good.
pub(super) fn devices(plan: &mut RunPlan, dice: &mut SimRng) {
    for _ in 0..dice.number(1..3) {
        let node = victim(plan, dice);
        let within = dice.one_of(&[MILLI, MILLI * 10, MILLI * 400]);
        let at = dice.time(Duration::ZERO..within);
        plan.act(at, PlannedAction::LoseDevice(node));
    }
}
