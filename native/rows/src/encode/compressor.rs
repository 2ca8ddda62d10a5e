//! Compresses pieces of a row stream as Spark's codecs do.

use super::error::CompressError;
use super::row_packer::{PieceCodec, RowPacker};
use crate::format::block::{
    block_hash, write_header, Method, TailCodec, HEADER_BYTES, MAGIC, MAX_ORIGINAL,
};
use crate::format::codec::{Codec, SetupError};
use std::io;
use zstd_safe::{CCtx, CParameter};

/// Compresses pieces of a partition's row stream to blocks, as Spark's writers do. The blocks, one
/// after the other, and then [`end`](Self::end) are the partition's bytes in the data file. A piece
/// may end inside a row.
pub struct BlockCompressor {
    kind: StreamCodec,
    /// Maximum length of a piece, in bytes.
    block_bytes: usize,
    /// Makes row blocks; `None` unless [`with_row_blocks`](Self::with_row_blocks) asked for them.
    packer: Option<Box<RowPacker>>,
    /// The value of [`codec_bytes`](Self::codec_bytes) for the last block.
    codec_bytes: usize,
}

enum StreamCodec {
    None,
    Lz4 {
        /// The low four bits of each block's token: lz4-java's reader allows blocks of 1 << (10 +
        /// level) bytes.
        level: u8,
        end: [u8; HEADER_BYTES],
    },
    Zstd(Box<CCtx<'static>>),
}

impl BlockCompressor {
    /// Returns a compressor without row blocks. `zstd_level` is `spark.io.compression.zstd.level`;
    /// zstd uses the nearest level that it supports. `block_bytes` is the maximum length of a
    /// piece, as in `spark.io.compression.lz4.blockSize`; more than 32 MiB count as 32 MiB.
    ///
    /// # Errors
    /// Fails if there is no memory for zstd's context.
    pub fn new(codec: Codec, zstd_level: i32, block_bytes: usize) -> Result<Self, SetupError> {
        let kind = match codec {
            Codec::None => StreamCodec::None,
            Codec::Lz4 => {
                let level = level(block_bytes);
                // The end block is a raw block of no bytes.
                let mut end = [0; HEADER_BYTES];
                end[..MAGIC.len()].copy_from_slice(MAGIC);
                end[MAGIC.len()] = Method::Raw.token() | level;
                StreamCodec::Lz4 { level, end }
            }
            Codec::Zstd => {
                let mut context = CCtx::try_create().ok_or(SetupError::ZstdContext)?;
                let level = CParameter::CompressionLevel(zstd_level);
                context
                    .set_parameter(level)
                    .map_err(|_| SetupError::ZstdContext)?;
                StreamCodec::Zstd(Box::new(context))
            }
        };
        Ok(Self {
            kind,
            block_bytes: block_bytes.min(MAX_ORIGINAL),
            packer: None,
            codec_bytes: 0,
        })
    }

    /// Lets [`compress_rows`](Self::compress_rows) make row blocks, with the first `words` words of
    /// each row packed: the words of null bits and one word for each field. Readers must support
    /// row blocks. With `Codec::None` no row blocks are made.
    #[must_use]
    pub fn with_row_blocks(mut self, words: usize) -> Self {
        let tails = match self.kind {
            StreamCodec::None => None,
            StreamCodec::Lz4 { .. } => Some(TailCodec::Lz4),
            StreamCodec::Zstd(_) => Some(TailCodec::Zstd),
        };
        let packer = tails.map(|tails| RowPacker::new(words, tails, level(self.block_bytes)));
        self.packer = packer.map(Box::new);
        self
    }

    /// Returns the maximum size of the block of a piece of `bytes` bytes.
    pub fn max_bytes(&self, bytes: usize) -> usize {
        self.kind.max_bytes(bytes)
    }

    /// Writes the block of a piece to the start of `out` and returns the block's size in bytes. An
    /// empty piece gets no block, because lz4-java's reader takes an empty block for the end of the
    /// stream.
    ///
    /// # Errors
    /// Fails if the piece is longer than a block, if `out` is shorter than
    /// [`max_bytes`](Self::max_bytes), or if the codec fails.
    pub fn compress(&mut self, piece: &[u8], out: &mut [u8]) -> Result<usize, CompressError> {
        self.codec_bytes = 0;
        if piece.is_empty() {
            return Ok(0);
        }
        check(&self.kind, self.block_bytes, piece, out)?;
        let bytes = self.kind.block(piece, out)?;
        self.codec_bytes = bytes;
        Ok(bytes)
    }

    /// Compresses a piece that begins at the start of a row, like [`compress`](Self::compress). If
    /// the piece is whole rows, the result may be a row block. Use `compress` for pieces that begin
    /// inside a row: their bytes could look like whole rows.
    ///
    /// # Errors
    /// The errors are those of `compress`.
    pub fn compress_rows(&mut self, piece: &[u8], out: &mut [u8]) -> Result<usize, CompressError> {
        let Some(packer) = &mut self.packer else {
            return self.compress(piece, out);
        };
        self.codec_bytes = 0;
        if piece.is_empty() {
            return Ok(0);
        }
        check(&self.kind, self.block_bytes, piece, out)?;
        let packed = packer.compress(piece, out, &mut self.kind)?;
        self.codec_bytes = packed.codec_bytes;
        Ok(packed.bytes)
    }

    /// Returns the size of the block that the codec alone makes of the last piece, in bytes. For a
    /// row block this is measured if the piece was compressed in both ways. Otherwise it is
    /// estimated from the pieces that were, and it is at least the row block's size. Returns 0 if
    /// the last piece had no block.
    pub fn codec_bytes(&self) -> usize {
        self.codec_bytes
    }

    /// Returns the number of pieces that became row blocks.
    pub fn row_blocks(&self) -> u64 {
        self.packer.as_ref().map_or(0, |packer| packer.row_blocks())
    }

    /// Returns the heap memory of the compressor, in bytes. zstd's context allocates with its first
    /// block; lz4's state is on the stack.
    pub fn memory(&self) -> usize {
        let packer = self
            .packer
            .as_ref()
            .map_or(0, |packer| packer.memory_bytes());
        packer
            + match &self.kind {
                StreamCodec::None | StreamCodec::Lz4 { .. } => 0,
                StreamCodec::Zstd(context) => context.sizeof(),
            }
    }

    /// Returns the bytes that end the stream of a partition with at least one block; empty without
    /// a codec and for zstd.
    pub fn end(&self) -> &[u8] {
        match &self.kind {
            StreamCodec::None | StreamCodec::Zstd(_) => &[],
            StreamCodec::Lz4 { end, .. } => end,
        }
    }
}

impl StreamCodec {
    fn max_bytes(&self, bytes: usize) -> usize {
        match self {
            Self::None => bytes,
            // The formula of LZ4_COMPRESSBOUND.
            Self::Lz4 { .. } => HEADER_BYTES + bytes + bytes / 255 + 16,
            Self::Zstd(_) => zstd_safe::compress_bound(bytes),
        }
    }
}

/// Checks that the piece fits in one block and that `out` has room for the longest block of it.
fn check(
    kind: &StreamCodec,
    longest: usize,
    piece: &[u8],
    out: &[u8],
) -> Result<(), CompressError> {
    let bytes = piece.len();
    if bytes > longest {
        let max = longest;
        return Err(CompressError::TooLong { bytes, max });
    }
    let (room, max) = (out.len(), kind.max_bytes(bytes));
    if room < max {
        return Err(CompressError::NoRoom { room, max });
    }
    Ok(())
}

impl PieceCodec for StreamCodec {
    fn block(&mut self, piece: &[u8], out: &mut [u8]) -> Result<usize, CompressError> {
        let bytes = piece.len();
        let refused = |codec, problem| CompressError::Refused {
            codec,
            bytes,
            problem,
        };
        match self {
            Self::None => {
                out[..bytes].copy_from_slice(piece);
                Ok(bytes)
            }
            Self::Lz4 { level, .. } => {
                lz4(piece, out, *level).map_err(|error| refused("lz4", error.to_string()))
            }
            Self::Zstd(context) => context
                .compress2(out, piece)
                .map_err(|code| refused("zstd", zstd_safe::get_error_name(code).to_owned())),
        }
    }

    fn tail(&mut self, tail: &[u8], out: &mut [u8]) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Lz4 { .. } => lz4::block::compress_to_buffer(tail, None, false, out).ok(),
            Self::Zstd(context) => context.compress2(out, tail).ok(),
        }
    }
}

/// Returns the level that lz4-java writes into each token of a stream whose longest block has
/// `block_bytes` bytes.
fn level(block_bytes: usize) -> u8 {
    let bits = usize::BITS - block_bytes.saturating_sub(1).leading_zeros();
    bits.saturating_sub(10) as u8
}

/// Writes one block, raw if LZ4 does not make it smaller, and returns its length.
///
/// lz4-java calls the same C code and so writes the same bytes. Files then have the sizes that
/// stock Spark's have, and adaptive execution makes the same decisions.
fn lz4(piece: &[u8], out: &mut [u8], level: u8) -> io::Result<usize> {
    let Some((header, body)) = out.split_first_chunk_mut() else {
        return Err(io::ErrorKind::WriteZero.into());
    };
    let compressed = lz4::block::compress_to_buffer(piece, None, false, body)?;
    let (method, length) = if compressed < piece.len() {
        (Method::Lz4, compressed)
    } else {
        body[..piece.len()].copy_from_slice(piece);
        (Method::Raw, piece.len())
    };
    let lengths = (length, piece.len());
    write_header(header, method.token() | level, lengths, |_| {
        block_hash(piece)
    });
    Ok(HEADER_BYTES + length)
}
