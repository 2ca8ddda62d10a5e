//! Tests each check of the zstd frames.
#![cfg(not(miri))]

mod support;

use faro_rows::{Codec, Corruption};
use support::encode::{row_stream, zstd_frame};
use support::{decode, decoder, Outcome};

fn sample() -> Vec<Vec<u8>> {
    (0..5000_u32)
        .map(|row| row.to_le_bytes().repeat(2 * (row % 9) as usize))
        .collect()
}

fn outcome(part: &[u8]) -> Outcome {
    decode(&mut decoder(Codec::Zstd, 4096), part, &[])
}

#[test]
fn concatenated_frames() {
    let stream = row_stream(&sample());
    let (first, second) = stream.split_at(70_001);
    let empty = zstd_frame(&[], false);
    let part = [
        empty.clone(),
        zstd_frame(first, false),
        empty,
        zstd_frame(second, true),
    ]
    .concat();
    for cuts in [&[][..], &[1], &[3, 500]] {
        let found = decode(&mut decoder(Codec::Zstd, 64 << 10), &part, cuts);
        assert!(found.whole() == sample());
    }
    assert!(outcome(&[]).whole().is_empty());
}

#[test]
fn ends_inside_a_frame() {
    let frame = zstd_frame(&row_stream(&sample()), false);
    let part = frame.repeat(2);
    for length in [1, 4, 6, 100, frame.len() - 1] {
        let found = outcome(&part[..frame.len() + length]);
        let offset = frame.len() as u64;
        assert_eq!(found.error, Some(Corruption::PartialFrame { offset }));
    }
    let found = outcome(&frame[..frame.len() - 1]);
    assert_eq!(found.error, Some(Corruption::PartialFrame { offset: 0 }));
}

#[test]
fn magic() {
    let frame = zstd_frame(&row_stream(&sample()), false);
    let mut part = frame.repeat(2);
    part[frame.len()] ^= 1;
    let mut decoder = decoder(Codec::Zstd, 4096);
    let found = decode(&mut decoder, &part, &[]);
    assert!(found.rows == sample());
    assert!(
        matches!(found.error, Some(Corruption::Zstd { offset, .. }) if offset == frame.len() as u64)
    );
    // The context decodes the next part.
    assert!(decode(&mut decoder, &frame, &[]).whole() == sample());
}

#[test]
fn checksum() {
    let mut part = zstd_frame(&row_stream(&sample()), true);
    let last = part.len() - 1;
    part[last] ^= 0x80;
    assert!(matches!(
        outcome(&part).error,
        Some(Corruption::Zstd { offset: 0, .. })
    ));
}

/// The byte after the frame header's descriptor gives the window: 2 ^ (10 + the byte / 8) bytes.
#[test]
fn window() {
    let frame = |log: u8| {
        let mut frame = zstd_frame(&row_stream(&sample()), false);
        frame[5] = (log - 10) << 3;
        frame
    };
    assert!(outcome(&frame(19)).whole() == sample());
    assert!(outcome(&frame(27)).whole() == sample());
    for log in [28, 31, 41] {
        assert!(matches!(
            outcome(&frame(log)).error,
            Some(Corruption::Zstd { offset: 0, .. })
        ));
    }
}
