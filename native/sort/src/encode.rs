//! Keys of rows, by their layout.

use crate::column::ordered;
use crate::error::SortError;
use crate::layout::{KeyLayout, KeyPart, ValueCode};
use crate::rows::Row;
use crate::survey::wide;

/// A number that grows from its lowest bits: a key and a position are pushed into it.
pub trait EntryNumber: Copy + Ord {
    const WORDS: usize;
    const EMPTY: Self;
    /// `value` has at most `bits` bits, and an entry never gets more than its size.
    fn push(self, value: u64, bits: u32) -> Self;
    fn push_wide(self, value: u128, bits: u32) -> Self;
    fn write(self, words: &mut [u64]);
}

impl EntryNumber for u64 {
    const WORDS: usize = 1;
    const EMPTY: Self = 0;

    #[inline]
    fn push(self, value: u64, bits: u32) -> Self {
        self << bits | value
    }

    #[inline]
    fn push_wide(self, value: u128, bits: u32) -> Self {
        self.push(value as u64, bits)
    }

    #[inline]
    fn write(self, words: &mut [u64]) {
        words[0] = self;
    }
}

impl EntryNumber for u128 {
    const WORDS: usize = 2;
    const EMPTY: Self = 0;

    #[inline]
    fn push(self, value: u64, bits: u32) -> Self {
        self << bits | u128::from(value)
    }

    #[inline]
    fn push_wide(self, value: u128, bits: u32) -> Self {
        self << bits | value
    }

    #[inline]
    fn write(self, words: &mut [u64]) {
        words[0] = (self >> 64) as u64;
        words[1] = self as u64;
    }
}

impl KeyLayout {
    #[inline]
    pub fn key<E: EntryNumber>(&self, row: Row<'_>) -> Result<E, SortError> {
        self.parts
            .iter()
            .try_fold(E::EMPTY, |key, part| part.push(key, row))
    }
}

impl KeyPart {
    #[inline]
    fn push<E: EntryNumber>(&self, mut key: E, row: Row<'_>) -> Result<E, SortError> {
        if self.has_nulls {
            let is_null = row.is_null(&self.column);
            key = key.push(u64::from(is_null == self.column.nulls_last), 1);
            if is_null {
                return Ok(self.push_nothing(key));
            }
        }
        let descending = self.column.descending;
        Ok(match self.code {
            ValueCode::Word { bits: 0, .. } | ValueCode::Wide { bits: 0, .. } => key,
            ValueCode::Word { base, cut, bits } => {
                let value = ordered(self.column.kind, row.word(&self.column));
                let distance = if descending {
                    base - value
                } else {
                    value - base
                };
                key.push(distance >> cut, bits)
            }
            ValueCode::Wide { base, cut, bits } => {
                let value = wide(row, &self.column)?;
                let distance = if descending {
                    base - value
                } else {
                    value - base
                };
                key.push_wide(distance >> cut, bits)
            }
            ValueCode::Bytes {
                skip,
                chars,
                char_bits,
                below,
                top,
            } => {
                let string = row.variable(&self.column)?;
                let string = string.get(skip..).unwrap_or_default();
                for at in 0..chars {
                    let code = string
                        .get(at)
                        .map_or(0, |&byte| (i16::from(byte) - below) as u64);
                    key = key.push(if descending { top - code } else { code }, char_bits);
                }
                key
            }
        })
    }

    /// Pushes zeros in place of a value.
    #[inline]
    fn push_nothing<E: EntryNumber>(&self, key: E) -> E {
        match self.code.bits() {
            0 => key,
            bits => key.push_wide(0, bits),
        }
    }
}
