//! The decoder of a reader's parts.

use crate::corruption::Corruption;

/// Bytes before each row in a batch: its length as a native-endian `u32`, then zeros.
pub const ROW_HEAD_BYTES: usize = 8;

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
    #[error("no memory for {bytes} bytes of {purpose}")]
    Memory { bytes: usize, purpose: &'static str },
}

/// What [`RowDecoder::push`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Pushed {
    /// Bytes of the input that need not be pushed again.
    pub taken: usize,
    /// The next row needs an empty batch: call [`RowDecoder::turn`], then push the rest of the
    /// input, even if nothing is left of it.
    pub full: bool,
}

/// What [`RowDecoder::end_part`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Ended {
    /// The part is not over: call [`RowDecoder::turn`], then `end_part` again.
    pub full: bool,
}

/// A filled batch: `bytes` bytes from `address`, a multiple of 8, with `rows` rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchView {
    pub address: *const u8,
    pub bytes: usize,
    pub rows: u32,
}

/// Decodes the parts of a reader, one after the other.
#[derive(Debug)]
pub struct RowDecoder {}

impl RowDecoder {
    /// `batch_bytes`: what a batch holds, heads included; only a batch of one longer row is larger.
    pub fn new(codec: Codec, batch_bytes: usize) -> Result<Self, SetupError> {
        let _ = (codec, batch_bytes);
        todo!()
    }

    /// Takes bytes of the part under way, in any cuts. Returns when all are taken or when the batch
    /// has not enough space left for the next row.
    ///
    /// After a corruption only [`abandon_part`](Self::abandon_part) goes on; until then every push
    /// gives the same corruption again. Rows in front of it stay in the batch until then.
    pub fn push(&mut self, input: &[u8]) -> Result<Pushed, Corruption> {
        let _ = input;
        todo!()
    }

    /// The part has no more bytes. Without `full` the part is over: it ended at the end of a
    /// stream and of a row, all its rows are in batches, and the next push starts another part.
    pub fn end_part(&mut self) -> Result<Ended, Corruption> {
        todo!()
    }

    /// Forgets the part under way: what is decoded of it, and its rows in the batch that is being
    /// filled. Rows of earlier parts stay there. The next push starts another part.
    pub fn abandon_part(&mut self) {
        todo!()
    }

    /// Hands out the batch that is being filled, possibly with no rows, and goes on with the other
    /// of two buffers. The rows stay valid and in place until `turn` is called again or the decoder
    /// is dropped.
    pub fn turn(&mut self) -> BatchView {
        todo!()
    }

    /// Rows in the batch that is being filled.
    pub fn rows_waiting(&self) -> u32 {
        todo!()
    }

    /// Rows of the part under way that [`turn`](Self::turn) has handed out: `abandon_part` cannot
    /// take them back.
    pub fn rows_handed_out(&self) -> u64 {
        todo!()
    }
}
