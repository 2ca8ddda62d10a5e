//! Packs whole rows of Spark SQL, word column by word column, to the bodies of row blocks
//! (docs/design/row-block-format.md). The caller writes the blocks' headers and checksums, and compresses
//! the tails.

mod bits;
mod body;
mod body_writer;
mod columns;
mod decode;
mod dictionary;
mod encode;
mod fault;
mod input;
mod kernels;
mod mode;
mod pack;
mod placement;
mod plain;
mod row_reader;
#[cfg(test)]
mod same_bytes;
mod scratch;
mod stats;
mod texts;
mod texts_in;

pub(crate) use body::BodyHead;
pub(crate) use decode::BodyDecoder;
pub(crate) use encode::{BodyEncoder, Choices};
pub use fault::RowBlockFault;
