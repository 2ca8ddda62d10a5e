//! The directory: which memory peers may read, in shared memory, so that they need not ask.
//!
//! One sealed memfd per fabric, mapped read-only by peers, of 64-byte slots:
//!
//! ```text
//!  0     8           16           24       28       32       36   40        64
//!  | key | grantee (endpoint id)  | slab   | offset | length | 0  | 0 ...   |
//!  | u64 | u64 low   | u64 high   | u32    | u32    | u32    |    |         |
//! ```
//! A seqlock without a counter: keys are never reused, so a slot that has the same key before and
//! after a copy was not revoked in between. Publish: the fields, then the key (release). Revoke:
//! clear the key, then a fence, and only then is the memory given back. A reader that read a byte
//! written after that fence also sees the key cleared (fence to fence, SeqCst). The upper half of
//! an exposure's offset names its slot, so that a look-up is one step.
//!
//! The reader itself checks the grantee. That protects against mistakes, not against a malicious
//! process of the same user.

use super::slabs::PeerMapping;
use crate::{EndpointId, FabricError};
use faro_pool::Lease;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};
use std::os::fd::OwnedFd;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// Slots, and so readable exposures, of one fabric.
pub(super) const SLOTS: u32 = 16_384;
/// Position of an exposure's slot in its offset.
pub(super) const SLOT_SHIFT: u32 = 32;
/// Bytes of a directory.
pub(super) const DIRECTORY_BYTES: usize = SLOTS as usize * size_of::<DirectorySlot>();

/// One entry, laid out as in the module's diagram; only the owner writes it.
#[repr(C, align(64))]
struct DirectorySlot {
    /// The key of the slot; 0 marks an empty one, whose other fields have no meaning.
    key: AtomicU64,
    /// The endpoint that may read, low and high half.
    grantee: [AtomicU64; 2],
    slab: AtomicU32,
    offset: AtomicU32,
    length: AtomicU32,
}

const _: () = assert!(size_of::<DirectorySlot>() == 64);

/// The memory that a slot names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotMemory {
    pub(super) slab: u32,
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// The directory of this side's exposures.
pub(super) struct ExposureDirectory {
    /// The file that peers map.
    file: Arc<OwnedFd>,
    /// This side's mapping of `DIRECTORY_BYTES`, the only writable one (see the seals in `new`).
    /// Peers read it at any moment, so it is used through atomics only.
    memory: MmapRaw,
    /// Slots without an exposure.
    free: Vec<u32>,
}

impl ExposureDirectory {
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
        let memory = MmapOptions::new()
            .len(DIRECTORY_BYTES)
            .map_raw(&file)
            .map_err(|source| FabricError::Io {
                what: "mmap of the directory of readable memory".to_owned(),
                source,
            })?;
        let directory = Self {
            file: Arc::new(file),
            memory,
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

    /// Returns the descriptor for peers.
    pub(super) fn file(&self) -> Arc<OwnedFd> {
        self.file.clone()
    }

    fn slot(&self, index: u32) -> &DirectorySlot {
        debug_assert!(index < SLOTS);
        // SAFETY: `index < SLOTS`, because indexes come from `free` only, so the slot lies in the
        // mapping, which lives as long as `self`. Pages are aligned to more than 64 bytes, any bits
        // are valid atomics, and peers map the file for reading only.
        unsafe {
            &*self
                .memory
                .as_ptr()
                .cast::<DirectorySlot>()
                .add(index as usize)
        }
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

    /// Withdraws a slot. After its return, no read of the slot's memory ends `Done`.
    pub(super) fn withdraw(&mut self, index: u32) {
        self.slot(index).key.store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.free.push(index);
    }
}

/// A peer's directory, mapped read-only.
pub(super) struct View {
    mapping: PeerMapping,
}

impl View {
    /// Returns `None` if the file is too short. The file's content is not trusted.
    pub(super) fn new(mapping: PeerMapping) -> Option<Self> {
        (mapping.bytes() >= DIRECTORY_BYTES).then_some(Self { mapping })
    }

    fn slot(&self, index: u32) -> Option<&DirectorySlot> {
        if index >= SLOTS {
            return None;
        }
        // SAFETY: the mapping has SLOTS slots (`new`), starts at a page and cannot fault
        // (`PeerMapping::new`); the fields are atomics, loaded only, and valid whatever the peer
        // stores in them.
        Some(unsafe {
            &*self
                .mapping
                .start()
                .cast::<DirectorySlot>()
                .add(index as usize)
        })
    }

    /// Returns the memory that `reader` may read under `key`.
    pub(super) fn find(&self, index: u32, key: u64, reader: EndpointId) -> Option<SlotMemory> {
        let slot = self.slot(index)?;
        if key == 0 || slot.key.load(Ordering::Acquire) != key {
            return None;
        }
        let low = slot.grantee[0].load(Ordering::Relaxed);
        let high = slot.grantee[1].load(Ordering::Relaxed);
        let place = SlotMemory {
            slab: slot.slab.load(Ordering::Relaxed),
            offset: slot.offset.load(Ordering::Relaxed),
            length: slot.length.load(Ordering::Relaxed),
        };
        let granted = EndpointId::from(high) << 64 | EndpointId::from(low);
        (granted == reader && self.still(index, key)).then_some(place)
    }

    /// Returns whether the exposure was not revoked since `find`.
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
        let mut directory = ExposureDirectory::new().unwrap();
        let mapping = PeerMapping::new(&directory.file(), DIRECTORY_BYTES as u64).unwrap();
        let view = View::new(mapping).unwrap();
        let reader = 0xaaaa_0000_0000_0000_0000_0000_0000_bbbb;
        let slot = directory.publish(77, reader, &lease).unwrap();
        let place = SlotMemory {
            slab: lease.slab(),
            offset: lease.offset(),
            length: 4096,
        };
        assert_eq!(view.find(slot, 77, reader), Some(place));
        assert_eq!(view.find(slot, 77, reader ^ 1), None);
        assert_eq!(view.find(slot, 78, reader), None);
        assert_eq!(view.find(slot + 1, 77, reader), None);
        assert_eq!(view.find(SLOTS, 77, reader), None);
        assert_eq!(view.find(slot + 1, 0, 0), None, "an empty slot");
        directory.withdraw(slot);
        assert!(!view.still(slot, 77));
        assert_eq!(view.find(slot, 77, reader), None);
        for key in 1..=u64::from(SLOTS) {
            assert!(directory.publish(key, reader, &lease).is_some());
        }
        assert_eq!(directory.publish(1 << 40, reader, &lease), None);
    }

    #[test]
    fn a_second_mapping_cannot_write_it() {
        let directory = ExposureDirectory::new().unwrap();
        let file = directory.file();
        let seals = rustix::fs::fcntl_get_seals(&*file).unwrap();
        assert!(seals.contains(SealFlags::SHRINK));
        if seals.contains(SealFlags::FUTURE_WRITE) {
            assert!(rustix::io::pwrite(&*file, b"x", 0).is_err());
        }
    }
}
