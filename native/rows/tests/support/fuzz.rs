//! The checks of the fuzz targets, which must hold for every input. tests/corpus.rs runs them again
//! on the inputs that are kept.
//!
//! The first four bytes of an input are two push lengths as little-endian `u16`, which alternate;
//! the rest is the part. An input of `compress` begins with one more byte, for the codec and zstd's
//! level.

use super::decode::{decode, decoder};
use super::encode::{lz4_hash, row_stream};
use super::row_block::{checksum, row_block};
use faro_rows::{BlockCompressor, Codec, RowDecoder};
use std::cell::RefCell;

const LZ4_HEADER_BYTES: usize = 21;

fn split(bytes: &[u8]) -> Option<([usize; 2], &[u8])> {
    let (cuts, part) = bytes.split_first_chunk::<4>()?;
    let cut = |at: usize| usize::from(u16::from_le_bytes([cuts[at], cuts[at + 1]]));
    Some(([cut(0), cut(2)], part))
}

/// Checks a plain row stream.
pub fn plain(bytes: &[u8]) {
    if let Some((cuts, part)) = split(bytes) {
        same_in_any_cuts(Codec::None, part, &cuts);
    }
}

/// Checks LZ4 blocks twice: unchanged, and with correct checksums, which no fuzzer would guess.
pub fn lz4(bytes: &[u8]) {
    if let Some((cuts, part)) = split(bytes) {
        same_in_any_cuts(Codec::Lz4, part, &cuts);
        same_in_any_cuts(Codec::Lz4, &sealed(part), &cuts);
    }
}

/// Checks a row block. The input's first three bytes are the method and the original length, the
/// rest is the body. A wrong body must be refused, and a right one must be whole rows.
pub fn row_blocks(bytes: &[u8]) {
    let Some((cuts, part)) = split(bytes) else {
        return;
    };
    let Some(([method, low, high], body)) = part.split_first_chunk::<3>() else {
        return;
    };
    let method = if method % 2 == 0 { 0x30 } else { 0x40 };
    let original = usize::from(u16::from_le_bytes([*low, *high])) * 4;
    same_in_any_cuts(Codec::Lz4, &row_block(method, original, body), &cuts);
}

/// Checks that the decoder restores the rows that the encoder packed. The input is that of
/// [`compress`], with a second byte for the number of packed words.
pub fn pack(bytes: &[u8]) {
    let [choice, words, rest @ ..] = bytes else {
        return;
    };
    let codec = [Codec::Lz4, Codec::Zstd][usize::from(*choice) % 2];
    let rows = rows(rest);
    let stream = row_stream(&rows);
    let compressor = BlockCompressor::new(codec, 1, 1 << 20).expect("a compressor");
    let mut compressor = compressor.with_row_blocks((*words).into());
    let mut part = Vec::new();
    // The same rows repeat, so that the guard has tries to choose from.
    for _ in 0..1 + choice / 2 % 4 {
        let start = part.len();
        part.resize(start + compressor.max_bytes(stream.len()), 0xa5);
        let length = compressor.compress_rows(&stream, &mut part[start..]);
        part.truncate(start + length.expect("there is room"));
    }
    let read = decode(&mut decoder(codec, 4096), &part, &[]).whole();
    for (row, found) in rows.iter().cycle().zip(&read) {
        assert!(*row == &found[..]);
    }
    assert_eq!(read.len(), rows.len() * usize::from(1 + choice / 2 % 4));
}

/// Checks zstd frames.
pub fn zstd(bytes: &[u8]) {
    let Some((cuts, part)) = split(bytes) else {
        return;
    };
    let whole = decode(&mut decoder(Codec::Zstd, 4096), part, &[]);
    let pieces = decode(&mut decoder(Codec::Zstd, 64), part, &cuts);
    // The cuts may change how far a broken frame is decoded.
    if whole.error.is_none() && pieces.error.is_none() {
        assert!(whole.rows == pieces.rows);
    }
}

/// Checks that the decoder reads what the compressor wrote. The part is rows, each after a byte
/// with its length.
pub fn compress(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    let Some((cuts, rest)) = split(rest) else {
        return;
    };
    let codec = [Codec::None, Codec::Lz4, Codec::Zstd][usize::from(choice) % 3];
    let rows = rows(rest);
    let stream = row_stream(&rows);
    let level = i32::from(choice / 3) % 8 - 2;
    let mut compressor = BlockCompressor::new(codec, level, 1 << 20).expect("a compressor");
    let (mut part, mut pieces) = (Vec::new(), &stream[..]);
    for cut in cuts.into_iter().cycle() {
        let (piece, rest) = pieces.split_at(cut.max(1).min(pieces.len()));
        let start = part.len();
        part.resize(start + compressor.max_bytes(piece.len()), 0xa5);
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
    let read = decode(&mut decoder(codec, 4096), &part, &[]);
    assert_eq!(read.error, None);
    assert!(read.rows == rows);
}

thread_local! {
    /// A decoder with large batches and one with small ones, for each codec. They decode one input
    /// after the other, as a reader's does; making them would take a third of the time.
    static DECODERS: RefCell<Vec<(Codec, [RowDecoder; 2])>> = const { RefCell::new(Vec::new()) };
}

/// Checks that rows and corruption do not depend on the pushes or on the size of a batch, and that
/// the decoder can decode again after a corruption.
fn same_in_any_cuts(codec: Codec, part: &[u8], cuts: &[usize]) {
    DECODERS.with_borrow_mut(|decoders| {
        let at = decoders.iter().position(|(of, _)| *of == codec);
        let at = at.unwrap_or_else(|| {
            decoders.push((codec, [decoder(codec, 4096), decoder(codec, 64)]));
            decoders.len() - 1
        });
        let [large, small] = &mut decoders[at].1;
        let whole = decode(large, part, &[]);
        for _ in 0..2 {
            let pieces = decode(small, part, cuts);
            assert!(whole.rows == pieces.rows);
            assert_eq!(whole.error, pieces.error);
        }
    });
}

/// Splits bytes into rows. The byte before each row is its length in words of 8 bytes.
fn rows(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut rows = Vec::new();
    while let [words, rest @ ..] = bytes {
        let (row, rest) = rest.split_at(rest.len().min(8 * usize::from(*words)) / 8 * 8);
        rows.push(row);
        bytes = rest;
    }
    rows
}

/// Returns the part with the magic and the checksum of each block corrected, up to the first block
/// that does not decompress.
fn sealed(part: &[u8]) -> Vec<u8> {
    let mut part = part.to_vec();
    let mut at = 0;
    while let Some(block) = part
        .get_mut(at..)
        .filter(|block| block.len() >= LZ4_HEADER_BYTES)
    {
        let (header, body) = block.split_at_mut(LZ4_HEADER_BYTES);
        header[..8].copy_from_slice(b"LZ4Block");
        let field = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (compressed, original) = (field(9) as usize, field(13) as usize);
        if compressed > body.len() || original > 1 << 20 {
            break;
        }
        let body = &body[..compressed];
        if matches!(header[8] & 0xf0, 0x30 | 0x40) {
            let sum = checksum(&header[8..17], body);
            header[17..].copy_from_slice(&sum.to_le_bytes());
            at += LZ4_HEADER_BYTES + compressed;
            continue;
        }
        let bytes = match header[8] & 0xf0 {
            0x10 => body.to_vec(),
            _ => {
                let mut bytes = vec![0; original];
                let found = lz4_flex::block::decompress_into(body, &mut bytes).unwrap_or(0);
                bytes.truncate(found);
                bytes
            }
        };
        let hash = match bytes.is_empty() {
            true => 0,
            false => lz4_hash(&bytes),
        };
        header[17..].copy_from_slice(&hash.to_le_bytes());
        at += LZ4_HEADER_BYTES + compressed;
    }
    part
}
