//! The kinds of runs, and the requests of each. A kind has faults of its own, so that a run shows how
//! one fault affects others.

use super::faults::{devices, network, restarts, shortage, slow_readers, victim};
use super::{RunPlan, MILLI, SECOND};
use crate::outputs::{MapOutputs, Size};
use crate::sim_rng::SimRng;
use crate::step::PlannedAction;
use faro_endpoint::RegionMode;
use faro_fabric::FabricKind;
use faro_wire::BlockId;
use std::time::Duration;

/// The fault of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// No fault.
    Calm,
    /// Connections are lost, bits flip, and some links are slow.
    Network,
    /// Clients stop while a server sends them blocks.
    SilentReaders,
    /// Servers stop while clients wait for their blocks.
    SilentServers,
    /// Clients take blocks slowly.
    SlowReaders,
    /// Arenas are full.
    Shortage,
    /// Map outputs are staged, read and forgotten.
    Staging,
    /// Processes are killed, and others start in their places.
    Restarts,
    /// Devices are lost for good.
    Devices,
    /// Clients ask for more than a server can remember.
    Busy,
    /// Several of these faults.
    Mixed,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 11] = [
        Self::Calm,
        Self::Network,
        Self::SilentReaders,
        Self::SilentServers,
        Self::SlowReaders,
        Self::Shortage,
        Self::Staging,
        Self::Restarts,
        Self::Devices,
        Self::Busy,
        Self::Mixed,
    ];
}

pub(super) fn fill(plan: &mut RunPlan, dice: &mut SimRng, outputs: &MapOutputs) {
    match plan.profile {
        Profile::Calm => traffic(plan, dice, outputs),
        Profile::Network => {
            traffic(plan, dice, outputs);
            network(plan, dice);
        }
        Profile::SilentReaders => silent_readers(plan, dice, outputs),
        Profile::SilentServers => silent_servers(plan, dice, outputs),
        Profile::SlowReaders => {
            traffic(plan, dice, outputs);
            slow_readers(plan, dice);
        }
        Profile::Shortage => {
            traffic(plan, dice, outputs);
            shortage(plan, dice);
        }
        Profile::Staging => staging(plan, dice, outputs),
        Profile::Restarts => {
            traffic(plan, dice, outputs);
            restarts(plan, dice);
        }
        Profile::Devices => {
            plan.nodes[0].fabrics = vec![FabricKind::Verbs, FabricKind::Tcp];
            traffic(plan, dice, outputs);
            devices(plan, dice);
        }
        Profile::Busy => busy(plan, dice, outputs),
        Profile::Mixed => mixed(plan, dice, outputs),
    }
}

/// Plans requests between all processes, most of them at once and in both directions.
fn traffic(plan: &mut RunPlan, dice: &mut SimRng, outputs: &MapOutputs) {
    let count = 2 + dice.place(4);
    plan.processes(count);
    let requests = dice.number(8..32);
    for _ in 0..requests {
        let from = dice.place(count);
        // Some processes read from themselves.
        let to = match dice.chance(50) {
            true => from,
            false => (from + 1 + dice.place(count - 1)) % count,
        };
        let size = match dice.place(16) {
            0..=5 => Size::Tiny,
            6..=9 => Size::Small,
            10..=12 => Size::Middle,
            13..=14 => Size::Large,
            _ => Size::Huge,
        };
        let at = match dice.chance(600) {
            true => dice.time(Duration::ZERO..MILLI / 10),
            false => dice.time(Duration::ZERO..MILLI * 400),
        };
        let request = plan.ask(dice, outputs, (from, to), size, at);
        if dice.chance(60) {
            let at = at + dice.time(Duration::ZERO..MILLI * 30);
            plan.act(at, PlannedAction::Cancel(request));
        }
    }
}

/// Plans clients that ask a server for many blocks and stop in the middle, and others that ask it
/// afterwards.
fn silent_readers(plan: &mut RunPlan, dice: &mut SimRng, outputs: &MapOutputs) {
    // Eight stopped clients would hold all permits that a bounded policy gives to stragglers and
    // others; more peers would then wait for half of the timeout (see `schedule` in faro-endpoint).
    let (silent, honest) = (3 + dice.place(5), 1 + dice.place(2));
    plan.processes(1 + silent + honest);
    plan.timeout = SECOND * 60;
    plan.calm = dice.time(SECOND * 10..SECOND * 20);
    let is_crowded = dice.chance(400);
    let (stop, requests, sizes) = match is_crowded {
        // The server has more bytes in progress for the clients than its arena holds, and their
        // links take few of them.
        true => {
            plan.conditions.bandwidth = 200 << 20;
            plan.conditions.window = 64 << 10;
            plan.conditions.queued_bytes = 64 << 20;
            plan.conditions.queued_posts = 1_024;
            (dice.time(MILLI * 20..MILLI * 60), 5..9, [Size::Huge; 4])
        }
        false => {
            let sizes = [Size::Middle, Size::Large, Size::Huge, Size::Huge];
            (dice.time(MILLI * 2..MILLI * 30), 3..8, sizes)
        }
    };
    for node in 1..=silent {
        plan.nodes[node].is_disturbed = true;
        for _ in 0..dice.number(requests.clone()) {
            let size = dice.one_of(&sizes);
            let at = match is_crowded {
                true => dice.time(Duration::ZERO..MILLI),
                false => dice.time(Duration::ZERO..stop),
            };
            plan.ask(dice, outputs, (node, 0), size, at);
        }
        let at = dice.time(if is_crowded {
            stop / 2..stop
        } else {
            MILLI..stop
        });
        plan.act(at, PlannedAction::Sleep(node));
    }
    for node in silent + 1..=silent + honest {
        for _ in 0..dice.number(2..6) {
            let size = dice.one_of(&[Size::Small, Size::Middle, Size::Large, Size::Huge]);
            let at = stop + dice.time(Duration::ZERO..MILLI * 300);
            plan.ask(dice, outputs, (node, 0), size, at);
        }
    }
}

/// Plans a client that asks servers for many blocks. Some servers stop in the middle; the client
/// asks others afterwards.
fn silent_servers(plan: &mut RunPlan, dice: &mut SimRng, outputs: &MapOutputs) {
    let (silent, honest) = (1 + dice.place(3), 1 + dice.place(2));
    plan.processes(1 + silent + honest);
    plan.timeout = SECOND * 60;
    plan.healthy_bound = SECOND * 6;
    plan.calm = dice.time(SECOND * 20..SECOND * 30);
    let stop = dice.time(MILLI..MILLI * 10);
    for node in 1..=silent {
        plan.nodes[node].is_disturbed = true;
        for _ in 0..dice.number(4..12) {
            let size = dice.one_of(&[Size::Large, Size::Huge]);
            let at = dice.time(Duration::ZERO..stop);
            plan.ask(dice, outputs, (0, node), size, at);
        }
        let at = dice.time(MILLI / 2..stop);
        plan.act(at, PlannedAction::Sleep(node));
    }
    for node in silent + 1..=silent + honest {
        for _ in 0..dice.number(2..8) {
            let size = dice.one_of(&[Size::Small, Size::Large, Size::Huge]);
            let at = dice.time(MILLI..MILLI * 300);
            plan.ask(dice, outputs, (0, node), size, at);
        }
    }
}

/// Plans shuffles whose outputs are staged when they are committed, read from the cache, and
/// forgotten.
fn staging(plan: &mut RunPlan, dice: &mut SimRng, outputs: &MapOutputs) {
    let clients = 1 + dice.place(3);
    plan.processes(1 + clients);
    plan.nodes[0].stages_outputs = true;
    plan.nodes[0].regions = dice.one_of(&[RegionMode::Unpinned, RegionMode::Optimistic]);
    let mut at = Duration::ZERO;
    for shuffle in 1..=dice.number(3..9) as u32 {
        let mut maps = Vec::new();
        for size in [Size::Middle, Size::Large, Size::Small] {
            let map = MapOutputs::map(dice, size);
            let node = 0;
            plan.act(at, PlannedAction::Commit { node, shuffle, map });
            maps.push(map);
        }
        at += dice.time(MILLI..MILLI * 5);
        for from in 1..=clients {
            for _ in 0..dice.number(1..4) {
                let map = dice.one_of(&maps);
                let blocks = dice.number(1..5);
                let blocks: Vec<BlockId> = (0..blocks)
                    .map(|_| outputs.block(dice, shuffle, map))
                    .collect();
                let request = super::PlannedRequest {
                    from,
                    to: 0,
                    blocks,
                    keeps: Duration::ZERO,
                    is_healthy: false,
                };
                let at = at + dice.time(Duration::ZERO..MILLI * 20);
                plan.push_request(request, at);
            }
        }
        at += dice.time(MILLI * 2..MILLI * 300);
        plan.act(at, PlannedAction::Forget(shuffle));
    }
    plan.calm = at + SECOND;
}

/// Plans clients that ask for more blocks at once than the server can remember.
fn busy(plan: &mut RunPlan, dice: &mut SimRng, outputs: &MapOutputs) {
    let clients = 2 + dice.place(4);
    plan.processes(1 + clients);
    plan.timeout = SECOND * 30;
    plan.healthy_bound = SECOND * 10;
    for from in 1..=clients {
        for _ in 0..dice.number(4..14) {
            let blocks = dice.number(1_000..8_000);
            let at = dice.time(Duration::ZERO..MILLI * 5);
            plan.ask_for(dice, outputs, (from, 0), Size::Tiny, blocks, at);
        }
    }
}

fn mixed(plan: &mut RunPlan, dice: &mut SimRng, outputs: &MapOutputs) {
    traffic(plan, dice, outputs);
    if dice.chance(500) {
        network(plan, dice);
    }
    if dice.chance(400) {
        slow_readers(plan, dice);
    }
    if dice.chance(400) {
        shortage(plan, dice);
    }
    if dice.chance(400) {
        restarts(plan, dice);
    }
    if dice.chance(400) {
        devices(plan, dice);
    }
    if dice.chance(500) {
        let node = victim(plan, dice);
        let at = dice.time(Duration::ZERO..MILLI * 100);
        plan.act(at, PlannedAction::Sleep(node));
        let wakes = at + dice.one_of(&[MILLI * 50, SECOND * 3, SECOND * 12]);
        plan.act(wakes, PlannedAction::Wake(node));
        plan.calm = plan.calm.max(wakes);
    }
}
