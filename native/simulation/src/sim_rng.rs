//! Random numbers from a seed. SplitMix64 is small, fast and the same everywhere.

use std::ops::Range;
use std::time::Duration;

/// A sequence of random numbers.
#[derive(Debug, Clone)]
pub struct SimRng(u64);

impl SimRng {
    /// Returns the sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in the range, which must not be empty.
    pub fn number(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// Returns a position in something of that length, which must not be zero.
    pub fn place(&mut self, length: usize) -> usize {
        (self.next() % length as u64) as usize
    }

    /// Returns one of the choices, which must not be empty.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.place(choices.len())]
    }

    /// Returns true with a probability of `of_1000` in 1,000.
    pub fn chance(&mut self, of_1000: u64) -> bool {
        self.next() % 1_000 < of_1000
    }

    /// Returns a time in the range, which must not be empty.
    pub fn time(&mut self, range: Range<Duration>) -> Duration {
        let nanos = range.start.as_nanos() as u64..range.end.as_nanos() as u64;
        Duration::from_nanos(self.number(nanos))
    }
}
