//! The decoder reads what the compressor wrote. The first byte is the codec and zstd's level, the next four bytes are
//! the lengths of two pieces, which take turns (see cuts.rs); the rest are rows, each behind a byte with its length.
#![no_main]

mod cuts;

use faro_rows::{BlockCompressor, Codec};

/// The first byte of each is its length in words of 8 bytes.
fn rows(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut rows = Vec::new();
    while let [words, rest @ ..] = bytes {
        let (row, rest) = rest.split_at(rest.len().min(8 * usize::from(*words)) / 8 * 8);
        rows.push(row);
        bytes = rest;
    }
    rows
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    let Some((cuts, rest)) = cuts::split(rest) else {
        return;
    };
    let codec = [Codec::None, Codec::Lz4, Codec::Zstd][usize::from(choice) % 3];
    let rows = rows(rest);
    let mut stream = Vec::new();
    for row in &rows {
        stream.extend((row.len() as u32).to_be_bytes());
        stream.extend_from_slice(row);
    }
    let Ok(mut compressor) = BlockCompressor::new(codec, i32::from(choice / 3) % 8 - 2, 1 << 20) else {
        return;
    };
    let (mut part, mut pieces) = (Vec::new(), &stream[..]);
    for cut in cuts.into_iter().cycle() {
        let (piece, rest) = pieces.split_at(cut.max(1).min(pieces.len()));
        let start = part.len();
        part.resize(start + compressor.most_bytes(piece.len()), 0xa5);
        let length = compressor.compress(piece, &mut part[start..]);
        part.truncate(start + length.expect("there is room"));
        pieces = rest;
        if rest.is_empty() {
            break;
        }
    }
    if !stream.is_empty() {
        part.extend_from_slice(compressor.end());
    }
    let read = cuts::decode(&mut cuts::decoder(codec, 4096), &part, &[]);
    assert_eq!(read.error, None);
    assert!(read.rows == rows);
});
