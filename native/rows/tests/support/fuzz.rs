//! The checks of the fuzz targets. They hold for every input. tests/corpus.rs runs them again on the
//! inputs that are kept.
//!
//! The first four bytes of an input are the lengths of two pushes, as little-endian `u16`, which
//! take turns; the rest is the part. `compress` has a byte in front: the codec and zstd's level.

use super::decode::{decode, decoder};
use super::encode::{lz4_hash, row_stream};
use super::row_block::{checksum, row_block};
use faro_rows::{BlockCompressor, Codec};

const LZ4_HEADER_BYTES: usize = 21;

fn split(bytes: &[u8]) -> Option<([usize; 2], &[u8])> {
    let (cuts, part) = bytes.split_first_chunk::<4>()?;
    let cut = |at: usize| usize::from(u16::from_le_bytes([cuts[at], cuts[at + 1]]));
    Some(([cut(0), cut(2)], part))
}

/// The row stream.
pub fn plain(bytes: &[u8]) {
    if let Some((cuts, part)) = split(bytes) {
        same_in_any_cuts(Codec::None, part, &cuts);
    }
}

/// LZ4 blocks: as they come, and with right checksums, which no fuzzer would guess.
pub fn lz4(bytes: &[u8]) {
    if let Some((cuts, part)) = split(bytes) {
        same_in_any_cuts(Codec::Lz4, part, &cuts);
        same_in_any_cuts(Codec::Lz4, &sealed(part), &cuts);
    }
}

/// Row blocks: the rest of the input is a body behind three bytes, the method and the original length. Wrong bodies
/// must be refused, and right ones be whole rows.
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

/// The decoder reads the rows that the encoder packed. As [`compress`], with a byte of packed words in front.
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
    // The same rows again and again, so that the guard chooses.
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

/// zstd frames.
pub fn zstd(bytes: &[u8]) {
    let Some((cuts, part)) = split(bytes) else {
        return;
    };
    let whole = decode(&mut decoder(Codec::Zstd, 4096), part, &[]);
    let pieces = decode(&mut decoder(Codec::Zstd, 64), part, &cuts);
    // How far a broken frame is decoded may depend on the cuts.
    if whole.error.is_none() && pieces.error.is_none() {
        assert!(whole.rows == pieces.rows);
    }
}

/// The decoder reads what the compressor wrote. The part is rows, each behind a byte with its length.
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

/// Rows and corruption do not depend on the pushes or on the size of a batch, and the decoder goes
/// on after a corruption.
fn same_in_any_cuts(codec: Codec, part: &[u8], cuts: &[usize]) {
    let whole = decode(&mut decoder(codec, 4096), part, &[]);
    let mut small = decoder(codec, 64);
    for _ in 0..2 {
        let pieces = decode(&mut small, part, cuts);
        assert!(whole.rows == pieces.rows);
        assert_eq!(whole.error, pieces.error);
    }
}

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

/// The part with the magic and the checksum of each block put right, as far as its blocks decompress.
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
