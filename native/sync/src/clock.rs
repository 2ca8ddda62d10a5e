//! The clock that deadlines and pauses go by: the system's, or that of a simulation.

use crate::simulated;
use std::time::Instant;

/// The time that deadlines and pauses go by.
#[inline]
#[must_use]
pub fn now() -> Instant {
    simulated::now().unwrap_or_else(Instant::now)
}
