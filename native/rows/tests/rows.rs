//! Tests the checks and the batches of the row stream.

mod support;

use faro_rows::{Batch, Codec, Corruption, Piece, PushResult, RowDecoder, SetupError};
use support::encode::{lz4_stream, row_stream, zstd_frame};
use support::{collect, decode, decoder, rows_of};

fn push(decoder: &mut RowDecoder, bytes: &[u8]) {
    let taken = bytes.len();
    let expected = PushResult { taken, full: false };
    assert_eq!(decoder.push(bytes), Ok(expected));
}

#[test]
fn batch_sizes() {
    for bytes in [0, 56, 100, (1 << 30) + 8] {
        let error = RowDecoder::new(Codec::None, bytes).err();
        assert!(matches!(error, Some(SetupError::BatchBytes(found)) if found == bytes));
    }
}

#[test]
fn row_length() {
    for length in [-1, -8, i32::MIN, 1, 12, i32::MAX] {
        let mut part = row_stream(&[vec![], vec![9; 24]]);
        let decoded = part.len() as u64;
        part.extend(length.to_be_bytes());
        part.extend([0; 100]);
        for cuts in [&[][..], &[1]] {
            let found = decode(&mut decoder(Codec::None, 64), &part, cuts);
            assert_eq!(found.rows, [vec![], vec![9; 24]]);
            assert_eq!(found.error, Some(Corruption::RowLength { decoded, length }));
        }
    }
}

#[test]
fn a_part_ends_at_a_row() {
    let part = row_stream(&[vec![1; 16], vec![2; 32], vec![3; 200]]);
    for length in 0..=part.len() {
        let found = decode(&mut decoder(Codec::None, 64), &part[..length], &[7]);
        let (rows, start) = match length {
            0..20 => (0, 0),
            20..56 => (1, 20),
            56..260 => (2, 56),
            _ => (3, 260),
        };
        assert_eq!(found.rows.len(), rows);
        let bytes = (length - start) as u64;
        let partial = (bytes > 0).then_some(Corruption::PartialRow {
            decoded: start as u64,
            bytes,
        });
        assert_eq!(found.error, partial);
    }
}

#[test]
fn a_failed_part_stays_failed_until_it_is_abandoned() {
    let mut decoder = decoder(Codec::None, 4096);
    push(&mut decoder, &row_stream(&[vec![1; 8]]));
    assert!(!decoder.end_part().expect("a whole part").full);
    push(&mut decoder, &row_stream(&[vec![2; 8]]));
    let error = decoder.push(&[0xff; 4]);
    assert!(error.is_err());
    assert_eq!(decoder.push(&[]), error);
    assert_eq!(decoder.end_part().map(|_| ()), error.map(|_| ()));
    decoder.abandon_part();
    assert!(decoder.has_batch(), "the row of the part before");
    let third = vec![vec![3; 8]; 3];
    push(&mut decoder, &row_stream(&third));
    assert_eq!(
        rows_of(decoder.turn()),
        [vec![1; 8], vec![3; 8], vec![3; 8], vec![3; 8]]
    );
    assert_eq!(decoder.rows_handed_out(), 3);
    decoder.abandon_part();
    assert_eq!(decoder.rows_handed_out(), 0);
}

#[test]
fn a_batch_that_is_full() {
    // Two rows of 32 bytes each, heads included, fill the batch.
    let part = row_stream(&vec![vec![4; 24]; 3]);
    let mut decoder = decoder(Codec::None, 64);
    let pushed = decoder.push(&part).expect("rows");
    assert!(pushed.full);
    // The push may also take up to 3 bytes of the next row's length.
    assert!((56..60).contains(&pushed.taken));
    assert_eq!(rows_of(decoder.turn()).len(), 2);
    push(&mut decoder, &part[pushed.taken..]);
    assert!(!decoder.end_part().expect("a whole part").full);
    assert_eq!(rows_of(decoder.turn()).len(), 1);
}

#[test]
fn a_turn_inside_a_row() {
    let rows = [vec![1; 8], vec![2; 40], vec![3; 400]];
    let part = row_stream(&rows);
    for cut in 0..part.len() {
        let mut decoder = decoder(Codec::None, 64);
        let (mut found, mut long) = (Vec::new(), Vec::new());
        for mut piece in [&part[..cut], &part[cut..]] {
            while let PushResult { taken, full: true } = decoder.push(piece).expect("rows") {
                piece = &piece[taken..];
                collect(decoder.turn(), &mut found, &mut long);
            }
            collect(decoder.turn(), &mut found, &mut long);
        }
        assert_eq!(found, rows);
    }
}

/// Decodes one block or frame whose rows fill many batches.
fn rows_of_many_batches(codec: Codec, compress: impl Fn(&[u8]) -> Vec<u8>) {
    let rows: Vec<_> = (0..100_u8).map(|row| vec![row; 56]).collect();
    let part = compress(&row_stream(&rows));
    assert!(decode(&mut decoder(codec, 64), &part, &[]).whole() == rows);
}

#[test]
fn lz4_rows_wait_for_a_turn() {
    rows_of_many_batches(Codec::Lz4, |stream| lz4_stream(stream, 32 << 10));
}

#[test]
#[cfg_attr(miri, ignore = "zstd is C")]
fn zstd_rows_wait_for_a_turn() {
    rows_of_many_batches(Codec::Zstd, |stream| zstd_frame(stream, false));
}

/// Long rows are handed out in pieces and cost the decoder no memory, whatever their length field
/// says.
#[test]
fn rows_longer_than_a_batch() {
    let rows = [
        vec![1; 8],
        vec![2; 100_000],
        vec![3; 8],
        vec![4; 8000],
        vec![5; 9000],
        vec![],
        vec![6; 64],
    ];
    let part = row_stream(&rows);
    let mut decoder = decoder(Codec::None, 64);
    let memory = decoder.memory_bytes();
    for cuts in [&[][..], &[1000, 33]] {
        assert!(decode(&mut decoder, &part, cuts).whole() == rows);
    }
    push(&mut decoder, &0x7fff_fff8_i32.to_be_bytes());
    push(&mut decoder, &[0; 64]);
    assert!(decoder.push(&[0]).expect("a piece").full);
    let piece = Piece {
        offset: 0,
        row_bytes: 0x7fff_fff8,
    };
    let expected = Batch::Piece {
        bytes: &[0; 64],
        piece,
    };
    assert_eq!(decoder.turn(), expected);
    let error = decoder.end_part();
    assert_eq!(
        error,
        Err(Corruption::PartialRow {
            decoded: 0,
            bytes: 68
        })
    );
    decoder.abandon_part();
    assert!(!decoder.has_batch());
    assert_eq!(decoder.memory_bytes(), memory);
}

/// A part ends only when the last piece of its last row was handed out, so that a later failure is
/// not attributed to it.
#[test]
fn the_last_piece_is_of_its_part() {
    let part = row_stream(&[vec![1; 16], vec![7; 80]]);
    let mut decoder = decoder(Codec::None, 64);
    let pushed = decoder.push(&part).expect("rows");
    assert!(pushed.full);
    assert_eq!(rows_of(decoder.turn()), [vec![1; 16]]);
    let rest = &part[pushed.taken..];
    let pushed = decoder.push(rest).expect("a piece");
    assert!(pushed.full);
    let (mut rows, mut long) = (Vec::new(), Vec::new());
    collect(decoder.turn(), &mut rows, &mut long);
    push(&mut decoder, &rest[pushed.taken..]);
    assert!(decoder.end_part().expect("a whole part").full);
    assert_eq!(decoder.rows_handed_out(), 1);
    collect(decoder.turn(), &mut rows, &mut long);
    assert_eq!(rows, [vec![7; 80]]);
    assert_eq!(decoder.rows_handed_out(), 2);
    assert!(!decoder.end_part().expect("a whole part").full);
    assert_eq!(decoder.rows_handed_out(), 0);
}

/// After pieces of a row that was not whole, no row is handed out, so the part can be decoded
/// again.
#[test]
fn an_abandoned_long_row() {
    let part = row_stream(&[vec![7; 200]]);
    let mut decoder = decoder(Codec::None, 64);
    assert!(decoder.push(&part).expect("a piece").full);
    assert!(matches!(decoder.turn(), Batch::Piece { .. }));
    assert_eq!(decoder.rows_handed_out(), 0);
    decoder.abandon_part();
    assert_eq!(decode(&mut decoder, &part, &[]).whole(), [vec![7; 200]]);
}

/// An unfinished row moves to the front after the rows before it were handed out.
#[test]
fn a_row_under_way_moves() {
    let rows: Vec<Vec<u8>> = (1..=8).map(|byte| vec![byte; 16]).collect();
    let part = row_stream(&rows);
    let mut decoder = decoder(Codec::None, 64);
    push(&mut decoder, &part[..20 + 10]);
    assert_eq!(rows_of(decoder.turn()), rows[..1]);
    push(&mut decoder, &part[30..60]);
    assert_eq!(rows_of(decoder.turn()), rows[1..3]);
}
