//! Columns of a key, and their values as numbers in Spark's order.

const SIGN: u64 = 1 << 63;

/// How a column's values are stored in a row, and so in which order they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    /// A decimal of more than 18 digits: up to 16 bytes, big-endian, beside the row's words.
    WideDecimal,
    /// A string or binary, in the order of its bytes without sign.
    Bytes,
}

/// One column of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyColumn {
    pub ordinal: usize,
    pub kind: ValueKind,
    pub descending: bool,
    /// Null comes after all values, in either direction.
    pub nulls_last: bool,
}

/// Returns a word of a row as a number in Spark's order. Of kinds that are beside the row's words the
/// result has no meaning.
#[inline]
pub fn ordered(kind: ValueKind, word: u64) -> u64 {
    match kind {
        ValueKind::Bool => u64::from(word as u8 != 0),
        ValueKind::I8 => word as i8 as u64 ^ SIGN,
        ValueKind::I16 => word as i16 as u64 ^ SIGN,
        ValueKind::I32 => word as i32 as u64 ^ SIGN,
        ValueKind::I64 => word ^ SIGN,
        ValueKind::F32 => ordered_f32(f32::from_bits(word as u32)),
        ValueKind::F64 => ordered_f64(f64::from_bits(word)),
        ValueKind::WideDecimal | ValueKind::Bytes => 0,
    }
}

/// All NaN are one value, above all others, and -0.0 is 0.0.
#[inline]
fn ordered_f32(value: f32) -> u64 {
    const SIGN: u32 = 1 << 31;
    if value.is_nan() {
        return u64::from(u32::MAX);
    }
    let bits = if value == 0.0 { 0 } else { value.to_bits() };
    u64::from(match bits & SIGN {
        0 => bits | SIGN,
        _ => !bits,
    })
}

/// As [`ordered_f32`].
#[inline]
fn ordered_f64(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    let bits = if value == 0.0 { 0 } else { value.to_bits() };
    match bits & SIGN {
        0 => bits | SIGN,
        _ => !bits,
    }
}

/// Returns a big-endian number in two's complement, of at most 16 bytes, as one without sign.
#[inline]
pub fn ordered_wide(bytes: &[u8]) -> u128 {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let start = if negative { u128::MAX } else { 0 };
    let value = bytes
        .iter()
        .fold(start, |value, &byte| value << 8 | u128::from(byte));
    value ^ 1 << 127
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_in_sparks_order() {
        let values = [
            f64::NEG_INFINITY,
            -1e300,
            -1.5,
            -f64::MIN_POSITIVE,
            0.0,
            f64::MIN_POSITIVE,
            2.0,
            f64::INFINITY,
            f64::NAN,
        ];
        let keys: Vec<_> = values
            .iter()
            .map(|value| ordered(ValueKind::F64, value.to_bits()))
            .collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{keys:x?}");
        let zero = |value: f64| ordered(ValueKind::F64, value.to_bits());
        assert_eq!(zero(-0.0), zero(0.0));
        assert_eq!(ordered_f64(-f64::NAN), ordered_f64(f64::NAN));
        let single = |value: f32| ordered(ValueKind::F32, u64::from(value.to_bits()));
        assert_eq!(single(-0.0), single(0.0));
        assert!(single(-1.0) < single(0.0) && single(f32::INFINITY) < single(-f32::NAN));
    }

    #[test]
    fn small_integers_are_read_without_what_stands_above_them() {
        let dirt = 0xdead_beef_0000_0000;
        let minus_one = ordered(ValueKind::I32, dirt | u64::from(u32::MAX));
        assert_eq!(minus_one, ordered(ValueKind::I64, -1i64 as u64));
        assert_eq!(ordered(ValueKind::I8, dirt | 0x7f), SIGN | 0x7f);
        assert_eq!(ordered(ValueKind::Bool, dirt), 0);
    }

    #[test]
    fn wide_numbers_of_any_length_are_in_order() {
        let values: [&[u8]; 6] = [&[0x80, 0], &[0x80], &[0xff], &[], &[1], &[0x7f, 0xff, 0xff]];
        let keys = values.map(ordered_wide);
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{keys:x?}");
    }
}
