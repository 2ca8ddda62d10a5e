//! A file that is written here and gets no name of an output unless a link is made to it.

use super::pull::{ByteSink, PullError};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// A file that is removed when this ends; a link of it stays.
pub(crate) struct ScratchFile {
    path: PathBuf,
    file: File,
}

impl ScratchFile {
    pub(crate) fn new(path: PathBuf) -> io::Result<Self> {
        remove(&path);
        let file = File::options().write(true).create_new(true).open(&path)?;
        Ok(Self { path, file })
    }

    /// Writes all bytes that `from` gives.
    pub(crate) fn fill(
        &self,
        from: impl FnOnce(ByteSink<'_>) -> Result<(), PullError>,
    ) -> Result<(), PullError> {
        let mut out = BufWriter::with_capacity(64 << 10, &self.file);
        from(&mut |bytes| out.write_all(bytes))?;
        Ok(out.flush()?)
    }

    /// Opens this very file for reading, whatever has its path by now.
    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            log::warn!("{} stays: {error}", path.display());
        }
        _ => {}
    }
}
