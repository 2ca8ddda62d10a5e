//! The result of a seed's run.

use crate::plan::Profile;
use std::fmt;
use std::time::Duration;

/// The report of a run without violations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The fault of the run.
    pub profile: Profile,
    /// A hash of the whole trace, which is the same for each run of the seed.
    pub trace: u64,
    /// Number of steps.
    pub steps: u64,
    /// Virtual time of the run.
    pub time: Duration,
    /// Number of requests that ended with the right bytes.
    pub right: usize,
    /// Number of requests that ended with an error.
    pub failed: usize,
    /// Maximum time of a healthy request: one that no fault affects.
    pub slowest_healthy: Duration,
}

/// A violated invariant of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The fault of the run, if the run had begun.
    pub profile: Option<Profile>,
    /// The virtual time of the violation.
    pub at: Duration,
    /// The violated invariant.
    pub what: String,
}

impl Report {
    /// Returns the violation for a second run of the seed with another report.
    #[must_use]
    pub fn differs(&self) -> Violation {
        Violation {
            profile: Some(self.profile),
            at: self.time,
            what: "two runs of the seed differ".to_owned(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(profile) = self.profile {
            write!(f, "{profile:?}, at {:.6} s: ", self.at.as_secs_f64())?;
        }
        f.write_str(&self.what)
    }
}

impl Violation {
    /// Returns a violation without a profile or a time.
    pub(crate) fn before(what: String) -> Self {
        Self {
            profile: None,
            at: Duration::ZERO,
            what,
        }
    }
}
