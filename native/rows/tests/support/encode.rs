//! Encodes rows for tests and benchmarks: as the row stream, and as lz4-java's and zstd's streams.
#![allow(dead_code, reason = "each binary uses a part")]

use twox_hash::XxHash32;
use zstd_safe::{CCtx, CParameter};

pub fn row_stream(rows: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in rows {
        let row = row.as_ref();
        bytes.extend((row.len() as u32).to_be_bytes());
        bytes.extend(row);
    }
    bytes
}

/// Returns a block's header as lz4-java writes it. `level` is the token's, for blocks of up to 1 <<
/// (10 + level) bytes.
pub fn lz4_header(method: u8, level: u8, compressed: u32, original: u32, hash: u32) -> Vec<u8> {
    let mut header = b"LZ4Block".to_vec();
    header.push(method | level);
    for field in [compressed, original, hash] {
        header.extend(field.to_le_bytes());
    }
    header
}

pub fn lz4_hash(original: &[u8]) -> u32 {
    XxHash32::oneshot(0x9747_b28c, original) & 0x0fff_ffff
}

/// Returns a block, raw if LZ4 does not make it smaller.
pub fn lz4_block(original: &[u8]) -> Vec<u8> {
    let mut level = 0;
    while 1 << (10 + level) < original.len() {
        level += 1;
    }
    let compressed = lz4_flex::block::compress(original);
    let (method, body) = if compressed.len() < original.len() {
        (0x20, &compressed[..])
    } else {
        (0x10, original)
    };
    let hash = lz4_hash(original);
    let mut block = lz4_header(
        method,
        level,
        body.len() as u32,
        original.len() as u32,
        hash,
    );
    block.extend(body);
    block
}

pub fn lz4_end_block() -> Vec<u8> {
    lz4_header(0x10, 5, 0, 0, 0)
}

/// Returns one stream with blocks of `block_bytes`, and its end block.
pub fn lz4_stream(original: &[u8], block_bytes: usize) -> Vec<u8> {
    let mut stream: Vec<u8> = original.chunks(block_bytes).flat_map(lz4_block).collect();
    stream.extend(lz4_end_block());
    stream
}

/// Returns one frame as zstd-jni's streams write it: level 1, a window of 512 KiB, no content size.
pub fn zstd_frame(original: &[u8], checksum: bool) -> Vec<u8> {
    let mut context = CCtx::create();
    for parameter in [
        CParameter::CompressionLevel(1),
        CParameter::WindowLog(19),
        CParameter::ContentSizeFlag(false),
        CParameter::ChecksumFlag(checksum),
    ] {
        context.set_parameter(parameter).expect("a valid parameter");
    }
    let mut frame = vec![0; zstd_safe::compress_bound(original.len())];
    let length = context
        .compress2(&mut frame[..], original)
        .expect("space for the frame");
    frame.truncate(length);
    frame
}
