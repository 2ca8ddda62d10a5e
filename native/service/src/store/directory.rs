//! An application's directory: makes, opens and removes the links of an output.

use crate::directories::{make, DataDirectory};
use crate::handed_over::HandedOverFiles;
use crate::links::{Kind, Link, OutputFile};
use crate::record::Record;
use faro_sync::{lock, Arc, Mutex};
use faro_wire::OutputId;
use rustix::fs::{fstat, linkat, statat, unlinkat, AtFlags, Mode, OFlags, CWD};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The links of one output, by what their names say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Whose it is.
    record: Record,
    /// What it is in, if that is the service's.
    above: Option<Arc<DataDirectory>>,
    /// Another one after the directory was removed and made again.
    open: Mutex<Arc<OwnedFd>>,
}

fn opened(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

impl Directory {
    pub(super) fn open(path: &Path, record: Record) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            record,
            above: None,
            open: Mutex::new(Arc::new(opened(path)?)),
        })
    }

    pub(super) fn below(&mut self, data: Arc<DataDirectory>) {
        self.above = Some(data);
    }

    fn now(&self) -> Arc<OwnedFd> {
        Arc::clone(&lock(&self.open))
    }

    /// The user who may hand outputs over.
    pub(super) fn owner(&self) -> u32 {
        self.record.owner
    }

    /// Makes it again if it was removed, with the directory of all applications; whether it was.
    pub(super) fn made_again(&self) -> io::Result<bool> {
        if fstat(self.now())?.st_nlink > 0 {
            return Ok(false);
        }
        match &self.above {
            Some(data) => data.make(&self.path)?,
            None => make(&self.path)?,
        }
        self.record.write(&self.path)?;
        *lock(&self.open) = Arc::new(opened(&self.path)?);
        Ok(true)
    }

    /// The length of both files; 0 of what is not there.
    pub(super) fn length(&self, links: Links, has_data: bool) -> u64 {
        let length = |part| {
            let stat = statat(self.now(), links.name(part), AtFlags::SYMLINK_NOFOLLOW);
            stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
        };
        let data = if has_data {
            length(OutputFile::Data)
        } else {
            0
        };
        length(OutputFile::Index).saturating_add(data)
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
        rustix::fs::openat(self.now(), links.name(part), flags, Mode::empty()).map(File::from)
    }

    /// The data file's link first: without its index, a data file is no output.
    pub(super) fn link(&self, links: Links, handed: &HandedOverFiles) -> Result<(), Errno> {
        let open = self.now();
        let link = |file: &File, part| {
            // The kernel follows this link to the open file itself, not to a path.
            let from = format!("/proc/self/fd/{}", file.as_raw_fd());
            let name = links.name(part);
            linkat(CWD, from, &open, name, AtFlags::SYMLINK_FOLLOW)
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
        match unlinkat(self.now(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => log::warn!("{}/{name} stays: {error}", self.path.display()),
        }
    }
}
