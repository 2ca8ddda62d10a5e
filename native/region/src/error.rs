//! The errors of this crate.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The reason that a region cannot be exported or a chunk cache cannot be made.
#[derive(Debug, Error)]
pub enum RegionError {
    /// The file cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file has no bytes.
    #[error("{} has 0 bytes; a region has at least 1", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The number of slots is 0, or a page has no room for so many versions.
    #[error("{got} slots are not possible, a chunk cache has 1 to {max}")]
    Slots {
        /// The requested number.
        got: usize,
        /// The maximum number.
        max: usize,
    },
    /// An error of the arena.
    #[error(transparent)]
    Pool(#[from] faro_pool::PoolError),
}
