//! Rows in: the bytes of parts to batches of rows. Mirrors [`encode`](crate::encode).

pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod columns;
pub(crate) mod decoded;
pub(crate) mod decoder;
pub(crate) mod filling_batch;
pub(crate) mod input;
pub(crate) mod lz4;
pub(crate) mod placement;
pub(crate) mod row_blocks;
pub(crate) mod row_writer;
pub(crate) mod strings;
pub(crate) mod tail;
pub(crate) mod unpacked;
pub(crate) mod zstd;
