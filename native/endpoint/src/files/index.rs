//! The index file of a map output: when it is read, and how much of it.
//!
//! A small index is read as a whole when the output is opened. Of a large one only the two offsets
//! that are needed are read, until they are needed often; then all of it, if memory may keep it.

use super::identity::{Files, OutputFileKind};
use super::offsets::{big_endian, Offsets};
use super::position_hint::PositionHint;
use super::stores::Stores;
use crate::limits::SMALL_INDEX_BYTES;
use faro_region::{OpenRegion, Region, Sleep};
use faro_wire::BlockStatus;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

/// The whole index is loaded after (partitions / `PARTITIONS_PER_MISS`) misses.
pub(super) const PARTITIONS_PER_MISS: u64 = 64;

/// Reason why blocks cannot be located.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocateError {
    /// The answer for this block.
    Status(BlockStatus),
    /// The offsets are not in memory, and the caller may not sleep.
    Cold,
    /// The files are not those that were opened: the output has to be looked up again.
    Replaced,
}

/// The part of an index that is read when its output is opened.
pub(super) struct FirstRead {
    /// The last offset: where the data file ends.
    pub(super) end: u64,
    /// All offsets, of a small index.
    pub(super) table: Option<Offsets>,
}

impl FirstRead {
    /// Reads an index of `bytes` bytes, a multiple of 8.
    ///
    /// # Errors
    /// The error of reading the file.
    pub(super) fn of(file: &File, bytes: u64) -> io::Result<Self> {
        let is_small = bytes <= SMALL_INDEX_BYTES;
        let from = if is_small { 0 } else { bytes - 8 };
        let mut raw = vec![0; (bytes - from) as usize];
        file.read_exact_at(&mut raw, from)?;
        Ok(Self {
            end: big_endian(&raw[raw.len() - 8..]),
            table: is_small.then(|| Offsets::parse(&raw)),
        })
    }
}

/// The index of one output, and the look-ups in it.
pub(super) struct Index {
    /// Read by `OpenRegion` only, never through the chunk cache.
    region: Region,
    /// The offset table, where it was found last.
    table: PositionHint<Offsets>,
    /// Look-ups of offsets that were not in memory, since the index was loaded last.
    misses: AtomicU32,
}

impl Index {
    pub(super) fn new(region: Region) -> Self {
        Self {
            region,
            table: PositionHint::default(),
            misses: AtomicU32::new(0),
        }
    }

    /// Returns the number of partitions, at least 1.
    pub(super) fn partitions(&self) -> u64 {
        self.region.bytes() / 8 - 1
    }

    /// Returns the offsets at two positions; `None` for one that a table in memory does not have.
    ///
    /// # Errors
    /// `Unreadable`; or that it has to be asked otherwise.
    pub(super) fn offsets(
        &self,
        files: &Files,
        stores: &Stores,
        at: [u32; 2],
        sleep: Sleep,
    ) -> Result<[Option<u64>; 2], LocateError> {
        match self.table.find(|| stores.offsets(files.generation)) {
            Some(table) => Ok(at.map(|at| table.get(at as usize))),
            None => Ok(self.read(files, stores, at, sleep)?.map(Some)),
        }
    }

    /// Reads two offsets of the index file. Keeps all offsets if the file is small or often asked
    /// for.
    fn read(
        &self,
        files: &Files,
        stores: &Stores,
        [start, end]: [u32; 2],
        sleep: Sleep,
    ) -> Result<[u64; 2], LocateError> {
        if sleep == Sleep::Never {
            let index = self.region.opened().ok_or(LocateError::Cold)?;
            return read_pair(start, end, |at, raw| match index.read_cached(at, raw) {
                Ok(got) if got == raw.len() => Ok(()),
                Ok(_) | Err(_) => Err(LocateError::Cold),
            });
        }
        let index = self.region.open().map_err(|_| LocateError::Replaced)?;
        let bytes = self.region.bytes();
        let misses = u64::from(self.misses.fetch_add(1, Ordering::Relaxed));
        let is_wanted = misses * PARTITIONS_PER_MISS >= self.partitions();
        let is_wanted = is_wanted && stores.may_keep(bytes / 2);
        let read = match is_wanted || bytes <= SMALL_INDEX_BYTES {
            true => self.load(&index, files, stores, [start, end]),
            false => read_pair(start, end, |at, raw| index.read(at, raw)),
        };
        read.map_err(|error| {
            let path = files.path(OutputFileKind::Index);
            log::warn!("cannot read {}: {error}", path.display());
            LocateError::Status(BlockStatus::Unreadable)
        })
    }

    fn load(
        &self,
        index: &OpenRegion<'_>,
        files: &Files,
        stores: &Stores,
        at: [u32; 2],
    ) -> io::Result<[u64; 2]> {
        self.misses.store(0, Ordering::Relaxed);
        let mut raw = vec![0; self.region.bytes() as usize];
        index.read(0, &mut raw)?;
        let table = Offsets::parse(&raw);
        let pair = at.map(|at| table.get(at as usize).unwrap_or(0));
        stores.keep_offsets(files.generation, table);
        // The index is not read again while the table is kept.
        stores.descriptors.close(files.key(OutputFileKind::Index));
        Ok(pair)
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
