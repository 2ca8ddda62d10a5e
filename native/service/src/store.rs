//! The map outputs of one application, as links in a directory of its own or as open files.
//!
//! ```text
//!   <key>/application           who it is (`record`)
//!   <key>/<shuffle>_<map>_<generation>.data, .index
//! ```
//! A name says all there is to know of a link, so there is no list that could disagree with the directory. The data
//! file is linked first and the index last: without its index, a data file is no output, and is removed when the
//! service starts again. An output that is handed over once more gets a higher generation; the older links go after
//! that, and where both are found the higher one counts.
//!
//! Files of another file system, or that the kernel lets nobody but their owner link (`fs.protected_hardlinks`),
//! are kept open instead. They end with the service.

use crate::handed::{Handed, HandedError};
use crate::message::Lent;
use faro_endpoint::OutputFiles;
use faro_sync::lock;
use faro_wire::OutputId;
use rustix::fs::{linkat, unlinkat, AtFlags, Mode, OFlags, CWD};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// Most outputs of an application; each takes some 100 bytes of memory.
pub const MAX_OUTPUTS: usize = 1 << 20;

/// Why an output is not kept.
#[derive(Debug, Error)]
pub enum KeepError {
    #[error(transparent)]
    Files(#[from] HandedError),
    #[error("{held} bytes are here and {more} more would exceed the quota of {quota}")]
    Quota { held: u64, more: u64, quota: u64 },
    #[error("the application has ended here")]
    Ended,
    #[error("{MAX_OUTPUTS} map outputs of the application are here already")]
    Full,
    #[error("its files cannot be linked ({linking}), and {held} files are kept open already")]
    Descriptors { linking: Errno, held: usize },
    #[error("its files cannot be linked: {0}")]
    Linking(Errno),
    #[error("its files cannot be opened by this service: {0}")]
    Unreadable(io::Error),
}

/// The files that are kept open, of all applications.
#[derive(Debug)]
pub struct Held {
    open: AtomicUsize,
    bound: usize,
}

impl Held {
    #[must_use]
    pub fn new(bound: usize) -> Arc<Self> {
        let open = AtomicUsize::new(0);
        Arc::new(Self { open, bound })
    }

    /// The files, counted as long as what is returned lives. Otherwise how many are open already.
    pub(crate) fn take(self: &Arc<Self>, files: Vec<File>) -> Result<HeldFiles, usize> {
        let count = files.len();
        let before = self.open.fetch_add(count, Ordering::Relaxed);
        let held = HeldFiles {
            files,
            of: Arc::clone(self),
        };
        match before + count > self.bound {
            true => Err(before),
            false => Ok(held),
        }
    }
}

/// Files that are counted: of an output, the index and the data file if there is one.
#[derive(Debug)]
pub(crate) struct HeldFiles {
    pub(crate) files: Vec<File>,
    of: Arc<Held>,
}

impl Drop for HeldFiles {
    fn drop(&mut self) {
        self.of.open.fetch_sub(self.files.len(), Ordering::Relaxed);
    }
}

#[derive(Debug, Clone)]
enum Place {
    Linked,
    Held(Arc<HeldFiles>),
}

#[derive(Debug)]
struct Kept {
    generation: u64,
    has_data: bool,
    bytes: u64,
    place: Place,
}

#[derive(Debug, Default)]
struct State {
    outputs: HashMap<OutputId, Kept>,
    bytes: u64,
    generation: u64,
    /// Nothing more is kept.
    ended: bool,
}

/// What a store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holding {
    pub outputs: usize,
    pub bytes: u64,
}

/// Where an output's files are, as long as this value lives.
pub struct Found {
    pub files: OutputFiles,
    has_data: bool,
    /// Their paths name these open files.
    _held: Option<Arc<HeldFiles>>,
}

/// How an output was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptAs {
    Links,
    Descriptors,
}

/// What was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptNow {
    pub how: KeptAs,
    /// In the place of older files.
    pub replaced: bool,
}

/// The map outputs of one application.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    directory: OwnedFd,
    quota: u64,
    held: Arc<Held>,
    state: Mutex<State>,
}

impl Store {
    /// Of that directory, which has no outputs.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path, quota: u64, held: Arc<Held>) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self {
            path: path.to_owned(),
            directory: rustix::fs::open(path, flags, Mode::empty())?,
            quota,
            held,
            state: Mutex::default(),
        })
    }

    /// Finds the outputs that a service before this one has left in the directory, all of `owner`. What is not whole
    /// is removed; how many names that were.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn recover(&self, owner: u32) -> io::Result<usize> {
        let mut found: HashMap<(OutputId, u64), [bool; 2]> = HashMap::new();
        let mut removed = 0;
        for entry in std::fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            match Link::parse(&name) {
                Some(link) => {
                    found.entry((link.id, link.generation)).or_default()[link.part as usize] = true;
                }
                None if crate::record::Record::is_name(&name) => {}
                None => {
                    removed += 1;
                    self.remove_name(&name);
                }
            }
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        let mut state = lock(&self.state);
        for ((id, generation), [has_index, has_data]) in found {
            state.generation = state.generation.max(generation);
            let kept = match has_index {
                true => self.check_again(id, generation, has_data, owner),
                false => None,
            };
            let loser = match kept {
                // A higher generation of the same output.
                Some(kept) => {
                    state.bytes += kept.bytes;
                    state.outputs.insert(id, kept)
                }
                None => {
                    log::warn!(
                        "map output {}/{} in {} is not whole and is removed",
                        id.shuffle_id,
                        id.map_id,
                        self.path.display()
                    );
                    self.unlink(id, generation, true);
                    removed += 1 + usize::from(has_data && has_index);
                    None
                }
            };
            if let Some(loser) = loser {
                state.bytes -= loser.bytes;
                removed += 1 + usize::from(loser.has_data);
                self.unlink(id, loser.generation, loser.has_data);
            }
        }
        Ok(removed)
    }

    fn check_again(
        &self,
        id: OutputId,
        generation: u64,
        has_data: bool,
        owner: u32,
    ) -> Option<Kept> {
        let open = |part| {
            // Not a symbolic link, and not a pipe that would make the service wait.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let name = Link {
                id,
                generation,
                part,
            }
            .name();
            rustix::fs::openat(&self.directory, name, flags, Mode::empty()).map(File::from)
        };
        let index = open(Part::Index).ok()?;
        let data = has_data.then(|| open(Part::Data)).transpose().ok()?;
        let handed = Handed::check(index, data, owner).ok()?;
        Some(Kept {
            generation,
            has_data,
            bytes: handed.bytes,
            place: Place::Linked,
        })
    }

    /// Keeps an output from now on, in the place of an older one.
    ///
    /// # Errors
    /// See `KeepError`; then all is as before.
    pub fn keep(&self, id: OutputId, handed: Handed) -> Result<KeptNow, KeepError> {
        let mut state = lock(&self.state);
        if state.ended {
            return Err(KeepError::Ended);
        }
        let older = state.outputs.get(&id).map(|older| older.bytes);
        let replaced = older.is_some();
        let held = state.bytes - older.unwrap_or(0);
        if held.saturating_add(handed.bytes) > self.quota {
            return Err(KeepError::Quota {
                held,
                more: handed.bytes,
                quota: self.quota,
            });
        }
        if state.outputs.len() >= MAX_OUTPUTS && !replaced {
            return Err(KeepError::Full);
        }
        state.generation += 1;
        let generation = state.generation;
        let (bytes, has_data) = (handed.bytes, handed.data.is_some());
        let place = match self.link(id, generation, &handed) {
            Ok(()) => Place::Linked,
            Err(linking @ (Errno::XDEV | Errno::PERM | Errno::ACCESS | Errno::MLINK)) => {
                let files = [Some(handed.index), handed.data];
                let files = files.into_iter().flatten().collect();
                let files = self.held.take(files);
                let files = files.map_err(|held| KeepError::Descriptors { linking, held })?;
                Place::Held(Arc::new(files))
            }
            Err(errno) => return Err(KeepError::Linking(errno)),
        };
        let kept = Kept {
            generation,
            has_data,
            bytes,
            place,
        };
        if let Err(error) = self.found(id, &kept).check() {
            self.remove(id, kept);
            return Err(KeepError::Unreadable(error));
        }
        let how = match kept.place {
            Place::Linked => KeptAs::Links,
            Place::Held(_) => KeptAs::Descriptors,
        };
        state.bytes = held + bytes;
        if let Some(older) = state.outputs.insert(id, kept) {
            self.remove(id, older);
        }
        Ok(KeptNow { how, replaced })
    }

    /// The data file's link first: see the module's comment.
    fn link(&self, id: OutputId, generation: u64, handed: &Handed) -> Result<(), Errno> {
        let link = |file: &File, part| {
            // The kernel follows this link to the open file itself, not to a path.
            let from = format!("/proc/self/fd/{}", file.as_raw_fd());
            let name = Link {
                id,
                generation,
                part,
            }
            .name();
            linkat(CWD, from, &self.directory, name, AtFlags::SYMLINK_FOLLOW)
        };
        if let Some(data) = &handed.data {
            link(data, Part::Data)?;
        }
        link(&handed.index, Part::Index)
            .inspect_err(|_| self.unlink(id, generation, handed.data.is_some()))
    }

    /// The output, if it is here.
    pub fn find(&self, id: OutputId) -> Option<Found> {
        let state = lock(&self.state);
        let kept = state.outputs.get(&id)?;
        Some(self.found(id, kept))
    }

    /// What there is of an output.
    pub fn has(&self, id: OutputId) -> Lent {
        match lock(&self.state).outputs.get(&id) {
            None => Lent::NotHere,
            Some(kept) if kept.has_data => Lent::Whole,
            Some(_) => Lent::Empty,
        }
    }

    fn found(&self, id: OutputId, kept: &Kept) -> Found {
        let generation = kept.generation;
        let link = |part| {
            self.path.join(
                Link {
                    id,
                    generation,
                    part,
                }
                .name(),
            )
        };
        let (index, data, held) = match &kept.place {
            Place::Linked => (link(Part::Index), link(Part::Data), None),
            Place::Held(held) => {
                let path = |at: usize| {
                    let file = held.files.get(at);
                    // Without a data file the path is one that nothing has.
                    file.map_or_else(
                        || link(Part::Data),
                        |file| format!("/proc/self/fd/{}", file.as_raw_fd()).into(),
                    )
                };
                (path(0), path(1), Some(Arc::clone(held)))
            }
        };
        Found {
            files: OutputFiles { data, index },
            has_data: kept.has_data,
            _held: held,
        }
    }

    /// Removes a shuffle's outputs; what that was.
    pub fn forget(&self, shuffle: u32) -> Holding {
        self.remove_where(|id| id.shuffle_id == shuffle)
    }

    /// Removes all outputs, and keeps none from now on; what that was.
    pub fn end(&self) -> Holding {
        lock(&self.state).ended = true;
        self.remove_where(|_| true)
    }

    fn remove_where(&self, goes: impl Fn(&OutputId) -> bool) -> Holding {
        let mut state = lock(&self.state);
        let ids: Vec<_> = state.outputs.keys().copied().filter(goes).collect();
        let mut gone = Holding::default();
        for id in ids {
            if let Some(kept) = state.outputs.remove(&id) {
                gone.outputs += 1;
                gone.bytes += kept.bytes;
                self.remove(id, kept);
            }
        }
        state.bytes -= gone.bytes;
        gone
    }

    /// What is here now.
    pub fn holding(&self) -> Holding {
        let state = lock(&self.state);
        Holding {
            outputs: state.outputs.len(),
            bytes: state.bytes,
        }
    }

    fn remove(&self, id: OutputId, kept: Kept) {
        match kept.place {
            Place::Linked => self.unlink(id, kept.generation, kept.has_data),
            Place::Held(_) => {}
        }
    }

    /// The index first, so that no index is without its data file.
    fn unlink(&self, id: OutputId, generation: u64, has_data: bool) {
        let parts = [Some(Part::Index), has_data.then_some(Part::Data)];
        for part in parts.into_iter().flatten() {
            self.remove_name(
                &Link {
                    id,
                    generation,
                    part,
                }
                .name(),
            );
        }
    }

    fn remove_name(&self, name: &str) {
        match unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => log::warn!("{}/{name} stays: {error}", self.path.display()),
        }
    }
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
    fn check(&self) -> io::Result<()> {
        File::open(&self.files.index)?;
        match File::open(&self.files.data) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Index,
    Data,
}

/// One name in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link {
    id: OutputId,
    generation: u64,
    part: Part,
}

impl Link {
    fn name(self) -> String {
        let Self { id, generation, .. } = self;
        let end = match self.part {
            Part::Index => "index",
            Part::Data => "data",
        };
        format!("{}_{}_{generation}.{end}", id.shuffle_id, id.map_id)
    }

    /// Only what `name` writes.
    fn parse(name: &str) -> Option<Self> {
        let (ids, part) = match name.rsplit_once('.')? {
            (ids, "index") => (ids, Part::Index),
            (ids, "data") => (ids, Part::Data),
            _ => return None,
        };
        let mut numbers = ids.split('_');
        let link = Self {
            id: OutputId {
                shuffle_id: numbers.next()?.parse().ok()?,
                map_id: numbers.next()?.parse().ok()?,
            },
            generation: numbers.next()?.parse().ok()?,
            part,
        };
        (link.name() == name).then_some(link)
    }
}

#[cfg(test)]
#[path = "store_test.rs"]
mod tests;
