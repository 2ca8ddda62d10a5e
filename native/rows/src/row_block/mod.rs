//! The bodies of row blocks: whole rows of Spark SQL, packed word column by word column (docs/row-block-format.md).
//! The caller has the blocks' headers and checksums, and compresses the tails.

mod bits;
mod body;
mod columns;
mod decode;
mod fault;
mod input;
mod kernels;
mod mode;
mod out;
mod placement;
mod scratch;
mod stats;
mod texts;

pub(crate) use body::Head;
pub(crate) use decode::BodyDecoder;
pub use fault::RowBlockFault;
