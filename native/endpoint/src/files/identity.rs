//! Identities of a map output's files when they were opened first: a later file under the same path is another one, and
//! its bytes are not those that the offsets speak of.

use rustix::fs::{fstat, stat, Stat};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The files of a map output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFiles {
    /// Concatenated partitions; may be absent when all are empty.
    pub data: PathBuf,
    /// `partitions + 1` big-endian 64-bit offsets.
    pub index: PathBuf,
}

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OutputFileKind {
    Data,
    Index,
}

/// A file of one generation of a map output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileKey {
    pub(super) generation: u64,
    pub(super) part: OutputFileKind,
}

/// Tells one file from another, and from itself after it was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds.
    modified: (i64, u64),
    /// It has a name. (Some file systems never say so; there it cannot be told that it was deleted.)
    linked: bool,
}

impl FileIdentity {
    /// # Errors
    /// The error of `fstat`.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(fstat(file)?))
    }

    /// Returns the length of the file in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl From<Stat> for FileIdentity {
    fn from(stat: Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            bytes: stat.st_size as u64,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            linked: stat.st_nlink > 0,
        }
    }
}

/// The files of one generation of a map output: where they are and what they were.
pub(super) struct Files {
    pub(super) generation: u64,
    data: Box<Path>,
    index: Box<Path>,
    /// The data file's identity; `None` if there was no data file.
    data_was: Option<FileIdentity>,
    index_was: FileIdentity,
    /// True if a file was found to be another one: the output must be opened again.
    replaced: AtomicBool,
}

impl Files {
    pub(super) fn new(
        generation: u64,
        files: &OutputFiles,
        index_was: FileIdentity,
        data_was: Option<FileIdentity>,
    ) -> Self {
        Self {
            generation,
            data: files.data.as_path().into(),
            index: files.index.as_path().into(),
            data_was,
            index_was,
            replaced: AtomicBool::new(false),
        }
    }

    pub(super) fn key(&self, part: OutputFileKind) -> FileKey {
        FileKey {
            generation: self.generation,
            part,
        }
    }

    pub(super) fn path(&self, part: OutputFileKind) -> &Path {
        match part {
            OutputFileKind::Data => &self.data,
            OutputFileKind::Index => &self.index,
        }
    }

    fn was(&self, part: OutputFileKind) -> Option<FileIdentity> {
        match part {
            OutputFileKind::Data => self.data_was,
            OutputFileKind::Index => Some(self.index_was),
        }
    }

    /// Returns the length of the file in bytes; 0 if there was none.
    pub(super) fn bytes_of(&self, part: OutputFileKind) -> u64 {
        self.was(part).map_or(0, |was| was.bytes())
    }

    /// Returns whether both speak of the same bytes under the same paths.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.data, &self.index) == (&other.data, &other.index)
            && (self.data_was, self.index_was) == (other.data_was, other.index_was)
    }

    pub(super) fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::Relaxed)
    }

    pub(super) fn mark_replaced(&self) {
        self.replaced.store(true, Ordering::Relaxed);
    }

    /// Returns whether an open file is what it was; if not, the output is marked as replaced.
    pub(super) fn check_open(&self, part: OutputFileKind, file: &File) -> bool {
        self.check(part, FileIdentity::of(file).ok())
    }

    /// Checks the files that the paths lead to now, as `check_open` checks open files.
    pub(super) fn check_paths(&self) -> bool {
        [OutputFileKind::Index, OutputFileKind::Data]
            .into_iter()
            .all(|part| {
                let is = stat(self.path(part));
                self.check(part, is.ok().map(FileIdentity::from))
            })
    }

    fn check(&self, part: OutputFileKind, is: Option<FileIdentity>) -> bool {
        let same = is == self.was(part);
        if !same {
            self.mark_replaced();
        }
        same
    }

    /// Returns the memory that this takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.data.as_os_str().len() + self.index.as_os_str().len()
    }
}
