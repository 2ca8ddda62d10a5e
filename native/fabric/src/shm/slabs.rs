//! Peers' memory, mapped read-only.

use faro_wire::WireError;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{fcntl_get_seals, fstat, fstatfs, SealFlags};
use std::os::fd::OwnedFd;

/// Longest file of a peer that is mapped.
const MAX_MAPPING_BYTES: u64 = 1 << 30;
/// `f_type` of huge-page files.
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// A file of a peer, mapped for reading. The peer can change its bytes at any moment, so no
/// reference to them exists (hence `MmapRaw`): bytes are copied out, numbers are loaded atomically.
pub(super) struct PeerMapping(MmapRaw);

impl PeerMapping {
    /// Maps a peer's file after making sure that reading it can never fault.
    pub(super) fn new(file: &OwnedFd, bytes: u64) -> Result<Self, WireError> {
        let wrong = |what, got| Err(WireError::BadValue { what, got });
        if bytes == 0 || bytes > MAX_MAPPING_BYTES {
            return wrong("slab's length", bytes);
        }
        // Only files of memory can have seals.
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
        // Reading a hole of a file of huge pages raises SIGBUS when no huge page is free. So the
        // file must have no hole, and a seal against writes must keep the peer from punching one.
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
        let mapped = MmapOptions::new()
            .len(bytes as usize)
            .map_raw_read_only(file);
        match mapped {
            Ok(memory) => Ok(Self(memory)),
            Err(error) => wrong(
                "slab that cannot be mapped, errno",
                error.raw_os_error().unwrap_or(0) as u64,
            ),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Returns the address of the first byte, which is valid for reads of `bytes()` while `self`
    /// lives.
    pub(super) fn start(&self) -> *const u8 {
        self.0.as_ptr()
    }

    /// Copies the bytes from `offset` on into all of `target`; false if they are not there.
    pub(super) fn copy_to(&self, offset: usize, target: &mut [u8]) -> bool {
        match offset.checked_add(target.len()) {
            Some(end) if end <= self.bytes() => {}
            _ => return false,
        }
        // SAFETY: source: `offset + len <= bytes()`, checked above, of a mapping that lives as long
        // as `self` and cannot fault (see `new`). Target: a live exclusive slice. They do not
        // overlap: nothing in this process has a `&mut` into a peer's mapping, and if the peer is
        // in this process, its slab is mapped at another address. If the peer changes the bytes
        // meanwhile, the copy is a mix of old and new ones, which the CRC above the fabric detects.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.0.as_ptr().add(offset),
                target.as_mut_ptr(),
                target.len(),
            );
        }
        true
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
        match PeerMapping::new(file, bytes) {
            Err(WireError::BadValue { what, .. }) => what,
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("mapped"),
        }
    }

    #[test]
    fn only_what_cannot_fault_is_mapped() {
        let good = memfd(8192, SealFlags::SHRINK);
        assert!(PeerMapping::new(&good, 8192).is_ok());
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

    /// Needs free huge pages; prints a line where there are none.
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
        assert!(PeerMapping::new(&sealed, BYTES).is_ok());
    }

    #[test]
    fn copies_stay_in_bounds() {
        let file = memfd(4096, SealFlags::SHRINK);
        rustix::io::pwrite(&file, b"end", 4093).unwrap();
        let mapping = PeerMapping::new(&file, 4096).unwrap();
        let mut three = [0; 3];
        assert!(mapping.copy_to(4093, &mut three));
        assert_eq!(&three, b"end");
        assert!(!mapping.copy_to(4094, &mut three));
        assert!(!mapping.copy_to(usize::MAX, &mut three));
        assert!(mapping.copy_to(4096, &mut []));
    }
}
