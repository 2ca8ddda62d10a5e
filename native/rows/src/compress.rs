//! Compresses pieces of a row stream as Spark's codecs do.

use crate::decoder::{Codec, SetupError};
use crate::lz4::{block_hash, HEADER_BYTES, MAGIC};
use thiserror::Error;
use zstd_safe::{CCtx, CParameter};

/// Longest piece: what one block of lz4-java's format may hold.
pub(crate) const MOST_BYTES: usize = 32 << 20;

/// Why a piece of a row stream cannot be compressed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompressError {
    /// More than one block holds.
    #[error("a block of {bytes} bytes, at most {most} are allowed")]
    TooLong { bytes: usize, most: usize },
    /// The output is shorter than [`BlockCompressor::most_bytes`].
    #[error("{room} bytes for a block that may take {most}")]
    NoRoom { room: usize, most: usize },
    /// The codec refuses.
    #[error("{codec} cannot compress {bytes} bytes: {problem}")]
    Refused {
        codec: &'static str,
        bytes: usize,
        problem: String,
    },
}

/// Compresses pieces of a partition's row stream to blocks as Spark's writers do. One after the other, and
/// [`end`](Self::end) behind them, they are the partition's bytes in the data file. A piece may end in mid-row.
pub struct BlockCompressor(Kind);

enum Kind {
    None,
    Lz4,
    Zstd(Box<CCtx<'static>>),
}

impl BlockCompressor {
    /// `zstd_level` is zstd's, as `spark.io.compression.zstd.level`; zstd takes the nearest that it has.
    ///
    /// # Errors
    /// No memory for zstd's context.
    pub fn new(codec: Codec, zstd_level: i32) -> Result<Self, SetupError> {
        Ok(Self(match codec {
            Codec::None => Kind::None,
            Codec::Lz4 => Kind::Lz4,
            Codec::Zstd => {
                let mut context = CCtx::try_create().ok_or(SetupError::ZstdContext)?;
                let level = CParameter::CompressionLevel(zstd_level);
                context
                    .set_parameter(level)
                    .map_err(|_| SetupError::ZstdContext)?;
                Kind::Zstd(Box::new(context))
            }
        }))
    }

    /// Bytes that a block of a piece of `bytes` bytes takes at most.
    pub fn most_bytes(&self, bytes: usize) -> usize {
        match self.0 {
            Kind::None => bytes,
            Kind::Lz4 => HEADER_BYTES + lz4_flex::block::get_maximum_output_size(bytes),
            Kind::Zstd(_) => zstd_safe::compress_bound(bytes),
        }
    }

    /// Writes the block of a piece to the start of `out` and returns its bytes. A piece of no bytes has no block:
    /// lz4-java's reader takes one of no bytes for the end of the stream.
    ///
    /// # Errors
    /// A piece above 32 MiB, too little room, or what the codec says.
    pub fn compress(&mut self, piece: &[u8], out: &mut [u8]) -> Result<usize, CompressError> {
        let bytes = piece.len();
        if bytes == 0 {
            return Ok(0);
        }
        if bytes > MOST_BYTES {
            let most = MOST_BYTES;
            return Err(CompressError::TooLong { bytes, most });
        }
        let (room, most) = (out.len(), self.most_bytes(bytes));
        if room < most {
            return Err(CompressError::NoRoom { room, most });
        }
        let refused = |codec, problem| CompressError::Refused {
            codec,
            bytes,
            problem,
        };
        match &mut self.0 {
            Kind::None => {
                out[..bytes].copy_from_slice(piece);
                Ok(bytes)
            }
            Kind::Lz4 => lz4(piece, out).map_err(|error| refused("lz4", error.to_string())),
            Kind::Zstd(context) => context
                .compress2(out, piece)
                .map_err(|code| refused("zstd", zstd_safe::get_error_name(code).to_owned())),
        }
    }

    /// What ends a partition's stream that has blocks.
    pub fn end(&self) -> &'static [u8] {
        match self.0 {
            Kind::None | Kind::Zstd(_) => &[],
            Kind::Lz4 => &END_BLOCK,
        }
    }
}

/// The level in a block's token says how long its original may be: 1 << (10 + level).
fn level(original: usize) -> u8 {
    let bits = usize::BITS - original.saturating_sub(1).leading_zeros();
    bits.saturating_sub(10) as u8
}

/// lz4-java's end of a stream: a raw block of no bytes, with the level of the default block size.
const END_BLOCK: [u8; HEADER_BYTES] = {
    let mut block = [0; HEADER_BYTES];
    let mut at = 0;
    while at < MAGIC.len() {
        block[at] = MAGIC[at];
        at += 1;
    }
    block[at] = 0x10 | 5;
    block
};

/// Writes one block, raw where LZ4 does not make it smaller. Returns its length.
fn lz4(piece: &[u8], out: &mut [u8]) -> Result<usize, lz4_flex::block::CompressError> {
    let (header, body) = out.split_at_mut(HEADER_BYTES);
    let compressed = lz4_flex::block::compress_into(piece, body)?;
    let (method, length) = if compressed < piece.len() {
        (0x20, compressed)
    } else {
        body[..piece.len()].copy_from_slice(piece);
        (0x10, piece.len())
    };
    header[..8].copy_from_slice(MAGIC);
    header[8] = method | level(piece.len());
    header[9..13].copy_from_slice(&(length as u32).to_le_bytes());
    header[13..17].copy_from_slice(&(piece.len() as u32).to_le_bytes());
    header[17..21].copy_from_slice(&block_hash(piece).to_le_bytes());
    Ok(HEADER_BYTES + length)
}
