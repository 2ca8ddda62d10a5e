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
//!
//! No lock is held while the system is asked for anything that may wait: room for an output is taken first, then its
//! links are made, then it counts. What a service before this one has left is known by its name, and looked at when
//! somebody wants it, or in the background.

mod directory;
mod located_files;
mod open_file_count;
mod outputs;
mod records;
mod recover;
mod result;
#[cfg(test)]
mod test_store;

use crate::directories::DataDirectory;
use crate::handed_over::HandedOverFiles;
pub use crate::links::Kind;
use crate::links::OutputFile;
use crate::message::LoanState;
use crate::record::Record;
use directory::{Directory, Links};
use faro_endpoint::OutputFiles;
use faro_sync::{lock, wait_timeout, Arc, Condvar, Mutex};
use faro_wire::OutputId;
pub use located_files::LocatedFiles;
use open_file_count::HeldShare;
pub use open_file_count::OpenFileCount;
pub use outputs::StoredTotals;
use outputs::{OutputPlace, Outputs, StoredOutput};
use records::CountedRecord;
pub use records::OutputRecords;
use recover::OutputCheckError;
pub use result::{KeepError, KeptAs, KeptNow};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
#[cfg(test)]
pub(crate) use test_store::BeingKept;

/// How often the end looks again whether outputs are being kept; it is also woken.
const SETTLED_LOOK: Duration = Duration::from_secs(1);

/// The map outputs of one application.
#[derive(Debug)]
pub struct Store {
    directory: Directory,
    quota: u64,
    /// Of all applications.
    records: Arc<OutputRecords>,
    held: Arc<HeldShare>,
    outputs: Mutex<Outputs>,
    /// Room was given back, or has become an output.
    settled: Condvar,
    /// Held while a directory that was removed is made again, and for nothing else.
    making: Mutex<()>,
    /// Bytes of the lists for other services, which count against the quota too.
    lists: AtomicU64,
}

/// Result of checking an output that an earlier service has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookResult {
    /// It is whole, or has gone.
    Done,
    /// It was not whole, and has been removed.
    Removed { names: usize },
    /// The system does not let it be looked at now. It stays, and is looked at again.
    Later,
}

/// Room for an output whose files are being kept.
struct Room<'a> {
    store: &'a Store,
    generation: u64,
    bytes: u64,
    record: Option<CountedRecord>,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        lock(&self.store.outputs).leave(self.bytes);
        self.store.settled.notify_all();
    }
}

impl Store {
    /// Opens the directory of that application. Its outputs count after `scan`.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(
        path: &Path,
        record: Record,
        quota: u64,
        (records, held): (Arc<OutputRecords>, Arc<OpenFileCount>),
    ) -> io::Result<Self> {
        Ok(Self {
            directory: Directory::open(path, record)?,
            quota,
            records,
            held: HeldShare::new(held),
            outputs: Mutex::default(),
            settled: Condvar::default(),
            making: Mutex::default(),
            lists: AtomicU64::new(0),
        })
    }

    /// It is in that directory, which may have to be made again, too.
    #[must_use]
    pub(crate) fn below(mut self, data: Arc<DataDirectory>) -> Self {
        self.directory.below(data);
        self
    }

    /// Finds the names of outputs that a service before this one has left in the directory, and removes all others.
    /// Returns how many that were. Called before anything else.
    ///
    /// # Errors
    /// The directory cannot be read; then nothing was removed.
    pub fn scan(&self) -> io::Result<usize> {
        let names = recover::scan(&self.directory)?;
        let mut outputs = lock(&self.outputs);
        outputs.generation = names.generation;
        for (id, left) in names.outputs {
            let kept = StoredOutput {
                kind: left.kind,
                generation: left.generation,
                has_data: left.has_data,
                bytes: left.bytes,
                place: OutputPlace::Left,
                _record: self.records.count(),
            };
            outputs.insert(id, kept);
        }
        Ok(names.removed)
    }

    /// Looks at all outputs that a service before this one has left. Returns how many names were removed, and how many
    /// outputs are to be looked at again.
    pub fn look(&self) -> (usize, usize) {
        let left = lock(&self.outputs).ids_left();
        let mut sums = (0, 0);
        for id in left {
            match self.look_at(id) {
                LookResult::Done => {}
                LookResult::Removed { names } => sums.0 += names,
                LookResult::Later => sums.1 += 1,
            }
        }
        sums
    }

    fn look_at(&self, id: OutputId) -> LookResult {
        let left = |outputs: &Outputs| {
            let kept = outputs.get(id)?;
            let is_left = matches!(kept.place, OutputPlace::Left);
            is_left.then(|| (kept.links(id), kept.has_data))
        };
        let Some((links, has_data)) = left(&lock(&self.outputs)) else {
            return LookResult::Done;
        };
        let looked = recover::check(&self.directory, links, has_data);
        let mut outputs = lock(&self.outputs);
        if left(&outputs).is_none_or(|(now, _)| now != links) {
            // Another thread was quicker, or it was replaced or removed.
            return LookResult::Done;
        }
        match looked {
            Ok(bytes) => {
                outputs.is_whole(id, bytes);
                LookResult::Done
            }
            Err(OutputCheckError::Later(error)) => {
                log::debug!(
                    "{} cannot be looked at: {error}",
                    self.directory.path().display()
                );
                LookResult::Later
            }
            Err(OutputCheckError::Torn) => {
                outputs.remove(id);
                drop(outputs);
                log::warn!(
                    "map output {}/{} in {} is not whole and is removed",
                    id.shuffle_id,
                    id.map_id,
                    self.directory.path().display()
                );
                self.directory.unlink(links, has_data);
                LookResult::Removed {
                    names: 1 + usize::from(has_data),
                }
            }
        }
    }

    /// Keeps an output from now on, in the place of an older one.
    ///
    /// # Errors
    /// See `KeepError`; then all is as before.
    pub fn keep(&self, id: OutputId, handed: HandedOverFiles) -> Result<KeptNow, KeepError> {
        self.keep_as(Kind::Own, id, handed)
    }

    /// As `keep`. A copy takes the place of an older copy only, and none of a removed shuffle is kept.
    ///
    /// # Errors
    /// See `KeepError`; then all is as before.
    pub fn keep_as(
        &self,
        kind: Kind,
        id: OutputId,
        handed: HandedOverFiles,
    ) -> Result<KeptNow, KeepError> {
        handed.is_readable().map_err(KeepError::Unreadable)?;
        let mut room = self.room(kind, id, handed.bytes)?;
        let links = Links {
            kind,
            id,
            generation: room.generation,
        };
        let (bytes, has_data) = (handed.bytes, handed.data.is_some());
        let place = self.place(links, handed)?;
        let how = match place {
            OutputPlace::Linked | OutputPlace::Left => KeptAs::Links,
            OutputPlace::Held(_) => KeptAs::Descriptors,
        };
        let kept = StoredOutput {
            kind,
            generation: room.generation,
            has_data,
            bytes,
            place,
            _record: room.record.take().unwrap_or_else(|| self.records.count()),
        };
        let (loser, result) = self.insert(id, kept, how);
        if let Some(loser) = loser {
            self.remove(id, loser);
        }
        // After its links are gone if it is not kept: then nothing of it is in the directory.
        drop(room);
        result
    }

    fn room(&self, kind: Kind, id: OutputId, bytes: u64) -> Result<Room<'_>, KeepError> {
        let mut outputs = lock(&self.outputs);
        self.check_room(&outputs, kind, id, bytes)?;
        outputs.enter(bytes);
        outputs.generation += 1;
        Ok(Room {
            store: self,
            generation: outputs.generation,
            bytes,
            record: Some(self.records.count()),
        })
    }

    /// Links the files, or keeps them open.
    fn place(&self, links: Links, handed: HandedOverFiles) -> Result<OutputPlace, KeepError> {
        let linked = match self.directory.link(links, &handed) {
            Err(Errno::NOENT) => {
                // Here or by another thread meanwhile.
                self.made_again().map_err(KeepError::Directory)?;
                self.directory.link(links, &handed)
            }
            other => other,
        };
        match linked {
            Ok(()) => Ok(OutputPlace::Linked),
            Err(linking @ (Errno::XDEV | Errno::PERM | Errno::ACCESS | Errno::MLINK)) => {
                let files = [Some(handed.index), handed.data];
                let files = files.into_iter().flatten().collect();
                let files = self.held.take(files);
                let files = files.map_err(|held| KeepError::Descriptors { linking, held })?;
                Ok(OutputPlace::Held(Arc::new(files)))
            }
            Err(errno) => Err(KeepError::Linking(errno)),
        }
    }

    /// Makes the directory again if it was removed. The outputs in it are lost.
    fn made_again(&self) -> io::Result<()> {
        let _making = lock(&self.making);
        if self.directory.made_again()? {
            let lost = lock(&self.outputs).remove_linked();
            log::warn!(
                "{} was removed and is made again; {lost} map outputs that were in it are lost",
                self.directory.path().display()
            );
        }
        Ok(())
    }

    /// Puts an output in its place. Returns the one that is not kept, if there is one.
    fn insert(
        &self,
        id: OutputId,
        kept: StoredOutput,
        how: KeptAs,
    ) -> (Option<StoredOutput>, Result<KeptNow, KeepError>) {
        let mut outputs = lock(&self.outputs);
        if let Err(error) = check_place(&outputs, kept.kind, id) {
            return (Some(kept), Err(error));
        }
        let older = outputs.get(id).map(|older| older.generation);
        let now = KeptNow {
            how,
            replaced: older.is_some(),
        };
        match older {
            // A later hand-over was quicker.
            Some(older) if older > kept.generation => (Some(kept), Ok(now)),
            _ => (outputs.insert(id, kept), Ok(now)),
        }
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
        check_place(outputs, kind, id)?;
        let older = outputs.get(id);
        let now = outputs.with_room();
        let lists = self.lists.load(Ordering::Relaxed);
        let held = now.bytes + lists - older.map_or(0, |older| older.bytes);
        let quota = self.quota;
        if held.saturating_add(more) > quota {
            return Err(KeepError::Quota { held, more, quota });
        }
        if older.is_none() && !self.records.has_room(now.outputs) {
            return Err(KeepError::Full { held: now.outputs });
        }
        Ok(())
    }

    /// The output, if it is here. Looks at it first if a service before this one has left it.
    pub fn find(&self, id: OutputId) -> Option<LocatedFiles> {
        for _ in 0..2 {
            let outputs = lock(&self.outputs);
            let kept = outputs.get(id)?;
            if !matches!(kept.place, OutputPlace::Left) {
                return Some(self.found(id, kept));
            }
            drop(outputs);
            self.look_at(id);
        }
        None
    }

    /// Returns what there is of an output.
    pub fn has(&self, id: OutputId) -> LoanState {
        match lock(&self.outputs).get(id) {
            None => LoanState::NotHere,
            Some(kept) if kept.has_data => LoanState::Whole,
            Some(_) => LoanState::Empty,
        }
    }

    fn found(&self, id: OutputId, kept: &StoredOutput) -> LocatedFiles {
        let link = |part| self.directory.path_of(kept.links(id), part);
        let (index, data, held) = match &kept.place {
            OutputPlace::Linked | OutputPlace::Left => {
                (link(OutputFile::Index), link(OutputFile::Data), None)
            }
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
        LocatedFiles {
            files: OutputFiles { data, index },
            has_data: kept.has_data,
            _held: held,
        }
    }

    /// Removes a shuffle's outputs; what that was.
    pub fn forget(&self, shuffle: u32) -> StoredTotals {
        self.remove_shuffle(shuffle, None)
    }

    /// Removes the copies of a shuffle's outputs; what that was.
    pub fn forget_replicas(&self, shuffle: u32) -> StoredTotals {
        self.remove_shuffle(shuffle, Some(Kind::Replica))
    }

    fn remove_shuffle(&self, shuffle: u32, kind: Option<Kind>) -> StoredTotals {
        let mut outputs = lock(&self.outputs);
        outputs.shuffle_removed(shuffle);
        let gone = outputs.take(Some(shuffle), kind);
        drop(outputs);
        self.remove_all(gone)
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

    /// Takes room of the quota for so many bytes of lists.
    ///
    /// # Errors
    /// `Quota`.
    pub fn list(&self, more: u64) -> Result<(), KeepError> {
        let outputs = lock(&self.outputs).with_room().bytes;
        let held = outputs + self.lists.load(Ordering::Relaxed);
        let quota = self.quota;
        if held.saturating_add(more) > quota {
            return Err(KeepError::Quota { held, more, quota });
        }
        self.lists.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }

    /// Ends a `list` of what could not be written.
    pub fn unlist(&self, fewer: u64) {
        self.lists.fetch_sub(fewer, Ordering::Relaxed);
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Keeps no output from now on, if it has none and none is being kept. Returns whether that is so.
    pub fn end_if_empty(&self) -> bool {
        let mut outputs = lock(&self.outputs);
        let is_empty = outputs.with_room().outputs == 0;
        outputs.ended |= is_empty;
        is_empty
    }

    /// Removes all outputs, and keeps none from now on; what that was. Waits for those that are just being kept, so that
    /// nothing comes into the directory afterwards.
    pub fn end(&self) -> StoredTotals {
        let mut outputs = lock(&self.outputs);
        outputs.ended = true;
        let gone = outputs.take(None, None);
        while outputs.are_coming() {
            outputs = wait_timeout(&self.settled, outputs, SETTLED_LOOK);
        }
        drop(outputs);
        self.remove_all(gone)
    }

    fn remove_all(&self, all: Vec<(OutputId, StoredOutput)>) -> StoredTotals {
        let mut gone = StoredTotals::default();
        for (id, kept) in all {
            gone.outputs += 1;
            gone.replicas += usize::from(kept.kind == Kind::Replica);
            gone.bytes += kept.bytes;
            self.remove(id, kept);
        }
        gone
    }

    /// Whether it has no output, and none is being kept.
    pub fn is_empty(&self) -> bool {
        lock(&self.outputs).with_room().outputs == 0
    }

    /// Returns what the store holds now.
    pub fn holding(&self) -> StoredTotals {
        lock(&self.outputs).holding()
    }

    fn remove(&self, id: OutputId, kept: StoredOutput) {
        match kept.place {
            OutputPlace::Linked | OutputPlace::Left => {
                self.directory.unlink(kept.links(id), kept.has_data);
            }
            OutputPlace::Held(_) => {}
        }
    }
}

/// Whether an output of that kind may be in that place.
fn check_place(outputs: &Outputs, kind: Kind, id: OutputId) -> Result<(), KeepError> {
    if outputs.ended {
        return Err(KeepError::Ended);
    }
    if kind == Kind::Replica {
        if outputs.is_removed(id.shuffle_id) {
            return Err(KeepError::Removed);
        }
        if outputs.get(id).is_some_and(|older| older.kind == Kind::Own) {
            return Err(KeepError::Own);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "store_test.rs"]
mod tests;
