//! Runs whole endpoints over a simulated network.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

mod hosts;
mod kept;
mod same_trace;
mod seeds;
mod slow_links;

use faro_simulation::{MapOutputs, Report, Seed};
use std::sync::OnceLock;

/// Returns the map outputs that all tests share.
fn outputs() -> &'static MapOutputs {
    static OUTPUTS: OnceLock<MapOutputs> = OnceLock::new();
    OUTPUTS.get_or_init(|| MapOutputs::write().unwrap())
}

/// Runs a seed and panics if an invariant is violated.
fn passes(seed: Seed) -> Report {
    seed.run(outputs()).unwrap_or_else(|violation| {
        let number = seed.seed;
        let profile = seed
            .profile
            .map_or(String::new(), |p| format!(" PROFILE={p:?}"));
        panic!("{violation}\nagain, step by step: make simulate SEED={number}{profile}")
    })
}
