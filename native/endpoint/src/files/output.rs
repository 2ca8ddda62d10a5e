//! One map output: a data file of concatenated partitions and an index of their offsets.
//!
//! ```text
//!  index: | offset 0 | offset 1 | ... | offset P |      P + 1 big-endian i64, not decreasing
//!  data:  | partition 0 | partition 1 | ... |           offset P = length of the file
//! ```
//! (Spark's `IndexShuffleBlockResolver`.) Nothing is believed: every offset is checked when it is
//! used.
//!
//! An `Output` is one generation of the files: it knows their paths and identities, and never
//! changes. It holds no descriptor and no offsets; `Stores` holds those, as far as there is room.

use super::descriptors::{Opened, OutputDescriptor};
use super::identity::{FileIdentity, Files, OutputFileKind, OutputFiles};
use super::last::Last;
#[cfg(feature = "research")]
use super::mapped::Mapping;
use super::offsets::{big_endian, Offsets};
use super::stores::Stores;
use crate::limits::SMALL_INDEX_BYTES;
use faro_region::{ChunkCache, OpenFile, OpenRegion, Region, RegionId, Sleep, Source};
use faro_wire::block::PIECE_BYTES;
use faro_wire::{BlockId, BlockStatus, OutputId};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Times that files are opened again which do not fit each other, because Spark may be replacing them.
const REOPENINGS: u32 = 3;
/// Pause before each.
const REOPEN_PAUSE: Duration = Duration::from_millis(2);
/// The whole index is loaded after (partitions / `PARTITIONS_PER_MISS`) misses.
const PARTITIONS_PER_MISS: u64 = 64;

/// Reason why blocks cannot be located.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unlocated {
    /// The answer for this block.
    Status(BlockStatus),
    /// The offsets are not in memory, and the caller may not sleep.
    Cold,
    /// The files are not those that were opened: the output has to be looked up again.
    Replaced,
}

/// A known map output.
pub(crate) struct Output {
    files: Arc<Files>,
    stores: Arc<Stores>,
    /// The data file; `None` if it is missing or empty, which is right only if all partitions are
    /// empty.
    data: Option<Region>,
    /// Read by `OpenRegion` only, never through the chunk cache.
    index: Region,
    /// The index ends where the data file does.
    is_whole: bool,
    /// The offset table, where it was found last.
    table: Last<Offsets>,
    /// Look-ups of offsets that were not in memory, since the index was loaded last.
    misses: AtomicU32,
    /// `data` mapped for the device, in the modes that have it.
    #[cfg(feature = "research")]
    mapping: Mapping,
}

/// A contiguous run of bytes of one output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileRange {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl FileRange {
    /// Returns the part that `block` wants of the bytes of its partitions.
    pub(crate) fn of(self, block: &BlockId) -> Self {
        let Some(before) = u64::from(block.piece.get()).checked_sub(1) else {
            return self;
        };
        let from = (before * PIECE_BYTES).min(self.length);
        Self {
            offset: self.offset + from,
            length: (self.length - from).min(PIECE_BYTES),
        }
    }
}

/// Opens one of the files for its region.
struct PartSource {
    files: Arc<Files>,
    part: OutputFileKind,
    stores: Arc<Stores>,
    /// Place at which it was found last.
    last: Last<OutputDescriptor>,
}

impl Source for PartSource {
    fn opened(&self) -> Option<Arc<dyn OpenFile>> {
        let (key, descriptors) = (self.files.key(self.part), &self.stores.descriptors);
        let found = self.last.find(|| descriptors.get(key))?;
        found.is_current().then_some(found as Arc<dyn OpenFile>)
    }

    fn open(&self) -> io::Result<Arc<dyn OpenFile>> {
        if let Some(found) = self.opened() {
            return Ok(found);
        }
        let opened = self.stores.descriptors.open(&self.files, self.part)?;
        self.last.set(&opened);
        Ok(opened)
    }
}

impl Output {
    /// Opens both files. If they do not fit each other it tries again for some milliseconds: Spark
    /// replaces first the index, then the data.
    ///
    /// # Errors
    /// `UnknownOutput` if there is no index, `BadIndex` if it cannot be one, `Unreadable`.
    pub(crate) fn open(
        stores: &Arc<Stores>,
        id: OutputId,
        files: &OutputFiles,
    ) -> Result<Self, BlockStatus> {
        let mut output = Self::open_once(stores, id, files)?;
        for _ in 0..REOPENINGS {
            if output.is_whole {
                break;
            }
            std::thread::sleep(REOPEN_PAUSE);
            output = Self::open_once(stores, id, files)?;
        }
        Ok(output)
    }

    fn open_once(
        stores: &Arc<Stores>,
        id: OutputId,
        files: &OutputFiles,
    ) -> Result<Self, BlockStatus> {
        let [index, data] = stores.descriptors.open_both(files);
        let unreadable = |path: &std::path::Path, error: &io::Error| {
            log::warn!("cannot read {}: {error}", path.display());
            BlockStatus::Unreadable
        };
        let index = index.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => BlockStatus::UnknownOutput,
            _ => unreadable(&files.index, &error),
        })?;
        let data = match data {
            Ok(data) => Some(data),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(&files.data, &error)),
        };
        let identity = |opened: &Opened| FileIdentity::of(&opened.file);
        let index_was = identity(&index).map_err(|error| unreadable(&files.index, &error))?;
        let data_was = data.as_ref().map(identity).transpose();
        let data_was = data_was.map_err(|error| unreadable(&files.data, &error))?;
        let bytes = index_was.bytes();
        if bytes < 16 || bytes % 8 != 0 {
            log::warn!(
                "index file {} has {bytes} bytes, which is not a list of offsets",
                files.index.display()
            );
            return Err(BlockStatus::BadIndex);
        }
        // All of a small index, the last offset of a large one.
        let from = match bytes <= SMALL_INDEX_BYTES {
            true => 0,
            false => bytes - 8,
        };
        let mut raw = vec![0; (bytes - from) as usize];
        let read = index.file.read_exact_at(&mut raw, from);
        read.map_err(|error| unreadable(&files.index, &error))?;
        let end = big_endian(&raw[raw.len() - 8..]);

        let length = data_was.map_or(0, |was| was.bytes());
        let generation = stores.next_generation();
        let files = Arc::new(Files::new(generation, files, index_was, data_was));
        let region = |part, bytes| {
            let name = RegionId {
                group: id.shuffle_id,
                member: generation as i64,
            };
            let source = PartSource {
                files: Arc::clone(&files),
                part,
                stores: Arc::clone(stores),
                last: Last::default(),
            };
            Region::new(name, bytes, Box::new(source))
        };
        let data_region = (length > 0).then(|| region(OutputFileKind::Data, length));
        let index_region = region(OutputFileKind::Index, bytes);
        if from == 0 {
            stores.keep_offsets(generation, Offsets::parse(&raw));
        } else {
            stores
                .descriptors
                .keep(&files, OutputFileKind::Index, index);
        }
        if let Some(data) = data.filter(|_| length > 0) {
            stores.descriptors.keep(&files, OutputFileKind::Data, data);
        }
        Ok(Self {
            files,
            stores: Arc::clone(stores),
            data: data_region,
            index: index_region,
            is_whole: end == length,
            table: Last::default(),
            misses: AtomicU32::new(0),
            #[cfg(feature = "research")]
            mapping: Mapping::default(),
        })
    }

    /// Returns whether index and data fit each other, so that later requests may rely on them.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns whether its files were found to be others, or missing.
    pub(crate) fn is_replaced(&self) -> bool {
        self.files.is_replaced()
    }

    /// Marks it as replaced, because other files were opened under its paths.
    pub(crate) fn mark_replaced(&self) {
        self.files.mark_replaced();
    }

    /// Looks whether the paths still lead to its files.
    pub(crate) fn check_paths(&self) -> bool {
        self.files.check_paths()
    }

    /// Returns whether both are the same generation of the same files.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.files.is_same(&other.files)
    }

    /// Returns the memory that this takes, in bytes, without the stores' part.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * size_of::<PartSource>() + self.files.bytes()
    }

    /// The bytes of partitions `start` to `end` (exclusive).
    ///
    /// # Errors
    /// `BadRange`, `BadIndex`, `UnknownOutput` (bytes promised, no data file), `Unreadable`; or that it
    /// has to be asked otherwise.
    pub(crate) fn locate(
        &self,
        start: u32,
        end: u32,
        sleep: Sleep,
    ) -> Result<FileRange, Unlocated> {
        if start >= end || u64::from(end) > self.partitions() {
            return Err(Unlocated::Status(BlockStatus::BadRange));
        }
        let generation = self.files.generation;
        let [first, past] = match self.table.find(|| self.stores.offsets(generation)) {
            Some(table) => [start, end].map(|at| table.get(at as usize)),
            None => self.read_offsets(start, end, sleep)?.map(Some),
        };
        let bad = Unlocated::Status(BlockStatus::BadIndex);
        let (first, past) = first.zip(past).ok_or(bad)?;
        if first > past {
            return Err(bad);
        }
        match &self.data {
            None if first < past => return Err(Unlocated::Status(BlockStatus::UnknownOutput)),
            Some(region) if past > region.bytes() => return Err(bad),
            _ => {}
        }
        Ok(FileRange {
            offset: first,
            length: past - first,
        })
    }

    /// Returns the bytes of the partitions; `None` if all are empty.
    pub(crate) fn region(&self) -> Option<&Region> {
        self.data.as_ref()
    }

    /// Returns the bytes of the partitions as a mapping that the device can read, in modes that
    /// have one.
    #[cfg(feature = "research")]
    pub(crate) fn mapped(
        &self,
        pool: &Arc<faro_pool::Pool>,
        mode: crate::memory::RegionMode,
    ) -> Option<&Arc<faro_pool::Lease>> {
        self.mapping.get(pool, self.data.as_ref()?, mode)
    }

    /// Fills `buffer` from `offset`, and says how much of it (all, if it may sleep).
    ///
    /// # Errors
    /// What the file says; `UnexpectedEof` when it has become shorter. `is_replaced` tells whether it
    /// is another file by now.
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

    /// Closes its files and drops its offsets from memory. It stays usable.
    pub(crate) fn close(&self) {
        for part in [OutputFileKind::Data, OutputFileKind::Index] {
            self.stores.descriptors.close(self.files.key(part));
        }
        self.stores.drop_offsets(self.files.generation);
    }

    /// Returns the number of partitions, at least 1.
    fn partitions(&self) -> u64 {
        self.index.bytes() / 8 - 1
    }

    /// Reads two offsets of the index file. Keeps all offsets if the file is small or often asked
    /// for.
    fn read_offsets(&self, start: u32, end: u32, sleep: Sleep) -> Result<[u64; 2], Unlocated> {
        if sleep == Sleep::Never {
            let index = self.index.opened().ok_or(Unlocated::Cold)?;
            return read_pair(start, end, |at, raw| match index.read_cached(at, raw) {
                Ok(got) if got == raw.len() => Ok(()),
                Ok(_) | Err(_) => Err(Unlocated::Cold),
            });
        }
        let index = self.index.open().map_err(|_| Unlocated::Replaced)?;
        let bytes = self.index.bytes();
        let misses = u64::from(self.misses.fetch_add(1, Ordering::Relaxed));
        let is_wanted = misses * PARTITIONS_PER_MISS >= self.partitions();
        let is_wanted = is_wanted && self.stores.may_keep(bytes / 2);
        let read = match is_wanted || bytes <= SMALL_INDEX_BYTES {
            true => self.load(&index, start, end),
            false => read_pair(start, end, |at, raw| index.read(at, raw)),
        };
        read.map_err(|error| {
            let path = self.files.path(OutputFileKind::Index);
            log::warn!("cannot read {}: {error}", path.display());
            Unlocated::Status(BlockStatus::Unreadable)
        })
    }

    fn load(&self, index: &OpenRegion<'_>, start: u32, end: u32) -> io::Result<[u64; 2]> {
        self.misses.store(0, Ordering::Relaxed);
        let mut raw = vec![0; self.index.bytes() as usize];
        index.read(0, &mut raw)?;
        let table = Offsets::parse(&raw);
        let pair = [start, end].map(|at| table.get(at as usize).unwrap_or(0));
        self.stores.keep_offsets(self.files.generation, table);
        // The index is not read again while the table is kept.
        self.stores
            .descriptors
            .close(self.files.key(OutputFileKind::Index));
        Ok(pair)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.close();
    }
}

/// Reads the offsets at two positions of an index, with one `read` of (offset, buffer) if they are
/// adjacent.
fn read_pair<E>(
    start: u32,
    end: u32,
    read: impl Fn(u64, &mut [u8]) -> Result<(), E>,
) -> Result<[u64; 2], E> {
    let at = |position: u32| u64::from(position) * 8;
    let mut raw = [0; 16];
    if end == start + 1 {
        read(at(start), &mut raw)?;
    } else {
        read(at(start), &mut raw[..8])?;
        read(at(end), &mut raw[8..])?;
    }
    Ok([big_endian(&raw[..8]), big_endian(&raw[8..])])
}

#[cfg(test)]
#[path = "output_test.rs"]
mod tests;
