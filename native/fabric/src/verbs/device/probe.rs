//! Finds the device that works, by trying.

use super::addresses::HostAddresses;
use super::choice::{candidates, first_usable, DeviceChoice, OwnAddress, VerbsOptions};
use super::completion::{Channel, CompletionQueue};
use super::context::{Device, Limits};
use super::error::VerbsError;
use super::hardware_counters::count_port;
use super::library::library;
use super::process_place::ProcessPlace;
use super::queue_pair::{Depth, QueuePair};
use super::survey::survey;
use super::sys::{IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_ON_DEMAND};
use faro_secure::Protection;
use std::ffi::c_int;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are registered for a try: a page of every architecture.
const TRY: usize = 64 << 10;

/// Properties of an open device.
pub(crate) struct ProbedDevice {
    /// Bytes of payload in a packet.
    pub(crate) mtu: u32,
    /// True if memory can be registered without being pinned.
    pub(crate) on_demand: bool,
    pub(crate) choice: DeviceChoice,
    pub(crate) limits: Limits,
}

impl Device {
    /// Opens the first of the host's devices that works.
    ///
    /// # Errors
    /// What is missing, and what to do.
    pub(crate) fn open(options: &VerbsOptions, near: IpAddr) -> Result<Arc<Self>, VerbsError> {
        Self::open_for(options, near, Protection::Clear)
    }

    /// Opens a device like `open`. If bytes are sealed, no peer gets a right to any memory that is
    /// registered with the device.
    ///
    /// # Errors
    /// As `open`.
    pub(crate) fn open_for(
        options: &VerbsOptions,
        near: IpAddr,
        protection: Protection,
    ) -> Result<Arc<Self>, VerbsError> {
        // The survey comes first, so that the error on a host without devices names the missing device and
        // not a missing library.
        let root = Path::new("/");
        let own = OwnAddress {
            ip: near,
            host: &HostAddresses::of(root),
            process: ProcessPlace::of(root),
        };
        let choices = candidates(&survey(root), options, own)?;
        let symbols = library()?;
        first_usable(choices, |choice| {
            let device = Self::open_choice(symbols, choice, protection)?;
            check_queue_pair(&device)?;
            count_port(&device.choice.device, device.choice.port);
            Ok(device)
        })
    }
}

/// Opens the device that [`Device::open`] chooses, and registers memory.
///
/// # Errors
/// What is missing, and what to do.
pub(crate) fn try_device(options: &VerbsOptions, near: IpAddr) -> Result<ProbedDevice, VerbsError> {
    let device = Device::open(options, near)?;
    let pinned = IBV_ACCESS_LOCAL_WRITE;
    registers(&device, pinned)?;
    let on_demand = pinned | IBV_ACCESS_ON_DEMAND;
    Ok(ProbedDevice {
        mtu: device.address().mtu_bytes(),
        on_demand: registers(&device, on_demand).is_ok(),
        choice: device.choice.clone(),
        limits: device.limits(),
    })
}

/// Makes a reliable connected queue pair, which not every device has (EFA), and destroys it.
///
/// # Errors
/// `NoQueuePair`, and what the device's completion queues refuse.
pub(super) fn check_queue_pair(device: &Arc<Device>) -> Result<(), VerbsError> {
    let least = Depth {
        send: 1,
        receive: 1,
        reads: 1,
    };
    let channel = Channel::new(device)?;
    let completions = CompletionQueue::new(device, &channel, least.send + least.receive)?;
    match QueuePair::new(device, &completions, least) {
        Ok(_) => Ok(()),
        Err(VerbsError::Call { source, .. }) => Err(VerbsError::NoQueuePair {
            device: device.choice.device.clone(),
            source,
        }),
        Err(error) => Err(error),
    }
}

fn registers(device: &Device, access: u32) -> Result<(), VerbsError> {
    let mut memory = vec![0u8; TRY];
    // SAFETY: `memory` is that long and outlives the region, which is released below; no queue
    // pair exists that could reach it.
    let region = unsafe {
        (device.symbols.reg_mr)(
            device.domain.as_ptr(),
            memory.as_mut_ptr().cast(),
            TRY,
            access as c_int,
        )
    };
    if region.is_null() {
        return Err(VerbsError::Register {
            bytes: TRY,
            source: std::io::Error::last_os_error(),
        });
    }
    // SAFETY: registered above, de-registered once.
    VerbsError::check("ibv_dereg_mr", unsafe { (device.symbols.dereg_mr)(region) })
}

/// The file that libibverbs was loaded from; its name ends in the version.
///
/// # Errors
/// `NoLibrary`.
pub(crate) fn library_file() -> Result<String, VerbsError> {
    library()?;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut files = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5));
    let file = files.find(|file| file.contains("/libibverbs.so"));
    let file = Path::new(file.unwrap_or("libibverbs.so.1"));
    // The path of a mapped file has its symbolic links resolved: libibverbs.so.1.14.44.0.
    Ok(file.display().to_string())
}
