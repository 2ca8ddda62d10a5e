//! Tests row blocks as the encoder makes them: all rows are restored, whatever the sizes and cuts,
//! and every changed byte is detected.

mod support;

use faro_rows::{BlockCompressor, Codec, Corruption};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use support::encode::{lz4_end_block, lz4_hash, lz4_header, lz4_stream, row_stream};
use support::row_block::HEADER_BYTES;
use support::unsafe_row::{row, words, Field};
use support::{decode, decoder};

const CODECS: [Codec; 2] = [Codec::Lz4, Codec::Zstd];

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The kind of a column's values.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Constant,
    Counter,
    Small,
    Negative,
    Double,
    Random,
    Few,
    Runs,
    FewRuns,
    Text,
    LongText,
    FixedText,
    Decimal,
    Nested,
}

const KINDS: [Kind; 14] = [
    Kind::Constant,
    Kind::Counter,
    Kind::Small,
    Kind::Negative,
    Kind::Double,
    Kind::Random,
    Kind::Few,
    Kind::Runs,
    Kind::FewRuns,
    Kind::Text,
    Kind::LongText,
    Kind::FixedText,
    Kind::Decimal,
    Kind::Nested,
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.0 ^ self.0 >> 29
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 8) % bound
    }

    fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count)
            .map(|_| b"aeinrst. "[self.below(9) as usize])
            .collect()
    }
}

fn field(kind: Kind, index: usize, nulls: u64, random: &mut Random) -> Field {
    let null = nulls > 0 && random.below(100) < nulls;
    match kind {
        Kind::Text | Kind::LongText | Kind::FixedText | Kind::Nested if null => Field::NullText,
        Kind::Decimal if null => Field::NullDecimal,
        _ if null => Field::Null,
        Kind::Constant => Field::Word(20_261_124),
        Kind::Counter => Field::Word((1 << 40) + 3 * index as u64 + random.below(2)),
        Kind::Small => Field::Word(random.below(1000)),
        Kind::Negative => Field::Word(random.below(100).wrapping_sub(50)),
        Kind::Double => Field::Word((random.below(10_000) as f64 / 100.0).to_bits()),
        Kind::Random => Field::Word(random.next().rotate_left(17)),
        Kind::Few => Field::Word([7, 1 << 50, u64::MAX, 12345 << 30][random.below(4) as usize]),
        Kind::Runs => Field::Word((index as u64 / 17).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        Kind::FewRuns => Field::Word((index as u64 / 9 % 3).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        Kind::Text => Field::Text({
            let bytes = random.below(30);
            random.bytes(bytes)
        }),
        Kind::LongText => Field::Text({
            let bytes = random.below(2) * random.below(500);
            random.bytes(bytes)
        }),
        Kind::FixedText => Field::Text(random.bytes(3)),
        Kind::Decimal => Field::Decimal({
            let bytes = 1 + random.below(16);
            random.bytes(bytes)
        }),
        Kind::Nested => Field::Text({
            let count = random.below(4) as usize;
            row(&vec![Field::Word(random.below(9)); count])
        }),
    }
}

/// The rows of a table.
#[derive(Clone, Debug)]
struct Table {
    fields: usize,
    rows: Vec<Vec<u8>>,
}

fn table() -> impl Strategy<Value = Table> {
    let kinds = vec(
        (select(&KINDS[..]), select(&[0_u64, 0, 5, 60, 100][..])),
        0..12,
    );
    let count = prop_oneof![Just(1_usize), 1..20_usize, 20..400_usize];
    (kinds, count, any::<u64>()).prop_map(|(kinds, count, seed)| {
        let mut random = Random(seed);
        let rows = (0..count).map(|index| {
            let fields = kinds
                .iter()
                .map(|(kind, nulls)| field(*kind, index, *nulls, &mut random));
            row(&fields.collect::<Vec<_>>())
        });
        Table {
            fields: kinds.len(),
            rows: rows.collect(),
        }
    })
}

/// Generates rows that no table has: any words, of any lengths.
fn any_rows() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let word = prop_oneof![
        Just(0_u64),
        0..4_u64,
        any::<u64>(),
        // These words look like the places of texts.
        (0..12_u64, 0..40_u64).prop_map(|(place, bytes)| ((place * 8) << 32) | bytes),
    ];
    let row =
        vec(word, 0..10).prop_map(|words| words.into_iter().flat_map(u64::to_le_bytes).collect());
    vec(row, 1..60)
}

/// Cuts rows into pieces of at most `max` bytes: whole rows, or parts of a longer row. The flag is
/// true if a piece begins at a row.
fn pieces(rows: &[Vec<u8>], max: usize) -> Vec<(bool, Vec<u8>)> {
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    for row in rows {
        let row = row_stream(std::slice::from_ref(row));
        if piece.len() + row.len() > max && !piece.is_empty() {
            pieces.push((true, std::mem::take(&mut piece)));
        }
        if row.len() > max {
            let cuts = row.chunks(max).enumerate();
            pieces.extend(cuts.map(|(index, cut)| (index == 0, cut.to_vec())));
        } else {
            piece.extend(row);
        }
    }
    if !piece.is_empty() {
        pieces.push((true, piece));
    }
    pieces
}

/// Returns a part, and the offsets of its blocks.
fn part(codec: Codec, rows: &[Vec<u8>], words: usize, block: usize) -> (Vec<u8>, Vec<usize>) {
    let compressor = BlockCompressor::new(codec, 1, block).expect("a compressor");
    let mut compressor = compressor.with_row_blocks(words);
    let (mut part, mut starts) = (Vec::new(), Vec::new());
    for (begins_at_row, piece) in pieces(rows, block) {
        let start = part.len();
        starts.push(start);
        part.resize(start + compressor.max_bytes(piece.len()), 0xa5);
        let bytes = match begins_at_row {
            true => compressor.compress_rows(&piece, &mut part[start..]),
            false => compressor.compress(&piece, &mut part[start..]),
        };
        part.truncate(start + bytes.expect("there is room"));
    }
    part.extend_from_slice(compressor.end());
    (part, starts)
}

fn is_row_block(part: &[u8], at: usize) -> bool {
    part[at..].starts_with(b"LZ4Block") && part[at + 8] >= 0x30
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![]),
        vec(prop_oneof![1..40_usize, 1..5000_usize], 1..6)
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn tables_come_back(
        tables in vec(table(), 1..3), codec in select(&CODECS[..]), block in select(&[300_usize, 4096, 32 << 10][..]),
        batch in select(&[64_usize, 4096, 64 << 10][..]), cuts in cuts(),
    ) {
        let mut decoder = decoder(codec, batch);
        for table in tables {
            let (part, _) = part(codec, &table.rows, words(table.fields), block);
            prop_assert!(decode(&mut decoder, &part, &cuts).whole() == table.rows);
        }
    }

    /// `words` may differ from the number of words that the rows have.
    #[test]
    fn any_rows_come_back(
        rows in any_rows(), words in 0..12_usize, codec in select(&CODECS[..]),
        batch in select(&[64_usize, 4096][..]), cuts in cuts(),
    ) {
        let (part, _) = part(codec, &rows, words, 4096);
        prop_assert!(decode(&mut decoder(codec, batch), &part, &cuts).whole() == rows);
    }

    /// Blocks of all methods may follow each other in a part, and streams may be concatenated.
    #[test]
    fn methods_are_mixed(tables in vec((table(), any::<bool>()), 1..6), codec in select(&CODECS[..]), cuts in cuts()) {
        let mut bytes = Vec::new();
        for (table, packed) in &tables {
            let (packed, plain) = (*packed, BlockCompressor::new(codec, 1, 4096).expect("a compressor"));
            if packed {
                bytes.extend(part(codec, &table.rows, words(table.fields), 4096).0);
            } else {
                let mut plain = plain;
                for piece in row_stream(&table.rows).chunks(777) {
                    let start = bytes.len();
                    bytes.resize(start + plain.max_bytes(piece.len()), 0);
                    let length = plain.compress(piece, &mut bytes[start..]).expect("there is room");
                    bytes.truncate(start + length);
                }
            }
        }
        let rows: Vec<_> = tables.into_iter().flat_map(|(table, _)| table.rows).collect();
        prop_assert!(decode(&mut decoder(codec, 4096), &bytes, &cuts).whole() == rows);
    }

    #[test]
    fn truncated_parts(table in table(), at in any::<prop::sample::Index>(), cuts in cuts()) {
        let (part, mut starts) = part(Codec::Lz4, &table.rows, words(table.fields), 1000);
        let end = at.index(part.len() + 1);
        let found = decode(&mut decoder(Codec::Lz4, 4096), &part[..end], &cuts);
        prop_assert!(table.rows.starts_with(&found.rows));
        starts.extend([part.len() - HEADER_BYTES, part.len()]);
        if found.error.is_none() {
            prop_assert!(starts.contains(&end));
        }
    }
}

fn sample(count: usize) -> Vec<Vec<u8>> {
    let mut random = Random(11);
    (0..count)
        .map(|index| {
            let fields = KINDS.map(|kind| field(kind, index, 10, &mut random));
            row(&fields)
        })
        .collect()
}

/// Each changed byte of a part must fail the block that it is in, and leave the rows before that
/// block intact.
#[test]
fn every_changed_byte_is_found() {
    let rows = sample(60);
    for codec in CODECS {
        let (good, starts) = part(codec, &rows, words(KINDS.len()), 4000);
        assert!(starts.len() > 2);
        assert!(
            starts.iter().all(|start| is_row_block(&good, *start)),
            "{codec:?}"
        );
        let end = good.len() - if codec == Codec::Lz4 { HEADER_BYTES } else { 0 };
        let mut decoder = decoder(codec, 64 << 10);
        for at in 0..end {
            for mask in [1, 0x80, 0xff] {
                let mut part = good.clone();
                part[at] ^= mask;
                let found = decode(&mut decoder, &part, &[]);
                let error = found
                    .error
                    .unwrap_or_else(|| panic!("byte {at} was changed by {mask:#x}"));
                let start = *starts.iter().rfind(|start| **start <= at).expect("a block");
                if let Some(offset) = offset(&error) {
                    assert_eq!(offset, start as u64, "byte {at}: {error}");
                }
                assert!(rows.starts_with(&found.rows));
                let before = decode(&mut decoder, &part[..start], &[]).whole();
                assert!(found.rows == before, "byte {at}");
            }
        }
    }
}

/// A reader that verifies what it decodes gets the same rows or an error, whichever bit changes on the way: no byte of a
/// stream of codec lz4 is without a checksum.
#[test]
fn every_flipped_bit_gives_the_same_rows_or_an_error() {
    let rows = sample(12);
    let plain = row_stream(&rows);
    let packed = part(Codec::Lz4, &rows, words(KINDS.len()), 2_000).0;
    let raw = [
        lz4_header(
            0x10,
            6,
            plain.len() as u32,
            plain.len() as u32,
            lz4_hash(&plain),
        ),
        plain.clone(),
        lz4_end_block(),
    ];
    let streams = [packed, lz4_stream(&plain, 1_000), raw.concat()];
    let mut decoder = decoder(Codec::Lz4, 64 << 10);
    for (stream, part) in streams.iter().enumerate() {
        assert!(decode(&mut decoder, part, &[]).whole() == rows);
        for bit in 0..part.len() * 8 {
            let mut flipped = part.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = decode(&mut decoder, &flipped, &[]);
            assert!(rows.starts_with(&found.rows), "stream {stream}, bit {bit}");
            assert!(
                found.error.is_some() || found.rows == rows,
                "stream {stream}, bit {bit}"
            );
        }
    }
}

/// Returns the offset of the block that an error names.
fn offset(error: &Corruption) -> Option<u64> {
    match error {
        Corruption::Magic { offset, .. }
        | Corruption::Method { offset, .. }
        | Corruption::OriginalLength { offset, .. }
        | Corruption::CompressedLength { offset, .. }
        | Corruption::DecompressedLength { offset, .. }
        | Corruption::Lz4 { offset, .. }
        | Corruption::Checksum { offset, .. }
        | Corruption::RowBlock { offset, .. }
        | Corruption::PartialBlock { offset, .. }
        | Corruption::Zstd { offset, .. }
        | Corruption::PartialFrame { offset } => Some(*offset),
        Corruption::RowLength { .. }
        | Corruption::PartialRow { .. }
        | Corruption::EndBlock { .. }
        | Corruption::NoMemory { .. } => None,
    }
}

/// A row block must not begin inside a row.
#[test]
fn a_block_inside_a_row_is_refused() {
    let rows = sample(20);
    let stream = row_stream(&rows[..1]);
    let mut compressor = BlockCompressor::new(Codec::Lz4, 1, 4096).expect("a compressor");
    let mut bytes = vec![0; compressor.max_bytes(40)];
    let length = compressor
        .compress(&stream[..40], &mut bytes)
        .expect("there is room");
    bytes.truncate(length);
    bytes.extend(part(Codec::Lz4, &rows, words(KINDS.len()), 32 << 10).0);
    for cuts in [&[][..], &[1], &[100, 7]] {
        let error = decode(&mut decoder(Codec::Lz4, 4096), &bytes, cuts).error;
        let expected = Corruption::RowBlock {
            offset: length as u64,
            fault: faro_rows::RowBlockFault::InsideRow,
        };
        assert_eq!(error, Some(expected));
    }
}

/// The codec must win for rows that repeat with a period, and row blocks for others, even if the
/// rows have texts.
#[test]
fn each_kind_of_rows_is_compressed_in_the_better_way() {
    let random = sample(7);
    let periodic: Vec<_> = (0..6000).map(|at| random[at % 7].clone()).collect();
    let mut mixed = sample(3000);
    mixed.extend(periodic.clone());
    for (name, rows, max) in [
        ("periodic", periodic, 1.02),
        ("all kinds", sample(6000), 0.9),
        ("mixed", mixed, 1.02),
    ] {
        for codec in CODECS {
            let packed = part(codec, &rows, words(KINDS.len()), 32 << 10).0.len();
            let mut compressor = BlockCompressor::new(codec, 1, 32 << 10).expect("a compressor");
            let plain: usize = pieces(&rows, 32 << 10)
                .iter()
                .map(|(_, piece)| {
                    let mut out = vec![0; compressor.max_bytes(piece.len())];
                    compressor.compress(piece, &mut out).expect("there is room")
                })
                .sum();
            let share = packed as f64 / plain as f64;
            assert!(share < max, "{name}, {codec:?}: {share}");
        }
    }
}

/// Rows are not packed without a codec, or if the piece is not whole rows.
#[test]
fn what_cannot_be_packed_is_left_alone() {
    let stream = row_stream(&sample(50));
    let compressor = BlockCompressor::new(Codec::None, 1, 32 << 10).expect("a compressor");
    let mut compressor = compressor.with_row_blocks(3);
    let mut out = vec![0; stream.len()];
    assert_eq!(
        compressor.compress_rows(&stream, &mut out),
        Ok(stream.len())
    );
    assert!(out == stream);
    let compressor = BlockCompressor::new(Codec::Lz4, 1, 32 << 10).expect("a compressor");
    let mut compressor = compressor.with_row_blocks(3);
    let mut out = vec![0; compressor.max_bytes(stream.len())];
    assert!(compressor
        .compress_rows(&stream[..stream.len() - 8], &mut out)
        .is_ok());
    assert!(!is_row_block(&out, 0));
    assert!(compressor.compress_rows(&stream, &mut out).is_ok());
    assert!(is_row_block(&out, 0));
    assert!(compressor.memory() > stream.len());
    assert_eq!(compressor.compress_rows(&[], &mut out), Ok(0));
}

/// docs/user/memory.md counts 1 MiB for a writer's compressor and 1 MiB for a reader's decoder, for rows
/// of any shape.
#[test]
fn packing_and_unpacking_take_a_bounded_memory() {
    const BLOCK: usize = 64 << 10;
    const MOST: usize = 1 << 20;
    let mut random = Random(11);
    let mut of_words = |words: u64| -> Vec<Vec<u8>> {
        let rows = 2 * BLOCK as u64 / (4 + 8 * words.max(1));
        let mut row = |_| (0..8 * words).map(|_| random.next() as u8 & 3).collect();
        (0..rows).map(&mut row).collect()
    };
    let texts = |columns: usize| -> Vec<Vec<u8>> {
        (0..2 * BLOCK / (12 + 16 * columns))
            .map(|_| row(&vec![Field::Text(b"text".to_vec()); columns]))
            .collect()
    };
    let shapes = [
        (0, vec![Vec::new(); 2 * BLOCK / 4]),
        (1, of_words(1)),
        (4, of_words(4)),
        (600, of_words(600)),
        (words(1), texts(1)),
        (words(40), texts(40)),
        (words(1000), texts(1000)),
        (words(KINDS.len()), sample(1000)),
    ];
    for (at, codec) in (0..shapes.len()).flat_map(|at| CODECS.map(|codec| (at, codec))) {
        let (words, rows) = &shapes[at];
        let compressor = BlockCompressor::new(codec, 1, BLOCK).expect("a compressor");
        let mut compressor = compressor.with_row_blocks(*words);
        let mut decoder = decoder(codec, BLOCK);
        // Another shape comes first, because the memory that it takes is kept.
        for rows in [&shapes[7].1, rows] {
            let mut part = Vec::new();
            for (_, piece) in pieces(rows, BLOCK) {
                let start = part.len();
                part.resize(start + compressor.max_bytes(piece.len()), 0);
                let bytes = compressor.compress_rows(&piece, &mut part[start..]);
                part.truncate(start + bytes.expect("there is room"));
            }
            part.extend_from_slice(compressor.end());
            assert!(decode(&mut decoder, &part, &[]).whole() == *rows);
        }
        let (packs, unpacks) = (compressor.memory(), decoder.memory_bytes());
        assert!(
            packs <= MOST && unpacks <= MOST,
            "{words} words, {codec:?}: {packs}, {unpacks}"
        );
        assert!(packs >= BLOCK, "no piece was packed");
    }
}

/// WIDE values without bytes become zeros, whatever the memory held before.
#[test]
fn empty_decimals_are_zeros() {
    // LZ4 would be shorter for rows without a random field.
    let mut random = Random(3);
    let mut rows = |decimal: Field| -> Vec<_> {
        let row = |_| row(&[Field::Word(random.below(1 << 40)), decimal.clone()]);
        (0..40).map(row).collect()
    };
    let (full, empty) = (
        rows(Field::Decimal(vec![0xff; 16])),
        rows(Field::NullDecimal),
    );
    let mut decoder = decoder(Codec::Lz4, 4096);
    for rows in [full, empty] {
        let (part, starts) = part(Codec::Lz4, &rows, words(2), 4096);
        assert!(starts.iter().all(|start| is_row_block(&part, *start)));
        assert!(decode(&mut decoder, &part, &[]).whole() == rows);
    }
}
