//! Sorts entries of one word by their keys: from the lowest digit on, stably, in steps of a bounded
//! length. So the caller, who keeps an array of Java's in its place during a step, can let others run in
//! between.

use crate::progress::SortProgress;

/// Entries up to which a comparison sort takes less time.
const FEW: usize = 1 << 12;
/// A digit's largest number of bits: its counters fit into the first cache.
const MAX_DIGIT_BITS: u32 = 11;

/// A sort that is under way.
#[derive(Debug)]
pub struct RadixSort {
    /// Bits below the key, which are in order already.
    shift: u32,
    end: u32,
    digit_bits: u32,
    counts: Vec<u32>,
    phase: DigitPhase,
    /// The entries are in the second of the two arrays.
    in_second: bool,
}

#[derive(Debug, Clone, Copy)]
enum DigitPhase {
    Count { done: usize },
    Move { done: usize },
    Done,
}

impl RadixSort {
    /// Sorts by the `bits` bits above the lowest `shift` ones.
    pub fn new(shift: u32, bits: u32) -> Self {
        let digits = bits.div_ceil(MAX_DIGIT_BITS).max(1);
        let digit_bits = bits.div_ceil(digits);
        Self {
            shift,
            end: shift + bits,
            digit_bits,
            counts: vec![0; 1 << digit_bits],
            phase: if bits == 0 {
                DigitPhase::Done
            } else {
                DigitPhase::Count { done: 0 }
            },
            in_second: false,
        }
    }

    /// Takes about `budget` entries one step further. Both arrays have the same length.
    pub fn step(&mut self, first: &mut [u64], second: &mut [u64], budget: usize) -> SortProgress {
        if first.len() <= FEW && !self.in_second {
            // Entries differ, as the positions in them do.
            first.sort_unstable();
            self.phase = DigitPhase::Done;
        }
        let (from, to) = match self.in_second {
            false => (first, second),
            true => (second, first),
        };
        self.digits(from, to, budget);
        SortProgress::of(matches!(self.phase, DigitPhase::Done), self.in_second)
    }

    /// Ends at the latest when all entries have moved, as the arrays change their roles then.
    fn digits(&mut self, from: &[u64], to: &mut [u64], budget: usize) {
        let mut left = budget;
        while left > 0 {
            match self.phase {
                DigitPhase::Done => return,
                DigitPhase::Count { done } => {
                    let end = from.len().min(done + left);
                    let mask = self.mask();
                    for entry in &from[done..end] {
                        self.counts[(entry >> self.shift & mask) as usize] += 1;
                    }
                    left -= end - done;
                    self.phase = match end == from.len() {
                        false => DigitPhase::Count { done: end },
                        true => self.counted(from.len()),
                    };
                }
                DigitPhase::Move { done } => {
                    let end = from.len().min(done + left);
                    let mask = self.mask();
                    for entry in &from[done..end] {
                        let place = &mut self.counts[(entry >> self.shift & mask) as usize];
                        to[*place as usize] = *entry;
                        *place += 1;
                    }
                    left -= end - done;
                    if end < from.len() {
                        self.phase = DigitPhase::Move { done: end };
                        continue;
                    }
                    self.in_second = !self.in_second;
                    self.next_digit();
                    return;
                }
            }
        }
    }

    fn mask(&self) -> u64 {
        let bits = self.digit_bits.min(self.end - self.shift);
        (1 << bits) - 1
    }

    /// Makes places of the counts. A digit that is the same everywhere moves nothing.
    fn counted(&mut self, entries: usize) -> DigitPhase {
        if self.counts.iter().any(|&count| count as usize == entries) {
            self.next_digit();
            return self.phase;
        }
        let mut place = 0;
        for count in &mut self.counts {
            place += std::mem::replace(count, place);
        }
        DigitPhase::Move { done: 0 }
    }

    fn next_digit(&mut self) {
        self.counts.fill(0);
        self.shift += self.digit_bits;
        self.phase = if self.shift >= self.end {
            DigitPhase::Done
        } else {
            DigitPhase::Count { done: 0 }
        };
    }
}
