//! Reasons for which RDMA cannot be used, with the remedy for each.

use std::io;
use thiserror::Error;

/// See each variant; every message ends with what mends it.
#[derive(Debug, Error)]
pub enum VerbsError {
    /// libibverbs is not installed, or too old.
    #[error("{detail}; install libibverbs1 and ibverbs-providers to use RDMA")]
    NoLibrary { detail: String },
    /// The host has no RDMA device.
    #[error("no RDMA device on this host: {detail}; `rdma link` lists them")]
    NoDevice { detail: String },
    /// The device that was asked for is not there.
    #[error("no RDMA device {got:?}; there are: {have}")]
    NoSuchDevice { got: String, have: String },
    /// The GID that was asked for is not there.
    #[error("{port} has no GID with index {got}; there are: {have}")]
    NoSuchGid {
        port: String,
        got: u32,
        have: String,
    },
    /// No port has reliable connections of the kind that Faro makes.
    #[error(
        "no RDMA device here has the reliable connections of InfiniBand and RoCE, which Faro needs: \
         {ports}"
    )]
    NoReliableDevice {
        ports: String,
        /// One of them is iWARP's, which some NICs can exchange for RoCE.
        iwarp: bool,
    },
    /// No port is active.
    #[error("no RDMA port is active: {ports}")]
    InactivePorts {
        ports: String,
        /// All of them are InfiniBand's and wait for a subnet manager.
        without_manager: bool,
    },
    /// InfiniBand's ports are limited members of all their partitions.
    #[error(
        "no InfiniBand port is a full member of a partition (P_Key 0x8000 and above): {ports}; limited \
         members do not reach each other"
    )]
    LimitedMember { ports: String },
    /// No port has an address for RoCE.
    #[error(
        "no RDMA port has a RoCE v2 address: {ports}; give its network interface an IP address"
    )]
    NoAddress { ports: String },
    /// Several devices were tried.
    #[error("{first}; other devices: {others}")]
    NoneUsable {
        first: Box<VerbsError>,
        others: String,
    },
    /// The device makes no reliable connected queue pair.
    #[error("RDMA device {device} makes no reliable connected queue pair: {source}")]
    NoQueuePair { device: String, source: io::Error },
    /// A limit of the device is too small.
    #[error(
        "RDMA device {device} allows {got} {what}, {needed} is the least that Faro works with"
    )]
    DeviceLimit {
        device: String,
        what: &'static str,
        got: u32,
        needed: u32,
    },
    /// The kernel knows the device, libibverbs does not.
    #[error("libibverbs has no driver for RDMA device {device}; install ibverbs-providers")]
    NoProvider { device: String },
    /// The kernel knows the device, but there is no file to open it.
    #[error(
        "{path} of RDMA device {device} is not there; in a container give it the device \
         (docker --device={path})"
    )]
    NoFile { device: String, path: String },
    /// The device's file may not be opened.
    #[error(
        "no permission for {path} of RDMA device {device}; the process needs to read and write it \
         (chmod, or a group of udev's), in a container also --device={path}"
    )]
    Permission { device: String, path: String },
    /// The device cannot be opened for another reason.
    #[error(
        "cannot open RDMA device {device}: {source}; `ibv_devinfo` and the kernel log tell more"
    )]
    OpenConnection { device: String, source: io::Error },
    /// The kernel refused to lock memory.
    #[error(
        "ibv_reg_mr of {bytes} bytes: {source}; the locked memory that this process may have \
         (ulimit -l, LimitMEMLOCK, docker --ulimit memlock) or the device's regions are used up"
    )]
    Register { bytes: usize, source: io::Error },
    /// Less memory can be locked than the arena is large.
    #[error(
        "this process may lock {limit} bytes of memory, the arena needs {needed}; raise the limit \
         (ulimit -l unlimited, LimitMEMLOCK=infinity, docker --ulimit memlock=-1) or lower \
         the memory limit"
    )]
    Memlock { limit: u64, needed: u64 },
    /// An option outside of what the standard allows.
    #[error("{what} = {got} is not possible, {allowed} is")]
    BadOption {
        what: &'static str,
        got: u32,
        allowed: &'static str,
    },
    /// A peer's description of its queue pair has an impossible value.
    #[error("the peer's {what} is {got}, {allowed} is possible; is it of another version?")]
    BadRemote {
        what: &'static str,
        got: u32,
        allowed: &'static str,
    },
    /// The peer's port speaks another protocol.
    #[error(
        "the peer's RDMA port is of {peer}, this host's of {own}; name the devices of one network on \
         all hosts (spark.faro.verbs.device)"
    )]
    OtherLink {
        own: &'static str,
        peer: &'static str,
    },
    /// The peer's port is of another partition.
    #[error(
        "the peer's InfiniBand port is in the partition {peer:#06x} (P_Key), this host's in {own:#06x}; the \
         first P_Key of which a port is a full member must be the same on all hosts"
    )]
    OtherPartition { own: u16, peer: u16 },
    /// Memory of the arena that the device has not registered.
    #[error("the device has not registered slab {slab} of the arena")]
    UnregisteredSlab { slab: u32 },
    /// A verb failed.
    #[error("{call}: {source}")]
    Call {
        call: &'static str,
        source: io::Error,
    },
}

impl VerbsError {
    /// Returns the error of a call that sets `errno`.
    pub(super) fn last(call: &'static str) -> Self {
        Self::Call {
            call,
            source: io::Error::last_os_error(),
        }
    }

    /// Checks a call that returns an error number (0 for none).
    pub(super) fn check(call: &'static str, code: i32) -> Result<(), Self> {
        match code {
            0 => Ok(()),
            // Some providers return -1 and set errno, others the number itself, or its negative.
            -1 => Err(Self::last(call)),
            code => Err(Self::Call {
                call,
                source: io::Error::from_raw_os_error(code.abs()),
            }),
        }
    }
}
