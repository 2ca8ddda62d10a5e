//! This process's own map outputs, read on the caller's thread.
//!
//! A task reads the blocks of its own executor from the files that are open for peers already, so
//! that such a block costs one `pread` and no look-up of paths. So it reads those of other processes
//! whose files the node service of this host has lent (`loans`).

use crate::files::{Catalog, FileRange, LocateError, Output};
use crate::loans::{LentOutputs, Loan};
use faro_region::Sleep;
use faro_wire::{BlockStatus, OutputId};
use std::io;
use std::sync::Arc;
use thiserror::Error;

/// Reason why an own block cannot be read.
#[derive(Debug, Error)]
pub enum LocalError {
    /// Its files are not known: `Endpoint::resolve` tells them, then the call can be repeated.
    #[error("the files of map output {}/{} are not known", .0.shuffle_id, .0.map_id)]
    Unresolved(OutputId),
    /// The files have no such block.
    #[error("partitions {start} to {end} of map output {}/{}: {status:?}", .output.shuffle_id, .output.map_id)]
    Status {
        /// The map output.
        output: OutputId,
        /// First partition.
        start: u32,
        /// Exclusive.
        end: u32,
        /// Reason why there is no such block.
        status: BlockStatus,
    },
    /// Reading the data file failed.
    #[error("map output {}/{} cannot be read: {error}", .output.shuffle_id, .output.map_id)]
    Io {
        /// The map output.
        output: OutputId,
        /// The system's error.
        error: io::Error,
    },
}

/// The bytes of some consecutive partitions of an own map output.
pub struct LocalBlock {
    id: OutputId,
    place: LocalSource,
    range: FileRange,
}

/// Where the bytes are.
enum LocalSource {
    Own(Arc<Output>),
    Lent(Arc<Loan>),
}

impl LocalBlock {
    /// Finds the bytes of partitions `start` to `end` (exclusive).
    pub(crate) fn find(
        catalog: &Catalog,
        loans: &LentOutputs,
        id: OutputId,
        start: u32,
        end: u32,
    ) -> Result<Self, LocalError> {
        let status = |status| LocalError::Status {
            output: id,
            start,
            end,
            status,
        };
        let Some(output) = catalog.ready(id) else {
            let loan = loans.find(id).ok_or(LocalError::Unresolved(id))?;
            let range = loan.locate(start, end).map_err(status)?;
            let place = LocalSource::Lent(loan);
            return Ok(Self { id, place, range });
        };
        match output.locate(start, end, Sleep::May) {
            Ok(range) => {
                let place = LocalSource::Own(output);
                Ok(Self { id, place, range })
            }
            // A caller that may sleep is never refused for cold offsets; both mean: look again.
            Err(LocateError::Cold | LocateError::Replaced) => Err(LocalError::Unresolved(id)),
            Err(LocateError::Status(why)) => Err(status(why)),
        }
    }

    /// Returns whether its files are lent by the node service of this host.
    #[must_use]
    pub fn is_lent(&self) -> bool {
        matches!(self.place, LocalSource::Lent(_))
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.range.length
    }

    /// Fills `buffer` from the block's byte `position` on.
    ///
    /// # Errors
    /// `Io`, also for bytes beyond the block and for a file that is not the one that was opened.
    pub fn read_at(&self, position: u64, buffer: &mut [u8]) -> Result<(), LocalError> {
        let mut read = || {
            let end = position.checked_add(buffer.len() as u64);
            if end.is_none_or(|end| end > self.range.length) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match &self.place {
                LocalSource::Own(output) => match output.region() {
                    Some(region) => region.open()?.read(self.range.offset + position, buffer),
                    None => Ok(()),
                },
                LocalSource::Lent(loan) => loan.read(self.range.offset + position, buffer),
            }
        };
        read().map_err(|error| LocalError::Io {
            output: self.id,
            error,
        })
    }
}
