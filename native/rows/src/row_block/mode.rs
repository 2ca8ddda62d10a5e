//! How a column's values are packed.

use super::bits::width;
use super::fault::RowBlockFault;
use super::input::Input;

/// In the order of where they may stand: a column allows all modes up to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Mask,
    For,
    ForZ,
    Delta,
    Dict,
    Runs,
    Text,
    Wide,
}

impl Mode {
    /// The most that a dictionary's entries may have.
    pub const OF_ENTRIES: Self = Self::Delta;
    /// The most that the values of runs may have.
    pub const OF_RUNS: Self = Self::Dict;
    /// The most that row lengths, and the lengths of texts, may have.
    pub const OF_LENGTHS: Self = Self::Runs;
    /// The most that a column of words may have.
    pub const OF_WORDS: Self = Self::Wide;

    /// The first byte of a column, with a base of so many bytes.
    pub fn first_byte(self, base_bytes: usize) -> u8 {
        self as u8 | (base_bytes as u8) << 4
    }

    /// Takes a column's first byte: its mode, at most `max`, and the bytes of its base.
    pub fn take(input: &mut Input, max: Self) -> Result<(Self, usize), RowBlockFault> {
        let at = input.at();
        let found = input.byte()?;
        let mode = match found & 15 {
            0 => Self::Mask,
            1 => Self::For,
            2 => Self::ForZ,
            3 => Self::Delta,
            4 => Self::Dict,
            5 => Self::Runs,
            6 => Self::Text,
            7 => Self::Wide,
            _ => return Err(RowBlockFault::Mode { at, found }),
        };
        let base_bytes = usize::from(found >> 4);
        let max_base = if mode <= Self::Delta { 8 } else { 0 };
        if mode > max || base_bytes > max_base {
            return Err(RowBlockFault::Mode { at, found });
        }
        Ok((mode, base_bytes))
    }
}

/// The width of a dictionary's codes.
pub(crate) fn dictionary_width(entries: usize) -> u32 {
    width(super::bits::bits(entries as u64 - 1))
}

/// Bytes that the values have which TEXT takes for each length: whole words.
pub(crate) fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(8)
}

/// Bytes that each value of WIDE has in its row.
pub(crate) const WIDE_BYTES: u64 = 16;
