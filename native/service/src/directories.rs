//! The directories of the service, and how many files it may have open.

use crate::error::ServiceError;
use faro_sync::{lock, try_lock};
use rustix::fs::{flock, FlockOperation};
use rustix::process::{geteuid, getrlimit, setrlimit, Resource};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const APPLICATIONS: &str = "applications";
/// How often a directory is locked that another one takes the place of meanwhile.
const LOCK_ATTEMPTS: usize = 8;

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

/// Only one service has a directory: it locks the directory itself, as a file in it could be removed.
pub(crate) fn locked(directory: &Path) -> Result<File, ServiceError> {
    let path = || directory.to_owned();
    let of = |source| ServiceError::Path {
        path: path(),
        source,
    };
    for _ in 0..LOCK_ATTEMPTS {
        let file = File::open(directory).map_err(of)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if is_at(&file, directory).map_err(of)? => return Ok(file),
            // It was removed and made again meanwhile.
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(ServiceError::InUse { path: path() }),
            Err(errno) => return Err(of(errno.into())),
        }
    }
    let text = "it is removed and made again all the time";
    Err(of(io::Error::other(text)))
}

/// Whether the open directory is the one of that path.
fn is_at(open: &File, path: &Path) -> io::Result<bool> {
    let (held, now) = (open.metadata()?, fs::metadata(path)?);
    Ok((now.dev(), now.ino()) == (held.dev(), held.ino()))
}

/// The data directory, with the directory of all applications in it. Only one service has it.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    applications: PathBuf,
    /// Locked as long as this lives; another one after the directory was removed and made again.
    locked: Mutex<Arc<File>>,
    /// Held while it is locked again. No thread waits for it.
    locking: Mutex<()>,
}

impl DataDirectory {
    /// # Errors
    /// `Path`, `Foreign`, `InUse`.
    pub(crate) fn open(path: &Path) -> Result<Arc<Self>, ServiceError> {
        directory(path, 0o700)?;
        let locked = Mutex::new(Arc::new(locked(path)?));
        let applications = path.join(APPLICATIONS);
        directory(&applications, 0o700)?;
        Ok(Arc::new(Self {
            path: path.to_owned(),
            applications,
            locked,
            locking: Mutex::new(()),
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
        if self.is_ours()? {
            return Ok(());
        }
        let just_now = || io::Error::other("the data directory is just being locked again");
        let _locking = try_lock(&self.locking).ok_or_else(just_now)?;
        let is = fs::metadata(&self.path)?.uid();
        if is != geteuid().as_raw() {
            let text = format!("{} is of user {is} now", self.path.display());
            return Err(io::Error::other(text));
        }
        let now = locked(&self.path).map_err(io::Error::other)?;
        *lock(&self.locked) = Arc::new(now);
        Ok(())
    }

    /// Whether the directory of that path is still the one that is locked.
    fn is_ours(&self) -> io::Result<bool> {
        let held = Arc::clone(&lock(&self.locked));
        is_at(&held, &self.path)
    }

    /// Removes a directory of the one of all applications. If the data directory was removed and made again since, it may be
    /// another service's, and what has this name there is not ours.
    pub(crate) fn remove(&self, path: &Path) {
        match self.is_ours() {
            Ok(true) => remove_directory(path),
            Ok(false) => log::warn!(
                "{} was made again by another one, and stays",
                path.display()
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => log::warn!("{} stays: {error}", path.display()),
        }
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
fn remove_directory(path: &Path) {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            log::warn!("{} stays: {error}", path.display());
        }
        _ => {}
    }
}
