//! The order in which the fabrics of one endpoint get arena memory: by the age of requests.
//!
//! Each progress thread has its own line of attempts that wait for memory, and grants memory in its
//! order. Without more, a fabric with many small blocks would take what returns before a large block of
//! another fabric ever finds enough. So each thread publishes the oldest request of its line, and takes
//! no memory for a younger one. What returns is left for the oldest request of all, until it has its
//! memory or does not wait any more; then the other threads are woken.

use faro_fabric::FabricKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// No request waits.
const NONE: u64 = u64::MAX;
const KINDS: usize = 3;

/// Wakes the progress thread of a fabric.
pub(crate) type WakeFabric = Box<dyn Fn() + Send + Sync>;

/// The oldest request in line for memory of each fabric. Requests are numbered by age.
pub(crate) struct MemoryLine {
    /// By fabric.
    oldest: [AtomicU64; KINDS],
    wakers: OnceLock<Vec<(FabricKind, WakeFabric)>>,
}

impl MemoryLine {
    pub(crate) fn new() -> Self {
        Self {
            oldest: [const { AtomicU64::new(NONE) }; KINDS],
            wakers: OnceLock::new(),
        }
    }

    /// Says how to wake each fabric's thread. Only the first call has an effect.
    pub(crate) fn set_wakers(&self, wakers: Vec<(FabricKind, WakeFabric)>) {
        let is_first = self.wakers.set(wakers).is_ok();
        debug_assert!(is_first, "the threads of an endpoint are started once");
    }

    /// Publishes the oldest request that waits on a fabric. Wakes the other fabrics if it was an older
    /// one before, because they may have had to wait for that one.
    ///
    /// A thread that has to wait publishes first and looks again afterwards. Both orders are sequentially
    /// consistent, so that it sees the change or is woken by it.
    pub(crate) fn publish(&self, fabric: FabricKind, oldest: Option<u64>) {
        let now = oldest.unwrap_or(NONE);
        let slot = &self.oldest[fabric as usize];
        // Only this fabric's thread writes it.
        if slot.load(Ordering::Relaxed) == now {
            return;
        }
        let before = slot.swap(now, Ordering::SeqCst);
        if now > before {
            for (kind, wake) in self.wakers.get().into_iter().flatten() {
                if *kind != fabric {
                    wake();
                }
            }
        }
    }

    /// Returns the oldest request that waits on any fabric but this one.
    pub(crate) fn oldest_elsewhere(&self, fabric: FabricKind) -> Option<u64> {
        let others = self.oldest.iter().enumerate();
        others
            .filter(|(kind, _)| *kind != fabric as usize)
            .map(|(_, oldest)| oldest.load(Ordering::SeqCst))
            .min()
            .filter(|oldest| *oldest != NONE)
    }

    /// Returns whether a request that is older than this one waits on some fabric.
    pub(crate) fn has_older(&self, request: u64) -> bool {
        let mut all = self.oldest.iter();
        all.any(|oldest| oldest.load(Ordering::SeqCst) < request)
    }
}

#[cfg(test)]
#[path = "memory_line_test.rs"]
mod tests;
