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
//! Files of another file system, or that the kernel lets only their owner link (`fs.protected_hardlinks`),
//! are kept open instead. They end with the service.

mod directory;
mod found;
mod held;
mod outputs;
mod records;
mod recover;
mod result;
#[cfg(test)]
mod test_store;

use crate::handed::Handed;
pub use crate::links::Kind;
use crate::links::OutputFile;
use crate::message::Lent;
use directory::{Directory, Links};
use faro_endpoint::OutputFiles;
use faro_sync::lock;
use faro_wire::OutputId;
pub use found::Found;
pub use held::Held;
pub(crate) use held::HeldFiles;
pub use outputs::Holding;
use outputs::{Kept, OutputPlace, Outputs};
pub use records::OutputRecords;
pub use result::{KeepError, KeptAs, KeptNow};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The map outputs of one application.
#[derive(Debug)]
pub struct Store {
    directory: Directory,
    quota: u64,
    /// Both of all applications.
    records: Arc<OutputRecords>,
    held: Arc<Held>,
    outputs: Mutex<Outputs>,
}

impl Store {
    /// Opens a directory that has no outputs.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(
        path: &Path,
        quota: u64,
        (records, held): (Arc<OutputRecords>, Arc<Held>),
    ) -> io::Result<Self> {
        Ok(Self {
            directory: Directory::open(path)?,
            quota,
            records,
            held,
            outputs: Mutex::default(),
        })
    }

    /// Finds the outputs that a service before this one has left in the directory, all of `owner`. Outputs that are
    /// not whole are removed. Returns how many names were removed.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn recover(&self, owner: u32) -> io::Result<usize> {
        let mut outputs = lock(&self.outputs);
        recover::recover(&self.directory, owner, &self.records, &mut outputs)
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
        let mut outputs = lock(&self.outputs);
        self.check_room(&outputs, kind, id, handed.bytes)?;
        let replaced = outputs.get(id).is_some();
        outputs.generation += 1;
        let generation = outputs.generation;
        let (bytes, has_data) = (handed.bytes, handed.data.is_some());
        let links = Links {
            kind,
            id,
            generation,
        };
        let place = match self.directory.link(links, &handed) {
            Ok(()) => OutputPlace::Linked,
            Err(linking @ (Errno::XDEV | Errno::PERM | Errno::ACCESS | Errno::MLINK)) => {
                let files = [Some(handed.index), handed.data];
                let files = files.into_iter().flatten().collect();
                let files = self.held.take(files);
                let files = files.map_err(|held| KeepError::Descriptors { linking, held })?;
                OutputPlace::Held(Arc::new(files))
            }
            Err(errno) => return Err(KeepError::Linking(errno)),
        };
        let kept = Kept {
            kind,
            generation,
            has_data,
            bytes,
            place,
            _record: self.records.count(),
        };
        if let Err(error) = self.found(id, &kept).check() {
            self.remove(id, kept);
            return Err(KeepError::Unreadable(error));
        }
        let how = match kept.place {
            OutputPlace::Linked => KeptAs::Links,
            OutputPlace::Held(_) => KeptAs::Descriptors,
        };
        if let Some(older) = outputs.insert(id, kept) {
            self.remove(id, older);
        }
        Ok(KeptNow { how, replaced })
    }

    /// Whether a copy of so many bytes could be kept now.
    ///
    /// # Errors
    /// Why not.
    pub fn has_room(&self, id: OutputId, bytes: u64) -> Result<(), KeepError> {
        self.check_room(&lock(&self.outputs), Kind::Replica, id, bytes)
    }

    fn check_room(
        &self,
        outputs: &Outputs,
        kind: Kind,
        id: OutputId,
        more: u64,
    ) -> Result<(), KeepError> {
        if outputs.ended {
            return Err(KeepError::Ended);
        }
        let older = outputs.get(id);
        if kind == Kind::Replica {
            if outputs.is_removed(id.shuffle_id) {
                return Err(KeepError::Removed);
            }
            if older.is_some_and(|older| older.kind == Kind::Own) {
                return Err(KeepError::Own);
            }
        }
        let now = outputs.holding();
        let held = now.bytes - older.map_or(0, |older| older.bytes);
        let quota = self.quota;
        if held.saturating_add(more) > quota {
            return Err(KeepError::Quota { held, more, quota });
        }
        if older.is_none() && !self.records.has_room(now.outputs) {
            return Err(KeepError::Full { held: now.outputs });
        }
        Ok(())
    }

    /// The output, if it is here.
    pub fn find(&self, id: OutputId) -> Option<Found> {
        let outputs = lock(&self.outputs);
        let kept = outputs.get(id)?;
        Some(self.found(id, kept))
    }

    /// Returns what there is of an output.
    pub fn has(&self, id: OutputId) -> Lent {
        match lock(&self.outputs).get(id) {
            None => Lent::NotHere,
            Some(kept) if kept.has_data => Lent::Whole,
            Some(_) => Lent::Empty,
        }
    }

    fn found(&self, id: OutputId, kept: &Kept) -> Found {
        let link = |part| self.directory.path_of(kept.links(id), part);
        let (index, data, held) = match &kept.place {
            OutputPlace::Linked => (link(OutputFile::Index), link(OutputFile::Data), None),
            OutputPlace::Held(held) => {
                let path = |at: usize| {
                    let file = held.files.get(at);
                    // Without a data file the path is one that nothing has.
                    file.map_or_else(
                        || link(OutputFile::Data),
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
        self.remove_shuffle(shuffle, None)
    }

    /// Removes the copies of a shuffle's outputs; what that was.
    pub fn forget_replicas(&self, shuffle: u32) -> Holding {
        self.remove_shuffle(shuffle, Some(Kind::Replica))
    }

    fn remove_shuffle(&self, shuffle: u32, kind: Option<Kind>) -> Holding {
        let mut outputs = lock(&self.outputs);
        outputs.shuffle_removed(shuffle);
        let ids = outputs.ids_of(Some(shuffle), kind);
        self.remove_all(&mut outputs, ids)
    }

    /// All that is here.
    pub fn all(&self) -> Vec<OutputId> {
        lock(&self.outputs).ids().collect()
    }

    /// Whose output it is; `None`: it is not here.
    pub fn kind_of(&self, id: OutputId) -> Option<Kind> {
        lock(&self.outputs).get(id).map(|kept| kept.kind)
    }

    /// Returns the bytes of its index and its data file, if the store has it.
    pub fn bytes_of(&self, id: OutputId) -> Option<u64> {
        lock(&self.outputs).get(id).map(|kept| kept.bytes)
    }

    /// How many outputs of each shuffle executors of this host have handed over.
    pub fn own_by_shuffle(&self) -> HashMap<u32, u64> {
        lock(&self.outputs).own_by_shuffle()
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Removes all outputs, and keeps none from now on; what that was.
    pub fn end(&self) -> Holding {
        let mut outputs = lock(&self.outputs);
        outputs.ended = true;
        let ids = outputs.ids_of(None, None);
        self.remove_all(&mut outputs, ids)
    }

    fn remove_all(&self, outputs: &mut Outputs, ids: Vec<OutputId>) -> Holding {
        let mut gone = Holding::default();
        for id in ids {
            if let Some(kept) = outputs.remove(id) {
                gone.outputs += 1;
                gone.replicas += usize::from(kept.kind == Kind::Replica);
                gone.bytes += kept.bytes;
                self.remove(id, kept);
            }
        }
        gone
    }

    /// Returns what the store holds now.
    pub fn holding(&self) -> Holding {
        lock(&self.outputs).holding()
    }

    fn remove(&self, id: OutputId, kept: Kept) {
        match kept.place {
            OutputPlace::Linked => self.directory.unlink(kept.links(id), kept.has_data),
            OutputPlace::Held(_) => {}
        }
    }
}

#[cfg(test)]
#[path = "store_test.rs"]
mod tests;
