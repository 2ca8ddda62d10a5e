//! Tests that a seed decides everything.

use super::passes;
use faro_simulation::{Profile, Seed};
use std::collections::BTreeSet;

#[test]
fn two_runs_of_a_seed_are_the_same_step_by_step() {
    for profile in Profile::ALL {
        let seed = Seed {
            profile: Some(profile),
            ..Seed::new(7)
        };
        assert_eq!(passes(seed), passes(seed), "{profile:?}");
    }
}

#[test]
fn runs_of_different_seeds_differ() {
    let run = |seed| {
        passes(Seed {
            profile: Some(Profile::Calm),
            ..Seed::new(seed)
        })
    };
    let traces: BTreeSet<u64> = (0..5).map(|seed| run(seed).trace).collect();
    assert_eq!(traces.len(), 5);
}
