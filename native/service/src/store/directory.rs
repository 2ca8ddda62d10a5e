//! An application's directory: makes, opens and removes the links of an output.

use crate::handed::Handed;
use crate::links::{Kind, Link, OutputFile};
use faro_wire::OutputId;
use rustix::fs::{linkat, unlinkat, AtFlags, Mode, OFlags, CWD};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The links of one output, by what their names say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    pub(super) kind: Kind,
    pub(super) id: OutputId,
    pub(super) generation: u64,
}

impl Links {
    fn name(self, part: OutputFile) -> String {
        Link {
            kind: self.kind,
            id: self.id,
            generation: self.generation,
            part,
        }
        .name()
    }
}

#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    open: OwnedFd,
}

impl Directory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self {
            path: path.to_owned(),
            open: rustix::fs::open(path, flags, Mode::empty())?,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn path_of(&self, links: Links, part: OutputFile) -> PathBuf {
        self.path.join(links.name(part))
    }

    /// Opens one for reading.
    pub(super) fn open_part(&self, links: Links, part: OutputFile) -> Result<File, Errno> {
        // Not a symbolic link, and not a pipe that would make the service wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::openat(&self.open, links.name(part), flags, Mode::empty()).map(File::from)
    }

    /// The data file's link first: without its index, a data file is no output.
    pub(super) fn link(&self, links: Links, handed: &Handed) -> Result<(), Errno> {
        let link = |file: &File, part| {
            // The kernel follows this link to the open file itself, not to a path.
            let from = format!("/proc/self/fd/{}", file.as_raw_fd());
            let name = links.name(part);
            linkat(CWD, from, &self.open, name, AtFlags::SYMLINK_FOLLOW)
        };
        if let Some(data) = &handed.data {
            link(data, OutputFile::Data)?;
        }
        link(&handed.index, OutputFile::Index)
            .inspect_err(|_| self.unlink(links, handed.data.is_some()))
    }

    /// The index first, so that no index is without its data file.
    pub(super) fn unlink(&self, links: Links, has_data: bool) {
        let parts = [
            Some(OutputFile::Index),
            has_data.then_some(OutputFile::Data),
        ];
        for part in parts.into_iter().flatten() {
            self.remove(&links.name(part));
        }
    }

    pub(super) fn remove(&self, name: &str) {
        match unlinkat(&self.open, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => log::warn!("{}/{name} stays: {error}", self.path.display()),
        }
    }
}
