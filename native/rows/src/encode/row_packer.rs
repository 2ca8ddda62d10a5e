//! Makes row blocks of pieces of whole rows, or blocks of the codec alone where those are smaller.

use super::body::{BodyEncoder, Choices};
use super::error::CompressError;
use super::guard::{Guard, GuardPlan};
use crate::format::block::{row_block_checksum, write_header, Method, TailCodec, HEADER_BYTES};
use crate::format::body::{HEAD_BYTES, PAD_BYTES};

/// The first tries measure whether texts are worth their columns; after them only one try in
/// [`TRIES_FOR_TEXTS`] does.
const FIRST_TRIES: u32 = 3;
const TRIES_FOR_TEXTS: u32 = 4;

/// The codec of the stream, which compresses blocks and the tails of row blocks.
pub(crate) trait PieceCodec {
    /// Writes the block that the codec alone makes, and returns its bytes. `out` must have room for
    /// it.
    fn block(&mut self, piece: &[u8], out: &mut [u8]) -> Result<usize, CompressError>;

    /// Compresses a row block's tail and returns its bytes; `None` if it does not fit in `out`.
    fn tail(&mut self, tail: &[u8], out: &mut [u8]) -> Option<usize>;
}

/// The kind of a block that was made, and its bytes.
enum PackedBlock {
    Rows {
        bytes: usize,
        /// Bytes of the codec's own block of the piece, if it was made too.
        codec: Option<usize>,
    },
    Codec(usize),
}

/// The size of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedSize {
    pub bytes: usize,
    /// Size of the block that the codec alone makes of the piece, in bytes. It is an estimate if
    /// that block was not made, and at least `bytes`.
    pub codec_bytes: usize,
}

/// Bytes before and after the codec alone, summed over all tries.
#[derive(Debug, Default)]
struct CodecTotals {
    original: u64,
    codec: u64,
}

impl CodecTotals {
    fn add(&mut self, original: usize, codec: usize) {
        self.original += original as u64;
        self.codec += codec as u64;
    }

    /// Estimates the bytes that the codec alone would make; `None` before the first try.
    fn estimate(&self, original: usize) -> Option<usize> {
        let bytes = (original as u64 * self.codec).checked_div(self.original)?;
        usize::try_from(bytes).ok()
    }
}

pub(crate) struct RowPacker {
    /// Number of packed words of each row.
    words: usize,
    token: u8,
    encoder: BodyEncoder,
    choices: Choices,
    guard: Guard,
    tried: CodecTotals,
    /// Number of tries since the rows last changed; decides which tries measure texts.
    tries: u32,
    /// Room for the second block of a piece that is made in two ways.
    spare: Vec<u8>,
    /// Number of pieces that became row blocks.
    row_blocks: u64,
}

impl RowPacker {
    /// `level` is the low half of the blocks' tokens.
    pub fn new(words: usize, codec: TailCodec, level: u8) -> Self {
        Self {
            words,
            token: Method::Rows(codec).token() | level,
            encoder: BodyEncoder::default(),
            choices: Choices {
                texts: true,
                dictionaries: true,
            },
            guard: Guard::new(codec),
            tried: CodecTotals::default(),
            tries: 0,
            spare: Vec::new(),
            row_blocks: 0,
        }
    }

    /// Writes the piece's block. `out` must have room for the block of the codec alone.
    pub fn compress(
        &mut self,
        piece: &[u8],
        out: &mut [u8],
        codec: &mut impl PieceCodec,
    ) -> Result<PackedSize, CompressError> {
        let (bytes, codec_bytes) = match self.make(piece, out, codec)? {
            PackedBlock::Rows { bytes, codec } => {
                self.row_blocks += 1;
                let codec = codec.or_else(|| self.tried.estimate(piece.len()));
                (bytes, codec.map_or(bytes, |codec| codec.max(bytes)))
            }
            PackedBlock::Codec(bytes) => (bytes, bytes),
        };
        Ok(PackedSize { bytes, codec_bytes })
    }

    fn make(
        &mut self,
        piece: &[u8],
        out: &mut [u8],
        codec: &mut impl PieceCodec,
    ) -> Result<PackedBlock, CompressError> {
        if self.guard.skips_rows() || !self.encoder.find_rows(piece) {
            return Ok(PackedBlock::Codec(codec.block(piece, out)?));
        }
        let plan = self.guard.plan(self.encoder.repeats(piece));
        let measure = plan == GuardPlan::Both && self.asks_about_texts();
        let packed = self.pack(piece, out, codec, measure);
        let Some(bytes) = packed else {
            let bytes = codec.block(piece, out)?;
            self.tried.add(piece.len(), bytes);
            self.guard.tell(None, bytes, piece.len());
            return Ok(PackedBlock::Codec(bytes));
        };
        if plan == GuardPlan::Packed && !self.guard.is_changed(bytes, piece.len()) {
            return Ok(PackedBlock::Rows { bytes, codec: None });
        }
        if plan == GuardPlan::Packed {
            self.tries = 0;
        }
        let Some(spare) = spare(&mut self.spare, out.len()) else {
            return Ok(PackedBlock::Rows { bytes, codec: None });
        };
        let other = codec.block(piece, spare)?;
        self.tried.add(piece.len(), other);
        if self.guard.tell(packed, other, piece.len()) {
            let codec = Some(other);
            return Ok(PackedBlock::Rows { bytes, codec });
        }
        out[..other].copy_from_slice(&spare[..other]);
        Ok(PackedBlock::Codec(other))
    }

    /// Counts a try and returns whether it measures texts.
    fn asks_about_texts(&mut self) -> bool {
        self.tries = self.tries.saturating_add(1);
        self.tries <= FIRST_TRIES || self.tries % TRIES_FOR_TEXTS == 0
    }

    /// Writes a row block and returns its bytes; `None` if it is not shorter than the piece. If
    /// `measure` is true, tries both with and without texts, and keeps the shorter choice for the
    /// next blocks.
    fn pack(
        &mut self,
        piece: &[u8],
        out: &mut [u8],
        codec: &mut impl PieceCodec,
        measure: bool,
    ) -> Option<usize> {
        let first = self.pack_as(self.choices, piece, out, codec);
        let others = Choices {
            texts: !self.choices.texts,
            ..self.choices
        };
        let has_texts = first.is_none_or(|(_, texts)| texts) || others.texts;
        if !measure || !has_texts {
            return first.map(|(bytes, _)| bytes);
        }
        let mut buffer = std::mem::take(&mut self.spare);
        let room = out.len();
        let second = spare(&mut buffer, room)
            .and_then(|spare| self.pack_as(others, piece, spare, codec))
            .filter(|(second, _)| first.is_none_or(|(first, _)| *second < first));
        if let Some((bytes, _)) = second {
            out[..bytes].copy_from_slice(&buffer[..bytes]);
            self.choices = others;
        }
        self.spare = buffer;
        second.or(first).map(|(bytes, _)| bytes)
    }

    /// Writes a row block. Returns its bytes, and whether it has texts.
    fn pack_as(
        &mut self,
        choices: Choices,
        piece: &[u8],
        out: &mut [u8],
        codec: &mut impl PieceCodec,
    ) -> Option<(usize, bool)> {
        let (header, room) = out.split_first_chunk_mut::<HEADER_BYTES>()?;
        // A body as long as the piece would save nothing.
        let room = &mut room[..piece.len() - 1];
        let mut tail = |tail: &[u8], out: &mut [u8]| codec.tail(tail, out);
        let body = self
            .encoder
            .encode(piece, self.words, choices, &mut tail, room)?;
        debug_assert!(body.bytes >= HEAD_BYTES + PAD_BYTES);
        let bytes = &room[..body.bytes];
        let lengths = (body.bytes, piece.len());
        write_header(header, self.token, lengths, |fields| {
            row_block_checksum(fields, bytes)
        });
        Some((HEADER_BYTES + body.bytes, body.texts))
    }

    pub fn row_blocks(&self) -> u64 {
        self.row_blocks
    }

    pub fn memory_bytes(&self) -> usize {
        self.encoder.memory_bytes() + self.spare.capacity()
    }
}

/// Returns `bytes` bytes of the buffer; `None` if it cannot grow to that size.
fn spare(buffer: &mut Vec<u8>, bytes: usize) -> Option<&mut [u8]> {
    if let Some(more) = bytes.checked_sub(buffer.len()) {
        buffer.try_reserve_exact(more).ok()?;
        buffer.resize(bytes, 0);
    }
    Some(&mut buffer[..bytes])
}
