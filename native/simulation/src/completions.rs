//! The callers of a run: they take the completions of their endpoints.

use crate::run::Run;
use crate::step::RunStep;
use faro_sync::lock;
use std::time::Duration;

/// Maximum number of completions that a caller takes at once.
const COMPLETIONS: usize = 64;

impl Run<'_> {
    /// Takes a node's completions, checks their bytes, and keeps blocks as the plan says.
    ///
    /// # Errors
    /// Fails if a completion is not right for its request, or an invariant is violated.
    pub(crate) fn take_completions(&mut self, node: usize) -> Result<(), String> {
        let mut completions = Vec::new();
        let endpoint = self.nodes[node].endpoint.endpoint();
        endpoint.completions(COMPLETIONS, Duration::ZERO, &mut completions);
        let now = self.now();
        for completion in completions {
            let its = &mut self.nodes[node];
            let id = completion.request;
            let Some(pending) = its.pending.get_mut(&id) else {
                return Err(format!("node {node}: request {id} ended before"));
            };
            let (number, keeps) = (pending.number, pending.keeps);
            let first = completion.first_block as usize;
            let ended = pending
                .take(&completion, self.outputs)
                .map_err(|error| format!("request {number}: {error}"))?;
            let count = completion.block_count as usize;
            let blocks = pending.blocks[first..first + count].to_vec();
            if ended.is_some() {
                its.pending.remove(&id);
            }
            {
                let core = &mut lock(&self.world).core;
                core.note(format_args!("answer {number} {first} {count} {ended:?}"));
                // While memory is scarce, blocks are not kept; the datapath does the same.
                if !keeps.is_zero() && !completion.scarce {
                    core.at(now + keeps, RunStep::Release { node });
                    its.keep(now + keeps, completion, blocks);
                }
            }
            if let Some(end) = ended {
                let request = &self.plan.requests[number];
                let bound = self.plan.healthy_bound;
                self.results.end(number, request, end, now, bound)?;
            }
        }
        Ok(())
    }
}
