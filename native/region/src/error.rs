//! What can go wrong with a region.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a region cannot be exported or the residency not be made.
#[derive(Debug, Error)]
pub enum RegionError {
    /// The file cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is nothing to export.
    #[error("{} has 0 bytes; a region has at least 1", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// More slots than versions fit one page, or none.
    #[error("{got} slots are not possible, 1 to {max} are")]
    Slots {
        /// What was asked for.
        got: usize,
        /// What is possible.
        max: usize,
    },
    /// The arena.
    #[error(transparent)]
    Pool(#[from] faro_pool::PoolError),
}
