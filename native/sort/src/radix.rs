//! Sorts entries by their keys: from the lowest digit on, stably, in steps of a bounded length. So the
//! caller, who keeps an array of Java's in its place during a step, can let others run in between.

use zerocopy::{FromBytes, IntoBytes};

/// Entries up to which a comparison sort takes less time.
const FEW: usize = 1 << 12;
/// A digit's largest number of bits: its counters fit into the first cache.
const MAX_DIGIT_BITS: u32 = 11;

/// An entry as it is stored: its words, the highest first.
pub trait StoredEntry: Copy {
    type Number: Ord;
    /// Returns the entries that words are; `None` if the last one is not whole.
    fn of_words(words: &mut [u64]) -> Option<&mut [Self]>;
    fn number(self) -> Self::Number;
    fn digit(self, shift: u32, mask: u64) -> usize;
}

impl StoredEntry for [u64; 1] {
    type Number = u64;

    fn of_words(words: &mut [u64]) -> Option<&mut [Self]> {
        <[Self]>::mut_from_bytes(words.as_mut_bytes()).ok()
    }

    #[inline]
    fn number(self) -> u64 {
        self[0]
    }

    #[inline]
    fn digit(self, shift: u32, mask: u64) -> usize {
        (self[0] >> shift & mask) as usize
    }
}

impl StoredEntry for [u64; 2] {
    type Number = u128;

    fn of_words(words: &mut [u64]) -> Option<&mut [Self]> {
        <[Self]>::mut_from_bytes(words.as_mut_bytes()).ok()
    }

    #[inline]
    fn number(self) -> u128 {
        u128::from(self[0]) << 64 | u128::from(self[1])
    }

    #[inline]
    fn digit(self, shift: u32, mask: u64) -> usize {
        ((self.number() >> shift) as u64 & mask) as usize
    }
}

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

    /// Nothing is to be done.
    pub fn finish(&mut self) {
        self.phase = DigitPhase::Done;
    }

    pub fn is_done(&self) -> bool {
        matches!(self.phase, DigitPhase::Done)
    }

    pub fn is_in_second(&self) -> bool {
        self.in_second
    }

    /// Takes about `budget` entries one step further. Both arrays have the same length.
    pub fn step<E: StoredEntry>(&mut self, first: &mut [E], second: &mut [E], budget: usize) {
        if first.len() <= FEW && !self.is_done() && !self.in_second {
            // Numbers differ, as the positions in them do: any order of equal ones would do.
            first.sort_unstable_by_key(|entry| entry.number());
            return self.finish();
        }
        let (from, to) = match self.in_second {
            false => (first, second),
            true => (second, first),
        };
        let mut left = budget;
        while left > 0 {
            match self.phase {
                DigitPhase::Done => return,
                DigitPhase::Count { done } => {
                    let end = from.len().min(done + left);
                    let mask = self.mask();
                    for entry in &from[done..end] {
                        self.counts[entry.digit(self.shift, mask)] += 1;
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
                        let place = &mut self.counts[entry.digit(self.shift, mask)];
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
                    // The arrays change their roles with the next step.
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
