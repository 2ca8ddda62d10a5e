//! The codecs of Spark that blocks have, and why a decoder or a compressor cannot be made.

/// The codec of a part's bytes: that of `spark.io.compression.codec`, or none.
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
