//! The map outputs of one application, as links in a directory of its own or as open files.
//!
//! ```text
//!   <key>/application           who it is (`record`)
//!   <key>/<shuffle>_<map>_<generation>.data, .index
//!   <key>/replica_<shuffle>_<map>_<generation>.data, .index        copies of outputs of other hosts
//! ```
//! A name says all there is to know of a link, so there is no list that could disagree with the directory. The data
//! file is linked first and the index last: without its index, a data file is no output, and is removed when the
//! service starts again. An output that is handed over once more gets a higher generation; the older links go after
//! that, and where both are found the higher one counts.
//!
//! Files of another file system, or that the kernel lets nobody but their owner link (`fs.protected_hardlinks`),
//! are kept open instead. They end with the service.

use crate::handed::{Handed, HandedError};
pub use crate::links::Kind;
use crate::links::{is_list, Link, Part};
use crate::message::Lent;
use faro_endpoint::OutputFiles;
use faro_sync::lock;
use faro_wire::OutputId;
use rustix::fs::{linkat, unlinkat, AtFlags, Mode, OFlags, CWD};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// Most outputs of an application; each takes some 100 bytes of memory.
pub const MAX_OUTPUTS: usize = 1 << 20;

/// Most shuffles that are known to be removed; their ids grow, so the lowest go.
const MAX_REMOVED: usize = 1 << 16;

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
    #[error("its shuffle was removed")]
    Removed,
    #[error("an executor of this host has handed it over")]
    Own,
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
    kind: Kind,
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
    /// Own outputs of each shuffle.
    own: HashMap<u32, u64>,
    replicas: usize,
    /// Shuffles of which no copy is kept any more, the latest ones.
    removed: BTreeSet<u32>,
    /// Nothing more is kept.
    ended: bool,
}

impl State {
    fn insert(&mut self, id: OutputId, kept: Kept) -> Option<Kept> {
        self.bytes += kept.bytes;
        match kept.kind {
            Kind::Own => *self.own.entry(id.shuffle_id).or_default() += 1,
            Kind::Replica => self.replicas += 1,
        }
        let older = self.outputs.insert(id, kept);
        older.inspect(|older| self.gone(id, older))
    }

    fn remove(&mut self, id: OutputId) -> Option<Kept> {
        let kept = self.outputs.remove(&id);
        kept.inspect(|kept| self.gone(id, kept))
    }

    fn gone(&mut self, id: OutputId, kept: &Kept) {
        self.bytes -= kept.bytes;
        match kept.kind {
            Kind::Replica => self.replicas -= 1,
            Kind::Own => {
                let left = self.own.get_mut(&id.shuffle_id);
                let left = left.map_or(0, |count| {
                    *count -= 1;
                    *count
                });
                if left == 0 {
                    self.own.remove(&id.shuffle_id);
                }
            }
        }
    }

    /// No copy of that shuffle is kept from now on.
    fn shuffle_removed(&mut self, shuffle: u32) {
        self.removed.insert(shuffle);
        if self.removed.len() > MAX_REMOVED {
            self.removed.pop_first();
        }
    }
}

/// What a store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holding {
    /// Copies too.
    pub outputs: usize,
    pub bytes: u64,
    /// Copies of outputs of other hosts.
    pub replicas: usize,
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
        let mut found: HashMap<(OutputId, u64, Kind), [bool; 2]> = HashMap::new();
        let mut removed = 0;
        for entry in std::fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            match Link::parse(&name) {
                Some(link) => {
                    let key = (link.id, link.generation, link.kind);
                    found.entry(key).or_default()[link.part as usize] = true;
                }
                None if is_list(&name) => self.remove_name(&name),
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
        for ((id, generation, kind), [has_index, has_data]) in found {
            state.generation = state.generation.max(generation);
            let owner = match kind {
                Kind::Own => owner,
                Kind::Replica => geteuid().as_raw(),
            };
            let kept = match has_index {
                true => self.check_again((kind, id, generation), has_data, owner),
                false => None,
            };
            let loser = match kept {
                // A higher generation of the same output.
                Some(kept) => state.insert(id, kept),
                None => {
                    log::warn!(
                        "map output {}/{} in {} is not whole and is removed",
                        id.shuffle_id,
                        id.map_id,
                        self.path.display()
                    );
                    self.unlink((kind, id, generation), true);
                    removed += 1 + usize::from(has_data && has_index);
                    None
                }
            };
            if let Some(loser) = loser {
                removed += 1 + usize::from(loser.has_data);
                self.unlink((loser.kind, id, loser.generation), loser.has_data);
            }
        }
        Ok(removed)
    }

    fn check_again(
        &self,
        (kind, id, generation): (Kind, OutputId, u64),
        has_data: bool,
        owner: u32,
    ) -> Option<Kept> {
        let open = |part| {
            // Not a symbolic link, and not a pipe that would make the service wait.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let name = Link {
                kind,
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
            kind,
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
        self.keep_as(Kind::Own, id, handed)
    }

    /// As `keep`. A copy takes the place of an older copy only, and none of a removed shuffle is kept.
    ///
    /// # Errors
    /// See `KeepError`; then all is as before.
    pub fn keep_as(&self, kind: Kind, id: OutputId, handed: Handed) -> Result<KeptNow, KeepError> {
        let mut state = lock(&self.state);
        self.check_room(&state, kind, id, handed.bytes)?;
        let replaced = state.outputs.contains_key(&id);
        state.generation += 1;
        let generation = state.generation;
        let (bytes, has_data) = (handed.bytes, handed.data.is_some());
        let place = match self.link((kind, id, generation), &handed) {
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
            kind,
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
        if let Some(older) = state.insert(id, kept) {
            self.remove(id, older);
        }
        Ok(KeptNow { how, replaced })
    }

    /// Whether a copy of so many bytes could be kept now.
    ///
    /// # Errors
    /// Why not.
    pub fn has_room(&self, id: OutputId, bytes: u64) -> Result<(), KeepError> {
        self.check_room(&lock(&self.state), Kind::Replica, id, bytes)
    }

    fn check_room(
        &self,
        state: &State,
        kind: Kind,
        id: OutputId,
        more: u64,
    ) -> Result<(), KeepError> {
        if state.ended {
            return Err(KeepError::Ended);
        }
        let older = state.outputs.get(&id);
        if kind == Kind::Replica {
            if state.removed.contains(&id.shuffle_id) {
                return Err(KeepError::Removed);
            }
            if older.is_some_and(|older| older.kind == Kind::Own) {
                return Err(KeepError::Own);
            }
        }
        let held = state.bytes - older.map_or(0, |older| older.bytes);
        let quota = self.quota;
        if held.saturating_add(more) > quota {
            return Err(KeepError::Quota { held, more, quota });
        }
        if state.outputs.len() >= MAX_OUTPUTS && older.is_none() {
            return Err(KeepError::Full);
        }
        Ok(())
    }

    /// The data file's link first: see the module's comment.
    fn link(
        &self,
        (kind, id, generation): (Kind, OutputId, u64),
        handed: &Handed,
    ) -> Result<(), Errno> {
        let link = |file: &File, part| {
            // The kernel follows this link to the open file itself, not to a path.
            let from = format!("/proc/self/fd/{}", file.as_raw_fd());
            let name = Link {
                kind,
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
            .inspect_err(|_| self.unlink((kind, id, generation), handed.data.is_some()))
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
                    kind: kept.kind,
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
        lock(&self.state).shuffle_removed(shuffle);
        self.remove_where(|id, _| id.shuffle_id == shuffle)
    }

    /// Removes the copies of a shuffle's outputs; what that was.
    pub fn forget_replicas(&self, shuffle: u32) -> Holding {
        lock(&self.state).shuffle_removed(shuffle);
        self.remove_where(|id, kind| id.shuffle_id == shuffle && kind == Kind::Replica)
    }

    /// All that is here.
    pub fn all(&self) -> Vec<OutputId> {
        lock(&self.state).outputs.keys().copied().collect()
    }

    /// Whose output it is; `None`: it is not here.
    pub fn kind_of(&self, id: OutputId) -> Option<Kind> {
        lock(&self.state).outputs.get(&id).map(|kept| kept.kind)
    }

    /// Of its index and its data file, if it is here.
    pub fn bytes_of(&self, id: OutputId) -> Option<u64> {
        lock(&self.state).outputs.get(&id).map(|kept| kept.bytes)
    }

    /// How many outputs of each shuffle executors of this host have handed over.
    pub fn own_by_shuffle(&self) -> HashMap<u32, u64> {
        lock(&self.state).own.clone()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes all outputs, and keeps none from now on; what that was.
    pub fn end(&self) -> Holding {
        lock(&self.state).ended = true;
        self.remove_where(|_, _| true)
    }

    fn remove_where(&self, goes: impl Fn(&OutputId, Kind) -> bool) -> Holding {
        let mut state = lock(&self.state);
        let outputs = state.outputs.iter();
        let ids: Vec<_> = outputs
            .filter(|(id, kept)| goes(id, kept.kind))
            .map(|(id, _)| *id)
            .collect();
        let mut gone = Holding::default();
        for id in ids {
            if let Some(kept) = state.remove(id) {
                gone.outputs += 1;
                gone.replicas += usize::from(kept.kind == Kind::Replica);
                gone.bytes += kept.bytes;
                self.remove(id, kept);
            }
        }
        gone
    }

    /// What is here now.
    pub fn holding(&self) -> Holding {
        let state = lock(&self.state);
        Holding {
            outputs: state.outputs.len(),
            bytes: state.bytes,
            replicas: state.replicas,
        }
    }

    fn remove(&self, id: OutputId, kept: Kept) {
        match kept.place {
            Place::Linked => self.unlink((kept.kind, id, kept.generation), kept.has_data),
            Place::Held(_) => {}
        }
    }

    /// The index first, so that no index is without its data file.
    fn unlink(&self, (kind, id, generation): (Kind, OutputId, u64), has_data: bool) {
        let parts = [Some(Part::Index), has_data.then_some(Part::Data)];
        for part in parts.into_iter().flatten() {
            self.remove_name(
                &Link {
                    kind,
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

#[cfg(test)]
#[path = "store_test.rs"]
mod tests;
