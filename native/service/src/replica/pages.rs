//! A service's list of what it has, in pages that never change once they are written.
//!
//! ```text
//!  entry   u8 1 | u32 shuffle | i64 map | u64 bytes of data | u32 bytes of index     an output that executors handed over
//!          u8 2 | u32 shuffle | i64 map                                              a copy that is kept here
//!          u8 3 | u32 shuffle                                                        a shuffle that was removed
//! ```
//! Page n is a file `page_<n>.data` in the application's directory, which counts against the application's quota. Pages of a
//! service before this one do not count: a service that was started again has another card, and its list begins anew.

use crate::links::PAGE;
use crate::store::Store;
use faro_wire::OutputId;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Entries of a page: what is copied between two looks at other services.
pub(crate) const MAX_ENTRIES: usize = 256;
/// The longest page.
pub(crate) const MAX_PAGE: u64 = (MAX_ENTRIES * 25) as u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Output { id: OutputId, data: u64, index: u32 },
    Copy(OutputId),
    Removed(u32),
}

impl Entry {
    fn encode(self, out: &mut Vec<u8>) {
        let mut put = |kind: u8, shuffle: u32| {
            out.push(kind);
            out.extend_from_slice(&shuffle.to_le_bytes());
        };
        match self {
            Self::Output { id, data, index } => {
                put(1, id.shuffle_id);
                out.extend_from_slice(&id.map_id.to_le_bytes());
                out.extend_from_slice(&data.to_le_bytes());
                out.extend_from_slice(&index.to_le_bytes());
            }
            Self::Copy(id) => {
                put(2, id.shuffle_id);
                out.extend_from_slice(&id.map_id.to_le_bytes());
            }
            Self::Removed(shuffle) => put(3, shuffle),
        }
    }

    /// `None`: the bytes are no page.
    pub(crate) fn decode_all(mut bytes: &[u8]) -> Option<Vec<Self>> {
        let mut entries = Vec::new();
        while let Some((kind, rest)) = bytes.split_first() {
            let (shuffle, rest) = rest.split_first_chunk()?;
            let shuffle_id = u32::from_le_bytes(*shuffle);
            i32::try_from(shuffle_id).ok()?;
            let map = |rest: &[u8]| rest.first_chunk().map(|map| i64::from_le_bytes(*map));
            let (entry, rest) = match kind {
                1 => {
                    let map_id = map(rest)?;
                    let (data, rest) = rest.get(8..)?.split_first_chunk()?;
                    let (index, rest) = rest.split_first_chunk()?;
                    let data = u64::from_le_bytes(*data);
                    // The kernel counts a file's bytes as an i64; with a longer one the sum of both would overflow.
                    i64::try_from(data).ok()?;
                    let entry = Self::Output {
                        id: OutputId { shuffle_id, map_id },
                        data,
                        index: u32::from_le_bytes(*index),
                    };
                    (entry, rest)
                }
                2 => {
                    let map_id = map(rest)?;
                    (Self::Copy(OutputId { shuffle_id, map_id }), rest.get(8..)?)
                }
                3 => (Self::Removed(shuffle_id), rest),
                _ => return None,
            };
            if entries.len() == MAX_ENTRIES {
                return None;
            }
            entries.push(entry);
            bytes = rest;
        }
        Some(entries)
    }
}

/// The pages of an application here.
#[derive(Debug)]
pub(crate) struct Pages {
    /// Theirs is its directory, and its quota.
    store: Arc<Store>,
    written: AtomicU64,
}

impl Pages {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        let written = AtomicU64::new(0);
        Self { store, written }
    }

    /// Writes the next page. Called by one thread.
    pub(crate) fn write(&self, entries: &[Entry]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for entry in entries {
            entry.encode(&mut bytes);
        }
        let page = self.written.load(Ordering::Relaxed);
        self.counted(&self.path(page), &bytes)?;
        self.written.store(page + 1, Ordering::Release);
        Ok(())
    }

    /// Writes a file that counts against the quota. If that fails, nothing of it is left: a disk that is full may be tried
    /// many times.
    fn counted(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let more = bytes.len() as u64;
        self.store.list(more).map_err(io::Error::other)?;
        fs::write(path, bytes).inspect_err(|_| {
            let _ = fs::remove_file(path);
            self.store.unlist(more);
        })
    }

    fn path(&self, page: u64) -> PathBuf {
        self.store.path().join(format!("{PAGE}{page}.data"))
    }

    /// The bytes of page `page`, if it is written.
    pub(crate) fn read(&self, page: u64) -> io::Result<Option<Vec<u8>>> {
        let is_written = page < self.written.load(Ordering::Acquire);
        is_written.then(|| fs::read(self.path(page))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::is_list;
    use crate::record::{Boot, Record};
    use crate::store::{OpenFileCount, OutputRecords};

    fn entries() -> Vec<Entry> {
        let id = OutputId {
            shuffle_id: 4,
            map_id: 5,
        };
        let (data, index) = (1 << 40, 24);
        vec![
            Entry::Output { id, data, index },
            Entry::Copy(id),
            Entry::Removed(4),
        ]
    }

    #[test]
    fn a_page_is_read_back_and_no_part_of_it_is_a_page_with_more() {
        let mut bytes = Vec::new();
        entries().iter().for_each(|entry| entry.encode(&mut bytes));
        assert_eq!(Entry::decode_all(&bytes).unwrap(), entries());
        for end in 0..bytes.len() {
            let cut = Entry::decode_all(&bytes[..end]);
            assert!(cut.is_none_or(|cut| entries().starts_with(&cut)), "{end}");
        }
        bytes[0] = 4;
        assert_eq!(Entry::decode_all(&bytes), None);
    }

    #[test]
    fn no_output_is_longer_than_a_file_may_be() {
        let id = OutputId {
            shuffle_id: 4,
            map_id: 5,
        };
        for (data, is_page) in [(i64::MAX as u64, true), (1 << 63, false), (u64::MAX, false)] {
            let (mut bytes, index) = (Vec::new(), u32::MAX);
            Entry::Output { id, data, index }.encode(&mut bytes);
            assert_eq!(Entry::decode_all(&bytes).is_some(), is_page, "{data}");
        }
    }

    #[test]
    fn the_longest_page_is_as_long_as_may_be() {
        let mut bytes = Vec::new();
        (0..MAX_ENTRIES).for_each(|_| entries()[0].encode(&mut bytes));
        assert_eq!(bytes.len() as u64, MAX_PAGE);
        assert!(Entry::decode_all(&bytes).is_some());
        entries()[2].encode(&mut bytes);
        assert_eq!(Entry::decode_all(&bytes), None);
    }

    fn pages(dir: &Path, quota: u64) -> Pages {
        let record = Record {
            application: "app".to_owned(),
            owner: 1,
            boot: Boot::current().unwrap(),
        };
        let bounds = (OutputRecords::new(1), OpenFileCount::new(1));
        Pages::new(Arc::new(Store::open(dir, record, quota, bounds).unwrap()))
    }

    #[test]
    fn pages_count_against_the_quota() {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = Vec::new();
        entries().iter().for_each(|entry| entry.encode(&mut bytes));
        let pages = pages(dir.path(), 2 * bytes.len() as u64);
        pages.write(&entries()).unwrap();
        pages.write(&entries()).unwrap();
        let error = pages.write(&entries()).unwrap_err().to_string();
        assert!(error.contains("quota"), "{error}");
        assert_eq!(pages.read(1).unwrap(), Some(bytes));
        assert_eq!(pages.read(2).unwrap(), None);
    }

    #[test]
    fn what_could_not_be_written_takes_no_room() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app");
        fs::create_dir(&path).unwrap();
        let pages = pages(&path, 1 << 10);
        fs::remove_dir(&path).unwrap();
        for _ in 0..100 {
            let error = pages.write(&entries()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
        fs::create_dir(&path).unwrap();
        pages.write(&entries()).unwrap();
        assert!(pages.read(0).unwrap().is_some());
    }

    #[test]
    fn a_page_is_there_when_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let pages = pages(dir.path(), 1 << 20);
        assert_eq!(pages.read(0).unwrap(), None);
        pages.write(&entries()).unwrap();
        let page = pages.read(0).unwrap().unwrap();
        assert_eq!(Entry::decode_all(&page).unwrap(), entries());
        for absent in [1, u64::MAX] {
            assert_eq!(pages.read(absent).unwrap(), None);
        }
        for name in fs::read_dir(dir.path()).unwrap() {
            let name = name.unwrap().file_name().into_string().unwrap();
            assert!(is_list(&name), "{name}");
        }
        fs::remove_file(dir.path().join("page_0.data")).unwrap();
        assert!(pages.read(0).is_err());
    }
}
