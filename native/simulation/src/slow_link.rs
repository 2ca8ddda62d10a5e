//! Runs a client whose arena holds one of the blocks that it asks for, over slow links.

use crate::outputs::MapOutputs;
use crate::plan::{RunPlan, MILLI};
use crate::report::{Report, Violation};
use crate::run::Run;
use crate::sim_rng::SimRng;
use faro_fabric::FabricKind;
use std::time::Duration;

/// A client and its servers, each with a slow link to it and one block.
#[derive(Debug, Clone)]
pub struct SlowLinks<'a> {
    /// The fabrics of each server. The client has both.
    pub servers: &'a [FabricKind],
    /// Bytes per second of each link.
    pub bandwidth: u64,
    /// Maximum time of a request without progress.
    pub timeout: Duration,
    /// True if all blocks must arrive.
    pub all_arrive: bool,
}

impl SlowLinks<'_> {
    /// Returns the bytes of a block: more than half of what the arena has for reading.
    #[must_use]
    pub fn block_bytes(outputs: &MapOutputs) -> usize {
        let block = outputs.largest();
        outputs.bytes(&block).map_or(0, <[u8]>::len)
    }

    /// Asks all servers for their blocks at once, and runs until each request has ended.
    ///
    /// # Errors
    /// Fails if an invariant is violated, or if a block does not arrive although it must.
    pub fn run(&self, outputs: &MapOutputs) -> Result<Report, Violation> {
        let mut dice = SimRng::new(1);
        let mut plan = RunPlan::of_reads(1 + self.servers.len(), &[], &mut dice, outputs);
        plan.timeout = self.timeout;
        plan.conditions.bandwidth = self.bandwidth;
        plan.conditions.latency = MILLI;
        plan.nodes[0].fabrics = vec![FabricKind::Verbs, FabricKind::Tcp];
        for (server, fabric) in self.servers.iter().enumerate() {
            plan.nodes[1 + server].fabrics = vec![*fabric];
            plan.ask_largest(outputs, (0, 1 + server), self.all_arrive);
        }
        // Each block has the links for itself for a while, as only one fits into the arena.
        let of_a_block = Self::block_bytes(outputs) as f64 / self.bandwidth as f64;
        let all = Duration::from_secs_f64(of_a_block * 2.0 * self.servers.len() as f64);
        plan.healthy_bound = all;
        plan.calm = all;
        Run::of(plan, dice, false, outputs)?.finish()
    }
}
