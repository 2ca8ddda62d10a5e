//! Deterministic simulation: runs whole endpoints over a network, a clock and faults that one seed
//! decides.
//!
//! ```text
//!   run          runs a seed: its steps, in an order that the seed decides
//!   actions      applies the plan's actions to the run
//!   invariants   checks what must hold at the end of every run
//!   plan         decides processes, requests and faults before a run
//!   node         one process: an endpoint (the code that ships), its Java side, its caller
//!   caller       checks that requests get the right bytes
//!   fabric       connects an endpoint's progress threads to the network
//!   driven       the network without endpoints, for the conformance suite
//!   virtual_network  endpoints and scripted peers, for a test that says itself what happens
//!   network      connections: packets that are queued, on their way, lost
//!   core         the time, the dice, the agenda, the trace
//!   step         the steps of a run
//!   hosts        counts the connections of hosts with and without node services
//!   slow_link    blocks as large as the arena over slow links
//! ```
//! A run uses one thread. Time is virtual and stands still during a step. `faro_sync::simulated`
//! gives the endpoints that time, the order of their hash tables, and whether a file's page is in
//! memory. So every run of a seed is the same, bit by bit ([`Report::trace`]), and the seed is
//! enough to reproduce a failure.
//!
//! The simulations of FoundationDB, TigerBeetle and s2n-quic are built on the same idea.

mod actions;
mod caller;
mod completions;
mod core;
mod driven;
mod fabric;
mod hosts;
mod invariants;
mod network;
mod node;
mod outputs;
mod plan;
mod report;
mod results;
mod run;
mod sim_rng;
mod slow_link;
mod step;
mod trace;
mod virtual_network;

pub use driven::DrivenNetwork;
pub use hosts::{Cluster, HostConnections};
pub use outputs::MapOutputs;
pub use plan::Profile;
pub use report::{Report, Violation};
pub use slow_link::SlowLinks;
pub use virtual_network::{Resolver, VirtualNetwork};

use std::panic::{catch_unwind, AssertUnwindSafe};

/// A seed, and how to run it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seed {
    /// The seed.
    pub seed: u64,
    /// The kind of run; `None` lets the seed choose it.
    pub profile: Option<Profile>,
    /// True to print each step.
    pub prints: bool,
}

impl Seed {
    /// Returns a seed that chooses everything.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// Runs the seed.
    ///
    /// # Errors
    /// Fails if an invariant is violated or code panics.
    pub fn run(self, outputs: &MapOutputs) -> Result<Report, Violation> {
        let seed = self.seed;
        let run = || run::Run::new(seed, self.profile, self.prints, outputs)?.finish();
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let what = format!("a panic: {}", faro_sync::panic_message(&*panic));
            Err(Violation::before(what))
        })
    }
}
