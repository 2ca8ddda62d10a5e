//! Makes row blocks of pieces of whole rows, or blocks of the codec alone where those are smaller.

use crate::block::{row_block_checksum, write_header, Method, TailCodec, HEADER_BYTES};
use crate::compress_error::CompressError;
use crate::guard::{Guard, Plan};
use crate::row_block::{BodyEncoder, Choices};

/// The first tries ask whether texts are worth their columns, and then one of so many.
const FIRST_TRIES: u32 = 3;
const TRIES_FOR_TEXTS: u32 = 4;

/// What a piece's blocks are made with: the codec of the stream.
pub(crate) trait PieceCodec {
    /// Writes the block of the codec alone, for which `out` has room.
    fn block(&mut self, piece: &[u8], out: &mut [u8]) -> Result<usize, CompressError>;

    /// Compresses a row block's tail; `None` where it does not fit.
    fn tail(&mut self, tail: &[u8], out: &mut [u8]) -> Option<usize>;
}

/// A block of so many bytes, and which kind of block it is.
enum Made {
    Rows {
        bytes: usize,
        /// What the codec alone made of the piece, where it was tried.
        codec: Option<usize>,
    },
    Codec(usize),
}

/// The bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    pub bytes: usize,
    /// Bytes of the block that the codec alone makes of the piece: an estimate where it was not tried, and never less
    /// than `bytes`.
    pub codec_bytes: usize,
}

/// What the codec alone took in the tries so far.
#[derive(Debug, Default)]
struct Tried {
    original: u64,
    codec: u64,
}

impl Tried {
    fn add(&mut self, original: usize, codec: usize) {
        self.original += original as u64;
        self.codec += codec as u64;
    }

    /// Bytes that the codec alone would take; `None` before the first try.
    fn estimate(&self, original: usize) -> Option<usize> {
        let bytes = (original as u64 * self.codec).checked_div(self.original)?;
        usize::try_from(bytes).ok()
    }
}

pub(crate) struct RowPacker {
    /// Packed words of each row.
    words: usize,
    token: u8,
    encoder: BodyEncoder,
    choices: Choices,
    guard: Guard,
    tried: Tried,
    /// Tries since the rows changed, of which not each asks about texts.
    tries: u32,
    /// The second block of a piece that is made in two ways.
    spare: Vec<u8>,
    /// Pieces that became row blocks.
    row_blocks: u64,
}

impl RowPacker {
    /// `level` is the token's.
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
            tried: Tried::default(),
            tries: 0,
            spare: Vec::new(),
            row_blocks: 0,
        }
    }

    /// Writes the piece's block. `out` has room for the block of the codec alone.
    pub fn compress(
        &mut self,
        piece: &[u8],
        out: &mut [u8],
        codec: &mut impl PieceCodec,
    ) -> Result<Packed, CompressError> {
        let (bytes, codec_bytes) = match self.make(piece, out, codec)? {
            Made::Rows { bytes, codec } => {
                self.row_blocks += 1;
                let codec = codec.or_else(|| self.tried.estimate(piece.len()));
                (bytes, codec.map_or(bytes, |codec| codec.max(bytes)))
            }
            Made::Codec(bytes) => (bytes, bytes),
        };
        Ok(Packed { bytes, codec_bytes })
    }

    fn make(
        &mut self,
        piece: &[u8],
        out: &mut [u8],
        codec: &mut impl PieceCodec,
    ) -> Result<Made, CompressError> {
        if self.guard.skips_rows() || !self.encoder.find_rows(piece) {
            return Ok(Made::Codec(codec.block(piece, out)?));
        }
        let plan = self.guard.plan(self.encoder.repeats(piece));
        let measure = plan == Plan::Both && self.asks_about_texts();
        let packed = self.pack(piece, out, codec, measure);
        let Some(bytes) = packed else {
            let bytes = codec.block(piece, out)?;
            self.tried.add(piece.len(), bytes);
            self.guard.tell(None, bytes, piece.len());
            return Ok(Made::Codec(bytes));
        };
        if plan == Plan::Packed && !self.guard.is_changed(bytes, piece.len()) {
            return Ok(Made::Rows { bytes, codec: None });
        }
        if plan == Plan::Packed {
            self.tries = 0;
        }
        let Some(spare) = spare(&mut self.spare, out.len()) else {
            return Ok(Made::Rows { bytes, codec: None });
        };
        let other = codec.block(piece, spare)?;
        self.tried.add(piece.len(), other);
        if self.guard.tell(packed, other, piece.len()) {
            let codec = Some(other);
            return Ok(Made::Rows { bytes, codec });
        }
        out[..other].copy_from_slice(&spare[..other]);
        Ok(Made::Codec(other))
    }

    /// Whether this try is one of the first or one of the few behind them that ask.
    fn asks_about_texts(&mut self) -> bool {
        self.tries = self.tries.saturating_add(1);
        self.tries <= FIRST_TRIES || self.tries % TRIES_FOR_TEXTS == 0
    }

    /// Writes a row block. `None`: it is not shorter than the piece. `measure`: with texts and without, to keep what is
    /// shorter for the next blocks.
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

    /// The bytes of the block, and whether it has texts.
    fn pack_as(
        &mut self,
        choices: Choices,
        piece: &[u8],
        out: &mut [u8],
        codec: &mut impl PieceCodec,
    ) -> Option<(usize, bool)> {
        let (header, room) = out.split_first_chunk_mut::<HEADER_BYTES>()?;
        // A body as long as the piece would be of no use.
        let room = &mut room[..piece.len() - 1];
        let mut tail = |tail: &[u8], out: &mut [u8]| codec.tail(tail, out);
        let body = self
            .encoder
            .encode(piece, self.words, choices, &mut tail, room)?;
        let bytes = &room[..body.bytes];
        let lengths = (body.bytes, piece.len());
        write_header(header, self.token, lengths, |fields| {
            row_block_checksum(fields, bytes)
        });
        Some((HEADER_BYTES + body.bytes, body.texts))
    }

    /// How many pieces became row blocks so far.
    pub fn row_blocks(&self) -> u64 {
        self.row_blocks
    }

    pub fn memory_bytes(&self) -> usize {
        self.encoder.memory_bytes() + self.spare.capacity()
    }
}

/// Room for `bytes` bytes; `None` without memory.
fn spare(buffer: &mut Vec<u8>, bytes: usize) -> Option<&mut [u8]> {
    if let Some(more) = bytes.checked_sub(buffer.len()) {
        buffer.try_reserve_exact(more).ok()?;
        buffer.resize(bytes, 0);
    }
    Some(&mut buffer[..bytes])
}
