//! Tests that the decoder reads what the compressor wrote, however the row stream was cut into
//! pieces.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use faro_rows::{BlockCompressor, Codec, CompressError};
use proptest::prelude::*;
use proptest::sample::select;
use support::encode::row_stream;
use support::{decode, decoder};

const LONGEST: usize = 32 << 20;
const CODECS: [Codec; 3] = [Codec::None, Codec::Lz4, Codec::Zstd];

/// Generates rows that compress well, and random rows that do not compress.
fn rows() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let row = (0_usize..40, any::<u8>(), any::<bool>()).prop_flat_map(|(words, byte, random)| {
        let bytes = match random {
            true => any::<u8>().boxed(),
            false => Just(byte).boxed(),
        };
        prop::collection::vec(bytes, words * 8)
    });
    prop::collection::vec(row, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 100 }))]

    #[test]
    fn a_partition_reads_as_it_was_written(
        codec in select(&CODECS[..]),
        // Each spill ends a stream, and a partition is the concatenation of its streams.
        streams in prop::collection::vec((rows(), 1_usize..2_000), 1..4),
    ) {
        let mut compressor = BlockCompressor::new(codec, 1, LONGEST).unwrap();
        let mut part = Vec::new();
        for (rows, cut) in &streams {
            for piece in row_stream(rows).chunks(*cut) {
                let start = part.len();
                part.resize(start + compressor.max_bytes(piece.len()), 0);
                let length = compressor.compress(piece, &mut part[start..]).unwrap();
                part.truncate(start + length);
            }
            part.extend_from_slice(compressor.end());
        }
        let expected: Vec<_> = streams.into_iter().flat_map(|(rows, _)| rows).collect();
        let read = decode(&mut decoder(codec, 4096), &part, &[]);
        prop_assert_eq!(read.error, None);
        prop_assert_eq!(read.rows, expected);
    }
}

/// Spark's reader takes an empty block for the end of a stream, whose checksum must be 0.
#[test]
fn an_empty_piece_has_no_block() {
    for codec in CODECS {
        let mut compressor = BlockCompressor::new(codec, 1, LONGEST).unwrap();
        let mut out = vec![0; compressor.max_bytes(0)];
        assert_eq!(compressor.compress(&[], &mut out), Ok(0));
    }
}

/// zstd uses the nearest level that it supports; the other codecs ignore the level.
#[test]
fn any_level_compresses() {
    let rows = vec![vec![7; 8]; 1000];
    for level in [i32::MIN, -5, 0, 1, 9] {
        for codec in CODECS {
            let mut compressor = BlockCompressor::new(codec, level, LONGEST).unwrap();
            let piece = row_stream(&rows);
            let mut part = vec![0; compressor.max_bytes(piece.len())];
            let length = compressor.compress(&piece, &mut part).unwrap();
            part.truncate(length);
            part.extend_from_slice(compressor.end());
            assert_eq!(decode(&mut decoder(codec, 4096), &part, &[]).whole(), rows);
        }
    }
}

/// Tests the lengths around which a block's token changes, and the longest block, whose bytes are
/// all the same.
#[test]
fn blocks_of_any_length() {
    let mut word = 1_u64;
    let random = std::iter::repeat_with(move || {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        word.to_be_bytes()[0]
    });
    let mut rows: Vec<Vec<u8>> = [12, 20, 1 << 10, (1 << 10) + 8, 1 << 15, (1 << 15) + 8]
        .map(|bytes| random.take((bytes - 4) / 8 * 8).collect())
        .to_vec();
    if !cfg!(miri) {
        rows.push(vec![7; (32 << 20) - 8]);
    }
    for codec in CODECS {
        for row in &rows {
            let piece = row_stream(std::slice::from_ref(row));
            // The piece has the maximum length of a block.
            let mut compressor = BlockCompressor::new(codec, 1, piece.len()).unwrap();
            let mut part = vec![0; compressor.max_bytes(piece.len())];
            let length = compressor.compress(&piece, &mut part).unwrap();
            part.truncate(length);
            part.extend_from_slice(compressor.end());
            let read = decode(&mut decoder(codec, 4096), &part, &[]).whole();
            assert!(
                read.len() == 1 && read[0] == *row,
                "{codec:?}, {} bytes",
                row.len()
            );
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for codec in CODECS {
        let mut compressor = BlockCompressor::new(codec, 1, LONGEST).unwrap();
        let max = compressor.max_bytes(100);
        assert_eq!(
            compressor.compress(&[0; 100], &mut vec![0; max - 1]),
            Err(CompressError::NoRoom { room: max - 1, max })
        );
        for (max, block_bytes) in [(LONGEST, LONGEST), (LONGEST, LONGEST + 8), (1000, 1000)] {
            let mut compressor = BlockCompressor::new(codec, 1, block_bytes).unwrap();
            let bytes = max + 1;
            assert_eq!(
                compressor.compress(&vec![0; bytes], &mut []),
                Err(CompressError::TooLong { bytes, max })
            );
        }
    }
}
