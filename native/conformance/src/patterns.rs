//! Bytes that can be checked, and numbers that can be repeated.

use std::fmt::Debug;

/// Fills bytes with a pattern whose period is no power of two.
pub fn fill(bytes: &mut [u8], seed: u8) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (at % 251) as u8 ^ seed;
    }
}

/// Checks that the bytes are the pattern of `seed`.
pub fn assert_filled(bytes: &[u8], seed: u8, what: impl Debug) {
    let mut expected = vec![0; bytes.len()];
    fill(&mut expected, seed);
    if bytes != expected {
        let at = bytes.iter().zip(&expected).position(|(a, b)| a != b);
        panic!("{what:?}: differs from pattern {seed:#04x} at {at:?}");
    }
}

/// Seeded dice (xorshift64*), so that a failed run can be repeated.
pub struct Xorshift(u64);

impl Xorshift {
    /// Returns dice that repeat for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Returns the next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    /// Returns random bytes, `length` of them.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.roll() as u8).collect()
    }
}
