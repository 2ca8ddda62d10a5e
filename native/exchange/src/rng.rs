//! SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), the only source of randomness.
//!
//! It takes eight lines in any language with 64-bit wrapping integers. Three rules make a port
//! exact:
//! - `next`: add 0x9E3779B97F4A7C15 to the state, then mix it (constants below).
//! - `below(n)`, n < 2^31: the upper 32 bits of `next`, times n, shifted right by 32. The product
//!   fits in a signed 64-bit integer. Nothing is rejected: the bias is below n / 2^32, and each
//!   call draws exactly one value.
//! - `shuffle`: Fisher-Yates from the last index i down to 1, swapping i with `below(i + 1)`.

/// A deterministic generator: the same seed yields the same values everywhere.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub fn new(seed: u64) -> Self {
        SplitMix64 { state: seed }
    }

    /// Returns an independent generator for item `index` of `seed`. Its seed is the first value of
    /// `seed` xor the first value of `index`.
    pub fn stream(seed: u64, index: u64) -> Self {
        let a = SplitMix64::new(seed).next();
        let b = SplitMix64::new(index).next();
        SplitMix64::new(a ^ b)
    }

    // This is not an iterator, because it never ends.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a value below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        debug_assert!(n < 1 << 31);
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_of_seed_zero() {
        let mut r = SplitMix64::new(0);
        assert_eq!(r.next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(r.next(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut r = SplitMix64::new(3);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[r.below(7) as usize] = true;
        }
        assert_eq!(seen, [true; 7]);
        assert_eq!(r.below(1), 0);
    }

    #[test]
    fn shuffle_permutes() {
        let mut items: Vec<u32> = (0..100).collect();
        SplitMix64::new(1).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
