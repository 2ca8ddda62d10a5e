//! Statistics of a column's values, from which its mode is chosen.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnStats {
    pub first: u64,
    pub min: i64,
    pub max: i64,
    pub unsigned_max: u64,
    /// The minimum of the values that are not 0, minus 1; all bits are set if there is none.
    pub below_nonzero: u64,
    /// The bits in which values differ.
    pub varying: u64,
    pub min_step: i64,
    pub max_step: i64,
    /// Number of values that equal the one before.
    pub repeats: usize,
}

impl ColumnStats {
    /// Computes the statistics of `values`, which must not be empty.
    #[inline(always)]
    pub fn of(values: &[u64]) -> Self {
        let first = values[0];
        let (mut min, mut max, mut unsigned_max) = (i64::MAX, i64::MIN, 0);
        let (mut below_nonzero, mut varying) = (u64::MAX, 0);
        for &value in values {
            min = min.min(value as i64);
            max = max.max(value as i64);
            unsigned_max = unsigned_max.max(value);
            below_nonzero = below_nonzero.min(value.wrapping_sub(1));
            varying |= value ^ first;
        }
        let (mut min_step, mut max_step, mut repeats) = (i64::MAX, i64::MIN, 0_u64);
        for (before, value) in values.iter().zip(&values[1..]) {
            let step = value.wrapping_sub(*before) as i64;
            min_step = min_step.min(step);
            max_step = max_step.max(step);
            repeats += u64::from(step == 0);
        }
        let repeats = repeats as usize;
        Self {
            first,
            min,
            max,
            unsigned_max,
            below_nonzero,
            varying,
            min_step,
            max_step,
            repeats,
        }
    }

    /// Returns the mask of codes; all bits are set if more than 56 vary.
    pub fn mask(&self) -> u64 {
        if self.varying.count_ones() > 56 {
            u64::MAX
        } else {
            self.varying
        }
    }
}
