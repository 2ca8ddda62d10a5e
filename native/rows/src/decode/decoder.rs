//! Decodes the parts of a reader to batches of rows.

use super::batch::{Batch, PartEnd, PushResult};
use super::lz4::Lz4;
use super::row_writer::RowWriter;
use super::zstd::Zstd;
use crate::format::codec::{Codec, SetupError};
use crate::format::corruption::Corruption;

enum PartDecoder {
    None,
    Lz4(Lz4),
    Zstd(Zstd),
}

/// Decodes the parts of a reader, one after the other.
///
/// This example compresses four rows of three words each and decodes them:
///
/// ```
/// use faro_rows::{Batch, BlockCompressor, Codec, RowDecoder, ROW_HEAD_BYTES};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Spark's serializer writes each row's length, then an `UnsafeRow` of null bits and two fields.
/// let mut stream = Vec::new();
/// for id in 0u64..4 {
///     stream.extend(24u32.to_be_bytes());
///     for word in [0, id, id * id] {
///         stream.extend(word.to_le_bytes());
///     }
/// }
/// let mut compressor = BlockCompressor::new(Codec::Lz4, 1, 32 << 10)?.with_row_blocks(3);
/// let mut part = vec![0; compressor.max_bytes(stream.len())];
/// let bytes = compressor.compress_rows(&stream, &mut part)?;
/// part.truncate(bytes);
/// part.extend(compressor.end());
///
/// // A reader pushes the part's bytes, cut anywhere, and takes batches out.
/// let mut decoder = RowDecoder::new(Codec::Lz4, 1 << 10)?;
/// for cut in part.chunks(10) {
///     let pushed = decoder.push(cut)?;
///     assert!(!pushed.full, "the batch has room for four rows");
/// }
/// assert!(!decoder.end_part()?.full);
/// match decoder.turn() {
///     Batch::Rows { bytes, rows } => {
///         assert_eq!((rows, bytes.len()), (4, 4 * (ROW_HEAD_BYTES + 24)));
///     }
///     other => panic!("no rows: {other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
pub struct RowDecoder {
    source: PartDecoder,
    rows: RowWriter,
    /// The corruption of the current part, which every call returns until the part is abandoned.
    failed: Option<Corruption>,
}

impl RowDecoder {
    /// Returns a decoder whose batches have at most `batch_bytes` bytes, heads included. A longer
    /// row is handed out in pieces.
    pub fn new(codec: Codec, batch_bytes: usize) -> Result<Self, SetupError> {
        if batch_bytes % 8 != 0 || !(64..=1 << 30).contains(&batch_bytes) {
            return Err(SetupError::BatchBytes(batch_bytes));
        }
        let source = match codec {
            Codec::None => PartDecoder::None,
            Codec::Lz4 => PartDecoder::Lz4(Lz4::default()),
            Codec::Zstd => PartDecoder::Zstd(Zstd::new().ok_or(SetupError::ZstdContext)?),
        };
        Ok(Self {
            source,
            rows: RowWriter::new(batch_bytes).ok_or(SetupError::NoMemory(batch_bytes))?,
            failed: None,
        })
    }

    /// Takes bytes of the current part; callers may cut the part anywhere. Returns when all bytes
    /// are taken or when the next row does not fit in the batch.
    ///
    /// After a corruption call [`abandon_part`](Self::abandon_part). Until then each push returns
    /// the same corruption, and the rows before it stay in the batch.
    pub fn push(&mut self, input: &[u8]) -> Result<PushResult, Corruption> {
        self.check()?;
        let rows = &mut self.rows;
        let pushed = match &mut self.source {
            PartDecoder::None => rows.take(input).map(|taken| PushResult {
                taken,
                full: taken < input.len(),
            }),
            PartDecoder::Lz4(source) => source.push(input, rows),
            PartDecoder::Zstd(source) => source.push(input, rows),
        };
        self.keep_failure(pushed)
    }

    /// Ends the current part. If `full` is false, the part is complete: it ended at the end of a
    /// stream and of a row, and all its rows are in batches. The next push starts another part.
    pub fn end_part(&mut self) -> Result<PartEnd, Corruption> {
        self.check()?;
        let rows = &mut self.rows;
        let drained = match &mut self.source {
            PartDecoder::None => Ok(true),
            PartDecoder::Lz4(source) => source.end_part(rows),
            PartDecoder::Zstd(source) => source.end_part(rows),
        };
        // The last piece of a long row must be handed out before the part ends.
        if !self.keep_failure(drained)? || self.rows.ends_long_row() {
            return Ok(PartEnd { full: true });
        }
        let ended = self.rows.check_end();
        self.keep_failure(ended)?;
        self.rows.end_part();
        self.source.start_part();
        Ok(PartEnd { full: false })
    }

    /// Drops the current part: its decoded bytes and its rows in the current batch. Rows of earlier
    /// parts stay in the batch. The next push starts another part.
    pub fn abandon_part(&mut self) {
        self.rows.abandon_part();
        self.source.start_part();
        self.failed = None;
    }

    /// Hands out the current batch, which may be empty. The next push overwrites its memory.
    pub fn turn(&mut self) -> Batch<'_> {
        self.rows.turn()
    }

    /// Returns whether the current batch has rows, or a piece of a row.
    pub fn has_batch(&self) -> bool {
        self.rows.has_batch()
    }

    /// Returns the heap memory of the decoder, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.rows.memory_bytes()
            + match &self.source {
                PartDecoder::None => 0,
                PartDecoder::Lz4(source) => source.memory_bytes(),
                PartDecoder::Zstd(source) => source.memory_bytes(),
            }
    }

    /// Returns how many whole rows of the current part [`turn`](Self::turn) has handed out.
    /// `abandon_part` cannot take them back. A caller that holds pieces of a row must drop them
    /// itself.
    pub fn rows_handed_out(&self) -> u64 {
        self.rows.rows_handed_out()
    }

    fn check(&self) -> Result<(), Corruption> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn keep_failure<T>(&mut self, result: Result<T, Corruption>) -> Result<T, Corruption> {
        self.failed = result.as_ref().err().cloned();
        result
    }
}

impl PartDecoder {
    /// Drops the state of the current part.
    fn start_part(&mut self) {
        match self {
            Self::None => {}
            Self::Lz4(source) => source.start_part(),
            Self::Zstd(source) => source.start_part(),
        }
    }
}
