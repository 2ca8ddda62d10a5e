//! An open device: its protection domain, its limits, its regions, its news.
//!
//! Memory that the device writes is safe from a fork of this process: regions are shared mappings
//! (memfd), which a fork does not copy; the queues' own memory is copied by kernels before 5.12
//! only, and not by `vfork` or `posix_spawn`, by which a JVM starts processes. So `ibv_fork_init`,
//! which would slow registration down, is not called.

use super::choice::{choose, DeviceChoice, PortAddress, VerbsOptions};
use super::error::VerbsError;
use super::library::{library, text, Symbols};
use super::survey::{device_file, has_gid, survey};
use super::sys::{
    ibv_async_event, ibv_context, ibv_device_attr, ibv_mr, ibv_pd, ibv_port_attr,
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_ON_DEMAND, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
    IBV_EVENT_COMM_EST, IBV_EVENT_CQ_ERR, IBV_EVENT_DEVICE_FATAL, IBV_EVENT_GID_CHANGE,
    IBV_EVENT_LID_CHANGE, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR, IBV_EVENT_QP_ACCESS_ERR,
    IBV_EVENT_QP_FATAL, IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_QP_REQ_ERR, IBV_PORT_ACTIVE,
};
use faro_pool::{Access, Slab};
use faro_secure::Protection;
use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use std::ffi::{c_int, c_uint};
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use zerocopy::FromZeros;

/// Directory in which the kernel lists RDMA devices.
const SYSFS: &str = "/sys/class/infiniband";
/// Directory in which it names the files by which they are opened.
const SYSFS_VERBS: &str = "/sys/class/infiniband_verbs";

/// Limits of the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Work requests in one queue.
    pub(crate) work_requests: u32,
    /// Completions in one queue.
    pub(crate) cqe: u32,
    /// Maximum number of a peer's reads in flight.
    pub(crate) reads_in: u8,
    /// Maximum number of this side's reads in flight.
    pub(crate) reads_out: u8,
}

/// News about the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AsyncEvent {
    /// Something happened to a queue pair.
    QueuePair {
        number: u32,
        fatal: bool,
        what: String,
    },
    /// The port went up or down.
    Port {
        up: bool,
        what: String,
    },
    /// The port's addresses changed.
    Gids,
    /// The device is gone or broken: everything made from it has to go.
    Device {
        what: String,
    },
    Other {
        what: String,
    },
}

/// An open device. Every object made from it holds it.
pub(crate) struct Device {
    pub(super) symbols: &'static Symbols,
    /// Open until drop.
    pub(super) context: NonNull<ibv_context>,
    /// Protection domain of `context`, allocated until drop.
    pub(super) domain: NonNull<ibv_pd>,
    pub(super) choice: DeviceChoice,
    /// The device's entry in sysfs, as long as it can be opened.
    entry: PathBuf,
    address: PortAddress,
    limits: Limits,
    /// True if peers may be given rights to registered memory.
    remote: bool,
}

// SAFETY: libibverbs objects may be used from any thread (its manual: "thread safe"); the
// pointers belong to this value alone and are released by `drop` only.
unsafe impl Send for Device {}
// SAFETY: as above; all calls made through `&self` are of that thread-safe interface.
unsafe impl Sync for Device {}

impl Device {
    /// Chooses device, port and GID and opens it.
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
        let choice = choose(&survey(Path::new(SYSFS)), options, near)?;
        let symbols = library()?;
        let context = open_named(symbols, &choice.device)?;
        // SAFETY: `context` was just opened.
        let domain = NonNull::new(unsafe { (symbols.alloc_pd)(context.as_ptr()) });
        let Some(domain) = domain else {
            let error = VerbsError::last("ibv_alloc_pd");
            // SAFETY: opened above, and nothing was made from it.
            unsafe { (symbols.close_device)(context.as_ptr()) };
            return Err(error);
        };
        let file = device_file(Path::new(SYSFS_VERBS), &choice.device).unwrap_or_default();
        // From here on `drop` releases both.
        let mut device = Self {
            symbols,
            context,
            domain,
            entry: Path::new(SYSFS_VERBS).join(file),
            choice,
            address: PortAddress {
                gid: [0; 16],
                lid: 0,
                mtu: 1,
            },
            limits: Limits {
                work_requests: 0,
                cqe: 0,
                reads_in: 0,
                reads_out: 0,
            },
            remote: protection == Protection::Clear,
        };
        device.limits = device.query_limits()?;
        let port = device.query_port()?;
        device.address = PortAddress {
            gid: device.choice.gid.value.octets(),
            lid: port.lid,
            mtu: port.active_mtu as u8,
        };
        make_non_blocking(device.async_fd())?;
        Ok(Arc::new(device))
    }

    /// Returns the device, port and address, and the reason for the choice, for the log.
    pub(crate) fn describe(&self) -> String {
        let DeviceChoice {
            device,
            port,
            gid,
            why,
            ..
        } = &self.choice;
        format!(
            "{device} port {port}, GID {} {} ({}), MTU {}, because {why}",
            gid.index,
            gid.ip(),
            gid.kind,
            128u32 << self.address.mtu.min(5),
        )
    }

    pub(crate) fn address(&self) -> PortAddress {
        self.address
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns a descriptor that is readable when there is an event; it does not block.
    pub(crate) fn async_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the context is open as long as `self`, and its descriptor with it.
        unsafe { BorrowedFd::borrow_raw((*self.context.as_ptr()).async_fd) }
    }

    /// Returns the next asynchronous event, if there is one.
    pub(crate) fn next_async(&self) -> Option<AsyncEvent> {
        let mut event = ibv_async_event::new_zeroed();
        // SAFETY: the context is open, `event` is writable; the descriptor does not block.
        if unsafe { (self.symbols.get_async_event)(self.context.as_ptr(), &mut event) } != 0 {
            return None;
        }
        let news = self.read_event(&event);
        // SAFETY: got above, acknowledged once. A destroy of its object waits for this.
        unsafe { (self.symbols.ack_async_event)(&mut event) };
        Some(news)
    }

    fn read_event(&self, event: &ibv_async_event) -> AsyncEvent {
        let kind = event.event_type;
        let what = self.symbols.event_name(kind);
        match kind {
            IBV_EVENT_QP_FATAL
            | IBV_EVENT_QP_REQ_ERR
            | IBV_EVENT_QP_ACCESS_ERR
            | IBV_EVENT_COMM_EST
            | IBV_EVENT_QP_LAST_WQE_REACHED => {
                // SAFETY: for these kinds the element is the queue pair, which cannot be
                // destroyed before the event is acknowledged.
                let number = unsafe { (*event.element).qp_num };
                let harmless = matches!(kind, IBV_EVENT_COMM_EST | IBV_EVENT_QP_LAST_WQE_REACHED);
                AsyncEvent::QueuePair {
                    number,
                    fatal: !harmless,
                    what,
                }
            }
            IBV_EVENT_PORT_ACTIVE => AsyncEvent::Port { up: true, what },
            IBV_EVENT_PORT_ERR => AsyncEvent::Port { up: false, what },
            IBV_EVENT_GID_CHANGE | IBV_EVENT_LID_CHANGE => AsyncEvent::Gids,
            IBV_EVENT_DEVICE_FATAL | IBV_EVENT_CQ_ERR => AsyncEvent::Device { what },
            _ => AsyncEvent::Other { what },
        }
    }

    /// Returns the rights of a peer's queue pair to registered memory.
    pub(super) fn remote_access(&self) -> c_uint {
        if self.remote {
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
        } else {
            0
        }
    }

    /// Returns whether the port still has the address that peers were told.
    pub(crate) fn has_its_gid(&self) -> bool {
        let chosen = &self.choice;
        let root = Path::new(SYSFS);
        has_gid(root, &chosen.device, chosen.port, &chosen.gid)
    }

    /// Returns whether the device is not being removed. Devices whose driver can work without their
    /// users report it (`AsyncEvent::Device`); the others (software RoCE) keep working silently,
    /// and `rdma link delete` waits until the last user has closed the device. So this must be
    /// asked regularly; it costs two `stat` calls. Until then the device stays in sysfs, but it can
    /// no longer be opened.
    pub(crate) fn is_there(&self) -> bool {
        self.entry.exists() && Path::new(SYSFS).join(&self.choice.device).exists()
    }

    /// Registers a slab for all that peers and we do with it. Pins its memory.
    ///
    /// # Errors
    /// `Register`.
    pub(crate) fn register(self: &Arc<Self>, slab: Arc<Slab>) -> Result<Registration, VerbsError> {
        // SAFETY: the range is the slab's mapping, which lives as long as the slab, which the
        // registration holds until it is de-registered.
        let mut registration =
            unsafe { self.register_range(slab.base(), slab.bytes(), Access::ReadWrite) }?;
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
    pub(crate) unsafe fn register_range(
        self: &Arc<Self>,
        start: NonNull<u8>,
        bytes: usize,
        access: Access,
    ) -> Result<Registration, VerbsError> {
        let read = IBV_ACCESS_REMOTE_READ;
        let access = match access {
            Access::ReadWrite | Access::Read | Access::ReadOnDemand if !self.remote => {
                IBV_ACCESS_LOCAL_WRITE
            }
            Access::ReadWrite => {
                let write = IBV_ACCESS_REMOTE_WRITE;
                IBV_ACCESS_LOCAL_WRITE | write | read
            }
            Access::Read => read,
            Access::ReadOnDemand => IBV_ACCESS_ON_DEMAND | read,
        };
        // SAFETY: the domain is allocated as long as `self`; the range is the caller's duty.
        let region = unsafe {
            (self.symbols.reg_mr)(
                self.domain.as_ptr(),
                start.as_ptr().cast(),
                bytes,
                access as c_int,
            )
        };
        match NonNull::new(region) {
            Some(region) => Ok(Registration {
                region,
                start: start.as_ptr() as u64,
                slab: None,
                device: Arc::clone(self),
            }),
            None => Err(VerbsError::Register {
                bytes,
                source: io::Error::last_os_error(),
            }),
        }
    }

    fn query_limits(&self) -> Result<Limits, VerbsError> {
        let mut attributes = ibv_device_attr::new_zeroed();
        // SAFETY: the context is open, `attributes` is writable.
        let code = unsafe { (self.symbols.query_device)(self.context.as_ptr(), &mut attributes) };
        VerbsError::check("ibv_query_device", code)?;
        let reads = |got: c_int| got.clamp(0, c_int::from(u8::MAX)) as u8;
        Ok(Limits {
            work_requests: attributes.max_qp_wr.max(0) as u32,
            cqe: attributes.max_cqe.max(0) as u32,
            reads_in: reads(attributes.max_qp_rd_atom),
            reads_out: reads(attributes.max_qp_init_rd_atom),
        })
    }

    fn query_port(&self) -> Result<ibv_port_attr, VerbsError> {
        let mut attributes = ibv_port_attr::new_zeroed();
        // SAFETY: the context is open; the function fills the front part of `attributes`.
        let code = unsafe {
            (self.symbols.query_port)(self.context.as_ptr(), self.choice.port, &mut attributes)
        };
        VerbsError::check("ibv_query_port", code)?;
        if attributes.state != IBV_PORT_ACTIVE {
            let DeviceChoice { device, port, .. } = &self.choice;
            let detail = format!("{device}:{port} is not active");
            return Err(VerbsError::NoPort { detail });
        }
        Ok(attributes)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: this value owns both; every object made from them holds this value, so none is
        // left.
        let codes = unsafe {
            [
                (self.symbols.dealloc_pd)(self.domain.as_ptr()),
                (self.symbols.close_device)(self.context.as_ptr()),
            ]
        };
        if codes != [0, 0] {
            log::warn!("closing RDMA device {}: {codes:?}", self.choice.device);
        }
    }
}

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

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: registered by `register_range`, de-registered once. Queue pairs that could use it
        // are the owner's to destroy first; the device refuses keys that are gone in any case.
        let code = unsafe { (self.device.symbols.dereg_mr)(self.region.as_ptr()) };
        if code != 0 {
            let slab = self.slab.as_ref().map(|slab| slab.index());
            log::warn!("ibv_dereg_mr of {slab:?} at {:#x}: {code}", self.start);
        }
    }
}

fn open_named(symbols: &Symbols, name: &str) -> Result<NonNull<ibv_context>, VerbsError> {
    let mut count = 0;
    // SAFETY: `count` is writable.
    let list = unsafe { (symbols.get_device_list)(&mut count) };
    if list.is_null() {
        return Err(VerbsError::last("ibv_get_device_list"));
    }
    let mut opened = Err(unlisted(name));
    for at in 0..count.max(0) as usize {
        // SAFETY: the list has `count` entries.
        let device = unsafe { *list.add(at) };
        // SAFETY: an entry of the list; the name lives as long as the list.
        if text(unsafe { (symbols.get_device_name)(device) }) == name {
            // SAFETY: as above; an open context outlives the list.
            let context = unsafe { (symbols.open_device)(device) };
            opened =
                NonNull::new(context).ok_or_else(|| unopened(name, io::Error::last_os_error()));
            break;
        }
    }
    // SAFETY: got above, freed once.
    unsafe { (symbols.free_device_list)(list) };
    opened
}

/// Returns the path of a device's file, for messages.
fn file_of(device: &str) -> PathBuf {
    let name = device_file(Path::new(SYSFS_VERBS), device);
    Path::new("/dev/infiniband").join(name.as_deref().unwrap_or("uverbs*"))
}

/// Returns why libibverbs does not list a device of sysfs: it leaves out those without a file.
fn unlisted(device: &str) -> VerbsError {
    let (device, path) = (device.to_owned(), file_of(device));
    if path.exists() {
        VerbsError::NoProvider { device }
    } else {
        let path = path.display().to_string();
        VerbsError::NoFile { device, path }
    }
}

/// Returns why a device cannot be opened. libibverbs does not keep `errno` in every version, so the
/// file is asked as well.
fn unopened(device: &str, source: io::Error) -> VerbsError {
    let path = file_of(device);
    let denied = |kind| kind == io::ErrorKind::PermissionDenied;
    let asked = || File::options().read(true).write(true).open(&path);
    let device = device.to_owned();
    if denied(source.kind()) || asked().is_err_and(|error| denied(error.kind())) {
        let path = path.display().to_string();
        VerbsError::Permission { device, path }
    } else {
        VerbsError::OpenConnection { device, source }
    }
}

/// Makes a descriptor non-blocking: only `poll` may wait for it.
pub(super) fn make_non_blocking(fd: BorrowedFd<'_>) -> Result<(), VerbsError> {
    let failed = |error: rustix::io::Errno| VerbsError::Call {
        call: "fcntl of an RDMA descriptor",
        source: error.into(),
    };
    let flags = fcntl_getfl(fd).map_err(failed)?;
    fcntl_setfl(fd, flags | OFlags::NONBLOCK).map_err(failed)
}
