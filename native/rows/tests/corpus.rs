//! Checks again the inputs with which the fuzzers found something new. `fuzz/inputs` keeps them,
//! one per line, in hexadecimal digits.

mod support;

use support::fuzz;

fn check_all(kept: &str, check: fn(&[u8])) {
    let lines = kept.lines().collect::<Vec<_>>();
    // Miri takes a second for some inputs, so it checks a sample.
    let step = if cfg!(miri) { 40 } else { 1 };
    assert!(!lines.is_empty());
    for line in lines.into_iter().step_by(step) {
        println!("{line}");
        check(&bytes(line));
    }
}

fn bytes(line: &str) -> Vec<u8> {
    let digits = line.as_bytes().chunks(2);
    digits
        .map(|pair| std::str::from_utf8(pair).expect("ASCII"))
        .map(|pair| u8::from_str_radix(pair, 16).expect("two hexadecimal digits"))
        .collect()
}

#[test]
fn plain() {
    check_all(include_str!("corpus/plain.txt"), fuzz::plain);
}

#[test]
fn lz4() {
    check_all(include_str!("corpus/lz4.txt"), fuzz::lz4);
}

#[test]
#[cfg_attr(miri, ignore = "zstd is C")]
fn zstd() {
    check_all(include_str!("corpus/zstd.txt"), fuzz::zstd);
}

#[test]
#[cfg_attr(miri, ignore = "the compressors are C")]
fn compress() {
    check_all(include_str!("corpus/compress.txt"), fuzz::compress);
}

#[test]
#[cfg_attr(miri, ignore = "zstd is C")]
fn row_blocks() {
    check_all(include_str!("corpus/row_blocks.txt"), fuzz::row_blocks);
}

#[test]
#[cfg_attr(miri, ignore = "the compressors are C")]
fn pack() {
    check_all(include_str!("corpus/pack.txt"), fuzz::pack);
}
