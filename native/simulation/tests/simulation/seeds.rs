//! Runs the first 100 seeds, or 200; `make simulate` runs more.

use super::passes;
use faro_conformance::cases;
use faro_simulation::Seed;

/// Runs one quarter of the seeds: the four tests run in parallel.
fn pass(quarter: u64) {
    let each = cases(50, 25);
    for seed in quarter * each..(quarter + 1) * each {
        passes(Seed::new(seed));
    }
}

#[test]
fn the_first_quarter() {
    pass(0);
}

#[test]
fn the_second_quarter() {
    pass(1);
}

#[test]
fn the_third_quarter() {
    pass(2);
}

#[test]
fn the_last_quarter() {
    pass(3);
}
