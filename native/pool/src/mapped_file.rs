//! Files that a device may read, mapped as a whole.
//!
//! For comparison with the arena, and so beyond its limit: a registered mapping is pinned (or paged by
//! the device) for as long as its lease lives, whatever its size. The process never touches it.

use crate::external::{check, Access, CleanUp, ExternalMemory};
use crate::{Lease, Pool, PoolError};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::fs::File;
use std::ptr::NonNull;
use std::sync::Arc;

impl Pool {
    /// All `bytes` of `file`, to be read by devices, in a mapping that does not count against the
    /// limit. Registered when it is first used, de-registered and unmapped with its lease.
    ///
    /// # Errors
    /// `BadWrap` for 0 bytes or more than a range on the wire can name; `NoMemory`.
    ///
    /// # Safety
    /// Nobody calls `bytes` or `bytes_mut` of the lease, nor has a fabric read or write it that does
    /// so by copying: the mapping is read-only, and a file that is cut under it would end the
    /// process by SIGBUS. Exposing it as readable to peers of the verbs fabric is what it is for.
    pub unsafe fn map_file(
        self: &Arc<Self>,
        file: &File,
        bytes: u64,
        access: Access,
    ) -> Result<Lease, PoolError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        check(bytes)?;
        let refused = |error: rustix::io::Errno| PoolError::NoMemory {
            bytes,
            reason: format!("mmap of a file: {error}"),
        };
        let null = std::ptr::null_mut();
        // SAFETY: a null hint without MAP_FIXED lets the kernel choose free address space.
        let start = unsafe { mmap(null, bytes, ProtFlags::READ, MapFlags::SHARED, file, 0) };
        let start = NonNull::new(start.map_err(refused)?.cast::<u8>())
            .ok_or(refused(rustix::io::Errno::FAULT))?;
        // An address, because a pointer would not be Send.
        let address = start.as_ptr() as usize;
        let unmap: CleanUp = Box::new(move || {
            // SAFETY: mapped above with that length; called once, when nobody uses it any more.
            if let Err(error) = unsafe { munmap(address as *mut _, bytes) } {
                log::warn!("munmap of a file's {bytes} bytes: {error}");
            }
        });
        let memory = ExternalMemory::uncounted(self, start, bytes, access, unmap);
        Ok(Lease::of_external(memory))
    }
}
