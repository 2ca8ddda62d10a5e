//! Which values a column has, over all rows.

use crate::column::{ordered, ordered_wide, KeyColumn, ValueKind};
use crate::error::SortError;
use crate::rows::Row;

/// Bytes at the start of a string that the survey looks at; later ones are in no key.
pub const STRING_BYTES: usize = 64;
/// Maximum length of a decimal.
const WIDE_BYTES: usize = 16;

#[derive(Debug, Clone)]
pub struct KeyColumnStats {
    pub column: KeyColumn,
    pub has_nulls: bool,
    pub values: ValueStats,
}

/// Of an empty set of values the least is above the greatest.
#[derive(Debug, Clone)]
pub enum ValueStats {
    Word { min: u64, max: u64 },
    Wide { min: u128, max: u128 },
    Bytes(StringStats),
}

#[derive(Debug, Clone)]
pub struct StringStats {
    /// The start of the first string, as far as all others have it too; `None` before the first.
    pub prefix: Option<Vec<u8>>,
    pub max_bytes: usize,
    pub min_byte: u8,
    pub max_byte: u8,
}

impl KeyColumnStats {
    pub fn new(column: KeyColumn) -> Self {
        let values = match column.kind {
            ValueKind::WideDecimal => ValueStats::Wide {
                min: u128::MAX,
                max: 0,
            },
            ValueKind::Bytes => ValueStats::Bytes(StringStats {
                prefix: None,
                max_bytes: 0,
                min_byte: u8::MAX,
                max_byte: 0,
            }),
            _ => ValueStats::Word {
                min: u64::MAX,
                max: 0,
            },
        };
        Self {
            column,
            has_nulls: false,
            values,
        }
    }

    #[inline]
    pub fn add(&mut self, row: Row<'_>) -> Result<(), SortError> {
        if row.is_null(&self.column) {
            self.has_nulls = true;
            return Ok(());
        }
        match &mut self.values {
            ValueStats::Word { min, max } => {
                let value = ordered(self.column.kind, row.word(&self.column));
                *min = (*min).min(value);
                *max = (*max).max(value);
            }
            ValueStats::Wide { min, max } => {
                let value = wide(row, &self.column)?;
                *min = (*min).min(value);
                *max = (*max).max(value);
            }
            ValueStats::Bytes(strings) => strings.add(row.variable(&self.column)?),
        }
        Ok(())
    }
}

/// Returns a wide decimal in Spark's order.
#[inline]
pub fn wide(row: Row<'_>, column: &KeyColumn) -> Result<u128, SortError> {
    let bytes = row.variable(column)?;
    if bytes.len() > WIDE_BYTES {
        return Err(SortError::Variable {
            offset: 0,
            bytes: bytes.len(),
            row: WIDE_BYTES,
        });
    }
    Ok(ordered_wide(bytes))
}

impl StringStats {
    #[inline]
    fn add(&mut self, string: &[u8]) {
        self.max_bytes = self.max_bytes.max(string.len());
        let start = &string[..string.len().min(STRING_BYTES)];
        for &byte in start {
            self.min_byte = self.min_byte.min(byte);
            self.max_byte = self.max_byte.max(byte);
        }
        match &mut self.prefix {
            None => self.prefix = Some(start.to_vec()),
            Some(prefix) if start.starts_with(prefix) => {}
            Some(prefix) => {
                let same = prefix.iter().zip(start).take_while(|(a, b)| a == b).count();
                prefix.truncate(same);
            }
        }
    }
}
