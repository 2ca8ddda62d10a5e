//! A region: a file that is read without a mapping and, if wanted, without sleeping.
//!
//! A region does not hold its file open, because regions may outnumber a process's descriptors. Its `Source` opens the file when bytes are wanted, and decides how long it stays
//! open.

use crate::RegionError;
use faro_sync::simulated;
use rustix::io::{preadv2, Errno, ReadWriteFlags};
use std::fmt;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The name of a region in its owner. The bytes under a name never change: a file that is replaced
/// gets another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId {
    /// The group, which is forgotten as a whole (a shuffle).
    pub group: u32,
    /// The member of the group (one generation of a map output).
    pub member: i64,
}

/// An open file. It stays open as long as the handle lives.
pub trait OpenFile: Send + Sync {
    /// Returns the file.
    fn file(&self) -> &File;
}

impl OpenFile for File {
    fn file(&self) -> &File {
        self
    }
}

/// Opens the file of a region.
pub trait Source: Send + Sync {
    /// Returns the file if it is open; does not sleep.
    fn opened(&self) -> Option<Arc<dyn OpenFile>>;

    /// Opens the file if it is not open; may sleep.
    ///
    /// # Errors
    /// Returns the error of opening it, and any error if its bytes are no longer those of the
    /// region.
    fn open(&self) -> io::Result<Arc<dyn OpenFile>>;
}

/// The source of a region whose file stays open.
struct KeptSource(Arc<File>);

impl Source for KeptSource {
    fn opened(&self) -> Option<Arc<dyn OpenFile>> {
        Some(Arc::clone(&self.0) as Arc<dyn OpenFile>)
    }

    fn open(&self) -> io::Result<Arc<dyn OpenFile>> {
        Ok(Arc::clone(&self.0) as Arc<dyn OpenFile>)
    }
}

/// An exported byte range.
pub struct Region {
    id: RegionId,
    source: Box<dyn Source>,
    /// The length when the region was exported, in bytes; at least 1.
    bytes: u64,
    /// `false` after the file system has refused `RWF_NOWAIT`, or a container the call. (ext4, xfs,
    /// btrfs and tmpfs of recent kernels support it; NFS and FUSE do not.)
    nowait: AtomicBool,
}

impl Region {
    /// Returns a region of `bytes` bytes, at least 1, of the file that `source` opens.
    pub fn new(id: RegionId, bytes: u64, source: Box<dyn Source>) -> Self {
        debug_assert!(bytes > 0);
        Self {
            id,
            source,
            bytes,
            nowait: AtomicBool::new(true),
        }
    }

    /// Exports a file that stays open as long as the region lives.
    ///
    /// # Errors
    /// Returns `Open` if the file cannot be opened, and `Empty` if it has no bytes.
    pub fn export(id: RegionId, path: &Path) -> Result<Self, RegionError> {
        let open = || {
            let file = File::open(path)?;
            let bytes = file.metadata()?.len();
            Ok((file, bytes))
        };
        let (file, bytes) = open().map_err(|source| RegionError::Open {
            path: path.to_owned(),
            source,
        })?;
        if bytes == 0 {
            return Err(RegionError::Empty {
                path: path.to_owned(),
            });
        }
        Ok(Self::new(id, bytes, Box::new(KeptSource(Arc::new(file)))))
    }

    /// The region's name in its owner.
    pub fn id(&self) -> RegionId {
        self.id
    }

    /// Returns the length in bytes, at least 1.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether a read that must not sleep can read bytes.
    pub fn knows_nowait(&self) -> bool {
        self.nowait.load(Ordering::Relaxed)
    }

    /// Returns the region with its file if that is open; does not sleep.
    pub fn opened(&self) -> Option<OpenRegion<'_>> {
        let file = self.source.opened()?;
        Some(OpenRegion { region: self, file })
    }

    /// Returns the region with its file open; may sleep.
    ///
    /// # Errors
    /// Returns the error of opening the file.
    pub fn open(&self) -> io::Result<OpenRegion<'_>> {
        let file = self.source.open()?;
        Ok(OpenRegion { region: self, file })
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Region");
        fields.field("id", &self.id).field("bytes", &self.bytes);
        fields.finish_non_exhaustive()
    }
}

/// A region whose file is open. It is meant for one read, because descriptors are few.
pub struct OpenRegion<'a> {
    region: &'a Region,
    file: Arc<dyn OpenFile>,
}

impl OpenRegion<'_> {
    /// Returns the file, for a mapping.
    pub fn file(&self) -> &File {
        self.file.file()
    }

    /// Fills the front of `buffer` from `offset` with bytes in the page cache, without sleeping,
    /// and returns their number. If it is less than `buffer.len()`, the rest must be read from the
    /// medium (or the file has ended, which `read` detects).
    ///
    /// # Errors
    /// Returns the error of `preadv2`, except that it would have to wait.
    pub fn read_cached(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match simulated::page_is_resident() {
            None => {}
            Some(true) => return self.read(offset, buffer).map(|()| buffer.len()),
            Some(false) => return Ok(0),
        }
        let mut done = 0;
        while done < buffer.len() && self.region.knows_nowait() {
            let mut rest = [IoSliceMut::new(&mut buffer[done..])];
            match preadv2(
                self.file(),
                &mut rest,
                offset + done as u64,
                ReadWriteFlags::NOWAIT,
            ) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // `PERM` means that a container's list of allowed system calls lacks this one.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
                    self.region.nowait.store(false, Ordering::Relaxed);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    /// Fills `buffer` from `offset`; may sleep.
    ///
    /// # Errors
    /// Returns the error of `pread`, and `UnexpectedEof` if the file has become shorter.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file().read_exact_at(buffer, offset)
    }

    /// Asks the kernel to drop the file from the page cache, for tests and benchmarks that need a
    /// major fault. Errors are ignored.
    pub fn drop_from_cache(&self) {
        use rustix::fs::{fadvise, Advice};
        let _ = fadvise(self.file(), 0, None, Advice::DontNeed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ID: RegionId = RegionId {
        group: 1,
        member: 2,
    };

    #[test]
    fn what_cannot_be_exported_says_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let missing = Region::export(ID, &dir.path().join("none")).unwrap_err();
        assert!(
            missing.to_string().contains("none: No such file"),
            "{missing}"
        );
        let empty = dir.path().join("empty");
        std::fs::write(&empty, b"").unwrap();
        let error = Region::export(ID, &empty).unwrap_err();
        assert!(error.to_string().contains("empty has 0 bytes"), "{error}");
    }

    #[test]
    fn both_reads_bring_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d");
        let data: Vec<u8> = (0..100_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        std::fs::write(&path, &data).unwrap();
        let region = Region::export(ID, &path).unwrap();
        let open = region.open().unwrap();
        let mut buffer = vec![0; 5_000];
        open.read(33_000, &mut buffer).unwrap();
        assert_eq!(buffer, data[33_000..38_000]);
        buffer.fill(0);
        let got = open.read_cached(33_000, &mut buffer).unwrap();
        assert!(got == 5_000 || got == 0 && !region.knows_nowait());
        assert_eq!(buffer[..got], data[33_000..33_000 + got]);
    }

    #[test]
    fn a_file_that_was_cut_or_deleted_is_an_error_of_the_read_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d");
        std::fs::write(&path, vec![7; 10_000]).unwrap();
        let region = Region::export(ID, &path).unwrap();
        let open = region.open().unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut buffer = vec![0; 10_000];
        open.read(0, &mut buffer).unwrap();
        assert_eq!(buffer, vec![7; 10_000], "deleted, and still ours to read");
        rustix::fs::ftruncate(
            File::options()
                .write(true)
                .open(format!(
                    "/proc/self/fd/{}",
                    std::os::fd::AsRawFd::as_raw_fd(open.file())
                ))
                .unwrap(),
            4_000,
        )
        .unwrap();
        assert!(open.read_cached(0, &mut buffer).unwrap() <= 4_000);
        let error = open.read(0, &mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
