//! Tests that random rows, blocks, cuts and batches decode to the same rows, and that random damage
//! never yields a wrong row.

mod support;

use faro_rows::{Codec, Corruption};
use proptest::collection::vec;
use proptest::prelude::*;
use support::damage::{damage, Damage};
use support::encode::{lz4_block, lz4_end_block, row_stream, zstd_frame};
use support::{decode, decoder};

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 96 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Generates a row of random bytes or of bytes that compress well.
fn row(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    let eighths = longest / 8;
    let length = prop_oneof![
        8 => 0..=eighths.min(8),
        4 => 0..=eighths.min(200),
        1 => 0..=eighths.min(12_800),
    ];
    (length, any::<u32>(), any::<bool>()).prop_map(|(eighths, seed, random)| {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let step = next();
        (0..eighths * 8)
            .map(|at| {
                if random {
                    next()
                } else {
                    step.wrapping_add((at / 24) as u8)
                }
            })
            .collect()
    })
}

/// Generates the rows of a part's partitions.
fn partitions(longest: usize) -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    vec(vec(row(longest), 0..20), 1..4)
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![]),
        vec(
            prop_oneof![1..40_usize, 1..5000_usize, 1..200_000_usize],
            1..6
        ),
    ]
}

fn batch_bytes() -> impl Strategy<Value = usize> {
    prop_oneof![Just(64), Just(4096), Just(64 << 10)]
}

/// A block of a part: its offset in the part and that of its bytes in the row stream.
struct Block {
    offset: usize,
    decoded: usize,
}

struct Part {
    bytes: Vec<u8>,
    blocks: Vec<Block>,
    rows: Vec<Vec<u8>>,
}

/// Compresses each partition to a stream with blocks of `block_bytes`. A partition without rows has
/// no bytes.
fn lz4_part(partitions: &[Vec<Vec<u8>>], block_bytes: usize) -> Part {
    let (mut bytes, mut blocks, mut decoded) = (Vec::new(), Vec::new(), 0);
    for rows in partitions.iter().filter(|rows| !rows.is_empty()) {
        for original in row_stream(rows).chunks(block_bytes) {
            let offset = bytes.len();
            blocks.push(Block { offset, decoded });
            bytes.extend(lz4_block(original));
            decoded += original.len();
        }
        let offset = bytes.len();
        blocks.push(Block { offset, decoded });
        bytes.extend(lz4_end_block());
    }
    let rows = partitions.concat();
    Part {
        bytes,
        blocks,
        rows,
    }
}

fn zstd_part(partitions: &[Vec<Vec<u8>>], checksum: bool) -> Vec<u8> {
    let streams = partitions.iter().filter(|rows| !rows.is_empty());
    streams
        .flat_map(|rows| zstd_frame(&row_stream(rows), checksum))
        .collect()
}

/// Returns the number of rows that end within the first `decoded` bytes of the row stream.
fn whole_rows(rows: &[Vec<u8>], decoded: usize) -> usize {
    let mut end = 0;
    let ends = rows.iter().map(|row| {
        end += 4 + row.len();
        end
    });
    ends.take_while(|end| *end <= decoded).count()
}

/// Parses a row stream independently of the decoder. Returns the whole rows, and whether anything
/// is wrong.
fn parse(mut stream: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut rows = Vec::new();
    while let Some((length, rest)) = stream.split_first_chunk() {
        let length = i32::from_be_bytes(*length);
        if length < 0 || length % 8 != 0 || length as usize > rest.len() {
            return (rows, true);
        }
        let (row, rest) = rest.split_at(length as usize);
        rows.push(row.to_vec());
        stream = rest;
    }
    (rows, !stream.is_empty())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn plain_parts_give_their_rows(
        parts in vec(partitions(100 << 10), 1..4), cuts in cuts(), batch in batch_bytes(),
    ) {
        let mut decoder = decoder(Codec::None, batch);
        for part in parts {
            let rows = part.concat();
            prop_assert!(decode(&mut decoder, &row_stream(&rows), &cuts).whole() == rows);
        }
    }

    #[test]
    fn lz4_parts_give_their_rows(
        parts in vec(partitions(100 << 10), 1..3), block in prop_oneof![16..500_usize, Just(32 << 10), Just(64 << 10)],
        cuts in cuts(), batch in batch_bytes(),
    ) {
        let mut decoder = decoder(Codec::Lz4, batch);
        for part in parts {
            let part = lz4_part(&part, block);
            prop_assert!(decode(&mut decoder, &part.bytes, &cuts).whole() == part.rows);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "zstd is C")]
    fn zstd_parts_give_their_rows(
        parts in vec(partitions(100 << 10), 1..3), checksum: bool, cuts in cuts(), batch in batch_bytes(),
    ) {
        let mut decoder = decoder(Codec::Zstd, batch);
        for part in parts {
            let bytes = zstd_part(&part, checksum);
            prop_assert!(decode(&mut decoder, &bytes, &cuts).whole() == part.concat());
        }
    }

    /// Nothing protects a plain part, so damage may yield other rows. They must be those of the
    /// damaged stream.
    #[test]
    fn damaged_plain_parts(
        part in partitions(2000), damages in vec(damage(), 1..4), cuts in cuts(), batch in batch_bytes(),
    ) {
        let mut bytes = row_stream(&part.concat());
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        let found = decode(&mut decoder(Codec::None, batch), &bytes, &cuts);
        let (rows, wrong) = parse(&bytes);
        prop_assert!(found.rows == rows);
        prop_assert_eq!(found.error.is_some(), wrong);
    }

    /// Changed bytes yield only the rows before the block that the error names, or all rows if the
    /// change does not matter (the level of a token).
    #[test]
    fn changed_lz4_parts(
        part in partitions(2000), block in 16..2000_usize, damages in vec(support::damage::changed(), 1..4),
        cuts in cuts(), batch in batch_bytes(),
    ) {
        let part = lz4_part(&part, block);
        let mut bytes = part.bytes.clone();
        let starts: Vec<_> = part.blocks.iter().map(|block| block.offset).collect();
        damages.iter().for_each(|damage| damage.apply_near(&mut bytes, &starts));
        let found = decode(&mut decoder(Codec::Lz4, batch), &bytes, &cuts);
        match found.error {
            None => prop_assert!(found.rows == part.rows),
            Some(error) => {
                let offset = block_offset(&error);
                let block = part.blocks.iter().find(|block| block.offset as u64 == offset);
                let block = block.expect("the offset of a block");
                prop_assert!(found.rows == part.rows[..whole_rows(&part.rows, block.decoded)], "{error}");
            }
        }
    }

    /// A part may end early only between blocks and between rows.
    #[test]
    fn truncated_lz4_parts(
        part in partitions(2000), block in 16..2000_usize, at in any::<prop::sample::Index>(), cuts in cuts(),
    ) {
        let part = lz4_part(&part, block);
        let end = at.index(part.bytes.len() + 1);
        let found = decode(&mut decoder(Codec::Lz4, 4096), &part.bytes[..end], &cuts);
        prop_assert!(part.rows.starts_with(&found.rows));
        let stream_bytes = |rows: &[Vec<u8>]| row_stream(rows).len();
        let allowed = end == part.bytes.len() || part.blocks.iter().any(|block| {
            block.offset == end && block.decoded == stream_bytes(&found.rows)
        });
        prop_assert_eq!(found.error.is_none(), allowed);
    }

    /// Repeats bytes, except where a whole block results: such a part is valid.
    #[test]
    fn repeated_bytes_in_lz4_parts(
        part in partitions(2000), block in 16..2000_usize,
        range in any::<[prop::sample::Index; 2]>(), cuts in cuts(),
    ) {
        let part = lz4_part(&part, block);
        let mut bytes = part.bytes.clone();
        let mut range = range.map(|index| index.index(bytes.len() + 1));
        range.sort();
        let length = range[1] - range[0];
        let mut borders: Vec<_> = part.blocks.iter().map(|block| block.offset).collect();
        borders.push(bytes.len());
        prop_assume!(borders.iter().all(|border| !borders.contains(&(border + length))));
        Damage::Repeat { from: range[0], to: range[1] }.apply(&mut bytes);
        let found = decode(&mut decoder(Codec::Lz4, 4096), &bytes, &cuts);
        prop_assert!(found.error.is_some());
        prop_assert!(part.rows.starts_with(&found.rows));
    }

    /// The checksum is at the frame's end. As in every stream decoder, rows before it may already
    /// be in batches, but the part fails.
    #[test]
    #[cfg_attr(miri, ignore = "zstd is C")]
    fn changed_zstd_parts_with_checksum(
        part in partitions(2000), damages in vec(support::damage::changed(), 1..4), cuts in cuts(),
    ) {
        let mut bytes = zstd_part(&part, true);
        let before = bytes.clone();
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        let found = decode(&mut decoder(Codec::Zstd, 4096), &bytes, &cuts);
        if found.error.is_none() {
            prop_assert!(found.rows == part.concat(), "{bytes:02x?} {before:02x?}");
        }
    }

    /// Spark's zstd streams have no checksum, so a decoder cannot detect a changed literal. This
    /// test checks that the rows have the right layout (in `rows_of`) and that the decoder decodes
    /// the next part.
    #[test]
    #[cfg_attr(miri, ignore = "zstd is C")]
    fn damaged_zstd_parts_without_checksum(
        part in partitions(2000), damages in vec(damage(), 1..4), cuts in cuts(), batch in batch_bytes(),
    ) {
        let good = zstd_part(&part, false);
        let mut bytes = good.clone();
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        let mut decoder = decoder(Codec::Zstd, batch);
        decode(&mut decoder, &bytes, &cuts);
        prop_assert!(decode(&mut decoder, &good, &cuts).whole() == part.concat());
    }
}

/// Rows of 1 MiB do not fit in any batch.
#[test]
#[cfg_attr(miri, ignore = "slow, and in part C")]
fn long_rows() {
    let rows: Vec<Vec<u8>> = [8, 1 << 20, 0, (1 << 20) + 8, 16]
        .map(|length: u32| (0..length).map(|at| (at / 64 * 7) as u8).collect())
        .into();
    let stream = row_stream(&rows);
    let part = [rows.clone()];
    for (codec, bytes) in [
        (Codec::None, stream),
        (Codec::Lz4, lz4_part(&part, 32 << 10).bytes),
        (Codec::Zstd, zstd_part(&part, false)),
    ] {
        for cuts in [&[][..], &[100_000, 7]] {
            assert!(decode(&mut decoder(codec, 64 << 10), &bytes, cuts).whole() == rows);
        }
    }
}

fn block_offset(error: &Corruption) -> u64 {
    match error {
        Corruption::Magic { offset, .. }
        | Corruption::Method { offset, .. }
        | Corruption::OriginalLength { offset, .. }
        | Corruption::CompressedLength { offset, .. }
        | Corruption::EndBlock { offset, .. }
        | Corruption::Lz4 { offset, .. }
        | Corruption::DecompressedLength { offset, .. }
        | Corruption::Checksum { offset, .. }
        | Corruption::RowBlock { offset, .. }
        | Corruption::PartialBlock { offset, .. } => *offset,
        Corruption::RowLength { .. }
        | Corruption::PartialRow { .. }
        | Corruption::Zstd { .. }
        | Corruption::PartialFrame { .. }
        | Corruption::NoMemory { .. } => panic!("{error}"),
    }
}
