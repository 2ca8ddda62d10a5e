//! Seeds that have failed once, with the reason. A seed that finds a defect is added when the
//! defect is fixed.

use super::passes;
use faro_simulation::{Profile, Seed};

/// The kind of run if it was chosen by hand, the seed, and the defect that it found.
const KEPT: [(Option<Profile>, u64, &str); 8] = [
    (
        None,
        43,
        "an endpoint that ended with open questions kept its arena: 264192 bytes were leased",
    ),
    (None, 133, "the same, 1837056 bytes"),
    (
        Some(Profile::SilentServers),
        557,
        "healthy servers' blocks waited as long as the silent ones slept",
    ),
    (
        Some(Profile::SilentServers),
        336,
        "a client that was refused several leases woke itself without end",
    ),
    (Some(Profile::Shortage), 91, "the same"),
    (Some(Profile::Shortage), 185, "the same"),
    (Some(Profile::Shortage), 158, "the same"),
    (Some(Profile::Shortage), 88, "the same"),
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
