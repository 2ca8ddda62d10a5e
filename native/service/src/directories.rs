//! The directories of the service, and how many files it may have open.

use crate::error::ServiceError;
use faro_sync::try_lock;
use rustix::fs::{flock, FlockOperation};
use rustix::process::{geteuid, getrlimit, setrlimit, Resource};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const LOCK: &str = "faro-serve.lock";
const APPLICATIONS: &str = "applications";

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

/// The data directory, with the directory of all applications in it. Only one service has it.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    applications: PathBuf,
    /// Locked as long as this lives; another one after the directory was removed and made again. No thread waits for it.
    lock: Mutex<File>,
}

impl DataDirectory {
    /// # Errors
    /// `Path`, `Foreign`, `InUse`.
    pub(crate) fn open(path: &Path) -> Result<Arc<Self>, ServiceError> {
        directory(path, 0o700)?;
        let lock = locked(path)?;
        let applications = path.join(APPLICATIONS);
        directory(&applications, 0o700)?;
        Ok(Arc::new(Self {
            path: path.to_owned(),
            applications,
            lock: Mutex::new(lock),
        }))
    }

    pub(crate) fn applications(&self) -> &Path {
        &self.applications
    }

    /// Makes a directory in that of all applications, which is made, too, if it has gone. The data directory itself is not
    /// made again: it may be a disk that is not mounted now.
    ///
    /// # Errors
    /// The system's, or another service or user has the data directory now.
    pub(crate) fn make(&self, path: &Path) -> io::Result<()> {
        match make(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        self.lock_again()?;
        match make(&self.applications) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => {
                other?;
                log::warn!(
                    "{} was removed and is made again",
                    self.applications.display()
                );
            }
        }
        make(path)
    }

    /// Locks the directory that is there now, unless it is the one that is locked.
    fn lock_again(&self) -> io::Result<()> {
        let just_now = || io::Error::other("the data directory is just being locked again");
        let mut lock = try_lock(&self.lock).ok_or_else(just_now)?;
        let is = fs::metadata(&self.path)?.uid();
        if is != geteuid().as_raw() {
            let text = format!("{} is of user {is} now", self.path.display());
            return Err(io::Error::other(text));
        }
        let held = lock.metadata()?;
        match fs::metadata(self.path.join(LOCK)) {
            Ok(now) if (now.dev(), now.ino()) == (held.dev(), held.ino()) => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        *lock = locked(&self.path).map_err(io::Error::other)?;
        Ok(())
    }
}

/// Makes a directory that only this user sees.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
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
