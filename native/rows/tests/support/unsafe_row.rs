//! Builds rows as Spark's `UnsafeRowWriter` lays them out.
#![allow(dead_code, reason = "each binary uses a part")]

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    Null,
    Word(u64),
    /// A text, or the bytes of a nested value.
    Text(Vec<u8>),
    NullText,
    /// A decimal of more than 18 digits: at most 16 bytes, in a row that always has 16 bytes for
    /// it.
    Decimal(Vec<u8>),
    NullDecimal,
}

/// Returns the number of packed words of rows with `fields` fields.
pub fn words(fields: usize) -> usize {
    fields.div_ceil(64) + fields
}

pub fn row(fields: &[Field]) -> Vec<u8> {
    let fixed = words(fields.len());
    let nulls = fields.len().div_ceil(64);
    let mut words = vec![0_u64; fixed];
    let mut variable = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let place = ((8 * fixed + variable.len()) as u64) << 32;
        let (null, word) = match field {
            Field::Null | Field::NullText => (1, 0),
            Field::Word(word) => (0, *word),
            Field::Text(bytes) => {
                variable.extend(bytes);
                variable.resize(variable.len().next_multiple_of(8), 0);
                (0, place | bytes.len() as u64)
            }
            Field::Decimal(bytes) => {
                variable.extend(bytes);
                variable.resize(variable.len() + 16 - bytes.len(), 0);
                (0, place | bytes.len() as u64)
            }
            Field::NullDecimal => {
                variable.extend([0; 16]);
                (1, place)
            }
        };
        words[index / 64] |= null << (index % 64);
        words[nulls + index] = word;
    }
    let mut row: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    row.extend(variable);
    row
}
