//! Whole endpoints over a network that a seed decides.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

mod kept;
mod same_trace;
mod seeds;

use faro_simulation::{Outputs, Report, Seed};
use std::sync::OnceLock;

/// The map outputs of all tests.
fn outputs() -> &'static Outputs {
    static OUTPUTS: OnceLock<Outputs> = OnceLock::new();
    OUTPUTS.get_or_init(|| Outputs::write().unwrap())
}

/// A run of a seed in which everything is as it has to be.
fn passes(seed: Seed) -> Report {
    seed.run(outputs()).unwrap_or_else(|violation| {
        let number = seed.seed;
        let profile = seed
            .profile
            .map_or(String::new(), |p| format!(" PROFILE={p:?}"));
        panic!("{violation}\nagain, step by step: make simulate SEED={number}{profile}")
    })
}
