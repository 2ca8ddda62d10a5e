//! Compresses pieces of a row stream as Spark's codecs do.

use crate::block::{
    block_hash, write_header, Method, TailCodec, HEADER_BYTES, MAGIC, MAX_ORIGINAL,
};
use crate::compress_error::CompressError;
use crate::decoder::{Codec, SetupError};
use crate::row_packer::{PieceCodec, RowPacker};
use std::io;
use zstd_safe::{CCtx, CParameter};

/// Compresses pieces of a partition's row stream to blocks as Spark's writers do. One after the other, and
/// [`end`](Self::end) behind them, they are the partition's bytes in the data file. A piece may end in mid-row.
pub struct BlockCompressor {
    kind: Kind,
    /// The longest piece.
    block_bytes: usize,
    /// Makes row blocks, where they are wanted.
    packer: Option<Box<RowPacker>>,
    /// Of the last block.
    codec_bytes: usize,
}

enum Kind {
    None,
    Lz4 {
        /// The low bits of a block's token: lz4-java's reader allows blocks of 1 << (10 + level) bytes.
        level: u8,
        end: [u8; HEADER_BYTES],
    },
    Zstd(Box<CCtx<'static>>),
}

impl BlockCompressor {
    /// `zstd_level` is zstd's, as `spark.io.compression.zstd.level`; zstd takes the nearest that it has. `block_bytes`
    /// is the longest piece, up to 32 MiB, as `spark.io.compression.lz4.blockSize`.
    ///
    /// # Errors
    /// No memory for zstd's context.
    pub fn new(codec: Codec, zstd_level: i32, block_bytes: usize) -> Result<Self, SetupError> {
        let kind = match codec {
            Codec::None => Kind::None,
            Codec::Lz4 => {
                let level = level(block_bytes);
                // A raw block of no bytes.
                let mut end = [0; HEADER_BYTES];
                end[..MAGIC.len()].copy_from_slice(MAGIC);
                end[MAGIC.len()] = Method::Raw.token() | level;
                Kind::Lz4 { level, end }
            }
            Codec::Zstd => {
                let mut context = CCtx::try_create().ok_or(SetupError::ZstdContext)?;
                let level = CParameter::CompressionLevel(zstd_level);
                context
                    .set_parameter(level)
                    .map_err(|_| SetupError::ZstdContext)?;
                Kind::Zstd(Box::new(context))
            }
        };
        Ok(Self {
            kind,
            block_bytes: block_bytes.min(MAX_ORIGINAL),
            packer: None,
            codec_bytes: 0,
        })
    }

    /// Lets [`compress_rows`](Self::compress_rows) make row blocks, with the first `words` words of each row packed: the
    /// words of null bits and one for each field. Readers must know row blocks. Without a codec there are none.
    #[must_use]
    pub fn with_row_blocks(mut self, words: usize) -> Self {
        let tails = match self.kind {
            Kind::None => None,
            Kind::Lz4 { .. } => Some(TailCodec::Lz4),
            Kind::Zstd(_) => Some(TailCodec::Zstd),
        };
        let packer = tails.map(|tails| RowPacker::new(words, tails, level(self.block_bytes)));
        self.packer = packer.map(Box::new);
        self
    }

    /// Bytes that a block of a piece of `bytes` bytes takes at most.
    pub fn max_bytes(&self, bytes: usize) -> usize {
        self.kind.max_bytes(bytes)
    }

    /// Writes the block of a piece to the start of `out` and returns its bytes. A piece of no bytes has no block:
    /// lz4-java's reader takes one of no bytes for the end of the stream.
    ///
    /// # Errors
    /// A piece longer than a block, too little room, or what the codec says.
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

    /// As [`compress`](Self::compress), for a piece that begins at a row. Where it is whole rows, it may become a row
    /// block. Pieces that begin in mid-row are for `compress`: their bytes could look like whole rows.
    ///
    /// # Errors
    /// As of `compress`.
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

    /// Bytes of the block that the codec alone makes of the last piece: for a row block, what it took or, from the
    /// pieces that were made in both ways, about what it would take, and never less than the row block. 0: the last
    /// piece had no block.
    pub fn codec_bytes(&self) -> usize {
        self.codec_bytes
    }

    /// How many pieces became row blocks so far.
    pub fn row_blocks(&self) -> u64 {
        self.packer.as_ref().map_or(0, |packer| packer.row_blocks())
    }

    /// Bytes of memory that this has now, without its own few fields. The context of zstd's library has its memory from
    /// the first block on; lz4's state is on the stack.
    pub fn memory(&self) -> usize {
        let packer = self
            .packer
            .as_ref()
            .map_or(0, |packer| packer.memory_bytes());
        packer
            + match &self.kind {
                Kind::None | Kind::Lz4 { .. } => 0,
                Kind::Zstd(context) => context.sizeof(),
            }
    }

    /// What ends a partition's stream that has blocks.
    pub fn end(&self) -> &[u8] {
        match &self.kind {
            Kind::None | Kind::Zstd(_) => &[],
            Kind::Lz4 { end, .. } => end,
        }
    }
}

impl Kind {
    fn max_bytes(&self, bytes: usize) -> usize {
        match self {
            Self::None => bytes,
            // LZ4_COMPRESSBOUND.
            Self::Lz4 { .. } => HEADER_BYTES + bytes + bytes / 255 + 16,
            Self::Zstd(_) => zstd_safe::compress_bound(bytes),
        }
    }
}

/// Whether a block of the piece is allowed, and has room.
fn check(kind: &Kind, longest: usize, piece: &[u8], out: &[u8]) -> Result<(), CompressError> {
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

impl PieceCodec for Kind {
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

/// What lz4-java writes into the tokens of a stream's blocks, from the longest block.
fn level(block_bytes: usize) -> u8 {
    let bits = usize::BITS - block_bytes.saturating_sub(1).leading_zeros();
    bits.saturating_sub(10) as u8
}

/// Writes one block, raw where LZ4 does not make it smaller. Returns its length.
///
/// The bytes are those of lz4-java, which is the same C code: so files have the sizes that stock Spark's have, and
/// adaptive execution decides as there.
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
