//! Map outputs of other processes of this host, as open files that a node service has lent.
//!
//! A reader on this host then reads such an output with `pread` on its own thread, as its own. The files have no path
//! here, so they are kept open, up to a number of outputs: the one that came first goes when there are too many, and
//! whoever needs it again asks the service again. Nothing is believed of the files but that they are those of the
//! output: every offset is checked when it is used.

use crate::files::{open_file_bound, FileRange};
use faro_sync::lock;
use faro_wire::{BlockStatus, OutputId};
use rustix::fs::{fcntl_getfl, fstat, FileType, OFlags};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// Most outputs that are lent at a time; each is two open files.
const MAX_LOANS: usize = 4_096;

/// Why lent files are not taken.
#[derive(Debug, Error)]
pub enum LoanError {
    /// A directory, a pipe, a device, or opened for more than reading.
    #[error("the {part} that was lent is no regular file that is open for reading only")]
    NotReadOnly {
        /// Which file.
        part: &'static str,
    },
    /// Not a multiple of eight, or less than one partition.
    #[error("the index that was lent has {got} bytes, allowed: 16 and more, in eights")]
    IndexLength {
        /// Its length.
        got: u64,
    },
    /// The system's error.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The open files of a lent output.
pub(crate) struct Loan {
    index: File,
    partitions: u64,
    /// `None`: all partitions are empty.
    data: Option<File>,
    data_bytes: u64,
}

impl Loan {
    fn new(index: File, data: Option<File>) -> Result<Self, LoanError> {
        let index_bytes = length(&index, "index")?;
        let data_bytes = data.as_ref().map_or(Ok(0), |d| length(d, "data file"))?;
        if index_bytes < 16 || index_bytes % 8 != 0 {
            return Err(LoanError::IndexLength { got: index_bytes });
        }
        Ok(Self {
            index,
            partitions: index_bytes / 8 - 1,
            data,
            data_bytes,
        })
    }

    /// The bytes of partitions `start` to `end` (exclusive).
    ///
    /// # Errors
    /// `BadRange`, `BadIndex`, `UnknownOutput` (bytes promised, no data file), `Unreadable`.
    pub(crate) fn locate(&self, start: u32, end: u32) -> Result<FileRange, BlockStatus> {
        if start >= end || u64::from(end) > self.partitions {
            return Err(BlockStatus::BadRange);
        }
        let (first, past) = match end - start {
            // One read: a call costs more than some bytes.
            1 => {
                let both = self.offsets::<16>(start)?;
                ((both >> 64) as u64, both as u64)
            }
            _ => (
                self.offsets::<8>(start)? as u64,
                self.offsets::<8>(end)? as u64,
            ),
        };
        match &self.data {
            _ if first > past => Err(BlockStatus::BadIndex),
            None if first < past => Err(BlockStatus::UnknownOutput),
            Some(_) if past > self.data_bytes => Err(BlockStatus::BadIndex),
            _ => Ok(FileRange {
                offset: first,
                length: past - first,
            }),
        }
    }

    /// Reads the offset at a position of the index, or with 16 bytes it and the next one, as one number.
    fn offsets<const BYTES: usize>(&self, position: u32) -> Result<u128, BlockStatus> {
        let mut raw = [0; 16];
        let read = self
            .index
            .read_exact_at(&mut raw[16 - BYTES..], u64::from(position) * 8);
        read.map_err(|_| BlockStatus::Unreadable)?;
        Ok(u128::from_be_bytes(raw))
    }

    /// # Errors
    /// What the file says; `UnexpectedEof` when it has become shorter.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match &self.data {
            Some(data) => data.read_exact_at(buffer, offset),
            None if buffer.is_empty() => Ok(()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Of a regular file that is open for reading and nothing else.
fn length(file: &File, part: &'static str) -> Result<u64, LoanError> {
    let flags = fcntl_getfl(file).map_err(io::Error::from)?;
    let stat = fstat(file).map_err(io::Error::from)?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let may_more = flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::PATH);
    if !is_regular || may_more {
        return Err(LoanError::NotReadOnly { part });
    }
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

#[derive(Default)]
struct LentState {
    /// With the number of its place in the order.
    known: HashMap<OutputId, (u64, Arc<Loan>)>,
    /// In the order of their coming; also of outputs that went otherwise.
    order: VecDeque<(u64, OutputId)>,
    next: u64,
}

/// The outputs that are lent to this process.
pub(crate) struct LentOutputs {
    max: usize,
    state: Mutex<LentState>,
}

impl LentOutputs {
    /// As many as take an eighth of the files that this process may have open, at most 4,096.
    pub(crate) fn new() -> Self {
        Self::bounded((open_file_bound() / 4).clamp(1, MAX_LOANS))
    }

    fn bounded(max: usize) -> Self {
        let state = Mutex::default();
        Self { max, state }
    }

    /// The most outputs at a time.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Keeps the files of an output, in the place of older ones.
    pub(crate) fn keep(
        &self,
        id: OutputId,
        index: File,
        data: Option<File>,
    ) -> Result<(), LoanError> {
        let loan = Arc::new(Loan::new(index, data)?);
        let mut gone = Vec::new();
        let mut state = lock(&self.state);
        let place = state.next;
        state.next += 1;
        gone.extend(state.known.insert(id, (place, loan)));
        state.order.push_back((place, id));
        while state.known.len() > self.max || state.order.len() > 2 * self.max {
            let Some((place, id)) = state.order.pop_front() else {
                break;
            };
            if state.known.get(&id).is_some_and(|(of, _)| *of == place) {
                gone.extend(state.known.remove(&id));
            }
        }
        drop(state);
        // Closing a deleted file may free its blocks, which takes time.
        drop(gone);
        Ok(())
    }

    pub(crate) fn find(&self, id: OutputId) -> Option<Arc<Loan>> {
        let state = lock(&self.state);
        state.known.get(&id).map(|(_, loan)| Arc::clone(loan))
    }

    /// Closes the files of a shuffle's outputs, once no task reads them.
    pub(crate) fn forget(&self, shuffle: u32) {
        let mut gone = Vec::new();
        let mut state = lock(&self.state);
        state.order.retain(|(_, id)| id.shuffle_id != shuffle);
        state.known.retain(|id, (_, loan)| {
            let stays = id.shuffle_id != shuffle;
            if !stays {
                gone.push(Arc::clone(loan));
            }
            stays
        });
        drop(state);
        drop(gone);
    }

    /// Closes all files.
    pub(crate) fn close(&self) {
        drop(std::mem::take(&mut *lock(&self.state)));
    }
}

#[cfg(test)]
#[path = "loans_test.rs"]
mod tests;
