//! What a run of a seed gave.

use crate::plan::Profile;
use std::fmt;
use std::time::Duration;

/// What a run of a seed gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What went wrong in it.
    pub profile: Profile,
    /// Of all that happened: the same for each run of the seed.
    pub trace: u64,
    /// Steps.
    pub steps: u64,
    /// Virtual time.
    pub time: Duration,
    /// Requests that ended with the right bytes.
    pub right: usize,
    /// Requests that ended with an error.
    pub failed: usize,
    /// The longest that a request took which nothing went wrong with.
    pub slowest_healthy: Duration,
}

/// A run in which something was not as it has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What went wrong in the run.
    pub profile: Option<Profile>,
    /// When.
    pub at: Duration,
    /// The violated invariant.
    pub what: String,
}

impl Report {
    /// Another run of the same seed gave another report.
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
    /// One that no profile or time belongs to.
    pub(crate) fn before(what: String) -> Self {
        Self {
            profile: None,
            at: Duration::ZERO,
            what,
        }
    }
}
