//! The open files of map outputs: few, whatever the number of outputs.
//!
//! ```text
//!            open (a permit for each file)
//!   path ───────────────────────────────────▶ Descriptor ── in use: its Arc is held for one read
//!     ▲                                          │
//!     └── closed (the permit returns) ◀──────────┴── idle: in the cache, until evicted, replaced or deleted
//! ```
//! A file is opened only with a permit, and the permit returns after it was closed, so open files
//! never exceed the bound. The cache holds fewer files than there are permits; the other permits
//! are for files that were evicted while they were being read. A thread that finds no permit closes
//! idle files and waits. No thread waits for a permit while it holds a descriptor, so the threads
//! that hold one continue and return it.
//!
//! The cache keeps what is used again and again when a scan reads each file once (`quick_cache`).
//!
//! Every use of a file compares its identity with that under which the output was opened first.
//! Idle files that were deleted would keep their disk space: `sweep` closes them.

use super::cache::{self, Cache};
use super::identity::{FileKey, Files, OutputFileKind, OutputFiles};
use crate::limits::OPEN_FILES;
use faro_region::OpenFile;
use faro_sync::lock;
use quick_cache::UnitWeighter;
use rustix::process::{getrlimit, Resource};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Time for which a thread that found no permit waits before it closes idle files again.
const PERMIT_WAIT: Duration = Duration::from_millis(10);

/// Returns how many files of map outputs this process may have open: a quarter of its limit.
pub(crate) fn open_file_bound() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let quarter = limit.map_or(usize::MAX, |limit| (limit / 4) as usize);
    quarter.clamp(*OPEN_FILES.start(), *OPEN_FILES.end())
}

/// The right to have one file open.
struct Permit(Arc<DescriptorPermits>);

struct DescriptorPermits {
    bound: usize,
    state: Mutex<PermitState>,
    returned: Condvar,
}

#[derive(Default)]
struct PermitState {
    taken: usize,
    /// Threads that wait for `returned`. Almost always none, and a wake is a call of the kernel.
    waiting: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.taken -= 1;
        let wakes = state.waiting > 0;
        drop(state);
        if wakes {
            self.0.returned.notify_one();
        }
    }
}

/// An open file and its permit.
pub(super) struct PermittedFile {
    // Closed before the permit returns: fields are dropped in this order.
    pub(super) file: File,
    _permit: Permit,
}

/// An open file of a map output.
pub(super) struct OutputDescriptor {
    opened: PermittedFile,
    files: Arc<Files>,
    part: OutputFileKind,
}

impl OutputDescriptor {
    /// Returns whether the file is the same as when the output was first opened. If it is not,
    /// marks the output as replaced.
    pub(super) fn is_current(&self) -> bool {
        self.files.check_open(self.part, &self.opened.file)
    }

    fn is_shorter(&self) -> bool {
        let is = self.opened.file.metadata();
        is.is_ok_and(|is| is.len() < self.files.bytes_of(self.part))
    }
}

impl OpenFile for OutputDescriptor {
    fn file(&self) -> &File {
        &self.opened.file
    }
}

/// The open files of all map outputs.
pub(super) struct Descriptors {
    permits: Arc<DescriptorPermits>,
    idle: Cache<FileKey, Arc<OutputDescriptor>, UnitWeighter>,
    /// Files that the current sweep has yet to check.
    unswept: Mutex<Vec<FileKey>>,
}

impl Descriptors {
    /// Returns a cache of at most `bound` open files, at least 2.
    pub(super) fn new(bound: usize) -> Self {
        let reserve = (bound / 8).clamp(bound.min(16), 256);
        let kept = bound.saturating_sub(reserve).max(1);
        Self {
            permits: Arc::new(DescriptorPermits {
                bound,
                state: Mutex::default(),
                returned: Condvar::new(),
            }),
            idle: cache::new(kept as u64, kept, UnitWeighter),
            unswept: Mutex::default(),
        }
    }

    /// Returns the number of open files.
    pub(super) fn open_files(&self) -> usize {
        lock(&self.permits.state).taken
    }

    /// Returns the file if it is open, which counts as a use. Does not sleep.
    pub(super) fn get(&self, key: FileKey) -> Option<Arc<OutputDescriptor>> {
        self.idle.get(&key)
    }

    /// The file, opened if it is not; may sleep.
    ///
    /// # Errors
    /// What opening it says; `NotFound` when it was replaced or deleted, `UnexpectedEof` when it has
    /// become shorter. The output is then marked.
    pub(super) fn open(
        &self,
        files: &Arc<Files>,
        part: OutputFileKind,
    ) -> io::Result<Arc<OutputDescriptor>> {
        let found = match self.get(files.key(part)) {
            Some(found) => found,
            None => {
                let [permit] = self.permits();
                let opened = self.open_path(files.path(part));
                let file = opened.inspect_err(|_| files.mark_replaced())?;
                let opened = PermittedFile {
                    file,
                    _permit: permit,
                };
                self.keep(files, part, opened)
            }
        };
        if found.is_current() {
            return Ok(found);
        }
        self.close(files.key(part));
        Err(match found.is_shorter() {
            true => io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter"),
            false => io::Error::new(io::ErrorKind::NotFound, "the file was replaced or deleted"),
        })
    }

    /// Opens both files of an output that is not known yet, index and data; may sleep.
    pub(super) fn open_both(&self, files: &OutputFiles) -> [io::Result<PermittedFile>; 2] {
        let [index, data] = self.permits();
        let open = |path, permit| {
            let file = self.open_path(path)?;
            Ok(PermittedFile {
                file,
                _permit: permit,
            })
        };
        [open(&files.index, index), open(&files.data, data)]
    }

    /// Keeps a file of `open_both` open as long as there is room.
    pub(super) fn keep(
        &self,
        files: &Arc<Files>,
        part: OutputFileKind,
        opened: PermittedFile,
    ) -> Arc<OutputDescriptor> {
        let kept = Arc::new(OutputDescriptor {
            opened,
            files: Arc::clone(files),
            part,
        });
        self.idle.insert(files.key(part), Arc::clone(&kept));
        kept
    }

    /// Closes the file, once it is idle.
    pub(super) fn close(&self, key: FileKey) {
        self.idle.remove(&key);
    }

    /// Looks at up to `max` open files, in turn, and closes those that were deleted or replaced.
    /// Their outputs are marked. May sleep: the last one to close a deleted file frees its blocks.
    pub(super) fn sweep(&self, max: usize) {
        let mut unswept = lock(&self.unswept);
        if unswept.is_empty() {
            unswept.extend(self.idle.iter().map(|(key, _)| key));
        }
        let rest = unswept.len().saturating_sub(max);
        let keys = unswept.split_off(rest);
        drop(unswept);
        for key in keys {
            let gone = self.idle.peek(&key).filter(|found| !found.is_current());
            if gone.is_some() {
                self.close(key);
            }
        }
    }

    /// Opens a file. If this process has no descriptor left for other reasons, idle ones are closed.
    fn open_path(&self, path: &Path) -> io::Result<File> {
        let exhausted = |error: &io::Error| {
            let of = |errno: rustix::io::Errno| error.raw_os_error() == Some(errno.raw_os_error());
            of(rustix::io::Errno::MFILE) || of(rustix::io::Errno::NFILE)
        };
        match File::open(path) {
            Err(error) if exhausted(&error) => {
                self.idle.clear();
                File::open(path)
            }
            result => result,
        }
    }

    /// Takes `N` permits at once, so that no thread holds one while it waits for another.
    fn permits<const N: usize>(&self) -> [Permit; N] {
        let permits = &self.permits;
        let mut state = lock(&permits.state);
        while state.taken + N > permits.bound {
            drop(state);
            self.close_some_idle();
            state = lock(&permits.state);
            if state.taken + N > permits.bound {
                state.waiting += 1;
                let waited = permits.returned.wait_timeout(state, PERMIT_WAIT);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                state.waiting -= 1;
            }
        }
        state.taken += N;
        drop(state);
        std::array::from_fn(|_| Permit(Arc::clone(permits)))
    }

    fn close_some_idle(&self) {
        let some = (self.permits.bound / 8).max(2);
        let keys: Vec<FileKey> = self.idle.iter().take(some).map(|(key, _)| key).collect();
        for key in keys {
            self.close(key);
        }
    }
}
