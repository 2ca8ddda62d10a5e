//! Peers' memory, mapped read-only.

use faro_wire::WireError;
use rustix::fs::{fcntl_get_seals, fstat, fstatfs, SealFlags};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

/// Longest file of a peer that is mapped.
const MAX_MAPPING_BYTES: u64 = 1 << 30;
/// `f_type` of huge-page files.
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// A file of a peer, mapped for reading. What it holds can change at any moment, so nothing of it
/// is ever lent out as a reference; bytes are copied out, and numbers are loaded atomically.
pub(super) struct Mapping {
    /// First byte of a mapping of `bytes`, readable until drop.
    base: NonNull<u8>,
    /// Length; the file can never become shorter, by seal.
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, is valid in every thread and is unmapped by
// `drop` only.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a peer's file after making sure that reading it can never fault.
    pub(super) fn new(file: &OwnedFd, bytes: u64) -> Result<Self, WireError> {
        let wrong = |what, got| Err(WireError::BadValue { what, got });
        if bytes == 0 || bytes > MAX_MAPPING_BYTES {
            return wrong("slab's length", bytes);
        }
        // No file but one of memory can have seals.
        let seals = fcntl_get_seals(file).unwrap_or(SealFlags::empty());
        if !seals.contains(SealFlags::SHRINK) {
            return wrong("slab's seals", u64::from(seals.bits()));
        }
        let Ok(stat) = fstat(file) else {
            return wrong("slab that has no state, length", bytes);
        };
        if (stat.st_size as u64) < bytes {
            return wrong("slab file's length", stat.st_size as u64);
        }
        // Reading a hole of a file of huge pages raises SIGBUS when none is left. So all of them
        // must be there, and no hole must be possible any more, which is what sealing it against
        // writes does as well.
        let kind = fstatfs(file).map_or(HUGETLBFS_MAGIC, |stat| stat.f_type as u64);
        if kind == HUGETLBFS_MAGIC {
            if !seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE) {
                return wrong("seals of a slab of huge pages", u64::from(seals.bits()));
            }
            if (stat.st_blocks as u64 * 512) < stat.st_size as u64 {
                return wrong("blocks of a slab of huge pages", stat.st_blocks as u64);
            }
            if bytes % stat.st_blksize as u64 != 0 {
                return wrong("length of a slab of huge pages", bytes);
            }
        }
        // SAFETY: a null hint without MAP_FIXED lets the kernel choose free address space, so no
        // memory of ours changes; `bytes` is nonzero and within the file.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes as usize,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                0,
            )
        };
        match base.map(|base| NonNull::new(base.cast())) {
            Ok(Some(base)) => Ok(Self {
                base,
                bytes: bytes as usize,
            }),
            Ok(None) => wrong("slab's mapping", 0),
            Err(error) => wrong(
                "slab that cannot be mapped, errno",
                error.raw_os_error() as u64,
            ),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// First byte; valid for reads of `bytes()` while `self` lives.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Copies the bytes from `offset` on into all of `target`; false if they are not there.
    pub(super) fn copy_to(&self, offset: usize, target: &mut [u8]) -> bool {
        match offset.checked_add(target.len()) {
            Some(end) if end <= self.bytes => {}
            _ => return false,
        }
        // SAFETY: source: `offset + len <= bytes`, checked above, of a mapping that lives as long
        // as `self` and cannot fault (see `new`). Target: a live exclusive slice. They do not
        // overlap, because nothing in this process holds a `&mut` into a peer's mapping; if the
        // peer is in this process, its slab is mapped at another address. The peer may change
        // the bytes meanwhile; then we copy some mix of them, which is its own fault and found by the CRC.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.base.as_ptr().add(offset),
                target.as_mut_ptr(),
                target.len(),
            );
        }
        true
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: a mapping of exactly `bytes` made by `new`; nothing borrowed from it outlives it.
        if let Err(error) = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) } {
            log::warn!("munmap of a peer's slab: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{
        fallocate, fcntl_add_seals, ftruncate, memfd_create, FallocateFlags, MemfdFlags,
    };

    fn memfd(bytes: u64, seals: SealFlags) -> OwnedFd {
        let file = memfd_create("test", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, bytes).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    }

    fn refused(file: &OwnedFd, bytes: u64) -> &'static str {
        match Mapping::new(file, bytes) {
            Err(WireError::BadValue { what, .. }) => what,
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("mapped"),
        }
    }

    #[test]
    fn only_what_cannot_fault_is_mapped() {
        let good = memfd(8192, SealFlags::SHRINK);
        assert!(Mapping::new(&good, 8192).is_ok());
        assert_eq!(refused(&good, 8193), "slab file's length");
        assert_eq!(refused(&good, 0), "slab's length");
        assert_eq!(refused(&good, u64::MAX), "slab's length");
        let shrinking = memfd(8192, SealFlags::GROW);
        assert_eq!(refused(&shrinking, 8192), "slab's seals");
        let file = OwnedFd::from(std::fs::File::open("/proc/self/exe").unwrap());
        assert_eq!(refused(&file, 4096), "slab's seals");
        let (socket, _) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(refused(&socket.into(), 4096), "slab's seals");
    }

    /// Where the machine has huge pages; says so where not.
    #[test]
    fn huge_pages_are_mapped_if_no_hole_is_possible() {
        const BYTES: u64 = 2 << 20;
        let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
        let huge = |seals| {
            let file = memfd_create("test", flags | MemfdFlags::CLOEXEC).ok()?;
            ftruncate(&file, BYTES).ok()?;
            fallocate(&file, FallocateFlags::empty(), 0, BYTES).ok()?;
            fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | seals).unwrap();
            Some(file)
        };
        let Some(open) = huge(SealFlags::empty()) else {
            eprintln!("not tried: no free huge pages of 2 MiB");
            return;
        };
        assert_eq!(refused(&open, BYTES), "seals of a slab of huge pages");
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&open, punch, 0, BYTES).unwrap();
        fcntl_add_seals(&open, SealFlags::FUTURE_WRITE).unwrap();
        assert_eq!(refused(&open, BYTES), "blocks of a slab of huge pages");
        drop(open);
        let sealed = huge(SealFlags::FUTURE_WRITE).unwrap();
        assert!(fallocate(&sealed, punch, 0, BYTES).is_err());
        assert_eq!(refused(&sealed, 4096), "length of a slab of huge pages");
        assert!(Mapping::new(&sealed, BYTES).is_ok());
    }

    #[test]
    fn copies_stay_in_bounds() {
        let file = memfd(4096, SealFlags::SHRINK);
        rustix::io::pwrite(&file, b"end", 4093).unwrap();
        let mapping = Mapping::new(&file, 4096).unwrap();
        let mut three = [0; 3];
        assert!(mapping.copy_to(4093, &mut three));
        assert_eq!(&three, b"end");
        assert!(!mapping.copy_to(4094, &mut three));
        assert!(!mapping.copy_to(usize::MAX, &mut three));
        assert!(mapping.copy_to(4096, &mut []));
    }
}
