//! This side's files that peers map, and the descriptors by which they get them.

use super::directory::{ExposureDirectory, DIRECTORY_BYTES};
use crate::frame::outgoing::Descriptor;
use crate::FabricError;
use faro_pool::{Lease, Pool, Slab};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The slab number that stands for the directory.
pub(super) const DIRECTORY: u32 = u32::MAX;

/// The slabs of a pool, and the directory of what peers may read.
pub(super) struct ExportedFiles {
    pool: Arc<Pool>,
    pub(super) directory: ExposureDirectory,
}

/// Sends a slab's descriptor with a frame.
struct SlabFile(Arc<Slab>);

impl AsFd for SlabFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }
}

/// Sends the directory's descriptor with a frame.
struct DirectoryFile(Arc<OwnedFd>);

impl AsFd for DirectoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl ExportedFiles {
    pub(super) fn new(pool: Arc<Pool>) -> Result<Self, FabricError> {
        let directory = ExposureDirectory::new()?;
        Ok(Self { pool, directory })
    }

    /// Returns whether a lease is of the pool whose slabs peers map; callers must use no other.
    pub(super) fn has(&self, lease: &Lease) -> bool {
        self.pool.slab(lease.slab()).is_some_and(|slab| {
            let start = slab.base().as_ptr() as usize + lease.offset() as usize;
            start == lease.bytes().as_ptr() as usize
        })
    }

    /// Returns the length and the descriptor of a slab's file; no descriptor if there is no such
    /// slab.
    pub(super) fn file(&self, slab: u32) -> (u64, Option<Descriptor>) {
        if slab == DIRECTORY {
            let file = DirectoryFile(self.directory.file());
            return (DIRECTORY_BYTES as u64, Some(Arc::new(file)));
        }
        match self.pool.slab(slab) {
            Some(slab) => (slab.bytes() as u64, Some(Arc::new(SlabFile(slab)))),
            None => (0, None),
        }
    }
}
