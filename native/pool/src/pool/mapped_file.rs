//! Maps whole files for devices to read.
//!
//! These mappings exist for comparison with the arena and do not count against its limit. A
//! registered mapping is pinned, or paged by the device, for as long as its lease lives, whatever
//! its size. The process itself never reads it.

use super::external::{check, Access, ExternalMemory};
use crate::{Lease, Pool, PoolError};
use memmap2::MmapOptions;
use std::fs::File;
use std::ptr::NonNull;
use std::sync::Arc;

impl Pool {
    /// Maps the first `bytes` bytes of `file` for devices to read. A fabric registers the mapping
    /// when it first uses it; dropping the lease de-registers and unmaps it.
    ///
    /// # Errors
    /// Returns `BadWrap` for 0 bytes or for more than a range on the wire can describe (32 bits),
    /// and `NoMemory` if the kernel refuses the mapping.
    ///
    ///
    /// # Safety
    /// No code calls `bytes` or `bytes_mut` of the lease, and no fabric that copies by processor
    /// uses it: the mapping is read-only, and reading beyond the end of a file that has become
    /// shorter ends the process by SIGBUS. The verbs fabric may show it to peers.
    pub unsafe fn map_file(
        self: &Arc<Self>,
        file: &File,
        bytes: u64,
        access: Access,
    ) -> Result<Lease, PoolError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        check(bytes)?;
        let refused = |reason: String| PoolError::NoMemory { bytes, reason };
        // A raw mapping lends no slice, which a file that changes would make invalid.
        let mapping = MmapOptions::new()
            .len(bytes)
            .map_raw_read_only(file)
            .map_err(|error| refused(format!("mmap of a file: {error}")))?;
        let start = NonNull::new(mapping.as_mut_ptr())
            .ok_or_else(|| refused("mmap of a file at address 0".to_owned()))?;
        let unmap = Box::new(move || drop(mapping));
        let memory = ExternalMemory::uncounted(self, start, bytes, access, unmap);
        Ok(Lease::of_external(memory))
    }
}
