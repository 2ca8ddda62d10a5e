//! Where the outputs of applications are on the disk: a directory for each, with its record. It is made when the first
//! executor registers, found again after a restart, and removed when the application ends.

use crate::application_state::ApplicationState;
use crate::directories::DataDirectory;
use crate::disk::{Disk, DISK_WAIT};
use crate::error::ServiceError;
use crate::message::Key;
use crate::orphaned::{OrphanError, OrphanedOutputs};
use crate::record::{Boot, Record};
use crate::store::{OpenFileCount, OutputRecords, Store, StoredTotals};
use faro_sync::clock;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directories of all applications.
pub(crate) struct Places {
    data: Arc<DataDirectory>,
    boot: Boot,
    /// Most bytes of an application's outputs.
    quota: u64,
    /// Both of all applications.
    records: Arc<OutputRecords>,
    held: Arc<OpenFileCount>,
}

impl Places {
    /// # Errors
    /// `Boot`.
    pub(crate) fn open(
        data: Arc<DataDirectory>,
        quota: u64,
        records: Arc<OutputRecords>,
        held: Arc<OpenFileCount>,
    ) -> Result<Self, ServiceError> {
        let boot = Boot::current().map_err(ServiceError::Boot)?;
        Ok(Self {
            data,
            boot,
            quota,
            records,
            held,
        })
    }

    /// Finds the applications of a service before this one, by their names; none of their outputs is opened. What is
    /// damaged, or of an earlier boot of the machine, is removed. A file that cannot be read stays.
    ///
    /// # Errors
    /// `Path`.
    pub(crate) fn left(&self) -> Result<HashMap<Key, ApplicationState>, ServiceError> {
        let of = |source| ServiceError::Path {
            path: self.data.applications().to_owned(),
            source,
        };
        let mut found = HashMap::new();
        let mut all = StoredTotals::default();
        for entry in fs::read_dir(self.data.applications()).map_err(of)? {
            let entry = entry.map_err(of)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(key) = Key::of_name(&name) else {
                log::warn!(
                    "{name} in {} is not the service's and stays",
                    self.data.applications().display()
                );
                continue;
            };
            match self.left_by(key) {
                Ok(left) => {
                    let holding = left.store.holding();
                    all.outputs += holding.outputs;
                    all.bytes += holding.bytes;
                    found.insert(key, ApplicationState::Left(Arc::new(left)));
                }
                Err(why @ OrphanError::Unread(_)) => {
                    log::warn!("what {name} has left is looked at when one of its executors has come: {why}");
                    let since = clock::now();
                    found.insert(key, ApplicationState::Unread { since });
                }
                Err(why @ (OrphanError::Damaged | OrphanError::EarlierBoot)) => {
                    log::warn!("what {name} has left is removed: {why}");
                    self.data.remove(&entry.path());
                }
            }
        }
        if !found.is_empty() {
            log::info!(
                "found {} map outputs, {} bytes, of {} applications; each is served again when one of its \
                 executors has come",
                all.outputs,
                all.bytes,
                found.len()
            );
        }
        Ok(found)
    }

    /// Finds what that application has left.
    ///
    /// # Errors
    /// See `OrphanError`; then nothing was removed.
    pub(crate) fn left_by(&self, key: Key) -> Result<OrphanedOutputs, OrphanError> {
        let path = self.path_of(key);
        let record = Record::read(&path)?.ok_or(OrphanError::Damaged)?;
        if record.boot != self.boot {
            return Err(OrphanError::EarlierBoot);
        }
        let store = self.store(&path, record.clone())?;
        let removed = store.scan()?;
        if removed > 0 {
            log::warn!("{removed} names of {} were no output's", record.application);
        }
        Ok(OrphanedOutputs {
            record,
            store: Arc::new(store),
            disk: Disk::new(DISK_WAIT),
            since: clock::now(),
        })
    }

    /// Makes the directory of an application that comes for the first time. One that is there already is left alone: it
    /// is of an application of this key that is just being removed.
    ///
    /// # Errors
    /// The path and the system's reason; then nothing was made.
    pub(crate) fn make(&self, key: Key, application: &str, owner: u32) -> Result<Store, String> {
        let path = self.path_of(key);
        let said = |error: io::Error| format!("{}: {error}", path.display());
        self.data.make(&path).map_err(said)?;
        let record = Record {
            application: application.to_owned(),
            owner,
            boot: self.boot.clone(),
        };
        let made = record.write(&path).and_then(|()| self.store(&path, record));
        made.map_err(|error| {
            self.data.remove(&path);
            said(error)
        })
    }

    /// Removes an application's directory with all that is in it.
    pub(crate) fn remove(&self, key: Key) {
        self.data.remove(&self.path_of(key));
    }

    fn store(&self, path: &Path, record: Record) -> io::Result<Store> {
        let bounds = (Arc::clone(&self.records), Arc::clone(&self.held));
        let store = Store::open(path, record, self.quota, bounds)?;
        Ok(store.below(Arc::clone(&self.data)))
    }

    fn path_of(&self, key: Key) -> PathBuf {
        self.data.applications().join(key.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Token;

    #[test]
    fn a_directory_that_is_being_removed_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (records, held) = (OutputRecords::new(1), OpenFileCount::new(1));
        let data = DataDirectory::open(dir.path()).unwrap();
        let places = Places::open(data, 1, records, held).unwrap();
        let key = Token::new([1; 32]).key();
        drop(places.make(key, "app", 7).unwrap());
        assert!(places.make(key, "app", 7).is_err());
        assert_eq!(places.left().unwrap()[&key].owner(), Some(7));
        places.remove(key);
        assert!(places.make(key, "app", 8).is_ok());
    }
}
