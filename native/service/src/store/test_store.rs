//! A store in directories of a test.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

use super::{OpenFileCount, OutputRecords, Store};
use crate::handed_over::HandedOverFiles;
use crate::record::{Boot, Record};
use faro_wire::OutputId;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

pub(super) fn id(map_id: i64) -> OutputId {
    OutputId {
        shuffle_id: 3,
        map_id,
    }
}

pub(super) struct TestStore {
    pub(super) spark: tempfile::TempDir,
    pub(super) kept: tempfile::TempDir,
}

impl TestStore {
    pub(super) fn new() -> Self {
        let [spark, kept] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        Self { spark, kept }
    }

    pub(super) fn store(&self, quota: u64) -> Store {
        self.bounded(quota, &OutputRecords::new(1 << 20))
    }

    pub(super) fn bounded(&self, quota: u64, records: &Arc<OutputRecords>) -> Store {
        let bounds = (Arc::clone(records), OpenFileCount::new(20));
        let record = Record {
            application: "app".to_owned(),
            owner: self.owner(),
            boot: Boot::current().unwrap(),
        };
        Store::open(self.kept.path(), record, quota, bounds).unwrap()
    }

    /// Writes an output as an executor does; the files' names are of no account.
    pub(super) fn written(&self, bytes: &[u8]) -> HandedOverFiles {
        let index = self.spark.path().join("index");
        let data = self.spark.path().join("data");
        let _ = fs::remove_file(&index);
        let _ = fs::remove_file(&data);
        let offsets = [0, bytes.len() as u64 / 2, bytes.len() as u64];
        fs::write(&index, offsets.map(u64::to_be_bytes).concat()).unwrap();
        fs::write(&data, bytes).unwrap();
        let [index, data] = [index, data].map(|path| File::open(path).unwrap());
        let owner = index.metadata().unwrap().uid();
        HandedOverFiles::check(index, Some(data), owner).unwrap()
    }

    fn owner(&self) -> u32 {
        fs::metadata(self.kept.path()).unwrap().uid()
    }

    pub(super) fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.kept.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// A store after a restart, and how many names went.
    pub(super) fn recovered(&self) -> (Store, usize) {
        let store = self.store(1 << 30);
        let named = store.scan().unwrap();
        let (looked, later) = store.look();
        assert_eq!(later, 0);
        (store, named + looked)
    }
}

/// An output that is being kept until this is dropped, as where a disk does not answer.
pub(crate) struct BeingKept(Arc<Store>);

impl BeingKept {
    pub(crate) fn new(store: &Arc<Store>) -> Self {
        faro_sync::lock(&store.outputs).enter(1);
        Self(Arc::clone(store))
    }
}

impl Drop for BeingKept {
    fn drop(&mut self) {
        faro_sync::lock(&self.0.outputs).leave(1);
        self.0.settled.notify_all();
    }
}

pub(super) fn bytes_of(store: &Store, id: OutputId) -> Option<Vec<u8>> {
    store
        .find(id)
        .map(|found| fs::read(&found.files.data).unwrap())
}
