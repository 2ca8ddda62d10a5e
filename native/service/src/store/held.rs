//! Open files that are counted, up to a bound.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// How many files are open for one purpose, of all applications.
#[derive(Debug)]
pub struct Held {
    open: AtomicUsize,
    bound: usize,
}

impl Held {
    #[must_use]
    pub fn new(bound: usize) -> Arc<Self> {
        let open = AtomicUsize::new(0);
        Arc::new(Self { open, bound })
    }

    /// The files, counted as long as what is returned lives. Otherwise how many are open already.
    pub(crate) fn take(self: &Arc<Self>, files: Vec<File>) -> Result<HeldFiles, usize> {
        let count = files.len();
        let before = self.open.fetch_add(count, Ordering::Relaxed);
        let held = HeldFiles {
            files,
            of: Arc::clone(self),
        };
        match before + count > self.bound {
            true => Err(before),
            false => Ok(held),
        }
    }
}

/// Files that are counted: of an output, the index and the data file if there is one.
#[derive(Debug)]
pub(crate) struct HeldFiles {
    pub(crate) files: Vec<File>,
    of: Arc<Held>,
}

impl Drop for HeldFiles {
    fn drop(&mut self) {
        self.of.open.fetch_sub(self.files.len(), Ordering::Relaxed);
    }
}
