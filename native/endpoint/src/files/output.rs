//! One map output: a data file of concatenated partitions and an index of their offsets.
//!
//! ```text
//!  index: | offset 0 | offset 1 | ... | offset P |      P + 1 big-endian i64, not decreasing
//!  data:  | partition 0 | partition 1 | ... |           offset P = length of the file
//! ```
//! Spark's `IndexShuffleBlockResolver` writes them. Every offset is checked when it is used.
//!
//! An `Output` is one generation of the files: it knows their paths and identities, and never
//! changes. It holds no descriptor and no offsets; `Stores` holds those, as far as there is room.

use super::descriptors::{OutputDescriptor, PermittedFile};
use super::identity::{FileIdentity, Files, OutputFileKind, OutputFiles};
use super::index::{FirstRead, Index, LocateError};
#[cfg(feature = "research")]
use super::mapped::FileMapping;
use super::position_hint::PositionHint;
use super::stores::Stores;
use faro_region::{ChunkCache, OpenFile, Region, RegionId, Sleep, Source};
use faro_wire::block::PIECE_BYTES;
use faro_wire::{BlockId, BlockStatus, OutputId};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Number of times that files that do not fit each other are opened again, because Spark may be
/// replacing them.
const REOPENINGS: u32 = 3;
/// Pause before each time.
const REOPEN_PAUSE: Duration = Duration::from_millis(2);

/// A known map output.
pub(crate) struct Output {
    files: Arc<Files>,
    stores: Arc<Stores>,
    /// The data file; `None` if it is missing or empty, which is right only if all partitions are
    /// empty.
    data: Option<Region>,
    index: Index,
    /// True if the index ends where the data file does.
    is_whole: bool,
    /// `data` mapped for the device, in the modes that have it.
    #[cfg(feature = "research")]
    mapping: FileMapping,
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
    /// The place at which it was found last.
    last: PositionHint<OutputDescriptor>,
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
    /// Returns `UnknownOutput` if there is no index, `BadIndex` if it cannot be one, and `Unreadable`.
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
        let identity = |opened: &PermittedFile| FileIdentity::of(&opened.file);
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
        let first = FirstRead::of(&index.file, bytes);
        let first = first.map_err(|error| unreadable(&files.index, &error))?;

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
                last: PositionHint::default(),
            };
            Region::new(name, bytes, Box::new(source))
        };
        let data_region = (length > 0).then(|| region(OutputFileKind::Data, length));
        let index_region = region(OutputFileKind::Index, bytes);
        match first.table {
            Some(table) => stores.keep_offsets(generation, table),
            None => {
                let descriptors = &stores.descriptors;
                descriptors.keep(&files, OutputFileKind::Index, index);
            }
        }
        if let Some(data) = data.filter(|_| length > 0) {
            stores.descriptors.keep(&files, OutputFileKind::Data, data);
        }
        Ok(Self {
            files,
            stores: Arc::clone(stores),
            data: data_region,
            index: Index::new(index_region),
            is_whole: first.end == length,
            #[cfg(feature = "research")]
            mapping: FileMapping::default(),
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

    /// Returns the bytes of partitions `start` to `end` (exclusive).
    ///
    /// # Errors
    /// Returns `BadRange`, `BadIndex`, `UnknownOutput` (bytes are promised and there is no data file)
    /// or `Unreadable`; or that it has to be asked in another way.
    pub(crate) fn locate(
        &self,
        start: u32,
        end: u32,
        sleep: Sleep,
    ) -> Result<FileRange, LocateError> {
        if start >= end || u64::from(end) > self.index.partitions() {
            return Err(LocateError::Status(BlockStatus::BadRange));
        }
        let (files, stores) = (&self.files, &self.stores);
        let [first, past] = self.index.offsets(files, stores, [start, end], sleep)?;
        let bad = LocateError::Status(BlockStatus::BadIndex);
        let (first, past) = first.zip(past).ok_or(bad)?;
        if first > past {
            return Err(bad);
        }
        match &self.data {
            None if first < past => return Err(LocateError::Status(BlockStatus::UnknownOutput)),
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

    /// Fills `buffer` from `offset`, and returns the number of bytes that it filled (all, if it may
    /// sleep).
    ///
    /// # Errors
    /// Returns the error of reading the file, and `UnexpectedEof` if it has become shorter.
    /// `is_replaced` says whether it is another file by now.
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
}

impl Drop for Output {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
#[path = "output_test.rs"]
mod tests;
