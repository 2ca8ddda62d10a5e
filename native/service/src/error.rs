//! Why the service does not start.

use crate::port::PortError;
use faro_endpoint::PoolError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why the service does not start.
#[derive(Debug, Error)]
pub enum ServiceError {
    #[error("{}: {source}", path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error("{} belongs to user {is} and not to the service's, {wanted}", path.display())]
    Foreign { path: PathBuf, is: u32, wanted: u32 },
    #[error("another service uses {}", path.display())]
    InUse { path: PathBuf },
    #[error("the kernel does not say which boot this is: {0}")]
    Boot(io::Error),
    #[error("the socket {}: {source}", path.display())]
    Socket { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error(
        "{got} bytes of memory (--memory) are shared by {applications} applications (--applications), each of which has \
         {each} of its own: {error}"
    )]
    Memory {
        got: u64,
        applications: usize,
        each: u64,
        error: PoolError,
    },
}
