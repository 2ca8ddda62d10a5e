//! One slab: a memfd and its mapping. The only file of this crate that talks to the system.
//!
//! A memfd, and not anonymous memory, because same-host peers map it by descriptor and take bytes
//! from it without a copy through a socket. Its seals are what lets both sides trust it:
//! `SHRINK` and `GROW`, so that no holder of the descriptor can cut the file under the other's
//! mapping (a SIGBUS in a JVM); `FUTURE_WRITE` where the kernel knows it (5.1), so that our own
//! mapping stays the only one that can write. Same idea as Wayland's and systemd's use of memfds.
//!
//! Nothing is ever cleared here: new pages come zeroed from the kernel, once, when first touched,
//! and recycled ones keep the bytes they had.

use crate::sync::{AtomicU64, Ordering};
use crate::{PoolError, FRAME_BYTES, SIZE_CLASSES, SLAB_BYTES};
use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// Frames in a slab.
pub(crate) const FRAMES_PER_SLAB: usize = SLAB_BYTES / FRAME_BYTES;
/// Smallest class; a frame has 64 of them, one for each bit of a `touched` word.
const GRAIN_BYTES: usize = SIZE_CLASSES[0];

const _: () = assert!(SLAB_BYTES % FRAME_BYTES == 0);
const _: () = assert!(FRAME_BYTES / GRAIN_BYTES == 64);
const _: () = assert!(SLAB_BYTES <= u32::MAX as usize, "offsets in a slab are u32");

/// One slab: a memfd and its mapping, shared with same-host peers by descriptor.
pub struct Slab {
    /// Position in the pool.
    index: u32,
    /// `SLAB_BYTES` long for ever, by seal.
    memfd: OwnedFd,
    /// Start of our mapping of the whole of `memfd`, readable and writable until drop.
    base: NonNull<u8>,
    /// By frame: which grains were ever leased, and so are in memory. Bits are only ever set.
    touched: Box<[AtomicU64]>,
}

// SAFETY: `base` is the start of a mapping that belongs to this value alone, is valid in every
// thread, and is unmapped only by `drop`. `Slab` itself never reads or writes through it.
unsafe impl Send for Slab {}
// SAFETY: as above; all methods take `&self` and only hand out the address, the descriptor, or
// change atomics.
unsafe impl Sync for Slab {}

impl Slab {
    /// Maps a new slab.
    pub(crate) fn map(index: u32) -> Result<Self, PoolError> {
        let refused = |step: &str, error: rustix::io::Errno| PoolError::NoMemory {
            bytes: SLAB_BYTES,
            reason: format!("{step}: {error}"),
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memfd = memfd_create("faro-slab", flags).map_err(|e| refused("memfd_create", e))?;
        ftruncate(&memfd, SLAB_BYTES as u64).map_err(|e| refused("ftruncate", e))?;
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
            return Err(refused("mmap at address 0", rustix::io::Errno::FAULT));
        };
        // From here on `drop` unmaps.
        let slab = Self {
            index,
            memfd,
            base,
            touched: (0..FRAMES_PER_SLAB).map(|_| AtomicU64::new(0)).collect(),
        };
        fcntl_add_seals(&slab.memfd, SealFlags::SHRINK | SealFlags::GROW)
            .map_err(|e| refused("F_ADD_SEALS", e))?;
        // After our mapping, because it forbids new writable ones. Unknown to old kernels: then a
        // peer of the same user could write, as it could by ptrace.
        if let Err(error) = fcntl_add_seals(&slab.memfd, SealFlags::FUTURE_WRITE | SealFlags::SEAL)
        {
            log::debug!("slab {index}: no F_SEAL_FUTURE_WRITE: {error}");
        }
        Ok(slab)
    }

    /// Notes that a range of a frame is being leased; `true` if all of it had been before.
    /// `first` is its first byte in the frame; both are multiples of the smallest class.
    pub(crate) fn touch(&self, frame_in_slab: usize, first: usize, bytes: usize) -> bool {
        let grains = bytes / GRAIN_BYTES;
        let mask = (u64::MAX >> (64 - grains)) << (first / GRAIN_BYTES);
        let word = &self.touched[frame_in_slab];
        // Statistics only, so no ordering; the load spares a warm lease the locked instruction.
        word.load(Ordering::Relaxed) & mask == mask
            || word.fetch_or(mask, Ordering::Relaxed) & mask == mask
    }

    /// Position in the pool, from 0, never reused.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The memory's file descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.memfd.as_fd()
    }

    /// First byte.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes.
    pub fn bytes(&self) -> usize {
        SLAB_BYTES
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: `base` is a mapping of exactly SLAB_BYTES made by `map`. Every lease holds the
        // pool, and the pool holds its slabs, so no lease of this slab is left.
        if let Err(error) = unsafe { munmap(self.base.as_ptr().cast(), SLAB_BYTES) } {
            log::warn!("slab {}: munmap: {error}", self.index);
        }
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("index", &self.index)
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn no_holder_of_the_descriptor_can_resize_it() {
        let slab = Slab::map(0).unwrap();
        assert_eq!(ftruncate(slab.fd(), 0), Err(Errno::PERM));
        assert_eq!(
            ftruncate(slab.fd(), 2 * SLAB_BYTES as u64),
            Err(Errno::PERM)
        );
        let flags = rustix::io::fcntl_getfd(slab.fd()).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_peer_sees_our_bytes_and_cannot_write_its_own() {
        let slab = Slab::map(0).unwrap();
        let peer = slab.fd().try_clone_to_owned().unwrap();
        // SAFETY: the slab is mapped, a byte long at least, and no reference into it exists.
        unsafe { slab.base().as_ptr().add(4096).write(0x5a) };
        let map = |prot| {
            // SAFETY: the kernel chooses the place; the file is SLAB_BYTES long.
            unsafe {
                mmap(
                    std::ptr::null_mut(),
                    SLAB_BYTES,
                    prot,
                    MapFlags::SHARED,
                    &peer,
                    0,
                )
            }
        };
        let theirs = map(ProtFlags::READ).unwrap();
        // SAFETY: mapped readable just above, SLAB_BYTES long.
        assert_eq!(unsafe { theirs.cast::<u8>().add(4096).read() }, 0x5a);
        // SAFETY: mapped above, unused from here on.
        unsafe { munmap(theirs, SLAB_BYTES) }.unwrap();
        let seals = rustix::fs::fcntl_get_seals(slab.fd()).unwrap();
        if seals.contains(SealFlags::FUTURE_WRITE) {
            assert_eq!(map(ProtFlags::READ | ProtFlags::WRITE), Err(Errno::PERM));
            assert_eq!(rustix::io::pwrite(&peer, b"x", 0), Err(Errno::PERM));
        }
    }

    #[test]
    fn touch_tells_first_use_from_reuse_by_grain() {
        let slab = Slab::map(0).unwrap();
        assert!(!slab.touch(3, 8192, 4096));
        assert!(slab.touch(3, 8192, 4096));
        assert!(!slab.touch(3, 0, 16384), "three of four grains are new");
        assert!(!slab.touch(3, 0, FRAME_BYTES));
        assert!(slab.touch(3, 0, FRAME_BYTES));
        assert!(!slab.touch(4, 0, FRAME_BYTES));
    }
}
