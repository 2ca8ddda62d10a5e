//! Tests each check of the LZ4 block format.

mod support;

use faro_rows::{Codec, Corruption};
use support::encode::{lz4_block, lz4_end_block, lz4_hash, lz4_header, lz4_stream, row_stream};
use support::{decode, decoder, Outcome};

fn outcome(part: &[u8]) -> Outcome {
    decode(&mut decoder(Codec::Lz4, 4096), part, &[])
}

/// Returns the part's corruption, which must be the same for one push and for pushes of one byte.
fn error(part: &[u8]) -> Corruption {
    let found = outcome(part).error.expect("a corruption");
    let again = decode(&mut decoder(Codec::Lz4, 4096), part, &[1]).error;
    assert_eq!(again.as_ref(), Some(&found));
    found
}

fn sample() -> Vec<Vec<u8>> {
    (0..50_u8)
        .map(|row| vec![row; 8 * usize::from(row % 7)])
        .collect()
}

/// Returns a header with these fields and 64 zeros after it.
fn with_fields(method: u8, level: u8, compressed: i32, original: i32) -> Vec<u8> {
    let mut block = lz4_header(method, level, compressed as u32, original as u32, 0);
    block.extend([0; 64]);
    block
}

#[test]
fn end_blocks_are_optional_and_may_be_repeated() {
    let stream = row_stream(&sample());
    let (first, second) = stream.split_at(500);
    let end = lz4_end_block();
    let (first, second) = (lz4_block(first), lz4_block(second));
    for part in [
        [&first[..], &second].concat(),
        [&end[..], &first, &end, &end, &second].concat(),
        [&first[..], &end, &second, &end].concat(),
    ] {
        assert!(outcome(&part).whole() == sample());
    }
    assert!(outcome(&[]).whole().is_empty());
    assert!(outcome(&end).whole().is_empty());
}

#[test]
fn magic() {
    let mut part = lz4_stream(&row_stream(&sample()), 512);
    part[0] = b'l';
    assert_eq!(
        error(&part),
        Corruption::Magic {
            offset: 0,
            found: *b"lZ4Block"
        }
    );
}

#[test]
fn method() {
    for found in [0x00, 0x50, 0xf0] {
        let part = with_fields(found, 5, 16, 16);
        assert_eq!(error(&part), Corruption::Method { offset: 0, found });
    }
}

#[test]
fn original_length() {
    for (level, found) in [(0, 1025), (5, -1), (5, 32769), (15, i32::MAX)] {
        let max = 1 << (10 + level);
        let part = with_fields(0x20, level, 16, found);
        assert_eq!(
            error(&part),
            Corruption::OriginalLength {
                offset: 0,
                found,
                min: 0,
                max
            }
        );
    }
}

#[test]
fn compressed_length() {
    for (method, found, original, min, max) in [
        (0x10, 15, 16, 16, 16),
        (0x10, -1, 16, 16, 16),
        (0x10, 1, 0, 0, 0),
        (0x20, 1, 0, 0, 0),
        (0x20, 0, 16, 1, 32),
        (0x20, -1, 16, 1, 32),
        (0x20, 33, 16, 1, 32),
        (0x20, i32::MAX, 16, 1, 32),
        (0x20, 9, 2550, 10, 2576),
    ] {
        let part = with_fields(method, 5, found, original);
        let expected = Corruption::CompressedLength {
            offset: 0,
            found,
            original,
            min,
            max,
        };
        assert_eq!(error(&part), expected);
    }
}

#[test]
fn end_block_has_no_checksum() {
    let found = 0x0123_4567;
    let part = lz4_header(0x20, 5, 0, 0, found);
    assert_eq!(error(&part), Corruption::EndBlock { offset: 0, found });
}

#[test]
fn checksum() {
    let first = lz4_block(&row_stream(&sample()));
    let body = row_stream(&[vec![7; 8]]);
    let expected = lz4_hash(&body) ^ 1;
    let mut second = lz4_header(0x10, 0, 12, 12, expected);
    second.extend(&body);
    let found = outcome(&[first.clone(), second].concat());
    assert!(found.rows == sample());
    assert_eq!(
        found.error,
        Some(Corruption::Checksum {
            offset: first.len() as u64,
            found: expected ^ 1,
            expected
        })
    );
    // lz4-java compares all 32 bits with a hash of 28 bits.
    let mut part = lz4_header(0x10, 0, 12, 12, lz4_hash(&body) | 1 << 28);
    part.extend(&body);
    assert!(matches!(error(&part), Corruption::Checksum { .. }));
}

#[test]
fn body() {
    let original = row_stream(&vec![vec![3; 400]; 4]);
    let compressed = lz4_flex::block::compress(&original);
    let block = |body: &[u8], length: usize| {
        let hash = lz4_hash(&original);
        let mut block = lz4_header(0x20, 5, body.len() as u32, length as u32, hash);
        block.extend(body);
        block
    };
    assert!(outcome(&block(&compressed, original.len())).error.is_none());
    for length in [original.len() - 1, original.len() + 1] {
        let found = error(&block(&compressed, length));
        assert!(
            matches!(
                found,
                Corruption::DecompressedLength { .. } | Corruption::Lz4 { .. }
            ),
            "{found}"
        );
    }
    // The bodies have a byte after the last sequence, and a last sequence that is cut off.
    let longer = [&compressed[..], &[0]].concat();
    for body in [&longer[..], &compressed[..compressed.len() - 1]] {
        error(&block(body, original.len()));
    }
    // The match starts before the block.
    let found = error(&block(
        &[0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        original.len(),
    ));
    assert!(
        matches!(found, Corruption::Lz4 { offset: 0, .. }),
        "{found}"
    );
}

#[test]
fn ends_inside_a_block() {
    let block = lz4_block(&row_stream(&sample()));
    let part = [&block[..], &block].concat();
    for length in [1, 20, 21, block.len() - 1] {
        let found = outcome(&part[..block.len() + length]);
        assert!(found.rows == sample());
        let needed = if length < 21 { 21 } else { block.len() };
        assert_eq!(
            found.error,
            Some(Corruption::PartialBlock {
                offset: block.len() as u64,
                found: length,
                needed
            })
        );
    }
}

#[test]
fn ends_inside_a_row() {
    let stream = row_stream(&sample());
    let part = lz4_stream(&stream[..stream.len() - 1], 512);
    assert!(matches!(error(&part), Corruption::PartialRow { .. }));
}
