//! Files that are kept open because they cannot be linked: counted, of all applications and of each.

use crate::shares::fits;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// How many files are open, of all applications.
#[derive(Debug)]
pub struct OpenFileCount {
    open: AtomicUsize,
    bound: usize,
}

impl OpenFileCount {
    #[must_use]
    pub fn new(bound: usize) -> Arc<Self> {
        let open = AtomicUsize::new(0);
        Arc::new(Self { open, bound })
    }
}

/// How many of them are open for one application.
#[derive(Debug)]
pub(super) struct HeldShare {
    of_all: Arc<OpenFileCount>,
    open: AtomicUsize,
}

impl HeldShare {
    pub(super) fn new(of_all: Arc<OpenFileCount>) -> Arc<Self> {
        let open = AtomicUsize::new(0);
        Arc::new(Self { of_all, open })
    }

    /// Returns the files, counted as long as the value lives, if they fit the application's share ([`fits`]). Otherwise
    /// returns how many it has open already.
    pub(super) fn take(self: &Arc<Self>, files: Vec<File>) -> Result<HeldFiles, usize> {
        let count = files.len();
        let own = self.open.fetch_add(count, Ordering::Relaxed);
        let all = self.of_all.open.fetch_add(count, Ordering::Relaxed);
        // Where two are counted at once, both may find too many.
        let held = HeldFiles {
            files,
            of: Arc::clone(self),
        };
        match fits(own, count, all, self.of_all.bound) {
            true => Ok(held),
            false => Err(own),
        }
    }
}

/// Files that are counted: of an output, the index and the data file if there is one.
#[derive(Debug)]
pub(crate) struct HeldFiles {
    pub(crate) files: Vec<File>,
    of: Arc<HeldShare>,
}

impl Drop for HeldFiles {
    fn drop(&mut self) {
        let count = self.files.len();
        self.of.open.fetch_sub(count, Ordering::Relaxed);
        self.of.of_all.open.fetch_sub(count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<File> {
        vec![File::open("/dev/null").unwrap()]
    }

    #[test]
    fn an_application_leaves_as_many_as_it_has() {
        let all = OpenFileCount::new(8);
        let [first, second, third] = [(); 3].map(|()| HeldShare::new(Arc::clone(&all)));
        let of_first: Vec<_> = (0..4).map(|_| first.take(file()).unwrap()).collect();
        assert_eq!(first.take(file()).unwrap_err(), 4);
        let of_second = [second.take(file()).unwrap(), second.take(file()).unwrap()];
        assert_eq!(second.take(file()).unwrap_err(), 2);
        assert!(third.take(file()).is_ok());
        drop((of_first, of_second));
        assert_eq!(all.open.load(Ordering::Relaxed), 0, "also of those refused");
        assert_eq!(first.open.load(Ordering::Relaxed), 0);
    }
}
