//! Applies the plan's actions to a run: requests, faults, map outputs.

use crate::caller::PendingRequest;
use crate::fabric::World;
use crate::node::{no_lease_is_out, Node, PlannedSteps};
use crate::run::Run;
use crate::step::{PlannedAction, RunStep};
use faro_sync::lock;
use faro_wire::OutputId;
use std::sync::Arc;

impl Run<'_> {
    /// Takes an action of the plan.
    ///
    /// # Errors
    /// Fails if an invariant is violated.
    pub(crate) fn act(&mut self, action: PlannedAction) -> Result<(), String> {
        lock(&self.world).core.note(format_args!("{action:?}"));
        match action {
            PlannedAction::Ask(number) => self.ask(number)?,
            PlannedAction::Cancel(number) => {
                let node = self.plan.requests[number].from;
                let mut pending = self.nodes[node].pending.iter();
                let found = pending.find(|(_, pending)| pending.number == number);
                if let Some(id) = found.map(|(id, _)| *id) {
                    self.nodes[node].endpoint.endpoint().cancel(id);
                    self.follow(node);
                }
            }
            PlannedAction::Sleep(node) => self.nodes[node].asleep_until = Some(self.plan.calm),
            PlannedAction::Wake(node) => self.wake(node),
            PlannedAction::Cut(from, to) => {
                let World { core, network } = &mut *lock(&self.world);
                network.cut_between(core, (from, to));
            }
            PlannedAction::Hog { node, pages } => self.hog(node, pages),
            PlannedAction::Unhog(node) => self.nodes[node].hog.clear(),
            PlannedAction::Restart(node) => self.restart(node)?,
            PlannedAction::LoseDevice(node) => {
                let World { core, network } = &mut *lock(&self.world);
                if self.plan.nodes[node].fabrics.len() > 1 {
                    network.lose_device(core, self.nodes[node].sites[0]);
                }
            }
            PlannedAction::Commit { node, shuffle, map } => self.commit(node, shuffle, map),
            PlannedAction::Forget(shuffle) => {
                for node in &self.nodes {
                    node.endpoint.endpoint().forget_shuffle(shuffle);
                }
            }
            PlannedAction::Calm => {
                for node in 0..self.nodes.len() {
                    self.nodes[node].hog.clear();
                    self.wake(node);
                }
                lock(&self.world).network.conditions.corrupt = 0;
            }
        }
        Ok(())
    }

    fn wake(&mut self, node: usize) {
        if self.nodes[node].asleep_until.take().is_some() {
            self.wake_all(node);
            // Steps that it put off while it slept are planned again.
            self.nodes[node].planned = PlannedSteps::default();
            self.follow(node);
            let core = &mut lock(&self.world).core;
            core.at(core.now, RunStep::Release { node });
        }
    }

    fn ask(&mut self, number: usize) -> Result<(), String> {
        let request = &self.plan.requests[number];
        let (from, to) = (request.from, request.to);
        let now = self.now();
        if self.nodes[from].asleep_until.is_some() {
            // A sleeping process makes no request.
            self.results.drop_request(number, now);
            return Ok(());
        }
        let other = &self.nodes[to];
        let (who, card) = ((to, other.life), other.endpoint.endpoint().card());
        let its = &mut self.nodes[from];
        let peer = its.peer(who, &card)?;
        let endpoint = its.endpoint.endpoint();
        let id = endpoint
            .fetch(peer, &request.blocks, self.plan.timeout)
            .map_err(|error| format!("request {number}: {error}"))?;
        self.results.begin(number, now);
        let pending = PendingRequest {
            number,
            blocks: request.blocks.clone(),
            received: 0,
            keeps: request.keeps,
        };
        its.pending.insert(id, pending);
        self.follow(from);
        Ok(())
    }

    /// Leases up to `pages` pages of a node's arena, as other users of the arena would.
    fn hog(&mut self, node: usize, pages: usize) {
        let its = &mut self.nodes[node];
        let lease = || {
            let purpose = faro_pool::Purpose::Serve;
            its.pool.try_lease(faro_pool::PAGE_BYTES, purpose).ok()
        };
        let leases: Vec<_> = std::iter::from_fn(lease).take(pages).collect();
        its.hog.extend(leases);
    }

    /// Kills a node's process and starts another one.
    fn restart(&mut self, node: usize) -> Result<(), String> {
        let life = self.nodes[node].life + 1;
        let now = self.now();
        let killed = std::mem::take(&mut self.nodes[node].pending);
        for pending in killed.into_values() {
            self.results.drop_request(pending.number, now);
        }
        let its = &mut self.nodes[node];
        its.kept.clear();
        its.hog.clear();
        let pool = Arc::clone(&its.pool);
        // Peers find the first process that lives, so the old one is removed from the network
        // before the new one starts.
        {
            let World { core, network } = &mut *lock(&self.world);
            for site in &self.nodes[node].sites {
                network.drop_site(core, *site);
            }
        }
        self.start_again(node, life)?;
        no_lease_is_out(&pool).map_err(|what| format!("node {node}, which was killed: {what}"))
    }

    fn start_again(&mut self, node: usize, life: u128) -> Result<(), String> {
        self.nodes[node] = Node::start(&self.world, &self.plan, node, life)?;
        self.wake_all(node);
        Ok(())
    }

    /// Commits a map output on a node, and stages its bytes.
    fn commit(&mut self, node: usize, shuffle: u32, map: i64) {
        let id = OutputId {
            shuffle_id: shuffle,
            map_id: map,
        };
        let Some(files) = self.outputs.files(id) else {
            return;
        };
        let endpoint = self.nodes[node].endpoint.endpoint();
        let staged = endpoint.stage().map(|mut staged| {
            let mut rest = self.outputs.all_bytes(map);
            while !rest.is_empty() {
                let room = staged.room();
                let length = room.len().min(rest.len());
                if length == 0 {
                    staged.end();
                    break;
                }
                room[..length].copy_from_slice(&rest[..length]);
                staged.filled(length);
                rest = &rest[length..];
            }
            staged
        });
        endpoint.committed(id, &files, staged);
        self.follow(node);
    }
}
