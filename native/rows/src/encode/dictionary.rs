//! Finds the distinct values of a column that has few of them.

/// Maximum number of entries of a dictionary.
const MOST: usize = 255;
const SLOTS: usize = 1024;
/// A column whose sample has more distinct values than this is taken to have too many.
const MAX_SAMPLE_ENTRIES: usize = 14;
const SAMPLE: usize = 32;
/// Minimum number of values of a column with a dictionary.
pub(crate) const MIN_VALUES: usize = SAMPLE;

/// A hash table of the values found.
pub(crate) struct Dictionary {
    entries: Vec<u64>,
    /// The index of a value's entry plus 1; 0 marks a free slot.
    slots: Box<[u16; SLOTS]>,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self {
            entries: Vec::with_capacity(MOST),
            slots: Box::new([0; SLOTS]),
        }
    }
}

impl Dictionary {
    /// Writes each value's code. Returns false if there are too many distinct values for a
    /// dictionary. `values` must have [`MIN_VALUES`] or more.
    pub fn code(&mut self, values: &[u64], codes: &mut [u64]) -> bool {
        debug_assert!(values.len() >= MIN_VALUES && values.len() == codes.len());
        self.entries.clear();
        self.slots.fill(0);
        let sample = values.iter().step_by(values.len() / SAMPLE).take(SAMPLE);
        if !sample.copied().all(|value| self.entry(value).is_some()) {
            return false;
        }
        if self.entries.len() > MAX_SAMPLE_ENTRIES {
            return false;
        }
        let max = MOST.min(values.len() / 2);
        for (value, code) in values.iter().zip(codes) {
            match self.entry(*value) {
                Some(entry) if entry < max => *code = entry as u64,
                _ => return false,
            }
        }
        true
    }

    pub fn entries(&self) -> &[u64] {
        &self.entries
    }

    #[inline(always)]
    fn entry(&mut self, value: u64) -> Option<usize> {
        // The multiplier of Fibonacci hashing: 2^64 divided by the golden ratio.
        let mut slot = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize;
        loop {
            let taken = &mut self.slots[slot % SLOTS];
            if *taken == 0 {
                if self.entries.len() == MOST {
                    return None;
                }
                self.entries.push(value);
                *taken = self.entries.len() as u16;
                return Some(self.entries.len() - 1);
            }
            let entry = usize::from(*taken) - 1;
            if self.entries[entry] == value {
                return Some(entry);
            }
            slot += 1;
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<u64>() + size_of::<[u16; SLOTS]>()
    }
}

/// Decides whether a dictionary is tried for a column: the pause grows with each failed try.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tries {
    left: u8,
    next: u8,
}

impl Tries {
    const LONGEST: u8 = 31;

    pub fn is_due(&mut self) -> bool {
        let due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        due
    }

    pub fn tell(&mut self, succeeded: bool) {
        self.next = match succeeded {
            true => 0,
            false => (2 * self.next + 1).min(Self::LONGEST),
        };
        self.left = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_places_of_entries() {
        let values: Vec<u64> = (0..600_u64).map(|at| ((at * at) % 13) << 50).collect();
        let mut codes = vec![0; values.len()];
        let mut dictionary = Dictionary::default();
        assert!(dictionary.code(&values, &mut codes));
        for (value, code) in values.iter().zip(&codes) {
            assert_eq!(dictionary.entries()[*code as usize], *value);
        }
        let many: Vec<u64> = (0..600).collect();
        assert!(!dictionary.code(&many, &mut codes));
        // Few distinct values in the sample, too many after it.
        let late: Vec<u64> = (0..4096)
            .map(|at| if at % 128 == 0 { 0 } else { at })
            .collect();
        assert!(!dictionary.code(&late, &mut vec![0; 4096]));
    }

    #[test]
    fn tries_become_rare_while_they_fail() {
        let mut tries = Tries::default();
        let mut made = 0;
        for _ in 0..100 {
            if tries.is_due() {
                tries.tell(false);
                made += 1;
            }
        }
        assert_eq!(made, 7);
        while !tries.is_due() {}
        tries.tell(true);
        assert!(tries.is_due());
    }
}
