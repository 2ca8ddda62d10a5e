//! Runs the first 200 seeds; `make simulate` runs more.

use super::passes;
use faro_simulation::Seed;
use std::ops::Range;

/// Seeds of each of the four tests, which run in parallel.
const QUARTER: u64 = 50;

fn pass(seeds: Range<u64>) {
    for seed in seeds {
        passes(Seed::new(seed));
    }
}

#[test]
fn the_first_quarter() {
    pass(0..QUARTER);
}

#[test]
fn the_second_quarter() {
    pass(QUARTER..2 * QUARTER);
}

#[test]
fn the_third_quarter() {
    pass(2 * QUARTER..3 * QUARTER);
}

#[test]
fn the_last_quarter() {
    pass(3 * QUARTER..4 * QUARTER);
}
