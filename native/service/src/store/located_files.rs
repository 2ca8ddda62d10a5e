//! Where an output's files are.

use super::open_file_count::HeldFiles;
use crate::message::LoanState;
use faro_endpoint::OutputFiles;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Where an output's files are, as long as this value lives.
pub struct LocatedFiles {
    pub files: OutputFiles,
    pub(super) has_data: bool,
    /// Their paths name these open files.
    pub(super) _held: Option<Arc<HeldFiles>>,
}

impl LocatedFiles {
    /// What there is of it.
    pub fn state(&self) -> LoanState {
        match self.has_data {
            true => LoanState::Whole,
            false => LoanState::Empty,
        }
    }

    /// Opens the files anew, for reading only whatever they were handed over with: the index, then the data file. A file
    /// whose opening would wait for a lease is not opened.
    ///
    /// # Errors
    /// They were removed meanwhile, or there are no descriptors.
    pub fn open(&self) -> io::Result<Vec<File>> {
        let data = self.has_data.then_some(&self.files.data);
        let paths = [Some(&self.files.index), data];
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |path| Ok(rustix::fs::open(path, flags, Mode::empty())?.into());
        paths.into_iter().flatten().map(open).collect()
    }
}
