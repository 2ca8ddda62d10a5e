//! Where the outputs of applications are on the disk: a directory for each, with its record. It is made when the first
//! executor registers, found again after a restart, and removed when the application ends.

use crate::directories::{directory, remove_directory};
use crate::error::ServiceError;
use crate::message::Key;
use crate::record::{Boot, Record};
use crate::store::{Held, Holding, OutputRecords, Store};
use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const APPLICATIONS: &str = "applications";

/// The outputs of an application that a service before this one has left.
pub(crate) struct Left {
    pub(crate) record: Record,
    pub(crate) store: Arc<Store>,
    /// When they were found.
    pub(crate) since: Instant,
}

/// The directories of all applications.
pub(crate) struct Places {
    /// What they are in.
    path: PathBuf,
    boot: Boot,
    /// Most bytes of an application's outputs.
    quota: u64,
    /// Both of all applications.
    records: Arc<OutputRecords>,
    held: Arc<Held>,
}

impl Places {
    /// Opens the directory of all applications, which is in `data_directory`.
    ///
    /// # Errors
    /// `Path`, `Foreign`, `Boot`.
    pub(crate) fn open(
        data_directory: &Path,
        quota: u64,
        records: Arc<OutputRecords>,
        held: Arc<Held>,
    ) -> Result<Self, ServiceError> {
        let boot = Boot::current().map_err(ServiceError::Boot)?;
        let path = data_directory.join(APPLICATIONS);
        directory(&path, 0o700)?;
        Ok(Self {
            path,
            boot,
            quota,
            records,
            held,
        })
    }

    /// Finds the applications of a service before this one. What is damaged, or of an earlier boot of the machine, is
    /// removed.
    ///
    /// # Errors
    /// `Path`.
    pub(crate) fn left(&self) -> Result<HashMap<Key, Left>, ServiceError> {
        let of = |source| ServiceError::Path {
            path: self.path.clone(),
            source,
        };
        let mut found = HashMap::new();
        let mut all = Holding::default();
        for entry in fs::read_dir(&self.path).map_err(of)? {
            let entry = entry.map_err(of)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(key) = Key::of_name(&name) else {
                log::warn!(
                    "{name} in {} is not the service's and stays",
                    self.path.display()
                );
                continue;
            };
            match self.left_in(&entry.path()) {
                Ok(left) => {
                    let holding = left.store.holding();
                    all.outputs += holding.outputs;
                    all.bytes += holding.bytes;
                    found.insert(key, left);
                }
                Err(why) => {
                    log::warn!("what {name} has left is removed: {why}");
                    remove_directory(&entry.path());
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

    fn left_in(&self, path: &Path) -> Result<Left, String> {
        let record = Record::read(path).map_err(|error| error.to_string())?;
        let record = record.ok_or("its record is damaged")?;
        if record.boot != self.boot {
            return Err("it is of an earlier boot of this machine".to_owned());
        }
        let store = self.store(path).map_err(|error| error.to_string())?;
        let removed = store.recover(record.owner).map_err(|e| e.to_string())?;
        if removed > 0 {
            log::warn!("{removed} files of {} were not whole", record.application);
        }
        Ok(Left {
            record,
            store: Arc::new(store),
            since: Instant::now(),
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
        DirBuilder::new().mode(0o700).create(&path).map_err(said)?;
        let record = Record {
            application: application.to_owned(),
            owner,
            boot: self.boot.clone(),
        };
        let made = record.write(&path).and_then(|()| self.store(&path));
        made.map_err(|error| {
            remove_directory(&path);
            said(error)
        })
    }

    /// Removes an application's directory with all that is in it.
    pub(crate) fn remove(&self, key: Key) {
        remove_directory(&self.path_of(key));
    }

    fn store(&self, path: &Path) -> io::Result<Store> {
        let bounds = (Arc::clone(&self.records), Arc::clone(&self.held));
        Store::open(path, self.quota, bounds)
    }

    fn path_of(&self, key: Key) -> PathBuf {
        self.path.join(key.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Token;

    #[test]
    fn a_directory_that_is_being_removed_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (records, held) = (OutputRecords::new(1), Held::new(1));
        let places = Places::open(dir.path(), 1, records, held).unwrap();
        let key = Token::new([1; 32]).key();
        drop(places.make(key, "app", 7).unwrap());
        assert!(places.make(key, "app", 7).is_err());
        assert_eq!(places.left().unwrap()[&key].record.owner, 7);
        places.remove(key);
        assert!(places.make(key, "app", 8).is_ok());
    }
}
