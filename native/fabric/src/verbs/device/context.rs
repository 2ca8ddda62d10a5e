//! An open device: its protection domain, its limits, its address.
//!
//! Memory that the device writes is safe from a fork of this process: regions are shared mappings
//! (memfd), which a fork does not copy; the queues' own memory is copied by kernels before 5.12
//! only, and not by `vfork` or `posix_spawn`, by which a JVM starts processes. So `ibv_fork_init`,
//! which would slow registration down, is not called.

use super::async_event::AsyncEvent;
use super::choice::{DeviceChoice, PortAddress};
use super::error::VerbsError;
use super::library::Symbols;
use super::open::{make_non_blocking, open_named, SYSFS_VERBS};
use super::survey::{device_file, has_gid, has_partition};
use super::sys::{
    ibv_async_event, ibv_context, ibv_device_attr, ibv_pd, ibv_port_attr, IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_REMOTE_WRITE, IBV_PORT_ACTIVE, IBV_QPF_GRH_REQUIRED,
};
use faro_secure::Protection;
use std::ffi::{c_int, c_uint};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use zerocopy::FromZeros;

/// Directory in which the kernel lists RDMA devices.
const SYSFS: &str = "/sys/class/infiniband";

/// Limits of the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Queue pairs of all processes of the host.
    pub(crate) queue_pairs: u32,
    /// Work requests in one queue.
    pub(crate) work_requests: u32,
    /// Places in memory of one request.
    pub(crate) pieces: usize,
    /// Completions in one queue.
    pub(crate) cqe: u32,
    /// Maximum number of a peer's reads in flight.
    pub(crate) reads_in: u8,
    /// Maximum number of this side's reads in flight.
    pub(crate) reads_out: u8,
}

impl Limits {
    /// Checks what no connection can do without.
    ///
    /// # Errors
    /// `DeviceLimit`.
    fn check(&self, device: &str) -> Result<(), VerbsError> {
        // A READ that may never be in flight waits for ever.
        let reads = self.reads_in.min(self.reads_out);
        let least = [
            ("queue pairs (max_qp)", self.queue_pairs),
            ("requests in a queue (max_qp_wr)", self.work_requests),
            ("completions in a queue (max_cqe)", self.cqe),
            (
                "reads in flight of a queue pair (max_qp_rd_atom, max_qp_init_rd_atom)",
                u32::from(reads),
            ),
        ];
        match least.into_iter().find(|(_, got)| *got == 0) {
            None => Ok(()),
            Some((what, got)) => Err(VerbsError::DeviceLimit {
                device: device.to_owned(),
                what,
                got,
                needed: 1,
            }),
        }
    }
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
    /// The port's address when the device was opened.
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
    /// Opens a device that was chosen. If bytes are sealed, no peer gets a right to any memory that is
    /// registered with the device.
    ///
    /// # Errors
    /// What is missing, and what to do.
    pub(super) fn open_choice(
        symbols: &'static Symbols,
        choice: DeviceChoice,
        protection: Protection,
    ) -> Result<Arc<Self>, VerbsError> {
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
            address: PortAddress {
                link: Some(choice.link),
                gid: choice.gid.value.octets(),
                lid: 0,
                mtu: 1,
                partition: choice.partition.value,
                needs_grh: false,
            },
            choice,
            limits: Limits {
                queue_pairs: 0,
                work_requests: 0,
                pieces: 0,
                cqe: 0,
                reads_in: 0,
                reads_out: 0,
            },
            remote: protection == Protection::Clear,
        };
        device.limits = device.query_limits()?;
        device.limits.check(&device.choice.device)?;
        device.address = device.address_of(&device.query_port()?);
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
            "{device} port {port}, {} ({}), MTU {}, because {why}",
            self.choice.address(),
            gid.kind,
            self.address.mtu_bytes(),
        )
    }

    /// Returns the address at which peers reach the port now. The MTU follows that of the network
    /// interface, also while the device is open; InfiniBand's subnet manager may assign another LID.
    pub(crate) fn address(&self) -> PortAddress {
        match self.query_port() {
            Ok(port) => self.address_of(&port),
            // A connection over an inactive port fails by itself, with its own words.
            Err(error) => {
                log::debug!("verbs: {error}");
                self.address
            }
        }
    }

    fn address_of(&self, port: &ibv_port_attr) -> PortAddress {
        PortAddress {
            lid: port.lid,
            mtu: port.active_mtu as u8,
            needs_grh: c_uint::from(port.flags) & IBV_QPF_GRH_REQUIRED != 0,
            ..self.address
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns a descriptor that is readable when there is an event; it does not block.
    pub(crate) fn async_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the context is open as long as `self`, and its descriptor with it.
        unsafe { BorrowedFd::borrow_raw((*self.context.as_ptr()).async_fd) }
    }

    pub(crate) fn next_async(&self) -> Option<AsyncEvent> {
        let mut event = ibv_async_event::new_zeroed();
        // SAFETY: the context is open, `event` is writable; the descriptor does not block.
        if unsafe { (self.symbols.get_async_event)(self.context.as_ptr(), &mut event) } != 0 {
            return None;
        }
        // SAFETY: it was got above, and is acknowledged below.
        let news = unsafe { AsyncEvent::of(self.symbols, &event) };
        // SAFETY: got above, acknowledged once. A destroy of its object waits for this.
        unsafe { (self.symbols.ack_async_event)(&mut event) };
        Some(news)
    }

    /// Returns whether peers may be given rights to registered memory.
    pub(super) fn gives_rights(&self) -> bool {
        self.remote
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

    /// Returns whether the port still has its partition at the place that queue pairs name.
    pub(crate) fn has_its_partition(&self) -> bool {
        let chosen = &self.choice;
        let root = Path::new(SYSFS);
        has_partition(root, &chosen.device, chosen.port, chosen.partition)
    }

    /// Returns whether the device is not being removed. Devices whose driver can work without their
    /// users report it (`AsyncEvent::Device`); the others (software RoCE) keep working silently,
    /// and `rdma link delete` waits until the last user has closed the device. So this must be
    /// asked regularly; it costs two `stat` calls. Until then the device stays in sysfs, but it can
    /// no longer be opened.
    pub(crate) fn is_there(&self) -> bool {
        self.entry.exists() && Path::new(SYSFS).join(&self.choice.device).exists()
    }

    fn query_limits(&self) -> Result<Limits, VerbsError> {
        let mut attributes = ibv_device_attr::new_zeroed();
        // SAFETY: the context is open, `attributes` is writable.
        let code = unsafe { (self.symbols.query_device)(self.context.as_ptr(), &mut attributes) };
        VerbsError::check("ibv_query_device", code)?;
        let reads = |got: c_int| got.clamp(0, c_int::from(u8::MAX)) as u8;
        Ok(Limits {
            queue_pairs: attributes.max_qp.max(0) as u32,
            work_requests: attributes.max_qp_wr.max(0) as u32,
            pieces: attributes.max_sge.max(1) as usize,
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
            return Err(VerbsError::InactivePorts {
                ports: format!("{} is not", self.choice.name()),
                without_manager: false,
            });
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
