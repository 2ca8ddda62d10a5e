//! The directory: which memory peers may read, told without a word.
//!
//! One sealed memfd per fabric, mapped read-only by peers, of 64-byte slots:
//!
//! ```text
//!  0     8           16           24       28       32       36   40        64
//!  | key | grantee (endpoint id)  | slab   | offset | length | 0  | 0 ...   |
//!  | u64 | u64 low   | u64 high   | u32    | u32    | u32    |    |         |
//! ```
//! A seqlock without a counter: keys are never reused, so a slot that has the same key before and
//! after a copy was not revoked in between. Publish: the fields, then the key (release).
//! Revoke: clear the key, then a fence, and only then is the memory given back; whoever
//! read a byte that was written after that fence sees the key gone (fence to fence, SeqCst).
//! The upper half of an exposure's offset names its slot, so that a look-up is one step.
//!
//! The grantee is checked by the reader itself: within one user this keeps honest peers from mistakes.

use super::slabs::Mapping;
use crate::{EndpointId, FabricError};
use faro_pool::Lease;
use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// Slots, and so readable exposures, of one fabric.
pub(super) const SLOTS: u32 = 16_384;
/// Bytes of a directory.
pub(super) const DIRECTORY_BYTES: usize = SLOTS as usize * size_of::<Slot>();

/// See the module's diagram. Written by the owner only.
#[repr(C, align(64))]
struct Slot {
    /// 0: empty. Decides whether the rest means anything.
    key: AtomicU64,
    /// Who may read, low and high half.
    grantee: [AtomicU64; 2],
    slab: AtomicU32,
    offset: AtomicU32,
    length: AtomicU32,
}

const _: () = assert!(size_of::<Slot>() == 64);

/// What a slot says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) slab: u32,
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// Ours.
pub(super) struct Directory {
    /// For peers.
    file: Arc<OwnedFd>,
    /// Our writable mapping of `DIRECTORY_BYTES`, the only one there can be.
    base: NonNull<Slot>,
    /// Slots nobody uses.
    free: Vec<u32>,
}

// SAFETY: `base` is a mapping that belongs to this value alone and is valid in every thread.
unsafe impl Send for Directory {}

impl Directory {
    pub(super) fn new() -> Result<Self, FabricError> {
        let failed = |what: &str| {
            let what = format!("{what} for the directory of readable memory");
            |error: rustix::io::Errno| FabricError::Io {
                what,
                source: error.into(),
            }
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("faro-directory", flags).map_err(failed("memfd_create"))?;
        ftruncate(&file, DIRECTORY_BYTES as u64).map_err(failed("ftruncate"))?;
        // SAFETY: a null hint without MAP_FIXED changes no memory of ours; the file is that long.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                DIRECTORY_BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )
        }
        .map_err(failed("mmap"))?;
        let Some(base) = NonNull::new(base.cast()) else {
            return Err(failed("mmap at address 0")(rustix::io::Errno::FAULT));
        };
        let directory = Self {
            file: Arc::new(file),
            base,
            free: (0..SLOTS).rev().collect(),
        };
        let resize = SealFlags::SHRINK | SealFlags::GROW;
        fcntl_add_seals(&directory.file, resize).map_err(failed("F_ADD_SEALS"))?;
        // Unknown before Linux 5.1; see the pool's slabs.
        let write = SealFlags::FUTURE_WRITE | SealFlags::SEAL;
        if let Err(error) = fcntl_add_seals(&directory.file, write) {
            log::debug!("directory: no F_SEAL_FUTURE_WRITE: {error}");
        }
        Ok(directory)
    }

    /// The descriptor to hand out.
    pub(super) fn file(&self) -> Arc<OwnedFd> {
        self.file.clone()
    }

    fn slot(&self, index: u32) -> &Slot {
        debug_assert!(index < SLOTS);
        // SAFETY: `index < SLOTS`, for indexes come from `free` only, so the slot lies in the
        // mapping, which lives as long as `self`; pages are aligned to more than 64 bytes, any
        // bits are valid atomics, and everybody else can only read.
        unsafe { self.base.add(index as usize).as_ref() }
    }

    /// Lets `grantee` find `lease` under `key`; `None` if no slot is free.
    pub(super) fn publish(&mut self, key: u64, grantee: EndpointId, lease: &Lease) -> Option<u32> {
        let index = self.free.pop()?;
        let slot = self.slot(index);
        slot.grantee[0].store(grantee as u64, Ordering::Relaxed);
        slot.grantee[1].store((grantee >> 64) as u64, Ordering::Relaxed);
        slot.slab.store(lease.slab(), Ordering::Relaxed);
        slot.offset.store(lease.offset(), Ordering::Relaxed);
        slot.length
            .store(lease.capacity() as u32, Ordering::Relaxed);
        slot.key.store(key, Ordering::Release);
        Some(index)
    }

    /// From here on no read of the slot's memory can end well.
    pub(super) fn withdraw(&mut self, index: u32) {
        self.slot(index).key.store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.free.push(index);
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // SAFETY: a mapping of exactly DIRECTORY_BYTES made by `new`; no slot is borrowed any more.
        if let Err(error) = unsafe { munmap(self.base.as_ptr().cast(), DIRECTORY_BYTES) } {
            log::warn!("munmap of the directory: {error}");
        }
    }
}

/// A peer's.
pub(super) struct View {
    mapping: Mapping,
}

impl View {
    /// Trusts no more of a peer's file than its length.
    pub(super) fn new(mapping: Mapping) -> Option<Self> {
        (mapping.bytes() >= DIRECTORY_BYTES).then_some(Self { mapping })
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        if index >= SLOTS {
            return None;
        }
        // SAFETY: the mapping has SLOTS slots (`new`), starts at a page and cannot fault
        // (`Mapping::new`); the fields are atomics, loaded only, and valid whatever the peer
        // stores in them.
        Some(unsafe {
            self.mapping
                .base()
                .cast::<Slot>()
                .add(index as usize)
                .as_ref()
        })
    }

    /// What `reader` may read under `key`.
    pub(super) fn find(&self, index: u32, key: u64, reader: EndpointId) -> Option<Place> {
        let slot = self.slot(index)?;
        if key == 0 || slot.key.load(Ordering::Acquire) != key {
            return None;
        }
        let low = slot.grantee[0].load(Ordering::Relaxed);
        let high = slot.grantee[1].load(Ordering::Relaxed);
        let place = Place {
            slab: slot.slab.load(Ordering::Relaxed),
            offset: slot.offset.load(Ordering::Relaxed),
            length: slot.length.load(Ordering::Relaxed),
        };
        let granted = EndpointId::from(high) << 64 | EndpointId::from(low);
        (granted == reader && self.still(index, key)).then_some(place)
    }

    /// Whether what was read since `find` was read in time.
    pub(super) fn still(&self, index: u32, key: u64) -> bool {
        fence(Ordering::SeqCst);
        self.slot(index)
            .is_some_and(|slot| slot.key.load(Ordering::Relaxed) == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faro_pool::{Pool, Purpose};

    #[test]
    fn a_view_follows_its_directory() {
        let pool = Pool::new(faro_pool::MIN_LIMIT_BYTES).unwrap();
        let lease = pool.try_lease(4096, Purpose::Serve).unwrap();
        let mut directory = Directory::new().unwrap();
        let mapping = Mapping::new(&directory.file(), DIRECTORY_BYTES as u64).unwrap();
        let view = View::new(mapping).unwrap();
        let reader = 0xaaaa_0000_0000_0000_0000_0000_0000_bbbb;
        let slot = directory.publish(77, reader, &lease).unwrap();
        let place = Place {
            slab: lease.slab(),
            offset: lease.offset(),
            length: 4096,
        };
        assert_eq!(view.find(slot, 77, reader), Some(place));
        assert_eq!(view.find(slot, 77, reader ^ 1), None);
        assert_eq!(view.find(slot, 78, reader), None);
        assert_eq!(view.find(slot + 1, 77, reader), None);
        assert_eq!(view.find(SLOTS, 77, reader), None);
        assert_eq!(view.find(slot + 1, 0, 0), None, "an empty slot is nobody's");
        directory.withdraw(slot);
        assert!(!view.still(slot, 77));
        assert_eq!(view.find(slot, 77, reader), None);
        for key in 1..=u64::from(SLOTS) {
            assert!(directory.publish(key, reader, &lease).is_some());
        }
        assert_eq!(directory.publish(1 << 40, reader, &lease), None);
    }

    #[test]
    fn nobody_else_can_write_it() {
        let directory = Directory::new().unwrap();
        let file = directory.file();
        let seals = rustix::fs::fcntl_get_seals(&*file).unwrap();
        assert!(seals.contains(SealFlags::SHRINK));
        if seals.contains(SealFlags::FUTURE_WRITE) {
            assert!(rustix::io::pwrite(&*file, b"x", 0).is_err());
        }
    }
}
