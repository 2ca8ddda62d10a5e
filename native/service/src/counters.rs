//! What the service has counted since its start.

use crate::store::{KeptAs, StoredTotals};
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums over all applications, also over those that have ended.
#[derive(Default)]
pub(crate) struct Counters {
    /// Outputs that were kept as hard links.
    pub(crate) links: AtomicU64,
    /// Outputs that were kept as open files.
    pub(crate) descriptors: AtomicU64,
    /// Executors, and messages of executors.
    pub(crate) refused: AtomicU64,
    /// Outputs whose files were given to readers of this host.
    pub(crate) lent: AtomicU64,
    pub(crate) removed_outputs: AtomicU64,
    /// Blocks and bytes of applications that have ended.
    served: [AtomicU64; 2],
}

impl Counters {
    pub(crate) fn kept(&self, how: KeptAs) {
        let counter = match how {
            KeptAs::Links => &self.links,
            KeptAs::Descriptors => &self.descriptors,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn removed(&self, gone: StoredTotals) {
        let removed = gone.outputs as u64;
        self.removed_outputs.fetch_add(removed, Ordering::Relaxed);
    }

    /// An application has ended to which so many blocks and bytes were served.
    pub(crate) fn has_served(&self, served: [u64; 2]) {
        for (sum, more) in self.served.iter().zip(served) {
            sum.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Blocks and bytes that were served to applications that have ended.
    pub(crate) fn served(&self) -> [u64; 2] {
        [0, 1].map(|at| self.served[at].load(Ordering::Relaxed))
    }
}
