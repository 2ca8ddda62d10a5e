//! Decodes bytes that Spark wrote (golden/README.md).

mod support;

use faro_rows::Codec;
use support::{decode, decoder};

/// Returns the rows that golden/Golden.java makes: `compressible` rows of the first stream, then
/// the second stream.
fn expected(compressible: usize) -> Vec<Vec<u8>> {
    let first = (0..compressible).map(|row| vec![(row / 64) as u8; row * 7 % 13 * 8]);
    let mut state: u32 = 1;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let second = (0..5).map(|_| (0..40).map(|_| random()).collect());
    first.chain(second).collect()
}

fn check(codec: Codec, part: &[u8], compressible: usize) {
    let expected = expected(compressible);
    for batch_bytes in [1024, 64 << 10, 1 << 20] {
        let mut decoder = decoder(codec, batch_bytes);
        for cuts in [&[part.len()][..], &[1], &[21, 5, 4000]] {
            assert!(decode(&mut decoder, part, cuts).whole() == expected);
        }
    }
}

#[test]
fn plain() {
    check(Codec::None, include_bytes!("golden/plain.bin"), 40);
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn lz4() {
    check(Codec::Lz4, include_bytes!("golden/lz4.bin"), 4000);
    check(Codec::Lz4, include_bytes!("golden/lz4_small.bin"), 40);
}

#[test]
#[cfg_attr(miri, ignore = "zstd is C")]
fn zstd() {
    check(Codec::Zstd, include_bytes!("golden/zstd.bin"), 4000);
    check(Codec::Zstd, include_bytes!("golden/zstd_small.bin"), 40);
}
