//! The directories of the service, and how many files it may have open.

use crate::error::ServiceError;
use rustix::fs::{flock, FlockOperation};
use rustix::process::{geteuid, getrlimit, setrlimit, Resource};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

const LOCK: &str = "faro-serve.lock";

/// Makes the directory, or checks that it is this user's.
pub(crate) fn directory(path: &Path, mode: u32) -> Result<(), ServiceError> {
    let of = |source| ServiceError::Path {
        path: path.to_owned(),
        source,
    };
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(of)?;
    let is = fs::metadata(path).map_err(of)?.uid();
    let wanted = geteuid().as_raw();
    if is != wanted {
        let path = path.to_owned();
        return Err(ServiceError::Foreign { path, is, wanted });
    }
    Ok(())
}

/// Only one service has a directory.
pub(crate) fn locked(directory: &Path) -> Result<File, ServiceError> {
    let path = directory.join(LOCK);
    let of = |source| ServiceError::Path {
        path: path.clone(),
        source,
    };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.map_err(of)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ServiceError::InUse { path }),
        Err(errno) => Err(of(errno.into())),
    }
}

/// As many descriptors as this process may have, from now on.
pub(crate) fn descriptors() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let max = limit.maximum;
    if limit.current != max {
        limit.current = max;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            log::warn!("the number of open files stays low: {error}");
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(1 << 20)
}

/// The service's own, flat, without a link that is followed.
pub(crate) fn remove_directory(path: &Path) {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            log::warn!("{} stays: {error}", path.display());
        }
        _ => {}
    }
}
