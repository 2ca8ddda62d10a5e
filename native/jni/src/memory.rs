//! Native memory of this process that is in no endpoint's arena, by its use. The counters are the process's, because
//! readers and writers have no endpoint of their own.
//!
//! Each use is counted by [`Held`] guards, so that a figure falls with the memory that it counts, on every path.

use std::sync::atomic::{AtomicU64, Ordering};

/// The holder of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Decoders of readers that are open.
    RowDecoders,
    /// Compressors of map tasks: zstd's contexts.
    Compressors,
}

impl Use {
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
struct Counts {
    /// By use.
    now: [AtomicU64; Use::ALL.len()],
    all: AtomicU64,
    most: AtomicU64,
}

static COUNTS: Counts = Counts::new();

impl Counts {
    const fn new() -> Self {
        Self {
            now: [const { AtomicU64::new(0) }; Use::ALL.len()],
            all: AtomicU64::new(0),
            most: AtomicU64::new(0),
        }
    }

    fn of(&self, of: Use) -> &AtomicU64 {
        &self.now[of as usize]
    }

    fn add(&self, to: Use, bytes: u64) {
        self.of(to).fetch_add(bytes, Ordering::Relaxed);
        let all = self.all.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(all, Ordering::Relaxed);
    }

    fn take(&self, from: Use, bytes: u64) {
        self.of(from).fetch_sub(bytes, Ordering::Relaxed);
        self.all.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn list(&self) -> Vec<(&'static str, u64)> {
        let now = |of: Use| (of.counter(), self.of(of).load(Ordering::Relaxed));
        let mut all: Vec<_> = Use::ALL.into_iter().map(now).collect();
        let most = self.most.load(Ordering::Relaxed);
        all.push(("memory.tasksHighWaterBytes", most));
        all
    }
}

/// Bytes of one owner that are counted as long as this lives.
#[derive(Debug)]
pub struct Held {
    held_as: Use,
    bytes: u64,
}

impl Held {
    /// Counts `bytes` from now on.
    pub fn new(held_as: Use, bytes: usize) -> Self {
        let bytes = bytes as u64;
        COUNTS.add(held_as, bytes);
        Self { held_as, bytes }
    }

    /// The owner has so many bytes now.
    pub fn set(&mut self, bytes: usize) {
        let (before, now) = (self.bytes, bytes as u64);
        match now.checked_sub(before) {
            Some(more) if more > 0 => COUNTS.add(self.held_as, more),
            Some(_) => {}
            None => COUNTS.take(self.held_as, before - now),
        }
        self.bytes = now;
    }

    /// Bytes that are counted.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        COUNTS.take(self.held_as, self.bytes);
    }
}

/// All figures by the names that Spark's metrics system shows.
pub fn counters() -> Vec<(&'static str, u64)> {
    COUNTS.list()
}

/// Bytes that are counted for a use, for tests.
#[cfg(test)]
pub fn now(of: Use) -> u64 {
    COUNTS.of(of).load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(counts: &Counts) -> Vec<u64> {
        counts.list().into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn figures_follow_what_is_added_and_taken_and_the_most_stays() {
        let counts = Counts::new();
        counts.add(Use::RowDecoders, 100);
        counts.add(Use::Compressors, 20);
        assert_eq!(figures(&counts), [100, 20, 120]);
        counts.take(Use::RowDecoders, 100);
        assert_eq!(figures(&counts), [0, 20, 120]);
    }

    #[test]
    fn a_guard_counts_until_it_is_dropped() {
        // Other tests of this process count other uses, and this one's counters too: so the difference is looked at.
        let mut held = Held::new(Use::Compressors, 1 << 40);
        let with = now(Use::Compressors);
        assert!(with >= 1 << 40);
        held.set(3 << 40);
        assert!(now(Use::Compressors) >= 3 << 40);
        held.set(2 << 40);
        assert_eq!(held.bytes(), 2 << 40);
        drop(held);
        assert!(now(Use::Compressors) < 1 << 40);
    }

    #[test]
    fn each_use_has_a_name_of_its_own() {
        let mut names: Vec<_> = counters().into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Use::ALL.len() + 1);
    }
}
