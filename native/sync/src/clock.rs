//! The clock for deadlines and pauses: the system's, or that of a simulation.

use crate::simulated;
use std::time::Instant;

/// Returns the time for deadlines and pauses: in a simulation its virtual time, otherwise the
/// system's.
#[inline]
#[must_use]
pub fn now() -> Instant {
    simulated::now().unwrap_or_else(Instant::now)
}
