//! The decoder of a reader's parts.

use crate::batch::Batch;
use crate::corruption::Corruption;
use crate::lz4::Lz4;
use crate::progress::{Ended, Pushed};
use crate::rows::RowWriter;
use crate::zstd::Zstd;

/// How the bytes of a part are compressed: Spark's `spark.io.compression.codec`, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    None,
    Lz4,
    Zstd,
}

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("batches of {0} bytes; allowed are multiples of 8 from 64 to 1 GiB")]
    BatchBytes(usize),
    #[error("no memory for a batch of {0} bytes")]
    NoMemory(usize),
    #[error("zstd has no memory for a decompression context")]
    ZstdContext,
}

enum Source {
    None,
    Lz4(Lz4),
    Zstd(Zstd),
}

/// Decodes the parts of a reader, one after the other.
pub struct RowDecoder {
    source: Source,
    rows: RowWriter,
    /// What the part under way failed with.
    failed: Option<Corruption>,
}

impl RowDecoder {
    /// `batch_bytes`: bytes that a batch holds at most, heads included. A longer row comes in pieces.
    pub fn new(codec: Codec, batch_bytes: usize) -> Result<Self, SetupError> {
        if batch_bytes % 8 != 0 || !(64..=1 << 30).contains(&batch_bytes) {
            return Err(SetupError::BatchBytes(batch_bytes));
        }
        let source = match codec {
            Codec::None => Source::None,
            Codec::Lz4 => Source::Lz4(Lz4::default()),
            Codec::Zstd => Source::Zstd(Zstd::new().ok_or(SetupError::ZstdContext)?),
        };
        Ok(Self {
            source,
            rows: RowWriter::new(batch_bytes).ok_or(SetupError::NoMemory(batch_bytes))?,
            failed: None,
        })
    }

    /// Takes bytes of the part under way, in any cuts. Returns when all are taken or when the batch
    /// has not enough space left for the next row.
    ///
    /// After a corruption only [`abandon_part`](Self::abandon_part) goes on; until then every push
    /// gives the same corruption again, and the rows in front of it stay in the batch.
    pub fn push(&mut self, input: &[u8]) -> Result<Pushed, Corruption> {
        self.check()?;
        let rows = &mut self.rows;
        let pushed = match &mut self.source {
            Source::None => rows.take(input).map(|taken| Pushed {
                taken,
                full: taken < input.len(),
            }),
            Source::Lz4(source) => source.push(input, rows),
            Source::Zstd(source) => source.push(input, rows),
        };
        self.keep_failure(pushed)
    }

    /// The part has no more bytes. Without `full` the part is over: it ended at the end of a
    /// stream and of a row, all its rows are in batches, and the next push starts another part.
    pub fn end_part(&mut self) -> Result<Ended, Corruption> {
        self.check()?;
        let rows = &mut self.rows;
        let drained = match &mut self.source {
            Source::None => Ok(true),
            Source::Lz4(source) => source.end_part(rows),
            Source::Zstd(source) => source.end_part(rows),
        };
        // A part does not end before the last piece of its last row was handed out.
        if !self.keep_failure(drained)? || self.rows.ends_long_row() {
            return Ok(Ended { full: true });
        }
        let ended = self.rows.check_end();
        self.keep_failure(ended)?;
        self.rows.end_part();
        self.source.start_part();
        Ok(Ended { full: false })
    }

    /// Forgets the part under way: what is decoded of it, and its rows in the batch that is being
    /// filled. Rows of earlier parts stay there. The next push starts another part.
    pub fn abandon_part(&mut self) {
        self.rows.abandon_part();
        self.source.start_part();
        self.failed = None;
    }

    /// Hands out the batch that is being filled, which is possibly empty. The next push fills the same
    /// memory again.
    pub fn turn(&mut self) -> Batch<'_> {
        self.rows.turn()
    }

    /// Whether the batch that is being filled has rows, or a piece of one.
    pub fn has_batch(&self) -> bool {
        self.rows.has_batch()
    }

    /// Bytes of memory that the decoder holds.
    pub fn memory_bytes(&self) -> usize {
        self.rows.memory_bytes()
            + match &self.source {
                Source::None => 0,
                Source::Lz4(source) => source.memory_bytes(),
                Source::Zstd(source) => source.memory_bytes(),
            }
    }

    /// Rows of the part under way that [`turn`](Self::turn) has handed out whole: `abandon_part` cannot
    /// take them back. A caller that has pieces of a row drops them.
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

impl Source {
    /// Forgets the part under way.
    fn start_part(&mut self) {
        match self {
            Self::None => {}
            Self::Lz4(source) => source.start_part(),
            Self::Zstd(source) => source.start_part(),
        }
    }
}
