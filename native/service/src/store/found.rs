//! Where an output's files are.

use super::held::HeldFiles;
use faro_endpoint::OutputFiles;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Where an output's files are, as long as this value lives.
pub struct Found {
    pub files: OutputFiles,
    pub(super) has_data: bool,
    /// Their paths name these open files.
    pub(super) _held: Option<Arc<HeldFiles>>,
}

impl Found {
    /// Opens the files anew, for reading only whatever they were handed over with: the index, then the data file.
    ///
    /// # Errors
    /// They were removed meanwhile, or there are no descriptors.
    pub fn open(&self) -> io::Result<Vec<File>> {
        let data = self.has_data.then_some(&self.files.data);
        let paths = [Some(&self.files.index), data];
        paths.into_iter().flatten().map(File::open).collect()
    }

    /// # Errors
    /// This process may not read the files.
    pub(super) fn check(&self) -> io::Result<()> {
        File::open(&self.files.index)?;
        match File::open(&self.files.data) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
