//! Packs codes of a fixed width without gaps, the lowest bit first. Eight codes of W bits take W
//! bytes.

/// Returns whether codes may have this width: 0 to 56 or 64 bits, so that each lies in one word
/// that starts at a byte.
pub(crate) fn is_width(width: u32) -> bool {
    width <= 56 || width == 64
}

/// Returns the smallest allowed width for codes of `bits` bits.
pub(crate) fn width(bits: u32) -> u32 {
    if bits > 56 {
        64
    } else {
        bits
    }
}

pub(crate) fn bits(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Returns the bytes of a value without the zeros at its upper end.
pub(crate) fn value_bytes(value: u64) -> usize {
    bits(value).div_ceil(8) as usize
}

pub(crate) fn code_bytes(codes: usize, width: u32) -> usize {
    let bits = codes as u64 * u64::from(width);
    bits.div_ceil(8) as usize
}

/// Calls a function of the width as a constant, so that its shifts are constants.
macro_rules! with_width {
    ($width:expr, $call:ident, $a:expr, $b:expr; $($w:literal)*) => {
        match $width {
            $($w => $call::<$w>($a, $b),)*
            _ => {}
        }
    };
    ($width:expr, $call:ident, $a:expr, $b:expr) => {
        with_width!($width, $call, $a, $b; 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28
            29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 64)
    };
}

/// Packs codes, which have no bits above their width, into exactly [`code_bytes`] bytes.
#[inline(always)]
pub(crate) fn pack(codes: &[u64], width: u32, out: &mut [u8]) {
    with_width!(width, pack_groups, codes, out);
}

#[inline(always)]
fn pack_groups<const W: usize>(mut codes: &[u64], mut out: &mut [u8]) {
    while let Some((group, rest)) = codes.split_first_chunk::<8>() {
        let Some((space, more)) = out.split_first_chunk_mut::<W>() else {
            return;
        };
        *space = pack_group(group);
        (codes, out) = (rest, more);
    }
    let mut last = [0; 8];
    last[..codes.len()].copy_from_slice(codes);
    let packed = pack_group::<W>(&last);
    let bytes = out.len().min(W);
    out[..bytes].copy_from_slice(&packed[..bytes]);
}

#[inline(always)]
fn pack_group<const W: usize>(codes: &[u64; 8]) -> [u8; W] {
    let mut words = [0_u64; 8];
    for (index, &code) in codes.iter().enumerate() {
        let (word, shift) = (index * W / 64, index * W % 64);
        words[word] |= code << shift;
        if shift + W > 64 {
            words[word + 1] |= code >> (64 - shift);
        }
    }
    let mut bytes = [0; W];
    for (space, word) in bytes.chunks_mut(8).zip(words) {
        space.copy_from_slice(&word.to_le_bytes()[..space.len()]);
    }
    bytes
}

/// Unpacks one code for each value.
#[inline(always)]
pub(crate) fn unpack(bytes: &[u8], width: u32, values: &mut [u64]) {
    if width == 0 {
        values.fill(0);
        return;
    }
    with_width!(width, unpack_groups, bytes, values);
}

#[inline(always)]
fn unpack_groups<const W: usize>(mut bytes: &[u8], mut values: &mut [u64]) {
    while let (Some(window), true) = (bytes.first_chunk::<64>(), values.len() >= 8) {
        let (group, rest) = values.split_at_mut(8);
        unpack_group::<W>(window, group);
        (bytes, values) = (&bytes[W..], rest);
    }
    // The last codes: fewer than 64 bytes are left to load from.
    while !values.is_empty() {
        let mut window = [0; 64];
        let there = bytes.len().min(64);
        window[..there].copy_from_slice(&bytes[..there]);
        let (group, rest) = values.split_at_mut(values.len().min(8));
        unpack_group::<W>(&window, group);
        (bytes, values) = (&bytes[there.min(W)..], rest);
    }
}

#[inline(always)]
fn unpack_group<const W: usize>(window: &[u8; 64], values: &mut [u64]) {
    let mask = u64::MAX >> (64 - W);
    for (index, value) in values.iter_mut().enumerate() {
        let bit = index * W;
        let mut word = [0; 8];
        word.copy_from_slice(&window[bit / 8..bit / 8 + 8]);
        *value = (u64::from_le_bytes(word) >> (bit % 8)) & mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_and_count() {
        let mut state = 1_u64;
        for width in (0..=64).filter(|width| is_width(*width)) {
            for count in [1, 7, 8, 9, 63, 64, 65, 200] {
                let codes: Vec<u64> = (0..count)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        if width == 0 {
                            0
                        } else {
                            (state ^ state >> 31) >> (64 - width)
                        }
                    })
                    .collect();
                let mut bytes = vec![0xff; code_bytes(count, width)];
                pack(&codes, width, &mut bytes);
                let mut found = vec![9; count];
                unpack(&bytes, width, &mut found);
                assert_eq!(found, codes, "{width} bits");
                // Compare with the definition, one code after the other.
                for (index, code) in codes.iter().enumerate() {
                    for bit in 0..width as usize {
                        let at = index * width as usize + bit;
                        assert_eq!(u64::from(bytes[at / 8] >> (at % 8) & 1), code >> bit & 1);
                    }
                }
            }
        }
    }
}
