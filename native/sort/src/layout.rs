//! Which bits of a key each column has.

use crate::column::KeyColumn;
use crate::survey::{KeyColumnStats, StringStats, ValueStats, STRING_BYTES};

/// The bits of a key, from the first column's on.
#[derive(Debug, Clone)]
pub struct KeyLayout {
    pub parts: Vec<KeyPart>,
    pub bits: u32,
    /// Rows with the same bits have the same key. Otherwise a column is cut, or left out.
    pub exact: bool,
}

/// One column's bits: one for null if there are nulls, then the value's, which are 0 for null.
#[derive(Debug, Clone)]
pub struct KeyPart {
    pub column: KeyColumn,
    pub has_nulls: bool,
    pub code: ValueCode,
}

#[derive(Debug, Clone)]
pub enum ValueCode {
    /// The distance to `base`, the least value or, descending, the greatest one; without its lowest `cut` bits.
    Word {
        base: u64,
        cut: u32,
        bits: u32,
    },
    Wide {
        base: u128,
        cut: u32,
        bits: u32,
    },
    /// `chars` bytes after `skip` ones that are the same in all strings, each as the distance to `below`,
    /// a byte less than the least one; 0 is the end. Descending: `top` less that.
    Bytes {
        skip: usize,
        chars: usize,
        char_bits: u32,
        below: i16,
        top: u64,
    },
}

impl KeyLayout {
    /// Returns the layout of a key with at most `max_bits`. `complete`: the columns are the whole key.
    pub fn new(columns: &[KeyColumnStats], max_bits: u32, complete: bool) -> Self {
        let mut layout = Self {
            parts: Vec::new(),
            bits: 0,
            exact: complete,
        };
        for stats in columns {
            let left = max_bits - layout.bits;
            let (part, fits) = part(stats, left);
            layout.bits += part.bits();
            layout.parts.push(part);
            if !fits {
                layout.exact = false;
                break;
            }
        }
        layout
    }
}

impl KeyPart {
    pub fn bits(&self) -> u32 {
        u32::from(self.has_nulls) + self.code.bits()
    }
}

impl ValueCode {
    pub fn bits(&self) -> u32 {
        match self {
            Self::Word { bits, .. } | Self::Wide { bits, .. } => *bits,
            Self::Bytes {
                chars, char_bits, ..
            } => *chars as u32 * char_bits,
        }
    }
}

/// Returns a column's part in `left` bits, and whether it is whole.
fn part(stats: &KeyColumnStats, left: u32) -> (KeyPart, bool) {
    let column = stats.column;
    let null_bits = u32::from(stats.has_nulls);
    let (has_nulls, left) = match left.checked_sub(null_bits) {
        Some(left) => (stats.has_nulls, left),
        // Without the null's bit nothing of the column can be compared.
        None => return (nothing(column), false),
    };
    let (code, fits) = match &stats.values {
        ValueStats::Word { min, max } => {
            let needed = bits(u128::from(max.saturating_sub(*min)));
            let base = if column.descending { *max } else { *min };
            let cut = needed.saturating_sub(left);
            let bits = needed - cut;
            (ValueCode::Word { base, cut, bits }, cut == 0)
        }
        ValueStats::Wide { min, max } => {
            let needed = bits(max.saturating_sub(*min));
            let base = if column.descending { *max } else { *min };
            let cut = needed.saturating_sub(left);
            let bits = needed - cut;
            (ValueCode::Wide { base, cut, bits }, cut == 0)
        }
        ValueStats::Bytes(strings) => bytes(strings, left),
    };
    (
        KeyPart {
            column,
            has_nulls,
            code,
        },
        fits,
    )
}

fn nothing(column: KeyColumn) -> KeyPart {
    KeyPart {
        column,
        has_nulls: false,
        code: ValueCode::Word {
            base: 0,
            cut: u64::BITS,
            bits: 0,
        },
    }
}

fn bytes(strings: &StringStats, left: u32) -> (ValueCode, bool) {
    let skip = strings.prefix.as_ref().map_or(0, Vec::len);
    let seen = strings.max_bytes.min(STRING_BYTES);
    // Without a byte in any string each of them is the end.
    let values = u32::from(strings.max_byte.saturating_sub(strings.min_byte)) + 1;
    let char_bits = bits(u128::from(values));
    let needed = seen.saturating_sub(skip);
    let chars = needed.min((left / char_bits) as usize);
    let code = ValueCode::Bytes {
        skip,
        chars,
        char_bits,
        below: i16::from(strings.min_byte) - 1,
        top: (1 << char_bits) - 1,
    };
    (code, chars == needed && strings.max_bytes <= STRING_BYTES)
}

/// Returns how many bits the numbers up to `max` take.
pub fn bits(max: u128) -> u32 {
    u128::BITS - max.leading_zeros()
}
