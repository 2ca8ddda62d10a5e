//! Map outputs that are registered with the device as a whole: modes `pinned` and `odp`.
//!
//! These modes are what Faro is compared with: SparkRDMA mapped and registered every map output. The
//! mapping is read by the device alone. This process never touches it, because a file that is cut
//! under a mapping ends a process by SIGBUS; checksums are computed of bytes read with `pread`. A device
//! that reads pages which are gone fails the queue pair (`odp`) or reads what was there (`pinned`),
//! and either is noticed.

use crate::memory::RegionMode;
use faro_pool::{Access, Lease, Pool, PoolError};
use faro_region::Region;
use std::sync::{Arc, OnceLock};

/// The mapping of one data file, made on first use; `None` in it if there is none.
#[derive(Default)]
pub(super) struct FileMapping(OnceLock<Option<Arc<Lease>>>);

impl FileMapping {
    /// Returns the mapping, which is made on the first call; `None` if the mode has none or the
    /// file cannot be mapped.
    pub(super) fn get(
        &self,
        pool: &Arc<Pool>,
        region: &Region,
        mode: RegionMode,
    ) -> Option<&Arc<Lease>> {
        let map = || {
            map(pool, region, mode).unwrap_or_else(|error| {
                log::warn!("a map output cannot be mapped and goes through the arena: {error}");
                None
            })
        };
        self.0.get_or_init(map).as_ref()
    }
}

/// Maps a region for the device. It is registered when it is first exposed to a peer, beyond the arena's
/// limit.
///
/// # Errors
/// `NoMemory`, also if the file cannot be opened; `BadWrap` for a file that no range on the wire can name.
fn map(
    pool: &Arc<Pool>,
    region: &Region,
    mode: RegionMode,
) -> Result<Option<Arc<Lease>>, PoolError> {
    let access = match mode {
        RegionMode::Unpinned | RegionMode::Optimistic => return Ok(None),
        RegionMode::Odp => Access::ReadOnDemand,
        RegionMode::Pinned => Access::Read,
    };
    let file = region.open().map_err(|error| PoolError::NoMemory {
        bytes: region.bytes() as usize,
        reason: error.to_string(),
    })?;
    // SAFETY: no code calls `bytes` of this lease: it only becomes an exposure of the verbs fabric,
    // which hands its address to the device.
    unsafe { pool.map_file(file.file(), region.bytes(), access) }.map(|lease| Some(Arc::new(lease)))
}
