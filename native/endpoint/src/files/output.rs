//! One map output: a data file of concatenated partitions and an index of their offsets.
//!
//! ```text
//!  index: | offset 0 | offset 1 | ... | offset P |      P + 1 big-endian i64, not decreasing
//!  data:  | partition 0 | partition 1 | ... |           offset P = length of the file
//! ```
//! (Spark's `IndexShuffleBlockResolver`.) Nothing is believed: every offset is checked when it is
//! used.

use super::mapped;
use crate::memory::RegionMode;
use faro_pool::{Lease, Pool};
use faro_region::{ChunkCache, Region, RegionError, RegionId, Sleep};
use faro_wire::{BlockStatus, OutputId};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// Index files up to this size are kept in memory; larger ones are read at the two offsets needed.
const MAX_LOADED_INDEX_BYTES: u64 = 1 << 20;

/// The files of a map output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFiles {
    /// Concatenated partitions; may be absent when all are empty.
    pub data: PathBuf,
    /// `partitions + 1` big-endian 64-bit offsets.
    pub index: PathBuf,
}

enum Offsets {
    Loaded(Box<[u64]>),
    OnDisk(File),
}

/// An open map output.
pub(crate) struct Output {
    /// `None`: there is no data file or nothing in it, which is right only if all partitions are
    /// empty.
    data: Option<Region>,
    /// At least 1.
    partitions: u64,
    offsets: Offsets,
    /// `data`, mapped for the device, once it was wanted; `None`: it cannot be.
    mapped: OnceLock<Option<Arc<Lease>>>,
    /// Logical time of the last use, for eviction.
    pub(crate) used: AtomicU64,
}

/// A contiguous run of bytes of one output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileRange {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Output {
    /// Opens both files.
    ///
    /// # Errors
    /// `UnknownOutput` if there is no index, `BadIndex` if it cannot be one, `Unreadable`.
    pub(crate) fn open(id: OutputId, files: &OutputFiles) -> Result<Self, BlockStatus> {
        let index = File::open(&files.index).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => BlockStatus::UnknownOutput,
            _ => unreadable(&files.index, &error),
        })?;
        let bytes = index
            .metadata()
            .map_err(|error| unreadable(&files.index, &error))?
            .len();
        if bytes < 16 || bytes % 8 != 0 {
            log::warn!(
                "index file {} has {bytes} bytes, which is not a list of offsets",
                files.index.display()
            );
            return Err(BlockStatus::BadIndex);
        }
        let data = match Region::export(region_id(id), &files.data) {
            Ok(region) => Some(region),
            Err(RegionError::Empty { .. }) => None,
            Err(RegionError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                None
            }
            Err(error) => {
                log::warn!("{error}");
                return Err(BlockStatus::Unreadable);
            }
        };
        let offsets = if bytes <= MAX_LOADED_INDEX_BYTES {
            let mut raw = vec![0; bytes as usize];
            index
                .read_exact_at(&mut raw, 0)
                .map_err(|error| unreadable(&files.index, &error))?;
            Offsets::Loaded(raw.chunks_exact(8).map(big_endian).collect())
        } else {
            Offsets::OnDisk(index)
        };
        Ok(Self {
            data,
            partitions: bytes / 8 - 1,
            offsets,
            mapped: OnceLock::new(),
            used: AtomicU64::new(0),
        })
    }

    /// Bytes of memory the offsets take.
    pub(crate) fn offset_bytes(&self) -> usize {
        match &self.offsets {
            Offsets::Loaded(table) => table.len() * 8,
            Offsets::OnDisk(_) => 0,
        }
    }

    /// The bytes of partitions `start` to `end` (exclusive).
    ///
    /// # Errors
    /// `BadRange`, `BadIndex`, `UnknownOutput` (bytes promised, no data file), `Unreadable`.
    pub(crate) fn locate(&self, start: u32, end: u32) -> Result<FileRange, BlockStatus> {
        if start >= end || u64::from(end) > self.partitions {
            return Err(BlockStatus::BadRange);
        }
        let (first, past) = match &self.offsets {
            Offsets::Loaded(table) => (table[start as usize], table[end as usize]),
            Offsets::OnDisk(file) => (offset_at(file, start)?, offset_at(file, end)?),
        };
        if first > past {
            return Err(BlockStatus::BadIndex);
        }
        match &self.data {
            None if first < past => return Err(BlockStatus::UnknownOutput),
            Some(region) if past > region.bytes() => return Err(BlockStatus::BadIndex),
            _ => {}
        }
        Ok(FileRange {
            offset: first,
            length: past - first,
        })
    }

    /// The bytes of the partitions; `None` when they are all empty.
    pub(crate) fn region(&self) -> Option<&Region> {
        self.data.as_ref()
    }

    /// The bytes of the partitions where the device can read them, in modes that have that.
    pub(crate) fn mapped(&self, pool: &Arc<Pool>, mode: RegionMode) -> Option<&Arc<Lease>> {
        let region = self.data.as_ref()?;
        let mapped = || {
            mapped::map(pool, region, mode).unwrap_or_else(|error| {
                log::warn!("a map output cannot be mapped and goes through the arena: {error}");
                None
            })
        };
        self.mapped.get_or_init(mapped).as_ref()
    }

    /// Fills `buffer` from `offset`, and says how much of it (all, if it may sleep).
    ///
    /// # Errors
    /// What the file says; `UnexpectedEof` when it has become shorter.
    pub(crate) fn read(
        &self,
        cache: &Arc<ChunkCache>,
        offset: u64,
        buffer: &mut [u8],
        sleep: Sleep,
    ) -> io::Result<usize> {
        match &self.data {
            Some(region) => cache.read(region, offset, buffer, sleep),
            None if buffer.is_empty() => Ok(0),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// A map output's region; a shuffle's regions are one group.
fn region_id(output: OutputId) -> RegionId {
    RegionId {
        group: output.shuffle_id,
        member: output.map_id,
    }
}

fn unreadable(path: &std::path::Path, error: &io::Error) -> BlockStatus {
    log::warn!("cannot read {}: {error}", path.display());
    BlockStatus::Unreadable
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn offset_at(index: &File, partition: u32) -> Result<u64, BlockStatus> {
    let mut raw = [0; 8];
    index
        .read_exact_at(&mut raw, u64::from(partition) * 8)
        .map_err(|_| BlockStatus::BadIndex)?;
    Ok(u64::from_be_bytes(raw))
}

#[cfg(test)]
mod tests {
    use super::*;
    use faro_pool::Pool;

    fn open(files: &OutputFiles) -> Result<Output, BlockStatus> {
        let id = OutputId {
            shuffle_id: 1,
            map_id: 2,
        };
        Output::open(id, files)
    }

    fn read(output: &Output, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let pool = Pool::new(faro_pool::MIN_LIMIT_BYTES).unwrap();
        output.read(
            &ChunkCache::new(pool, 1).unwrap(),
            offset,
            buffer,
            Sleep::May,
        )
    }

    fn write(dir: &std::path::Path, offsets: &[u64], data: Option<&[u8]>) -> OutputFiles {
        let files = OutputFiles {
            data: dir.join("d"),
            index: dir.join("i"),
        };
        let raw: Vec<u8> = offsets.iter().flat_map(|o| o.to_be_bytes()).collect();
        std::fs::write(&files.index, raw).unwrap();
        if let Some(data) = data {
            std::fs::write(&files.data, data).unwrap();
        }
        files
    }

    #[test]
    fn locates_and_reads_partitions() {
        let dir = tempfile::tempdir().unwrap();
        let files = write(dir.path(), &[0, 3, 3, 10], Some(b"abcdefghij"));
        let output = open(&files).unwrap();
        assert_eq!(
            output.locate(0, 1),
            Ok(FileRange {
                offset: 0,
                length: 3
            })
        );
        assert_eq!(
            output.locate(1, 2),
            Ok(FileRange {
                offset: 3,
                length: 0
            })
        );
        assert_eq!(
            output.locate(0, 3),
            Ok(FileRange {
                offset: 0,
                length: 10
            })
        );
        let mut buffer = [0; 7];
        assert_eq!(read(&output, 3, &mut buffer).unwrap(), 7);
        assert_eq!(&buffer, b"defghij");
    }

    #[test]
    fn refuses_what_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let files = write(dir.path(), &[0, 3, 10], Some(b"abcdefghij"));
        let output = open(&files).unwrap();
        for (start, end) in [
            (0, 0),
            (1, 1),
            (2, 1),
            (0, 3),
            (2, 3),
            (u32::MAX - 1, u32::MAX),
        ] {
            assert_eq!(
                output.locate(start, end),
                Err(BlockStatus::BadRange),
                "{start}..{end}"
            );
        }
    }

    #[test]
    fn refuses_indexes_that_lie() {
        let dir = tempfile::tempdir().unwrap();
        let files = write(dir.path(), &[0, 8, 3, 11], Some(b"abcdefghij"));
        let output = open(&files).unwrap();
        assert_eq!(
            output.locate(1, 2),
            Err(BlockStatus::BadIndex),
            "runs backwards"
        );
        assert_eq!(
            output.locate(2, 3),
            Err(BlockStatus::BadIndex),
            "beyond the file"
        );
        assert_eq!(
            output.locate(0, 1),
            Ok(FileRange {
                offset: 0,
                length: 8
            }),
            "others are served"
        );
        for bytes in [0, 7, 8, 15, 17] {
            std::fs::write(&files.index, vec![0; bytes]).unwrap();
            assert_eq!(
                open(&files).err(),
                Some(BlockStatus::BadIndex),
                "{bytes} bytes"
            );
        }
    }

    #[test]
    fn absent_files() {
        let dir = tempfile::tempdir().unwrap();
        let files = write(dir.path(), &[0, 0, 0], None);
        let output = open(&files).unwrap();
        assert_eq!(
            output.locate(0, 2),
            Ok(FileRange {
                offset: 0,
                length: 0
            }),
            "empty map output"
        );
        let files = write(dir.path(), &[0, 5], None);
        let output = open(&files).unwrap();
        assert_eq!(
            output.locate(0, 1),
            Err(BlockStatus::UnknownOutput),
            "data file is gone"
        );
        std::fs::remove_file(&files.index).unwrap();
        assert_eq!(open(&files).err(), Some(BlockStatus::UnknownOutput));
    }

    #[test]
    fn large_indexes_stay_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        let partitions = 200_000;
        let offsets: Vec<u64> = (0..=partitions).map(|p| p / 20_000).collect();
        let files = write(dir.path(), &offsets, Some(b"abcdefghij"));
        let output = open(&files).unwrap();
        assert_eq!(output.offset_bytes(), 0);
        assert_eq!(
            output.locate(19_999, 20_000),
            Ok(FileRange {
                offset: 0,
                length: 1
            })
        );
        assert_eq!(
            output.locate(0, 200_000),
            Ok(FileRange {
                offset: 0,
                length: 10
            })
        );
        assert_eq!(output.locate(0, 200_001), Err(BlockStatus::BadRange));
    }

    #[test]
    fn a_file_that_shrinks_is_an_error_of_the_read() {
        let dir = tempfile::tempdir().unwrap();
        let files = write(dir.path(), &[0, 10], Some(b"abcdefghij"));
        let output = open(&files).unwrap();
        File::options()
            .write(true)
            .open(&files.data)
            .unwrap()
            .set_len(4)
            .unwrap();
        let error = read(&output, 0, &mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
