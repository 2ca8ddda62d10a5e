//! Sorts entries of two words in their place, in steps of a bounded length (see [`crate::radix`]): segments
//! are partitioned as by quicksort (Hoare, 1961) until they are short, and then sorted in one go.

use crate::error::SortError;
use crate::progress::SortProgress;
use std::iter;
use std::ops::Range;
use zerocopy::{FromBytes, IntoBytes};

/// Entries of a segment that is sorted in one go, in about 10 ms.
const SHORT: usize = 1 << 18;
/// To sort a short segment takes the time in which this many times its entries are partitioned.
const SORT_COST: usize = 4;
/// Entries whose median is the pivot: it parts nearly in halves.
const SAMPLE: usize = 127;

/// An entry of two words, the highest first.
pub type WideEntry = [u64; 2];

/// Returns the entries that words are. Fails if the last one is not whole.
pub fn wide_entries(words: &mut [u64]) -> Result<&mut [WideEntry], SortError> {
    let found = words.len();
    let needed = found.next_multiple_of(2);
    <[WideEntry]>::mut_from_bytes(words.as_mut_bytes())
        .map_err(|_| SortError::Room { found, needed })
}

#[inline]
fn number(entry: &WideEntry) -> u128 {
    u128::from(entry[0]) << 64 | u128::from(entry[1])
}

/// A sort that is under way. Entries differ, as the positions in them do.
#[derive(Debug)]
pub struct QuickSort {
    short: usize,
    /// Segments that are still to be sorted. The last one is the smaller part of what was one with those
    /// below it, so there are at most as many as an entry count has bits.
    segments: Vec<Range<usize>>,
    partition: Option<Partition>,
    /// The generator of samples. No order of rows goes with it.
    state: u64,
}

/// A segment of which entries up to `next` are parted: those before `place` are below the pivot.
#[derive(Debug)]
struct Partition {
    segment: Range<usize>,
    pivot: u128,
    place: usize,
    next: usize,
}

impl QuickSort {
    pub fn new(entries: usize) -> Self {
        Self::with_short(entries, SHORT)
    }

    fn with_short(entries: usize, short: usize) -> Self {
        Self {
            short,
            segments: iter::once(0..entries).collect(),
            partition: None,
            state: 0,
        }
    }

    /// Takes about `budget` entries, and at least a short segment, one step further.
    pub fn step(&mut self, entries: &mut [WideEntry], mut budget: usize) -> SortProgress {
        while budget > 0 {
            if let Some(partition) = &mut self.partition {
                budget -= partition.step(entries, budget);
                if partition.next == partition.segment.end {
                    self.parted();
                }
                continue;
            }
            let Some(segment) = self.segments.pop() else {
                return SortProgress::InFirst;
            };
            if segment.len() <= self.short {
                budget = budget.saturating_sub(segment.len() * SORT_COST);
                entries[segment].sort_unstable_by_key(number);
            } else {
                let pivot = self.pivot(&entries[segment.clone()]);
                self.partition = Some(Partition {
                    pivot,
                    place: segment.start,
                    next: segment.start,
                    segment,
                });
            }
        }
        match (&self.partition, self.segments.is_empty()) {
            (None, true) => SortProgress::InFirst,
            _ => SortProgress::More,
        }
    }

    /// The larger part waits below.
    fn parted(&mut self) {
        if let Some(Partition { segment, place, .. }) = self.partition.take() {
            debug_assert!(place > segment.start, "entries differ");
            let (low, high) = (segment.start..place, place..segment.end);
            let (large, small) = match low.len() > high.len() {
                true => (low, high),
                false => (high, low),
            };
            self.segments.extend([large, small]);
        }
    }

    /// Returns an entry above the least one, so that neither part is empty.
    fn pivot(&mut self, segment: &[WideEntry]) -> u128 {
        let mut sample = [0; SAMPLE];
        for entry in &mut sample {
            *entry = number(&segment[self.random(segment.len())]);
        }
        sample.sort_unstable();
        let middle = sample[SAMPLE / 2];
        // A place may have been drawn again, then the least entry is there more than once.
        match sample[0] < middle {
            true => middle,
            false => number(&segment[0]).max(number(&segment[1])),
        }
    }

    /// SplitMix64 (Steele, Lea, Flood, 2014), below `end`.
    fn random(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(x ^ x >> 31) * end as u128) >> 64) as usize
    }
}

impl Partition {
    /// Parts up to `budget` more entries, and returns how many (Lomuto's scheme, without branches).
    fn step(&mut self, entries: &mut [WideEntry], budget: usize) -> usize {
        let segment = &mut entries[..self.segment.end];
        let end = segment.len().min(self.next + budget);
        let mut place = self.place;
        for next in self.next..end {
            segment.swap(next, place);
            place += usize::from(number(&segment[place]) < self.pivot);
        }
        let parted = end - self.next;
        (self.place, self.next) = (place, end);
        parted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without an order; the same ones each time.
    fn scattered(count: usize) -> Vec<WideEntry> {
        let mix = |x: u64| x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        (0..count as u64)
            .map(|at| [mix(at) % 5, mix(at + 7)])
            .collect()
    }

    fn orders(count: usize) -> [Vec<WideEntry>; 4] {
        let scattered = scattered(count);
        let mut rising = scattered.clone();
        rising.sort();
        let falling = rising.iter().rev().copied().collect();
        // As the outputs of two map tasks that are in order.
        let mut halves = rising.clone();
        halves.rotate_left(count / 3);
        [scattered, rising, falling, halves]
    }

    #[test]
    fn entries_of_any_order_are_sorted_in_steps_of_any_length() {
        for count in [0, 1, 2, 3, 7, 63, 64, 65, 200, 1_000] {
            for mut entries in orders(count) {
                let mut expected = entries.clone();
                expected.sort();
                for (short, budget) in [(1, 1), (1, 64), (2, 5), (8, 10_000), (100, 7)] {
                    let mut sort = QuickSort::with_short(count, short);
                    let mut segments = 0;
                    while sort.step(&mut entries, budget) == SortProgress::More {
                        segments = segments.max(sort.segments.len());
                    }
                    assert_eq!(entries, expected, "{count}, short {short}, by {budget}");
                    assert!(segments <= 12, "{segments} segments wait of {count}");
                }
            }
        }
    }

    #[test]
    fn a_step_is_bounded_and_parts_are_nearly_halves() {
        for mut entries in orders(100_000) {
            let mut sort = QuickSort::with_short(entries.len(), 1_000);
            let mut steps = 1;
            while sort.step(&mut entries, 1_000) == SortProgress::More {
                steps += 1;
            }
            // About seven partitions of all entries, and a step for each of 128 short segments.
            assert!((800..=1_000).contains(&steps), "{steps} steps");
        }
    }
}
