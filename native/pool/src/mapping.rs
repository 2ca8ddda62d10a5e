//! A slab's memory as the system sees it: a memfd and its mapping. The only file of this crate that
//! talks to the system about slabs.
//!
//! A memfd, and not anonymous memory, because same-host peers map it by descriptor and take bytes
//! from it without a copy through a socket. The seals `SHRINK` and `GROW` keep any holder of the
//! descriptor from cutting the file under another's mapping (a SIGBUS in a JVM). Same idea as
//! Wayland's and systemd's use of memfds.
//!
//! Peers must not write. Two ways, and each kind of memory has one:
//! - *Huge pages*: the seal `FUTURE_WRITE`; our own mapping stays the only one that can write. The
//!   seal also forbids holes (the kernel refuses `PUNCH_HOLE` under it), and all pages are there
//!   from the start, so that no reader can ever meet a hole of huge pages, which would be a SIGBUS
//!   when none are left. Nothing is given back: huge pages are set aside by the administrator, and
//!   serve nobody else in the meantime.
//! - *Ordinary pages*: idle ones are given back, which the seal would forbid, so that peers get a
//!   descriptor that can only read, of a file whose mode allows no more. A process of the same user
//!   that means harm can get around that, as it could by ptrace; one that errs cannot. A hole of
//!   ordinary pages reads as zeroes. Where no such descriptor can be had (no `/proc`), or nothing is
//!   to be given back, the seal is used here too.
//!
//! Nothing is ever cleared here: new pages come zeroed from the kernel, once, when first touched,
//! and recycled ones keep the bytes they had.

use crate::{PoolError, SLAB_BYTES};
use rustix::fs::{
    fallocate, fchmod, fcntl_add_seals, ftruncate, memfd_create, open, FallocateFlags, MemfdFlags,
    Mode, OFlags, SealFlags,
};
use rustix::io::Errno;
use rustix::mm::{madvise, mmap, munmap, Advice, MapFlags, ProtFlags};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// What kind of pages a slab has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    /// Of the machine's reserve of 2 MiB pages (hugetlbfs).
    Huge,
    /// Ordinary ones; the kernel was advised to use transparent huge pages.
    Ordinary,
}

/// A slab's memory.
pub(crate) struct SlabMapping {
    /// `SLAB_BYTES` long for ever, by seal.
    memfd: OwnedFd,
    /// What peers get, if it is not `memfd` itself: the same file, to read only. SlabMapping can be given
    /// back exactly if this is there.
    to_read: Option<OwnedFd>,
    /// Start of our mapping of the whole of `memfd`, readable and writable until drop.
    base: NonNull<u8>,
    kind: PageKind,
}

// SAFETY: `base` is the start of a mapping that belongs to this value alone, is valid in every
// thread, and is unmapped only by `drop`. `SlabMapping` itself never reads or writes through it.
unsafe impl Send for SlabMapping {}
// SAFETY: as above; all methods take `&self` and only hand out the address or descriptors, or ask
// the system for something.
unsafe impl Sync for SlabMapping {}

fn refused(step: &str, error: Errno) -> PoolError {
    PoolError::NoMemory {
        bytes: SLAB_BYTES,
        reason: format!("{step}: {error}"),
    }
}

impl SlabMapping {
    /// Huge pages if `huge` and there are enough, else ordinary ones. `releasable`: ordinary ones
    /// can be given back.
    pub(crate) fn new(huge: bool, releasable: bool) -> Result<Self, PoolError> {
        if huge {
            match Self::huge() {
                Ok(pages) => return Ok(pages),
                Err(error) => log::trace!("no huge pages for a slab: {error}"),
            }
        }
        Self::ordinary(releasable)
    }

    fn huge() -> Result<Self, PoolError> {
        let flags = MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
        let memfd = create(flags)?;
        // All pages now: later there may be none left, and then a first touch would be a SIGBUS.
        fallocate(&memfd, FallocateFlags::empty(), 0, SLAB_BYTES as u64)
            .map_err(|e| refused("fallocate of huge pages", e))?;
        let pages = Self::map(memfd, PageKind::Huge)?;
        // Without it a peer could not be sure that no hole will appear, and would refuse the slab.
        pages.seal_writes()?;
        Ok(pages)
    }

    fn ordinary(releasable: bool) -> Result<Self, PoolError> {
        let mut pages = Self::map(create(MemfdFlags::empty())?, PageKind::Ordinary)?;
        if releasable {
            pages.to_read = read_only(&pages.memfd)
                .inspect_err(|e| log::debug!("slabs keep their pages when idle: {e}"))
                .ok();
        }
        if pages.to_read.is_none() {
            // Unknown to old kernels (before 5.1): then a peer of the same user could write, as it
            // could by ptrace.
            if let Err(error) = pages.seal_writes() {
                log::debug!("{error}");
            }
        }
        // SAFETY: the range is our own mapping, and the advice changes no contents.
        let advised = unsafe {
            madvise(
                pages.base.as_ptr().cast(),
                SLAB_BYTES,
                Advice::LinuxHugepage,
            )
        };
        if let Err(error) = advised {
            log::trace!("no transparent huge pages: {error}");
        }
        Ok(pages)
    }

    fn map(memfd: OwnedFd, kind: PageKind) -> Result<Self, PoolError> {
        // SAFETY: a null hint without MAP_FIXED lets the kernel choose free address space, so no
        // memory of ours changes; length is nonzero and the file is that long.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                SLAB_BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &memfd,
                0,
            )
        }
        .map_err(|e| refused("mmap", e))?;
        let Some(base) = NonNull::new(base.cast::<u8>()) else {
            // Zero is mappable only by a process that set vm.mmap_min_addr to 0; leave it be.
            return Err(refused("mmap at address 0", Errno::FAULT));
        };
        // From here on `drop` unmaps.
        let pages = Self {
            memfd,
            to_read: None,
            base,
            kind,
        };
        fcntl_add_seals(&pages.memfd, SealFlags::SHRINK | SealFlags::GROW)
            .map_err(|e| refused("F_ADD_SEALS", e))?;
        Ok(pages)
    }

    /// After our mapping, because it forbids new writable ones.
    fn seal_writes(&self) -> Result<(), PoolError> {
        fcntl_add_seals(&self.memfd, SealFlags::FUTURE_WRITE | SealFlags::SEAL)
            .map_err(|e| refused("F_SEAL_FUTURE_WRITE", e))
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn kind(&self) -> PageKind {
        self.kind
    }

    /// The descriptor for peers.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.to_read.as_ref().unwrap_or(&self.memfd).as_fd()
    }

    /// Whether they are of the kind that can be given back.
    pub(crate) fn is_releasable(&self) -> bool {
        self.to_read.is_some()
    }

    /// Gives all pages back to the system; address range, mapping and descriptors stay, and read as
    /// zeroes from now on. False: these pages are kept. No device may have them registered: it
    /// would go on with the old pages, and nobody else would see them.
    pub(crate) fn release(&self) -> bool {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        self.is_releasable()
            && fallocate(&self.memfd, flags, 0, SLAB_BYTES as u64)
                .inspect_err(|error| log::debug!("a slab's pages are kept: {error}"))
                .is_ok()
    }

    /// Bytes of memory that the file has now.
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

/// The same file, to read only, and of a mode that allows no more to who opens it again.
fn read_only(memfd: &OwnedFd) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", memfd.as_raw_fd());
    let to_read = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    fchmod(memfd, Mode::RUSR)?;
    Ok(to_read)
}

impl Drop for SlabMapping {
    fn drop(&mut self) {
        // SAFETY: `base` is a mapping of exactly SLAB_BYTES made by `map`. Every lease holds the
        // pool, and the pool holds its slabs, so no lease of these pages is left.
        if let Err(error) = unsafe { munmap(self.base.as_ptr().cast(), SLAB_BYTES) } {
            log::warn!("munmap of a slab: {error}");
        }
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]
mod tests {
    use super::*;
    use rustix::fs::fcntl_get_seals;

    /// Every kind that this machine has.
    fn kinds() -> Vec<SlabMapping> {
        let mut kinds = vec![
            SlabMapping::ordinary(true).unwrap(),
            SlabMapping::ordinary(false).unwrap(),
        ];
        match SlabMapping::huge() {
            Ok(pages) => kinds.push(pages),
            Err(error) => eprintln!("not tried with huge pages: {error}"),
        }
        kinds
    }

    fn map(pages: &SlabMapping, prot: ProtFlags) -> Result<*mut u8, Errno> {
        // SAFETY: the kernel chooses the place; the file is SLAB_BYTES long.
        let mapped = unsafe {
            mmap(
                std::ptr::null_mut(),
                SLAB_BYTES,
                prot,
                MapFlags::SHARED,
                pages.fd(),
                0,
            )
        };
        mapped.map(<*mut _>::cast)
    }

    #[test]
    fn no_holder_of_the_descriptor_can_resize_it() {
        for pages in kinds() {
            for bytes in [0, 2 * SLAB_BYTES as u64] {
                assert_eq!(ftruncate(&pages.memfd, bytes), Err(Errno::PERM));
                // By the descriptor that peers get: not even open for that.
                assert!(ftruncate(pages.fd(), bytes).is_err());
            }
            let flags = rustix::io::fcntl_getfd(pages.fd()).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
            let seals = fcntl_get_seals(pages.fd()).unwrap();
            assert!(seals.contains(SealFlags::SHRINK | SealFlags::GROW));
        }
    }

    #[test]
    fn a_peer_sees_our_bytes_and_cannot_write_its_own() {
        for pages in kinds() {
            // SAFETY: mapped, that long at least, and no reference into it exists.
            unsafe { pages.base().as_ptr().add(4096).write(0x5a) };
            let theirs = map(&pages, ProtFlags::READ).unwrap();
            // SAFETY: mapped readable just above, SLAB_BYTES long.
            assert_eq!(unsafe { theirs.add(4096).read() }, 0x5a);
            // SAFETY: mapped above, unused from here on.
            unsafe { munmap(theirs.cast(), SLAB_BYTES) }.unwrap();
            let sealed = fcntl_get_seals(pages.fd())
                .unwrap()
                .contains(SealFlags::FUTURE_WRITE);
            if sealed || pages.to_read.is_some() {
                assert!(map(&pages, ProtFlags::READ | ProtFlags::WRITE).is_err());
                assert!(rustix::io::pwrite(pages.fd(), b"x", 0).is_err());
            }
        }
    }

    #[test]
    fn what_was_given_back_is_no_memory_and_reads_as_zeroes() {
        let pages = SlabMapping::ordinary(true).unwrap();
        let theirs = map(&pages, ProtFlags::READ).unwrap();
        for at in (0..SLAB_BYTES).step_by(4096) {
            // SAFETY: within the mapping; no reference into it exists.
            unsafe { pages.base().as_ptr().add(at).write(7) };
        }
        assert_eq!(pages.resident(), SLAB_BYTES as u64);
        assert!(pages.release(), "no /proc here?");
        assert_eq!(pages.resident(), 0);
        for base in [pages.base().as_ptr(), theirs] {
            // SAFETY: both mappings are still there, which is what is tested.
            assert_eq!(unsafe { base.add(8192).read() }, 0);
        }
        // SAFETY: as above.
        unsafe { pages.base().as_ptr().write(9) };
        // SAFETY: as above; and one file behind both.
        assert_eq!(unsafe { theirs.read() }, 9);
        // SAFETY: mapped above, unused from here on.
        unsafe { munmap(theirs.cast(), SLAB_BYTES) }.unwrap();
    }

    #[test]
    fn sealed_pages_are_kept() {
        for pages in kinds().iter().filter(|pages| pages.to_read.is_none()) {
            // SAFETY: mapped; no reference into it exists.
            unsafe { pages.base().as_ptr().write(7) };
            assert!(!pages.release());
            // SAFETY: as above.
            assert_eq!(unsafe { pages.base().as_ptr().read() }, 7);
        }
    }
}
