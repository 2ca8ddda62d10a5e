//! The error of [`RowDecoder`](crate::RowDecoder).

use super::fault::RowBlockFault;

/// The reason that a part cannot be decoded. Positions count from 0 at the part's start: `offset`
/// in the compressed bytes, `decoded` in the decompressed row stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corruption {
    #[error("the row at decoded byte {decoded} is {length} bytes long; a length is 0 or a positive multiple of 8")]
    RowLength { decoded: u64, length: i32 },
    #[error("the part ends inside a row: its last {bytes} decoded bytes, from byte {decoded} on, are not a whole row")]
    PartialRow { decoded: u64, bytes: u64 },
    #[error("the LZ4 block at byte {offset} starts with {found:02x?}; expected \"LZ4Block\"")]
    Magic { offset: u64, found: [u8; 8] },
    #[error("the LZ4 block at byte {offset} has the method {found:#04x}; allowed are 0x10 (raw), 0x20 (LZ4), 0x30 and 0x40 (row blocks)")]
    Method { offset: u64, found: u8 },
    #[error(
        "the LZ4 block at byte {offset} has an original length of {found}; allowed are {min} to {max}"
    )]
    OriginalLength {
        offset: u64,
        found: i32,
        min: i32,
        max: i32,
    },
    #[error("the LZ4 block at byte {offset} has a compressed length of {found}; allowed for {original} bytes are {min} to {max}")]
    CompressedLength {
        offset: u64,
        found: i32,
        original: i32,
        min: i32,
        max: i32,
    },
    #[error("the end block at byte {offset} has the checksum {found:#010x}; expected 0")]
    EndBlock { offset: u64, found: u32 },
    #[error("the LZ4 block at byte {offset} does not decompress: {reason}")]
    Lz4 { offset: u64, reason: String },
    #[error(
        "the LZ4 block at byte {offset} decompresses to {found} bytes; its header says {expected}"
    )]
    DecompressedLength {
        offset: u64,
        found: usize,
        expected: usize,
    },
    #[error("the LZ4 block at byte {offset} has the checksum {found:#010x}; its header says {expected:#010x}")]
    Checksum {
        offset: u64,
        found: u32,
        expected: u32,
    },
    #[error(
        "the part ends inside the LZ4 block at byte {offset}: {found} of {needed} bytes are there"
    )]
    PartialBlock {
        offset: u64,
        found: usize,
        needed: usize,
    },
    #[error("the row block at byte {offset} cannot be decoded: {fault}")]
    RowBlock { offset: u64, fault: RowBlockFault },
    #[error("the zstd frame at byte {offset} does not decompress: {reason}")]
    Zstd { offset: u64, reason: &'static str },
    #[error("the part ends inside the zstd frame at byte {offset}")]
    PartialFrame { offset: u64 },
    /// The part is intact, but its decoding ends here as it does after a corruption.
    #[error("no memory for a {purpose} of {bytes} bytes")]
    NoMemory { bytes: usize, purpose: &'static str },
}
