//! The first four bytes of an input are the lengths of two pushes, as little-endian `u16`, which
//! take turns; the rest is the part.
#![allow(dead_code, reason = "each target uses a part")]

#[path = "../../tests/support/decode.rs"]
mod support;

use faro_rows::Codec;
pub use support::{decode, decoder};

pub fn split(bytes: &[u8]) -> Option<([usize; 2], &[u8])> {
    let (cuts, part) = bytes.split_first_chunk::<4>()?;
    let cut = |at: usize| usize::from(u16::from_le_bytes([cuts[at], cuts[at + 1]]));
    Some(([cut(0), cut(2)], part))
}

/// Rows and corruption do not depend on the pushes or on the size of a batch, and the decoder goes
/// on after a corruption.
pub fn same_in_any_cuts(codec: Codec, part: &[u8], cuts: &[usize]) {
    let whole = decode(&mut decoder(codec, 4096), part, &[]);
    let mut small = decoder(codec, 64);
    for _ in 0..2 {
        let pieces = decode(&mut small, part, cuts);
        assert!(whole.rows == pieces.rows);
        assert_eq!(whole.error, pieces.error);
    }
}
