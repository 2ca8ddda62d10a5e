//! Decodes the bytes of Spark's shuffle blocks to batches of rows, and compresses rows to blocks.
//!
//! A part is the bytes of some consecutive partitions of one map output: concatenated streams of
//! the codec, or plain bytes. Decoded, they are Spark's row stream: for each row a 4-byte
//! big-endian length and the row's bytes, with no header and no end mark. [`RowDecoder`] takes the
//! parts of a reader one after the other, cut anywhere, and fills batches with their rows.
//!
//! In a batch each row has a head of 8 bytes (the row's length as a native-endian `u32`, then 4
//! zero bytes) and then its bytes. Row lengths are multiples of 8, so every head and every row
//! starts at a multiple of 8 from the batch's first byte. A row that is longer than a batch is
//! handed out in pieces, so that its length costs the decoder no memory. A row enters a batch only
//! when all its bytes were decoded and every check of its codec passed. One check comes later than
//! the rows that it covers: the checksum at the end of a zstd frame, which Spark's writers leave
//! out.
//!
//! [`BlockCompressor`] compresses a piece of the row stream to a block of the codec. If row blocks
//! are enabled and the piece is whole rows, it may make a row block (docs/design/row-block-format.md).
//!
//! This example compresses four rows of three words each and decodes them:
//!
//! ```
//! use faro_rows::{Batch, BlockCompressor, Codec, RowDecoder, ROW_HEAD_BYTES};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Spark's serializer writes each row's length, then an `UnsafeRow` of null bits and two fields.
//! let mut stream = Vec::new();
//! for id in 0u64..4 {
//!     stream.extend(24u32.to_be_bytes());
//!     for word in [0, id, id * id] {
//!         stream.extend(word.to_le_bytes());
//!     }
//! }
//! let mut compressor = BlockCompressor::new(Codec::Lz4, 1, 32 << 10)?.with_row_blocks(3);
//! let mut part = vec![0; compressor.max_bytes(stream.len())];
//! let bytes = compressor.compress_rows(&stream, &mut part)?;
//! part.truncate(bytes);
//! part.extend(compressor.end());
//!
//! // A reader pushes the part's bytes, cut anywhere, and takes batches out.
//! let mut decoder = RowDecoder::new(Codec::Lz4, 1 << 10)?;
//! for cut in part.chunks(10) {
//!     let pushed = decoder.push(cut)?;
//!     assert!(!pushed.full, "the batch has room for four rows");
//! }
//! assert!(!decoder.end_part()?.full);
//! match decoder.turn() {
//!     Batch::Rows { bytes, rows } => {
//!         assert_eq!((rows, bytes.len()), (4, 4 * (ROW_HEAD_BYTES + 24)));
//!     }
//!     other => panic!("no rows: {other:?}"),
//! }
//! # Ok(())
//! # }
//! ```
// Only the vector forms in kernels.rs may use `unsafe`, each with its SAFETY note.
#![deny(unsafe_code)]

mod decode;
mod encode;
mod format;
mod kernels;
#[cfg(test)]
mod same_bytes;
mod scratch;

pub use decode::batch::{Batch, PartEnd, Piece, PushResult, ROW_HEAD_BYTES};
pub use decode::decoder::RowDecoder;
pub use encode::compressor::BlockCompressor;
pub use encode::error::CompressError;
pub use format::codec::{Codec, SetupError};
pub use format::corruption::Corruption;
pub use format::fault::RowBlockFault;
