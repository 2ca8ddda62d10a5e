//! A slab's memory: a memfd and its mapping. Only this file makes system calls for slabs.
//!
//! The memory is a memfd, because peers on the same host map it by descriptor and copy from it
//! without a socket. The seals `SHRINK` and `GROW` forbid every holder of the descriptor to change
//! the file's length: a shorter file would end the other process by SIGBUS. Wayland and systemd use
//! memfds in the same way.
//!
//! Peers must not write to a slab. There are two ways to forbid it:
//! - *Huge pages* get the seal `FUTURE_WRITE`. This process's own mapping, made before, stays the
//!   only one that can write. The seal also forbids holes. All pages are allocated when the slab is
//!   made, because a first access that finds no free huge page is a SIGBUS. These pages are never
//!   released: the administrator has reserved them, and no other process could use them.
//! - *Ordinary pages* are released when the slab is idle, by a hole, which excludes that seal.
//!   Peers get a read-only descriptor instead, and the file's mode forbids opening it for writing.
//!   A malicious process of the same user can get around that, as it could with ptrace; a faulty
//!   one cannot. A hole reads as zeroes. If there is no read-only descriptor (no `/proc`), or if
//!   the pool never releases pages, the slab gets the seal.
//!
//! This file clears nothing. The kernel clears new pages when they are first used; recycled pages
//! keep their bytes.
//!
//! `memmap2` maps and unmaps. The memfd, its seals and its holes need `rustix`.

use crate::{PoolError, SLAB_BYTES};
use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::{
    fallocate, fchmod, fcntl_add_seals, ftruncate, memfd_create, open, FallocateFlags, MemfdFlags,
    Mode, OFlags, SealFlags,
};
use rustix::io::Errno;
use std::fmt::Display;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// The kind of a slab's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    /// Huge pages of 2 MiB that the administrator has reserved (hugetlbfs).
    Huge,
    /// Ordinary pages; the kernel was advised to use transparent huge pages.
    Ordinary,
}

/// A slab's memory.
pub(crate) struct SlabMapping {
    /// The mapping of the whole `memfd`, readable and writable; unmapped by drop. It is never at
    /// address 0.
    mapping: MmapRaw,
    /// The memfd; it is always `SLAB_BYTES` long, because it is sealed.
    memfd: OwnedFd,
    /// A read-only descriptor of the same file, for peers. If it is `None`, peers get `memfd`,
    /// which is sealed against writing, and pages cannot be released.
    read_only: Option<OwnedFd>,
    kind: PageKind,
}

fn refused(step: &str, error: impl Display) -> PoolError {
    PoolError::NoMemory {
        bytes: SLAB_BYTES,
        reason: format!("{step}: {error}"),
    }
}

impl SlabMapping {
    /// Maps `SLAB_BYTES` on huge pages if `huge` is set and enough of them are free, otherwise on
    /// ordinary pages. `releasable` says whether ordinary pages can be released later.
    ///
    /// # Errors
    /// Returns `NoMemory`.
    pub(crate) fn new(huge: bool, releasable: bool) -> Result<Self, PoolError> {
        if huge {
            match Self::huge() {
                Ok(mapping) => return Ok(mapping),
                Err(error) => log::trace!("no huge pages for a slab: {error}"),
            }
        }
        Self::ordinary(releasable)
    }

    fn huge() -> Result<Self, PoolError> {
        let flags = MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
        let memfd = create(flags)?;
        // All pages are allocated now. Later there may be no free page, and a first access would be
        // a SIGBUS.
        fallocate(&memfd, FallocateFlags::empty(), 0, SLAB_BYTES as u64)
            .map_err(|e| refused("fallocate of huge pages", e))?;
        let slab = Self::map(memfd, PageKind::Huge)?;
        // Peers refuse a slab on huge pages in which a hole could appear.
        slab.seal_writes()?;
        Ok(slab)
    }

    fn ordinary(releasable: bool) -> Result<Self, PoolError> {
        let mut slab = Self::map(create(MemfdFlags::empty())?, PageKind::Ordinary)?;
        if releasable {
            slab.read_only = read_only(&slab.memfd)
                .inspect_err(|e| log::debug!("idle slabs keep their pages: {e}"))
                .ok();
        }
        if slab.read_only.is_none() {
            // Kernels before 5.1 do not know the seal. On them a peer of the same user can write,
            // as it can with ptrace.
            if let Err(error) = slab.seal_writes() {
                log::debug!("{error}");
            }
        }
        if let Err(error) = slab.mapping.advise(Advice::HugePage) {
            log::trace!("no transparent huge pages for a slab: {error}");
        }
        Ok(slab)
    }

    fn map(memfd: OwnedFd, kind: PageKind) -> Result<Self, PoolError> {
        // The mapping is raw: it lends no slices, so that only leases refer to its bytes.
        let mapping = MmapOptions::new()
            .len(SLAB_BYTES)
            .map_raw(&memfd)
            .map_err(|e| refused("mmap", e))?;
        if mapping.as_mut_ptr().is_null() {
            // This is possible only if the administrator has set vm.mmap_min_addr to 0.
            return Err(refused("mmap", "the kernel chose address 0"));
        }
        fcntl_add_seals(&memfd, SealFlags::SHRINK | SealFlags::GROW)
            .map_err(|e| refused("F_ADD_SEALS", e))?;
        Ok(Self {
            mapping,
            memfd,
            read_only: None,
            kind,
        })
    }

    /// Forbids new writable mappings. This process's own mapping must exist before.
    fn seal_writes(&self) -> Result<(), PoolError> {
        fcntl_add_seals(&self.memfd, SealFlags::FUTURE_WRITE | SealFlags::SEAL)
            .map_err(|e| refused("F_SEAL_FUTURE_WRITE", e))
    }

    /// Returns the first of `SLAB_BYTES` bytes that stay mapped while `self` lives.
    pub(crate) fn base(&self) -> NonNull<u8> {
        // SAFETY: `map` refuses a mapping at address 0.
        unsafe { NonNull::new_unchecked(self.mapping.as_mut_ptr()) }
    }

    pub(crate) fn kind(&self) -> PageKind {
        self.kind
    }

    /// Returns the descriptor for peers, which cannot be used to write.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.read_only.as_ref().unwrap_or(&self.memfd).as_fd()
    }

    pub(crate) fn is_releasable(&self) -> bool {
        self.read_only.is_some()
    }

    /// Releases all pages to the system. Addresses, mapping and descriptors stay valid; the bytes
    /// read as zeroes from now on. Returns `false` if the pages cannot be released.
    ///
    /// No device may have the slab registered: it would keep the old pages, and processor and device
    /// would see different memory at the same address.
    pub(crate) fn release(&self) -> bool {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        self.is_releasable()
            && fallocate(&self.memfd, flags, 0, SLAB_BYTES as u64)
                .inspect_err(|error| log::debug!("an idle slab keeps its pages: {error}"))
                .is_ok()
    }

    /// Returns the bytes of memory that the file has now.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn resident(&self) -> u64 {
        rustix::fs::fstat(&self.memfd).map_or(0, |stat| stat.st_blocks as u64 * 512)
    }
}

fn create(kind: MemfdFlags) -> Result<OwnedFd, PoolError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | kind;
    let memfd = memfd_create("faro-slab", flags).map_err(|e| refused("memfd_create", e))?;
    ftruncate(&memfd, SLAB_BYTES as u64).map_err(|e| refused("ftruncate", e))?;
    Ok(memfd)
}

/// Opens a read-only descriptor of the same file, and makes the file's mode forbid opening it for
/// writing.
fn read_only(memfd: &OwnedFd) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", memfd.as_raw_fd());
    let read_only = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    fchmod(memfd, Mode::RUSR)?;
    Ok(read_only)
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]
mod tests {
    use super::*;
    use rustix::fs::fcntl_get_seals;

    /// Returns one slab of every kind that this machine has.
    fn kinds() -> Vec<SlabMapping> {
        let mut kinds = vec![
            SlabMapping::ordinary(true).unwrap(),
            SlabMapping::ordinary(false).unwrap(),
        ];
        match SlabMapping::huge() {
            Ok(slab) => kinds.push(slab),
            Err(error) => eprintln!("not tested with huge pages: {error}"),
        }
        kinds
    }

    /// Maps the slab as a peer does.
    fn map_as_peer(slab: &SlabMapping) -> MmapRaw {
        MmapOptions::new()
            .len(SLAB_BYTES)
            .map_raw_read_only(&slab.fd())
            .unwrap()
    }

    #[test]
    fn no_holder_of_the_descriptor_can_resize_it() {
        for slab in kinds() {
            for bytes in [0, 2 * SLAB_BYTES as u64] {
                assert_eq!(ftruncate(&slab.memfd, bytes), Err(Errno::PERM));
                // The peers' descriptor is not open for writing.
                assert!(ftruncate(slab.fd(), bytes).is_err());
            }
            let flags = rustix::io::fcntl_getfd(slab.fd()).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
            let seals = fcntl_get_seals(slab.fd()).unwrap();
            assert!(seals.contains(SealFlags::SHRINK | SealFlags::GROW));
        }
    }

    #[test]
    fn a_peer_sees_our_bytes_and_cannot_write_its_own() {
        for slab in kinds() {
            // SAFETY: mapped, longer than that, and no reference into it exists.
            unsafe { slab.base().as_ptr().add(4096).write(0x5a) };
            let peer = map_as_peer(&slab);
            // SAFETY: mapped readable just above, SLAB_BYTES long.
            assert_eq!(unsafe { peer.as_ptr().add(4096).read() }, 0x5a);
            let sealed = fcntl_get_seals(slab.fd())
                .unwrap()
                .contains(SealFlags::FUTURE_WRITE);
            if sealed || slab.read_only.is_some() {
                let writable = MmapOptions::new().len(SLAB_BYTES).map_raw(&slab.fd());
                assert!(writable.is_err());
                assert!(rustix::io::pwrite(slab.fd(), b"x", 0).is_err());
            }
        }
    }

    #[test]
    fn released_pages_use_no_memory_and_read_as_zeroes() {
        let slab = SlabMapping::ordinary(true).unwrap();
        let peer = map_as_peer(&slab);
        for at in (0..SLAB_BYTES).step_by(4096) {
            // SAFETY: within the mapping; no reference into it exists.
            unsafe { slab.base().as_ptr().add(at).write(7) };
        }
        assert_eq!(slab.resident(), SLAB_BYTES as u64);
        assert!(slab.release(), "no /proc here?");
        assert_eq!(slab.resident(), 0);
        for base in [slab.base().as_ptr().cast_const(), peer.as_ptr()] {
            // SAFETY: both mappings are still there, which is what is tested.
            assert_eq!(unsafe { base.add(8192).read() }, 0);
        }
        // SAFETY: as above.
        unsafe { slab.base().as_ptr().write(9) };
        // SAFETY: as above; both mappings are of one file.
        assert_eq!(unsafe { peer.as_ptr().read() }, 9);
    }

    #[test]
    fn sealed_pages_are_kept() {
        for slab in kinds().iter().filter(|slab| slab.read_only.is_none()) {
            // SAFETY: mapped; no reference into it exists.
            unsafe { slab.base().as_ptr().write(7) };
            assert!(!slab.release());
            // SAFETY: as above.
            assert_eq!(unsafe { slab.base().as_ptr().read() }, 7);
        }
    }
}
