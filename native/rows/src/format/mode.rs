//! The modes in which a column's values are packed.

use super::bits::width;

/// The mode of a column. Each kind of column allows all modes up to one of them, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ColumnMode {
    Mask,
    For,
    ForZ,
    Delta,
    Dict,
    Runs,
    Text,
    Wide,
}

impl ColumnMode {
    /// The highest mode of a dictionary's entries.
    pub const OF_ENTRIES: Self = Self::Delta;
    /// The highest mode of the values of runs.
    pub const OF_RUNS: Self = Self::Dict;
    /// The highest mode of row lengths and of the lengths of texts.
    pub const OF_LENGTHS: Self = Self::Runs;
    /// The highest mode of a column of words.
    pub const OF_WORDS: Self = Self::Wide;

    /// Returns the first byte of a column whose base has `base_bytes` bytes.
    pub fn first_byte(self, base_bytes: usize) -> u8 {
        self as u8 | (base_bytes as u8) << 4
    }
}

/// In bits.
pub(crate) fn dictionary_width(entries: usize) -> u32 {
    width(super::bits::bits(entries as u64 - 1))
}

/// Returns the bytes that a TEXT value takes in its row: whole words.
pub(crate) fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(8)
}

/// Bytes that each WIDE value takes in its row.
pub(crate) const WIDE_BYTES: u64 = 16;
