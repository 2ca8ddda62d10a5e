//! Decodes the test vectors of docs/design/row-block-format.md. They are made by hand, without Faro's
//! encoder, and other decoders read them too.
//!
//! After a change of the format, `cargo test -p faro-rows --test vectors -- --ignored` writes the
//! files again.

mod support;

use faro_rows::{Codec, Corruption, RowBlockFault};
use std::fmt::Write;
use std::path::PathBuf;
use support::encode::{row_stream, zstd_frame};
use support::row_block::{
    body, codes, constant, delta, dictionary, frame_of_reference, mask, row_block, runs, text,
    wide, zero_or,
};
use support::unsafe_row::{row, Field};
use support::{decode, decoder};

const LZ4: u8 = 0x30;
const ZSTD: u8 = 0x40;

struct GoodVector {
    name: &'static str,
    rows: Vec<Vec<u8>>,
    block: Vec<u8>,
}

fn words(values: &[u64]) -> Vec<Vec<u8>> {
    values
        .iter()
        .map(|value| value.to_le_bytes().to_vec())
        .collect()
}

/// Returns rows of one word each.
fn one(name: &'static str, values: &[u64], column: Vec<u8>) -> GoodVector {
    let body = body(values.len() as u32, 1, &[constant(1), column], &[]);
    let rows = words(values);
    let block = row_block(LZ4, row_stream(&rows).len(), &body);
    GoodVector { name, rows, block }
}

fn with(
    name: &'static str,
    method: u8,
    rows: &[Vec<u8>],
    words: u16,
    columns: &[Vec<u8>],
    tail: &[u8],
) -> GoodVector {
    let body = body(rows.len() as u32, words, columns, tail);
    let block = row_block(method, row_stream(rows).len(), &body);
    let rows = rows.to_vec();
    GoodVector { name, rows, block }
}

/// Returns 800 bytes 3 as LZ4: one literal, a match with that offset, and twelve literals. Only with offset 1 it is LZ4.
fn lz4_of_threes(offset: u16) -> Vec<u8> {
    let mut tail = vec![0x1f, 3];
    tail.extend(offset.to_le_bytes());
    // 787 bytes: 4, 15 of the token, 3 * 255 and 3.
    tail.extend([255, 255, 255, 3, 0xc0]);
    tail.extend([3; 12]);
    tail
}

fn people() -> Vec<Vec<u8>> {
    let names: [Option<&[u8]>; 4] = [Some(b"Ann"), None, Some(b""), Some(b"Bartholomew")];
    let cities: [&[u8]; 4] = [b"Bern", b"Rotterdam", b"Ulm", b"12345678"];
    let person = |(name, city): (Option<&[u8]>, &[u8])| {
        let name = name.map_or(Field::NullText, |name| Field::Text(name.to_vec()));
        row(&[name, Field::Text(city.to_vec())])
    };
    names.into_iter().zip(cities).map(person).collect()
}

fn good() -> Vec<GoodVector> {
    let big = 1 << 63 | 5;
    let seven: Vec<u64> = (0..7).map(|at| 1000 + 3 * at).collect();
    let runs_of = [4, 4, 4, 9, 9, 9, 9, 9, 9, 1, 1];
    let few = [7_u64, 1 << 40, 7, 7, u64::MAX, 7, 1 << 40, 7, u64::MAX, 7];
    let entries = [7_u64, 1 << 40, u64::MAX];
    let of_entries = frame_of_reference(64, 0, &entries);
    let runs_of_entries = dictionary(&entries, &of_entries, &[7, u64::MAX, 7, 1 << 40]);
    let mut all = vec![
        one("mask-constant", &[5, 5, 5], constant(5)),
        one("mask-zero", &[0, 0], constant(0)),
        one(
            "mask-bits",
            &[0x8101, 0x8000, 0x0101],
            mask(0x8101, &[0x8101, 0x8000, 0x0101]),
        ),
        one(
            "mask-base",
            &[0xff00_0010, 0xff00_0020],
            mask(0x30, &[0xff00_0010, 0xff00_0020]),
        ),
        one(
            "mask-all-bits",
            &[big, 3, !0],
            mask(u64::MAX, &[big, 3, !0]),
        ),
        one(
            "for",
            &[1000, 1003, 1007, 1001],
            frame_of_reference(3, 1000, &[1000, 1003, 1007, 1001]),
        ),
        one(
            "for-negative",
            &[2_u64.wrapping_neg(), 1, 0],
            frame_of_reference(2, 2_u64.wrapping_neg(), &[2_u64.wrapping_neg(), 1, 0]),
        ),
        one(
            "for-56-bits",
            &[1, 1 << 55, 77],
            frame_of_reference(56, 0, &[1, 1 << 55, 77]),
        ),
        one(
            "for-64-bits",
            &[1, big, 77],
            frame_of_reference(64, 0, &[1, big, 77]),
        ),
        one(
            "for-13-bits",
            &[1, 8191, 77, 4096, 0, 5, 6, 7, 8, 9],
            frame_of_reference(13, 0, &[1, 8191, 77, 4096, 0, 5, 6, 7, 8, 9]),
        ),
        one(
            "forz",
            &[0, 1001, 0, 1007],
            zero_or(3, 1000, &[0, 1001, 0, 1007]),
        ),
        one("delta-0-bits", &seven, delta(0, 3, &seven)),
        one("delta", &[10, 13, 15, 20], delta(2, 2, &[10, 13, 15, 20])),
        one(
            "delta-down",
            &[10, 8, 5],
            delta(1, 3_u64.wrapping_neg(), &[10, 8, 5]),
        ),
        one("delta-one-row", &[10], delta(0, 0, &[10])),
        one("dict", &few, dictionary(&entries, &of_entries, &few)),
        one(
            "dict-one-entry",
            &[9, 9],
            dictionary(&[9], &constant(9), &[9, 9]),
        ),
        one(
            "runs",
            &runs_of,
            runs(&runs_of, &frame_of_reference(4, 0, &[4, 9, 1])),
        ),
        one(
            "runs-of-dict",
            &[7, 7, u64::MAX, 7, 1 << 40],
            runs(&[7, 7, u64::MAX, 7, 1 << 40], &runs_of_entries),
        ),
    ];
    // No columns: one block of rows without bytes, and one of rows without packed words.
    let none = vec![vec![]; 3];
    all.push(with("zero-columns", LZ4, &none, 0, &[constant(0)], &[]));
    let tail: Vec<u8> = seven.iter().flat_map(|word| word.to_le_bytes()).collect();
    all.push(with("k-0", LZ4, &words(&seven), 0, &[constant(1)], &tail));
    all.push(with(
        "k-0-lz4-tail",
        LZ4,
        &vec![vec![3; 400]; 4],
        0,
        &[constant(50)],
        &lz4_flex::block::compress(&[3; 1600]),
    ));
    all.push(with(
        "k-0-lz4-match",
        LZ4,
        &vec![vec![3; 400]; 2],
        0,
        &[constant(50)],
        &lz4_of_threes(1),
    ));
    all.push(with(
        "k-0-zstd-tail",
        ZSTD,
        &vec![vec![3; 400]; 4],
        0,
        &[constant(50)],
        &zstd_frame(&[3; 1600], false),
    ));
    all.push(with(
        "zstd-raw-tail",
        ZSTD,
        &words(&seven),
        0,
        &[constant(1)],
        &tail,
    ));
    let lengths = [vec![1; 8], vec![], vec![2; 24]];
    let rests = [vec![1_u8; 8], vec![2; 24]].concat();
    all.push(with(
        "row-lengths",
        LZ4,
        &lengths,
        0,
        &[frame_of_reference(2, 0, &[1, 0, 3])],
        &rests,
    ));
    // The columns are null bits, names and cities.
    let people = people();
    let of_words: Vec<u64> = people.iter().map(|row| row.len() as u64 / 8).collect();
    let columns = [
        frame_of_reference(3, 0, &of_words),
        mask(1, &[0, 1, 0, 0]),
        text(&frame_of_reference(4, 0, &[4, 0, 1, 12])),
        text(&frame_of_reference(4, 0, &[5, 10, 4, 9])),
    ];
    let tail = b"AnnBartholomewBernRotterdamUlm12345678";
    all.push(with("texts", LZ4, &people, 3, &columns, tail));
    let longer: Vec<Vec<u8>> = people
        .iter()
        .map(|row| [&row[..], &[9; 16]].concat())
        .collect();
    let more: Vec<u64> = of_words.iter().map(|words| words + 2).collect();
    let mut with_rest = columns.to_vec();
    with_rest[0] = frame_of_reference(4, 0, &more);
    let tail = [&tail[..], &[9; 64]].concat();
    all.push(with("texts-and-rest", LZ4, &longer, 3, &with_rest, &tail));
    let decimals = [
        Field::Decimal(vec![1]),
        Field::NullDecimal,
        Field::Decimal((1..17).collect()),
        Field::Decimal(vec![5; 9]),
    ];
    let rows: Vec<Vec<u8>> = decimals
        .into_iter()
        .map(|decimal| row(&[decimal, Field::Text(b"after".to_vec())]))
        .collect();
    let columns = [
        constant(6),
        mask(1, &[0, 1, 0, 0]),
        wide(&frame_of_reference(5, 0, &[1, 0, 16, 9])),
        text(&constant(6)),
    ];
    let tail = [
        &[1][..],
        &(1..17).collect::<Vec<u8>>(),
        &[5; 9],
        &b"after".repeat(4),
    ]
    .concat();
    all.push(with("wide", LZ4, &rows, 3, &columns, &tail));
    let empty = vec![row(&[Field::NullDecimal]); 3];
    all.push(with(
        "wide-without-bytes",
        LZ4,
        &empty,
        2,
        &[constant(4), constant(1), wide(&constant(0))],
        &[],
    ));
    all
}

/// Returns the start of the expected fault's name, as `Debug` prints it, and the block.
fn bad() -> Vec<(&'static str, Vec<u8>)> {
    // A block of two rows of one word.
    let block = |body: Vec<u8>| row_block(LZ4, 24, &body);
    let column = |column: Vec<u8>| block(body(2, 1, &[constant(1), column], &[]));
    let fields =
        |rows, words, columns: &[Vec<u8>], tail: &[u8]| block(body(rows, words, columns, tail));
    let three = [constant(1), constant(5)];
    let mut late = body(2, 1, &three, &[]);
    *late.last_mut().expect("a byte") = 1;
    let mut stored = body(2, 1, &three, &[]);
    stored[6] = 1;
    vec![
        ("Rows", fields(0, 1, &three, &[])),
        ("Rows", fields(3, 1, &three, &[])),
        ("Rows", fields(2, 2, &three, &[])),
        ("Tail", block(stored)),
        (
            "BodyTooShort",
            row_block(LZ4, 44, &body(2, 0, &[constant(1)], &[0; 16])[..20]),
        ),
        ("RowLength", fields(2, 1, &[constant(0), constant(5)], &[])),
        (
            "RowLength",
            fields(2, 1, &[constant(u64::MAX), constant(5)], &[]),
        ),
        ("Original", fields(2, 1, &[constant(2), constant(5)], &[])),
        ("Mode", column(vec![8, 0])),
        ("Mode", column(vec![0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("Mode", column(vec![0x14, 1, 0, 0])),
        (
            "Mode",
            fields(2, 1, &[text(&constant(1)), constant(5)], &[]),
        ),
        ("Mode", column(runs(&[1, 1], &runs(&[1], &constant(1))))),
        (
            "Mode",
            column(dictionary(&[1], &runs(&[1], &constant(1)), &[1, 1])),
        ),
        ("Mode", column(text(&text(&constant(0))))),
        (
            "Width",
            column(vec![1, 57, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ),
        (
            "Width",
            column([vec![0, 0xff], vec![0xff; 7], vec![1], vec![0; 16]].concat()),
        ),
        ("ShortColumn", column(vec![1])),
        ("ShortColumn", column(vec![0x81, 0, 1])),
        ("ShortColumn", column(vec![1, 64, 1, 2, 3])),
        ("Dictionary", column(vec![4, 0])),
        (
            "Dictionary",
            column([&[4, 3][..], &constant(1), &codes(&[0, 3], 2)].concat()),
        ),
        ("Runs", column([&[5, 2, 0, 0][..], &constant(1)].concat())),
        ("Runs", column([&[5, 2, 0, 1][..], &constant(1)].concat())),
        ("Runs", column([&[5, 2, 0, 4][..], &constant(1)].concat())),
        ("Runs", column([&[5, 0, 0, 0][..], &constant(1)].concat())),
        ("Text", column(text(&constant(2)))),
        ("Text", column(text(&constant(u64::MAX)))),
        ("Text", column(wide(&constant(0)))),
        (
            "Text",
            row_block(
                LZ4,
                56,
                &body(2, 1, &[constant(3), wide(&constant(17))], &[0; 32]),
            ),
        ),
        (
            "BytesBehindColumns",
            column([constant(5), vec![0]].concat()),
        ),
        ("Padding", block(late)),
        (
            "Tail",
            row_block(
                LZ4,
                40,
                &body(2, 1, &[constant(2), text(&constant(2))], &[1, 1, 1]),
            ),
        ),
        (
            "TailCodec",
            row_block(LZ4, 24, &body(2, 0, &[constant(1)], &[0xff; 9])),
        ),
        (
            "TailCodec",
            row_block(ZSTD, 24, &body(2, 0, &[constant(1)], &[0xff; 9])),
        ),
        (
            "TailCodec",
            row_block(LZ4, 808, &body(2, 0, &[constant(50)], &lz4_of_threes(0))),
        ),
        (
            "TailCodec",
            row_block(LZ4, 808, &body(2, 0, &[constant(50)], &lz4_of_threes(2))),
        ),
        (
            "TailLength",
            row_block(
                LZ4,
                808,
                &body(2, 0, &[constant(50)], &lz4_flex::block::compress(&[3; 799])),
            ),
        ),
        (
            "TailLength",
            row_block(
                ZSTD,
                808,
                &body(2, 0, &[constant(50)], &zstd_frame(&[3; 799], false)),
            ),
        ),
        (
            "TailCodec",
            row_block(
                ZSTD,
                808,
                &body(
                    2,
                    0,
                    &[constant(50)],
                    &zstd_frame(&[3; 400], false).repeat(2),
                ),
            ),
        ),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn files() -> [(&'static str, String); 2] {
    let mut good_file = "# NAME ROW_STREAM BLOCK: docs/design/row-block-format.md\n".to_owned();
    for GoodVector { name, rows, block } in good() {
        let _ = writeln!(
            good_file,
            "{name} {} {}",
            hex(&row_stream(&rows)),
            hex(&block)
        );
    }
    let mut bad_file = "# FAULT BLOCK: a block that must be refused, and why\n".to_owned();
    for (fault, block) in bad() {
        let _ = writeln!(bad_file, "{fault} {}", hex(&block));
    }
    [("good.txt", good_file), ("bad.txt", bad_file)]
}

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "vectors", name]
        .iter()
        .collect()
}

#[test]
fn good_blocks_give_their_rows() {
    for GoodVector { name, rows, block } in good() {
        for codec in [Codec::Lz4, Codec::Zstd] {
            for batch in [64, 4096] {
                for cuts in [&[][..], &[1]] {
                    let found = decode(&mut decoder(codec, batch), &block, cuts);
                    assert_eq!(found.error, None, "{name}");
                    assert!(found.rows == rows, "{name}");
                }
            }
        }
    }
}

#[test]
fn bad_blocks_are_refused() {
    for (index, (name, block)) in bad().into_iter().enumerate() {
        let found = decode(&mut decoder(Codec::Lz4, 4096), &block, &[]);
        let Some(Corruption::RowBlock { offset: 0, fault }) = found.error else {
            panic!("{index} {name}: {:?}", found.error);
        };
        let debug = format!("{fault:?}");
        let shown = debug.split(' ').next();
        assert_eq!(shown, Some(name), "{index}: {fault}");
        assert!(found.rows.is_empty() && fault != RowBlockFault::InsideRow);
    }
}

#[test]
fn the_files_have_these_blocks() {
    for (name, text) in files() {
        let found = std::fs::read_to_string(path(name)).expect("a file of vectors");
        assert!(found == text, "{name} has other blocks");
    }
}

#[test]
#[ignore = "writes the files"]
fn write_the_files() {
    for (name, text) in files() {
        std::fs::write(path(name), text).expect("a file of vectors");
    }
}
