//! Sorts entries of two words: runs of entries by comparisons, then merges of runs, in steps of a bounded
//! length (see [`crate::radix`]).

use crate::progress::SortProgress;
use zerocopy::{FromBytes, IntoBytes};

/// To sort a run takes the time in which this many times its entries are merged.
const RUN_COST: usize = 4;

/// An entry of two words, the highest first.
pub type WideEntry = [u64; 2];

/// Returns the entries that words are; `None` if the last one is not whole.
pub fn wide_entries(words: &mut [u64]) -> Option<&mut [WideEntry]> {
    <[WideEntry]>::mut_from_bytes(words.as_mut_bytes()).ok()
}

#[inline]
fn number(entry: &WideEntry) -> u128 {
    u128::from(entry[0]) << 64 | u128::from(entry[1])
}

/// A sort that is under way.
#[derive(Debug)]
pub struct MergeSort {
    /// Entries of a run, but for the last one.
    run: usize,
    phase: MergePhase,
    /// The entries are in the second of the two arrays.
    in_second: bool,
}

#[derive(Debug, Clone, Copy)]
enum MergePhase {
    Runs {
        done: usize,
    },
    /// Two runs, which begin at `start`, are merged; `left` and `right` are what comes next of each.
    Merge {
        start: usize,
        left: usize,
        right: usize,
    },
    Done,
}

impl MergeSort {
    /// Sorts runs of `run` entries at a time.
    pub fn new(run: usize) -> Self {
        Self {
            run,
            phase: MergePhase::Runs { done: 0 },
            in_second: false,
        }
    }

    /// Takes about `budget` entries, and at least a run, one step further. Both arrays have the same length.
    pub fn step(
        &mut self,
        first: &mut [WideEntry],
        second: &mut [WideEntry],
        budget: usize,
    ) -> SortProgress {
        match self.phase {
            MergePhase::Runs { done } => self.sort_runs(first, done, budget),
            MergePhase::Merge { start, left, right } => {
                let (from, to) = match self.in_second {
                    false => (&*first, second),
                    true => (&*second, first),
                };
                self.merge(from, to, [start, left, right], budget);
            }
            MergePhase::Done => {}
        }
        SortProgress::of(matches!(self.phase, MergePhase::Done), self.in_second)
    }

    fn sort_runs(&mut self, entries: &mut [WideEntry], mut done: usize, budget: usize) {
        let mut left = budget;
        loop {
            let end = entries.len().min(done + self.run);
            // Entries differ, as the positions in them do.
            entries[done..end].sort_unstable_by_key(number);
            left = left.saturating_sub((end - done) * RUN_COST);
            done = end;
            if done == entries.len() {
                return self.next_merge(entries.len());
            }
            if left == 0 {
                self.phase = MergePhase::Runs { done };
                return;
            }
        }
    }

    /// Ends at the latest when all entries have moved, as the arrays change their roles then.
    fn merge(
        &mut self,
        from: &[WideEntry],
        to: &mut [WideEntry],
        [mut start, mut left, mut right]: [usize; 3],
        mut budget: usize,
    ) {
        while budget > 0 {
            let middle = from.len().min(start + self.run);
            let end = from.len().min(middle + self.run);
            // Where the next entry goes to: the second run begins at `middle`.
            let mut place = left + right - middle;
            let stop = end.min(place + budget);
            budget -= stop - place;
            while place < stop && left < middle && right < end {
                let takes_left = number(&from[left]) < number(&from[right]);
                to[place] = from[if takes_left { left } else { right }];
                left += usize::from(takes_left);
                right += usize::from(!takes_left);
                place += 1;
            }
            let rest = stop - place;
            if left < middle {
                to[place..stop].copy_from_slice(&from[left..left + rest]);
                left += rest;
            } else {
                to[place..stop].copy_from_slice(&from[right..right + rest]);
                right += rest;
            }
            if stop == end {
                if end == from.len() {
                    self.run *= 2;
                    self.in_second = !self.in_second;
                    return self.next_merge(from.len());
                }
                (start, left) = (end, end);
                right = from.len().min(end + self.run);
            }
        }
        self.phase = MergePhase::Merge { start, left, right };
    }

    fn next_merge(&mut self, entries: usize) {
        self.phase = match self.run < entries {
            true => MergePhase::Merge {
                start: 0,
                left: 0,
                right: self.run,
            },
            false => MergePhase::Done,
        };
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

    #[test]
    fn runs_of_any_length_are_merged_in_steps_of_any_length() {
        for count in [0, 1, 2, 7, 63, 64, 65, 200] {
            for run in [1, 2, 3, 8, 100, 200] {
                for budget in [1, 5, 64, 10_000] {
                    let mut first = scattered(count);
                    let mut second = first.clone();
                    let mut expected = first.clone();
                    expected.sort();
                    let mut sort = MergeSort::new(run);
                    let sorted = loop {
                        match sort.step(&mut first, &mut second, budget) {
                            SortProgress::More => {}
                            SortProgress::InFirst => break &first,
                            SortProgress::InSecond => break &second,
                        }
                    };
                    assert_eq!(sorted, &expected, "{count} in runs of {run} by {budget}");
                }
            }
        }
    }

    #[test]
    fn a_step_is_bounded() {
        let mut first = scattered(1_000);
        let mut second = first.clone();
        let mut sort = MergeSort::new(10);
        let mut steps = 0;
        while sort.step(&mut first, &mut second, 100) == SortProgress::More {
            steps += 1;
        }
        // 1,000 entries in runs, at four times their number, and seven merges of them.
        assert!((100..=110).contains(&steps), "{steps} steps");
    }
}
