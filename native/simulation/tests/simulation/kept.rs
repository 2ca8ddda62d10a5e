//! Seeds that have failed once, with the reason. A seed that finds a defect is added here when the defect is mended.

use super::passes;
use faro_simulation::{Profile, Seed};

/// The kind of run, if it was chosen by hand, the seed, and what it found.
const KEPT: [(Option<Profile>, u64, &str); 2] = [
    (
        None,
        43,
        "an endpoint that ended with open questions kept its arena: 264192 bytes were leased",
    ),
    (None, 133, "the same, 1837056 bytes"),
];

#[test]
fn seeds_that_have_failed_once_pass() {
    for (profile, seed, found) in KEPT {
        println!("seed {seed}, which has found this: {found}");
        passes(Seed {
            profile,
            ..Seed::new(seed)
        });
    }
}
