//! Deterministic simulation: whole endpoints over a network, a clock and faults that one seed decides.
//!
//! ```text
//!   run          one run of a seed: its steps, in an order that the seed decides
//!   actions      what the plan does to it
//!   invariants   what holds at the end of every run
//!   plan         what a seed decides before a run: processes, requests, faults
//!   node         one process: an endpoint (the code that ships), its Java side, its caller
//!   caller       whether requests got the right bytes
//!   fabric       what an endpoint's progress threads see of the network
//!   network      connections: what is queued, on its way, lost
//!   core         the time, the dice, the agenda, the trace
//!   step         what can happen
//! ```
//! All of it happens on one thread. Time is virtual and stands still while a step is taken. `faro_sync::simulated` gives
//! the endpoints that time, the order of their hash tables, and whether a file's page is in memory. So a run of a seed is
//! the same each time, bit by bit ([`Report::trace`]), and a seed that fails is all that is needed to look again.
//!
//! Same idea as the simulations of FoundationDB, TigerBeetle and s2n-quic.

mod actions;
mod caller;
mod core;
mod dice;
mod fabric;
mod invariants;
mod network;
mod node;
mod outputs;
mod plan;
mod report;
mod run;
mod step;
mod trace;

pub use outputs::Outputs;
pub use plan::Profile;
pub use report::{Report, Violation};

use std::panic::{catch_unwind, AssertUnwindSafe};

/// One seed, and how it is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seed {
    /// The seed.
    pub seed: u64,
    /// The kind of run, if not the seed is to choose it.
    pub profile: Option<Profile>,
    /// Print each step.
    pub prints: bool,
}

impl Seed {
    /// A seed that chooses everything.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// Something was not as it has to be, or code has panicked.
    pub fn run(self, outputs: &Outputs) -> Result<Report, Violation> {
        let seed = self.seed;
        let run = || run::Run::new(seed, self.profile, self.prints, outputs)?.finish();
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let what = format!("a panic: {}", faro_sync::panic_message(&*panic));
            Err(Violation::before(what))
        })
    }
}
