//! Memory that is registered with a device.

use super::context::Device;
use super::error::VerbsError;
use super::sys::{
    ibv_mr, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_ON_DEMAND, IBV_ACCESS_RELAXED_ORDERING,
    IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
};
use faro_pool::{Access, Slab};
use std::ffi::{c_int, c_uint};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory that the device may reach.
pub(crate) struct Registration {
    /// Registered until drop.
    region: NonNull<ibv_mr>,
    /// Address of the first byte.
    start: u64,
    /// The memory, if it is a slab: mapped until after the region's end (fields drop after `drop`).
    slab: Option<Arc<Slab>>,
    device: Arc<Device>,
}

// SAFETY: as for `Device`.
unsafe impl Send for Registration {}

impl Registration {
    /// Registers a slab for all that peers and this side do with it, which pins its memory.
    ///
    /// # Errors
    /// `Register`.
    pub(crate) fn of_slab(device: &Arc<Device>, slab: Arc<Slab>) -> Result<Self, VerbsError> {
        // SAFETY: the range is the slab's mapping, which lives as long as the slab, which the
        // registration holds until it is de-registered.
        let mut registration =
            unsafe { Self::of_range(device, slab.base(), slab.bytes(), Access::ReadWrite) }?;
        registration.slab = Some(slab);
        Ok(registration)
    }

    /// Registers any memory.
    ///
    /// # Errors
    /// `Register`.
    ///
    /// # Safety
    /// The range is mapped until the registration is dropped, and peers that are given its rkey may
    /// read and write it.
    pub(crate) unsafe fn of_range(
        device: &Arc<Device>,
        start: NonNull<u8>,
        bytes: usize,
        access: Access,
    ) -> Result<Self, VerbsError> {
        let read = IBV_ACCESS_REMOTE_READ;
        let access = match access {
            Access::ReadWrite | Access::Read | Access::ReadOnDemand if !device.gives_rights() => {
                IBV_ACCESS_LOCAL_WRITE
            }
            Access::ReadWrite => {
                let write = IBV_ACCESS_REMOTE_WRITE;
                IBV_ACCESS_LOCAL_WRITE | write | read
            }
            Access::Read => read,
            Access::ReadOnDemand => IBV_ACCESS_ON_DEMAND | read,
        };
        // SAFETY: the range is the caller's duty.
        let region = unsafe { register(device, start, bytes, access) };
        match NonNull::new(region) {
            Some(region) => Ok(Self {
                region,
                start: start.as_ptr() as u64,
                slab: None,
                device: Arc::clone(device),
            }),
            None => Err(VerbsError::Register {
                bytes,
                source: io::Error::last_os_error(),
            }),
        }
    }

    pub(crate) fn lkey(&self) -> u32 {
        // SAFETY: registered until drop; the field never changes.
        unsafe { (*self.region.as_ptr()).lkey }
    }

    pub(crate) fn rkey(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.region.as_ptr()).rkey }
    }

    /// Returns the address at which the device finds that byte of the memory.
    pub(crate) fn address_of(&self, offset: u32) -> u64 {
        self.start + u64::from(offset)
    }
}

/// Registers memory, where the device can so that its bytes may come in any order over PCI Express:
/// the device and the processor's memory then need not wait for each other. Faro reads received bytes
/// after their completion only, which still says that they and all before them are there (man
/// ibv_reg_mr).
///
/// # Safety
/// The range is mapped until the region is de-registered.
unsafe fn register(
    device: &Device,
    start: NonNull<u8>,
    bytes: usize,
    access: c_uint,
) -> *mut ibv_mr {
    let (domain, from) = (device.domain.as_ptr(), start.as_ptr());
    if let Some(register_at) = device.symbols.register_at {
        let relaxed = access | IBV_ACCESS_RELAXED_ORDERING;
        // SAFETY: the domain is allocated as long as the device; the range is the caller's duty.
        let region = unsafe { register_at(domain, from.cast(), bytes, from as u64, relaxed) };
        if !region.is_null() {
            return region;
        }
    }
    // Old libraries and drivers do not know the right.
    // SAFETY: as above.
    unsafe { (device.symbols.reg_mr)(domain, from.cast(), bytes, access as c_int) }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: registered by `of_range`, de-registered once. Queue pairs that could use it
        // are the owner's to destroy first; the device refuses keys that are gone in any case.
        let code = unsafe { (self.device.symbols.dereg_mr)(self.region.as_ptr()) };
        if code != 0 {
            let slab = self.slab.as_ref().map(|slab| slab.index());
            log::warn!("ibv_dereg_mr of {slab:?} at {:#x}: {code}", self.start);
        }
    }
}
