//! Native memory of this process that is in no endpoint's arena, by its use. The counters are the process's, because
//! readers and writers have no endpoint of their own.
//!
//! Each use is counted by [`HeldBytes`] guards, so that a figure falls with the memory that it counts, on every path.

use std::sync::atomic::{AtomicU64, Ordering};

/// The holder of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryUse {
    /// Decoders of readers that are open.
    RowDecoders,
    /// Compressors of map tasks: zstd's contexts.
    Compressors,
}

impl MemoryUse {
    const ALL: [Self; 2] = [Self::RowDecoders, Self::Compressors];

    /// Returns the counter's name in Spark's metrics system.
    const fn counter(self) -> &'static str {
        match self {
            Self::RowDecoders => "memory.rowDecoderBytes",
            Self::Compressors => "memory.compressorBytes",
        }
    }
}

/// The counters. Relaxed: they order nothing.
struct MemoryCounts {
    /// Bytes that are in use now, by use.
    now: [AtomicU64; MemoryUse::ALL.len()],
    all: AtomicU64,
    max: AtomicU64,
}

static COUNTS: MemoryCounts = MemoryCounts::new();

impl MemoryCounts {
    const fn new() -> Self {
        Self {
            now: [const { AtomicU64::new(0) }; MemoryUse::ALL.len()],
            all: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }

    fn of(&self, of: MemoryUse) -> &AtomicU64 {
        &self.now[of as usize]
    }

    fn add(&self, to: MemoryUse, bytes: u64) {
        self.of(to).fetch_add(bytes, Ordering::Relaxed);
        let all = self.all.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.max.fetch_max(all, Ordering::Relaxed);
    }

    fn take(&self, from: MemoryUse, bytes: u64) {
        self.of(from).fetch_sub(bytes, Ordering::Relaxed);
        self.all.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn list(&self) -> Vec<(&'static str, u64)> {
        let now = |of: MemoryUse| (of.counter(), self.of(of).load(Ordering::Relaxed));
        let mut all: Vec<_> = MemoryUse::ALL.into_iter().map(now).collect();
        let max = self.max.load(Ordering::Relaxed);
        all.push(("memory.tasksHighWaterBytes", max));
        all
    }
}

/// Bytes of one owner that are counted as long as this lives.
#[derive(Debug)]
pub struct HeldBytes {
    held_as: MemoryUse,
    bytes: u64,
}

impl HeldBytes {
    /// Counts `bytes` from now on.
    pub fn new(held_as: MemoryUse, bytes: usize) -> Self {
        let bytes = bytes as u64;
        COUNTS.add(held_as, bytes);
        Self { held_as, bytes }
    }

    /// Sets the number of bytes that the owner has.
    pub fn set(&mut self, bytes: usize) {
        let (before, now) = (self.bytes, bytes as u64);
        match now.checked_sub(before) {
            Some(more) if more > 0 => COUNTS.add(self.held_as, more),
            Some(_) => {}
            None => COUNTS.take(self.held_as, before - now),
        }
        self.bytes = now;
    }

    /// Returns the bytes that are counted.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        COUNTS.take(self.held_as, self.bytes);
    }
}

/// Returns all figures by the names that Spark's metrics system shows.
pub fn counters() -> Vec<(&'static str, u64)> {
    COUNTS.list()
}

/// Returns the bytes that are counted for a use, for tests.
#[cfg(test)]
pub fn now(of: MemoryUse) -> u64 {
    COUNTS.of(of).load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(counts: &MemoryCounts) -> Vec<u64> {
        counts.list().into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn figures_follow_what_is_added_and_taken_and_the_most_stays() {
        let counts = MemoryCounts::new();
        counts.add(MemoryUse::RowDecoders, 100);
        counts.add(MemoryUse::Compressors, 20);
        assert_eq!(figures(&counts), [100, 20, 120]);
        counts.take(MemoryUse::RowDecoders, 100);
        assert_eq!(figures(&counts), [0, 20, 120]);
    }

    #[test]
    fn a_guard_counts_until_it_is_dropped() {
        // Other tests of this process change the counters too, so only the difference is checked.
        let mut held = HeldBytes::new(MemoryUse::Compressors, 1 << 40);
        let with = now(MemoryUse::Compressors);
        assert!(with >= 1 << 40);
        held.set(3 << 40);
        assert!(now(MemoryUse::Compressors) >= 3 << 40);
        held.set(2 << 40);
        assert_eq!(held.bytes(), 2 << 40);
        drop(held);
        assert!(now(MemoryUse::Compressors) < 1 << 40);
    }

    #[test]
    fn each_use_has_a_name_of_its_own() {
        let mut names: Vec<_> = counters().into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), MemoryUse::ALL.len() + 1);
    }
}
