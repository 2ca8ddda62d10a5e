//! How many map outputs are kept, of all applications: each takes memory for as long as it is here.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// The outputs of all applications, and their bound.
#[derive(Debug)]
pub struct OutputRecords {
    kept: AtomicUsize,
    bound: usize,
}

/// One output, counted as long as this lives.
#[derive(Debug)]
pub(super) struct CountedRecord(Arc<OutputRecords>);

impl OutputRecords {
    #[must_use]
    pub fn new(bound: usize) -> Arc<Self> {
        let kept = AtomicUsize::new(0);
        Arc::new(Self { kept, bound })
    }

    /// Returns whether an application that has `own` outputs may have one more: it then has no more than are left free.
    /// So one alone has half of all, and one that comes always finds some.
    pub(super) fn has_room(&self, own: usize) -> bool {
        own < self.bound.saturating_sub(self.kept.load(Ordering::Relaxed))
    }

    /// Counts one more, also beyond the bound: those that a service before this one has left stay.
    pub(super) fn count(self: &Arc<Self>) -> CountedRecord {
        self.kept.fetch_add(1, Ordering::Relaxed);
        CountedRecord(Arc::clone(self))
    }
}

impl Drop for CountedRecord {
    fn drop(&mut self) {
        self.0.kept.fetch_sub(1, Ordering::Relaxed);
    }
}
