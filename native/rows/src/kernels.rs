//! The loops over a column's values. Each is compiled twice, portably and for AVX2 and BMI2, and
//! chosen at run time.

use crate::format::bits;
use crate::format::stats::ColumnStats;

/// The chosen loops. The field is private, so that only [`Kernels::detect`] chooses AVX2, if the
/// processor has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kernels(SimdLevel);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SimdLevel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

/// Defines a loop in its portable form and in its form for AVX2.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?, $body:path) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(self, $($arg: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            #[allow(unsafe_code, reason = "its callers must have checked the processor")]
            // SAFETY: the caller must have found the features that are named above in this processor.
            unsafe fn avx2($($arg: $type),*) $(-> $result)? {
                $body($($arg),*)
            }
            match self.0 {
                SimdLevel::Portable => $body($($arg),*),
                // SAFETY: `detect` alone makes this level, where the processor has these features.
                #[cfg(target_arch = "x86_64")]
                #[allow(unsafe_code, reason = "vector code")]
                SimdLevel::Avx2 => unsafe { avx2($($arg),*) },
            }
        }
    };
}

impl Kernels {
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("lzcnt")
            && std::is_x86_feature_detected!("popcnt")
        {
            return Self(SimdLevel::Avx2);
        }
        Self::portable()
    }

    pub fn portable() -> Self {
        Self(SimdLevel::Portable)
    }

    kernel!(
        /// Computes the statistics of `values`, which must not be empty.
        stats(values: &[u64]) -> ColumnStats, ColumnStats::of
    );
    kernel!(pack(codes: &[u64], width: u32, out: &mut [u8]), bits::pack);
    kernel!(unpack(bytes: &[u8], width: u32, values: &mut [u64]), bits::unpack);
    kernel!(
        /// Adds a base to all values.
        add(values: &mut [u64], base: u64), add
    );
    kernel!(
        /// Adds a base to all values that are not 0.
        add_to_nonzero(values: &mut [u64], base: u64), add_to_nonzero
    );
    kernel!(
        /// Extracts the bits of the mask from each value, the lowest first.
        extract(values: &mut [u64], mask: u64), extract
    );
    kernel!(
        /// Deposits the bits of each code at the bits of the mask, and sets the base's bits.
        deposit(values: &mut [u64], mask: u64, base: u64), deposit
    );
}

#[inline(always)]
fn add(values: &mut [u64], base: u64) {
    for value in values {
        *value = value.wrapping_add(base);
    }
}

#[inline(always)]
fn add_to_nonzero(values: &mut [u64], base: u64) {
    for value in values {
        let there = u64::from(*value != 0);
        *value = value.wrapping_add(base & there.wrapping_neg());
    }
}

/// A run of bits of a mask. `mask` selects them in the code; their place in the value is `up` bits
/// higher.
#[derive(Clone, Copy, Default)]
struct BitRun {
    mask: u64,
    up: u32,
}

/// Returns the runs of bits of a mask and their number, at most 32.
#[inline(always)]
fn runs(mask: u64) -> ([BitRun; 32], usize) {
    let (mut runs, mut count) = ([BitRun::default(); 32], 0);
    let (mut place, mut code) = (0, 0);
    while place < 64 && mask >> place != 0 {
        place += (mask >> place).trailing_zeros();
        let length = (mask >> place).trailing_ones();
        runs[count] = BitRun {
            mask: (u64::MAX >> (64 - length)) << code,
            up: place - code,
        };
        count += 1;
        place += length;
        code += length;
    }
    (runs, count)
}

/// One or two runs have their own loops, which avoid a loop over the runs for each value.
#[inline(always)]
fn extract(values: &mut [u64], mask: u64) {
    let (runs, count) = runs(mask);
    match &runs[..count] {
        [a] => values.iter_mut().for_each(|v| *v = *v >> a.up & a.mask),
        [a, b] => values
            .iter_mut()
            .for_each(|v| *v = *v >> a.up & a.mask | *v >> b.up & b.mask),
        runs => values.iter_mut().for_each(|v| {
            *v = runs
                .iter()
                .fold(0, |code, run| code | *v >> run.up & run.mask);
        }),
    }
}

#[inline(always)]
fn deposit(values: &mut [u64], mask: u64, base: u64) {
    let (runs, count) = runs(mask);
    match &runs[..count] {
        [a] => values
            .iter_mut()
            .for_each(|v| *v = (*v & a.mask) << a.up | base),
        [a, b] => values
            .iter_mut()
            .for_each(|v| *v = (*v & a.mask) << a.up | (*v & b.mask) << b.up | base),
        runs => values.iter_mut().for_each(|v| {
            *v = runs
                .iter()
                .fold(base, |value, run| value | (*v & run.mask) << run.up);
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extract_and_deposit_of_any_mask() {
        let mut state = 7_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state ^ state >> 29
        };
        for round in 0..200 {
            let mask = match round {
                0 => u64::MAX,
                1 => 1 << 63,
                2 => 0x5555_5555_5555_5555,
                3 => 0xaaaa_aaaa_aaaa_aaaa,
                _ => next() & next(),
            };
            let base = next() & !mask;
            let values: Vec<u64> = (0..9).map(|_| next() & mask | base).collect();
            for kernels in [Kernels::portable(), Kernels::detect()] {
                let mut codes = values.clone();
                kernels.extract(&mut codes, mask);
                assert!(codes
                    .iter()
                    .all(|code| bits::bits(*code) <= mask.count_ones()));
                kernels.deposit(&mut codes, mask, base);
                assert_eq!(codes, values, "{mask:#x}");
                assert_eq!(kernels.stats(&values), ColumnStats::of(&values));
            }
        }
    }
}
