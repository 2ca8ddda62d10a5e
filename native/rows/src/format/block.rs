//! Parses and writes the 21-byte header of lz4-java's blocks, which row blocks share
//! (docs/design/row-block-format.md).

use super::corruption::Corruption;
use crc_fast::{CrcAlgorithm, Digest};
use twox_hash::XxHash32;

pub(crate) const MAGIC: &[u8; 8] = b"LZ4Block";
pub(crate) const HEADER_BYTES: usize = 21;
/// Maximum original length of a block, in bytes.
pub(crate) const MAX_ORIGINAL: usize = 32 << 20;
/// Bytes of the token and the two lengths, which a row block's checksum covers.
pub(crate) const CHECKED_FIELDS: usize = 9;
/// Minimum length of a row block's body, in bytes.
const MIN_BODY: i32 = 20;
const SEED: u32 = 0x9747_b28c;
/// lz4-java keeps the lower 28 bits of a hash.
const HASH_MASK: u32 = 0x0fff_ffff;
/// Returns the hash of a block's original bytes, as lz4-java computes it.
pub(crate) fn block_hash(original: &[u8]) -> u32 {
    XxHash32::oneshot(SEED, original) & HASH_MASK
}

/// The encoding of a block: the upper half of its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Raw,
    Lz4,
    /// A row block, with the codec of its tail.
    Rows(TailCodec),
}

/// The codec that compresses the tail of a row block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TailCodec {
    Lz4,
    Zstd,
}

impl Method {
    fn of(token: u8) -> Option<Self> {
        Some(match token & 0xf0 {
            0x10 => Self::Raw,
            0x20 => Self::Lz4,
            0x30 => Self::Rows(TailCodec::Lz4),
            0x40 => Self::Rows(TailCodec::Zstd),
            _ => return None,
        })
    }

    pub fn token(self) -> u8 {
        match self {
            Self::Raw => 0x10,
            Self::Lz4 => 0x20,
            Self::Rows(TailCodec::Lz4) => 0x30,
            Self::Rows(TailCodec::Zstd) => 0x40,
        }
    }

    /// Returns the minimum original length of a block of this method, in bytes.
    fn min_original(self) -> i32 {
        match self {
            // An end block has the length 0.
            Self::Raw | Self::Lz4 => 0,
            // A row without bytes still has its length, 4 bytes.
            Self::Rows(_) => 4,
        }
    }
}

/// Computes the CRC-32C of a row block over its token, its lengths and its body.
pub(crate) fn row_block_checksum(fields: &[u8; CHECKED_FIELDS], body: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(fields);
    digest.update(body);
    digest.finalize() as u32
}

/// Writes the header of a block whose body follows it. `lengths` are the compressed and the
/// original one.
pub(crate) fn write_header(
    header: &mut [u8; HEADER_BYTES],
    token: u8,
    lengths: (usize, usize),
    checksum: impl FnOnce(&[u8; CHECKED_FIELDS]) -> u32,
) {
    let mut fields = [token; CHECKED_FIELDS];
    fields[1..5].copy_from_slice(&(lengths.0 as u32).to_le_bytes());
    fields[5..].copy_from_slice(&(lengths.1 as u32).to_le_bytes());
    header[..8].copy_from_slice(MAGIC);
    header[8..17].copy_from_slice(&fields);
    header[17..].copy_from_slice(&checksum(&fields).to_le_bytes());
}

/// A block's header whose fields were checked. Both lengths are 0 in an end block.
pub(crate) struct Header {
    pub offset: u64,
    pub method: Method,
    pub compressed: usize,
    pub original: usize,
    checksum: u32,
    /// The token and the lengths, which a row block's checksum covers.
    fields: [u8; CHECKED_FIELDS],
}

impl Header {
    /// Parses and checks a header. `offset` is the header's position in the part, for the error.
    pub fn parse(bytes: &[u8; HEADER_BYTES], offset: u64) -> Result<Self, Corruption> {
        let (magic, fields) = bytes.split_at(MAGIC.len());
        if magic != MAGIC {
            let mut found = [0; 8];
            found.copy_from_slice(magic);
            return Err(Corruption::Magic { offset, found });
        }
        let int = |at: usize| {
            i32::from_le_bytes([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]])
        };
        let (token, compressed, original, checksum) = (fields[0], int(1), int(5), int(9) as u32);
        // docs/design/row-block-format.md, check 1.
        let method = Method::of(token).ok_or(Corruption::Method {
            offset,
            found: token & 0xf0,
        })?;
        let (min, max) = (method.min_original(), 1 << (10 + (token & 0x0f)));
        if !(min..=max).contains(&original) {
            return Err(Corruption::OriginalLength {
                offset,
                found: original,
                min,
                max,
            });
        }
        let (min, max) = match method {
            Method::Raw => (original, original),
            // One byte of the format stands for at most 255 bytes, and bytes that cannot be
            // compressed grow by one byte in 255. lz4-java has the same bound.
            Method::Lz4 if original > 0 => (1.max(original / 255), original + original / 255 + 16),
            Method::Lz4 => (0, 0),
            Method::Rows(_) => (MIN_BODY, 2 * original + 64),
        };
        if !(min..=max).contains(&compressed) {
            return Err(Corruption::CompressedLength {
                offset,
                found: compressed,
                original,
                min,
                max,
            });
        }
        if original == 0 && checksum != 0 {
            return Err(Corruption::EndBlock {
                offset,
                found: checksum,
            });
        }
        let mut checked = [0; CHECKED_FIELDS];
        checked.copy_from_slice(&fields[..CHECKED_FIELDS]);
        Ok(Self {
            offset,
            method,
            compressed: compressed as usize,
            original: original as usize,
            checksum,
            fields: checked,
        })
    }

    /// Compares the checksum with that of the original bytes, or of a row block's body.
    pub fn check(&self, bytes: &[u8]) -> Result<(), Corruption> {
        let found = match self.method {
            Method::Raw | Method::Lz4 => block_hash(bytes),
            Method::Rows(_) => row_block_checksum(&self.fields, bytes),
        };
        if found == self.checksum {
            return Ok(());
        }
        Err(Corruption::Checksum {
            offset: self.offset,
            found,
            expected: self.checksum,
        })
    }
}
