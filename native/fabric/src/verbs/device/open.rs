//! Opens a device by its name, and says why one cannot be opened.

use super::error::VerbsError;
use super::library::{text, Symbols};
use super::survey::device_file;
use super::sys::ibv_context;
use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// Directory in which the kernel names the files by which devices are opened.
pub(super) const SYSFS_VERBS: &str = "/sys/class/infiniband_verbs";

/// Opens the device of that name.
///
/// # Errors
/// What is missing, and what to do.
pub(super) fn open_named(
    symbols: &Symbols,
    name: &str,
) -> Result<NonNull<ibv_context>, VerbsError> {
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

/// Returns the path of a device's file on the host below `root`, for messages.
fn file_of(root: &Path, device: &str) -> PathBuf {
    let name = device_file(&root.join("sys/class/infiniband_verbs"), device);
    let directory = root.join("dev/infiniband");
    directory.join(name.as_deref().unwrap_or("uverbs*"))
}

/// Checks that a device's file on the host below `root` can be opened, and returns its path. An
/// error of the driver counts as open: libibverbs reports it better.
///
/// # Errors
/// `NoFile`, `Permission`.
pub(crate) fn check_file(root: &Path, device: &str) -> Result<String, VerbsError> {
    let file = file_of(root, device);
    let opened = File::options().read(true).write(true).open(&file);
    let (device, path) = (device.to_owned(), file.display().to_string());
    match opened.map_err(|error| error.kind()) {
        Err(io::ErrorKind::NotFound) => Err(VerbsError::NoFile { device, path }),
        Err(io::ErrorKind::PermissionDenied) => Err(VerbsError::Permission { device, path }),
        _ => Ok(path),
    }
}

/// Returns why libibverbs does not list a device of sysfs: it leaves out those without a file.
fn unlisted(device: &str) -> VerbsError {
    let (device, path) = (device.to_owned(), file_of(Path::new("/"), device));
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
    let path = file_of(Path::new("/"), device);
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
