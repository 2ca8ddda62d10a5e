//! The result of handing an output over.

use crate::handed_over::HandedError;
use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// Why an output is not kept.
#[derive(Debug, Error)]
pub enum KeepError {
    #[error(transparent)]
    Files(#[from] HandedError),
    #[error("{held} bytes are here and {more} more would exceed the quota of {quota}")]
    Quota { held: u64, more: u64, quota: u64 },
    #[error("the application has ended here")]
    Ended,
    #[error(
        "{held} map outputs of the application are here, as many as it may have now (--memory bounds those of all)"
    )]
    Full { held: usize },
    #[error("its files cannot be linked ({linking}), and {held} files of the application are kept open, as many as it may have now")]
    Descriptors { linking: Errno, held: usize },
    #[error("its files cannot be linked: {0}")]
    Linking(Errno),
    #[error("its shuffle was removed")]
    Removed,
    #[error("an executor of this host has handed it over")]
    Own,
    #[error("the application's directory was removed, and cannot be made again: {0}")]
    Directory(io::Error),
    #[error("its files cannot be opened by this service: {0}")]
    Unreadable(io::Error),
}

/// How an output was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptAs {
    Links,
    Descriptors,
}

/// An output that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptNow {
    pub how: KeptAs,
    /// True if it took the place of older files.
    pub replaced: bool,
}
