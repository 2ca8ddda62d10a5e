//! Checks what must hold at the end of every run.

use crate::node::Node;
use crate::plan::{RunPlan, SECOND};
use crate::run::Run;
use faro_sync::lock;
use std::time::Duration;

/// Counters of work in progress, which must be 0 at the end.
const LEVELS: [&str; 4] = [
    "memory.requestBytes",
    "exchange.activePeers",
    "exchange.fanIn",
    "exchange.pairsInUse",
];
/// A thread that waits this long has no work.
const IDLE: Duration = Duration::from_secs(1);

impl RunPlan {
    /// Returns the time within which a request must end after the last fault. It may have three
    /// faults on each of two fabrics, wait for its server's room, and wait for memory.
    pub(crate) fn bound_of_a_request(&self) -> Duration {
        self.timeout * 8 + SECOND * 20
    }
}

impl Run<'_> {
    /// Checks that every request has ended.
    ///
    /// # Errors
    /// Fails if one is still open.
    pub(crate) fn all_have_ended(&self) -> Result<(), String> {
        match self.results.first_open() {
            None => Ok(()),
            Some(number) => {
                let request = &self.plan.requests[number];
                let (from, to, blocks) = (request.from, request.to, request.blocks.len());
                Err(format!(
                    "request {number} of {blocks} blocks from node {from} to node {to} has not ended"
                ))
            }
        }
    }

    /// Checks that nothing waits, and that all memory was returned.
    ///
    /// # Errors
    /// Fails if anything is left.
    pub(crate) fn nothing_is_left(&self) -> Result<(), String> {
        let of = |number: usize, what: String| format!("node {number}: {what}");
        for (number, node) in self.nodes.iter().enumerate() {
            is_quiet(node).map_err(|what| of(number, what))?;
            let network = &lock(&self.world).network;
            for site in &node.sites {
                let waits = network.sites[*site].waits;
                if network.has_device(*site) && waits < IDLE {
                    return Err(of(
                        number,
                        format!("a progress thread waits for {waits:?}: something is under way"),
                    ));
                }
            }
        }
        match lock(&self.world).network.under_way() {
            0 => Ok(()),
            posts => Err(format!("{posts} posts are on their way")),
        }
    }
}

fn is_quiet(node: &Node) -> Result<(), String> {
    let requests = node.endpoint.requests_in_flight();
    if requests > 0 {
        return Err(format!("{requests} requests are in flight"));
    }
    for name in LEVELS {
        let level = node.counter(name);
        if level > 0 {
            return Err(format!("{name} is {level}"));
        }
    }
    let (leased, cached) = (
        node.counter("pool.leasedBytes"),
        node.counter("region.cachedBytes"),
    );
    match leased == cached {
        true => Ok(()),
        false => Err(format!(
            "{leased} bytes of the arena are leased, {cached} of them by the chunk cache"
        )),
    }
}
