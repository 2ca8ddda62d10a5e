//! An application as the service knows it, and what all of them add up to.

use crate::application::Application;
use crate::places::Left;
use crate::store::Holding;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an application is to the service.
pub(crate) enum Known {
    /// A service before this one has left its outputs; none of its executors has come yet.
    Left(Left),
    Serving(Arc<Application>),
}

impl Known {
    /// The user of its executors.
    pub(crate) fn owner(&self) -> u32 {
        match self {
            Self::Left(left) => left.record.owner,
            Self::Serving(application) => application.owner,
        }
    }

    /// `None`: none of its executors has come yet.
    pub(crate) fn serving(&self) -> Option<&Arc<Application>> {
        match self {
            Self::Left(_) => None,
            Self::Serving(application) => Some(application),
        }
    }

    /// Whether neither an executor nor a reader was heard of for so long.
    pub(crate) fn is_idle_for(&self, idle: Duration, now: Instant) -> bool {
        let since = match self {
            Self::Left(left) => Some(left.since),
            Self::Serving(application) => application.idle_since(now),
        };
        since.is_some_and(|since| now.saturating_duration_since(since) >= idle)
    }
}

/// Sums over the applications that there are.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) holding: Holding,
    /// Connected now.
    pub(crate) executors: u64,
    /// Copies that other services do not have yet.
    pub(crate) behind: u64,
    /// Bytes of tables of outputs, and of readers' requests.
    pub(crate) tables: u64,
    /// Blocks and bytes.
    pub(crate) served: [u64; 2],
}

impl Totals {
    pub(crate) fn add(&mut self, known: &Known) {
        let more = match known {
            Known::Left(left) => left.store.holding(),
            Known::Serving(application) => {
                let [blocks, bytes] = application.served();
                self.served = [self.served[0] + blocks, self.served[1] + bytes];
                self.executors += application.executors() as u64;
                self.behind += application.replicas_behind();
                self.tables += application.table_bytes();
                application.holding()
            }
        };
        self.holding.outputs += more.outputs;
        self.holding.bytes += more.bytes;
        self.holding.replicas += more.replicas;
    }
}
