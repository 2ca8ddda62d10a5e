//! Rows out: pieces of a row stream to blocks. Mirrors [`decode`](crate::decode).

pub(crate) mod body;
pub(crate) mod body_writer;
pub(crate) mod columns;
pub(crate) mod compressor;
pub(crate) mod dictionary;
pub(crate) mod error;
pub(crate) mod guard;
pub(crate) mod plain;
pub(crate) mod row_packer;
pub(crate) mod row_reader;
pub(crate) mod strings;
