//! Builds row blocks by hand, from docs/design/row-block-format.md and without Faro's encoder.
#![allow(dead_code, reason = "each binary uses a part")]

use crc_fast::{CrcAlgorithm, Digest};

pub const HEADER_BYTES: usize = 21;

/// Returns a block with a correct header.
pub fn row_block(method: u8, original: usize, body: &[u8]) -> Vec<u8> {
    let mut level = 0;
    while 1 << (10 + level) < original {
        level += 1;
    }
    let mut block = b"LZ4Block".to_vec();
    block.push(method | level);
    block.extend((body.len() as u32).to_le_bytes());
    block.extend((original as u32).to_le_bytes());
    block.extend(checksum(&block[8..17], body).to_le_bytes());
    block.extend(body);
    block
}

pub fn checksum(fields: &[u8], body: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(fields);
    digest.update(body);
    digest.finalize() as u32
}

/// Returns a body: its head, its columns, the stored tail and the zeros after it.
pub fn body(rows: u32, words: u16, columns: &[Vec<u8>], stored: &[u8]) -> Vec<u8> {
    let mut body = rows.to_le_bytes().to_vec();
    body.extend(words.to_le_bytes());
    body.extend((stored.len() as u32).to_le_bytes());
    body.extend(columns.concat());
    body.extend(stored);
    body.resize(body.len() + 8_usize.saturating_sub(stored.len()), 0);
    body
}

/// Packs codes of `width` bits, one bit at a time.
pub fn codes(codes: &[u64], width: usize) -> Vec<u8> {
    let mut bytes = vec![0; (codes.len() * width).div_ceil(8)];
    for (index, code) in codes.iter().enumerate() {
        assert!(
            width == 64 || code >> width == 0,
            "{code:#x} has more than {width} bits"
        );
        for bit in 0..width {
            let at = index * width + bit;
            bytes[at / 8] |= ((code >> bit & 1) as u8) << (at % 8);
        }
    }
    bytes
}

/// Returns the bytes of a base, without the zeros at its upper end.
fn base(value: u64) -> Vec<u8> {
    let mut bytes = value.to_le_bytes().to_vec();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

fn column(mode: u8, parts: &[&[u8]], base: &[u8], rest: &[&[u8]]) -> Vec<u8> {
    let mut column = vec![mode | (base.len() as u8) << 4];
    column.extend(parts.concat());
    column.extend(base);
    column.extend(rest.concat());
    column
}

pub fn constant(value: u64) -> Vec<u8> {
    column(0, &[&[0]], &base(value), &[])
}

/// Returns a MASK column. The bits of the mask come from the values, all other bits from the first
/// value.
pub fn mask(mask: u64, values: &[u64]) -> Vec<u8> {
    let bytes = mask.to_le_bytes();
    let which = (0..8).fold(0, |which, at| which | u8::from(bytes[at] != 0) << at);
    let there: Vec<u8> = bytes.into_iter().filter(|byte| *byte != 0).collect();
    let extracted: Vec<u64> = values.iter().map(|value| extract(*value, mask)).collect();
    let bits = codes(&extracted, mask.count_ones() as usize);
    column(0, &[&[which], &there], &base(values[0] & !mask), &[&bits])
}

fn extract(value: u64, mask: u64) -> u64 {
    let set = (0..64).filter(|bit| mask >> bit & 1 == 1);
    set.enumerate()
        .fold(0, |code, (at, bit)| code | (value >> bit & 1) << at)
}

pub fn frame_of_reference(width: usize, from: u64, values: &[u64]) -> Vec<u8> {
    let offsets: Vec<u64> = values
        .iter()
        .map(|value| value.wrapping_sub(from))
        .collect();
    column(
        1,
        &[&[width as u8]],
        &base(from),
        &[&codes(&offsets, width)],
    )
}

pub fn zero_or(width: usize, from: u64, values: &[u64]) -> Vec<u8> {
    let code = |value: &u64| match value {
        0 => 0,
        value => value.wrapping_sub(from),
    };
    let offsets: Vec<u64> = values.iter().map(code).collect();
    column(
        2,
        &[&[width as u8]],
        &base(from),
        &[&codes(&offsets, width)],
    )
}

pub fn delta(width: usize, step: u64, values: &[u64]) -> Vec<u8> {
    let steps = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
    let steps: Vec<u64> = steps.map(|found| found.wrapping_sub(step)).collect();
    let first = values[0].to_le_bytes();
    column(
        3,
        &[&[width as u8]],
        &base(step),
        &[&first, &codes(&steps, width)],
    )
}

/// Returns a DICT column. `of_entries` is the column of the entries.
pub fn dictionary(entries: &[u64], of_entries: &[u8], values: &[u64]) -> Vec<u8> {
    let place = |value: &u64| entries.iter().position(|entry| entry == value);
    let places: Vec<u64> = values
        .iter()
        .map(|value| place(value).expect("an entry") as u64)
        .collect();
    let width = (u64::BITS - (entries.len() as u64 - 1).leading_zeros()) as usize;
    column(
        4,
        &[&[entries.len() as u8], of_entries],
        &[],
        &[&codes(&places, width)],
    )
}

/// Returns a RUNS column. `of_runs` is the column of the runs' values.
pub fn runs(values: &[u64], of_runs: &[u8]) -> Vec<u8> {
    let changes =
        std::iter::once(0).chain(values.windows(2).map(|pair| u64::from(pair[0] != pair[1])));
    let changes: Vec<u64> = changes.collect();
    let count = 1 + changes.iter().sum::<u64>() as u16;
    column(
        5,
        &[&count.to_le_bytes(), &codes(&changes, 1), of_runs],
        &[],
        &[],
    )
}

pub fn text(inner: &[u8]) -> Vec<u8> {
    column(6, &[inner], &[], &[])
}

pub fn wide(inner: &[u8]) -> Vec<u8> {
    column(7, &[inner], &[], &[])
}
