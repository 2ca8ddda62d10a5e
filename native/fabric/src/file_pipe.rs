//! Bytes of files on their way to a socket, which no thread copies: a pipe holds the pages of the page cache.
//!
//! ```text
//!   file ── splice, on a thread that may wait for a disk ──▶ pipe ── splice, on a progress thread ──▶ socket
//! ```
//! What is in a pipe is in memory, so the second step never waits for a disk, and an error or the end of the file shows
//! in the first one, before anything is sent. That is why it is a pipe and not `sendfile`: see docs/decisions/059.

use faro_pool::Charge;
use faro_sync::lock;
use rustix::pipe::{fcntl_setpipe_size, pipe_with, splice, PipeFlags, SpliceFlags};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock};

/// Maximum bytes of one pipe.
pub const PIPE_BYTES: usize = 256 << 10;
/// Places for pages in a pipe: bytes that do not begin with a page have one page more, and the number is a power of two.
const PIPE_PAGES: usize = 2 * PIPE_BYTES / 4096;
/// Pipes of a pool. They take an eighth of the pages that a user, with all of his processes, may have in pipes by default
/// (`pipe-user-pages-soft`).
const MAX_PIPES: usize = 16;

/// The two ends of a pipe.
struct PipeEnds {
    reader: OwnedFd,
    writer: OwnedFd,
}

#[derive(Default)]
struct PipeState {
    empty: Vec<PipeEnds>,
    /// Pipes that exist.
    open: usize,
    /// Pipes that may exist.
    bound: usize,
}

/// A bounded number of pipes, made when they are first needed.
pub struct FilePipes(Mutex<PipeState>);

impl FilePipes {
    /// Returns the pool of this process, which may have many endpoints.
    #[must_use]
    pub fn of_process() -> Arc<Self> {
        static POOL: OnceLock<Arc<FilePipes>> = OnceLock::new();
        Arc::clone(POOL.get_or_init(Self::new))
    }

    /// Returns a pool whose pipes are not made yet; it never has any on a kernel that could wait for a disk when a pipe is
    /// emptied.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let bound = match fills_before_it_returns(&release) {
            true => MAX_PIPES,
            false => 0,
        };
        Arc::new(Self(Mutex::new(PipeState {
            bound,
            ..PipeState::default()
        })))
    }

    /// Returns an empty pipe; `None` if all are in use, or if this process may have no more.
    pub fn try_take(self: &Arc<Self>) -> Option<FilePipe> {
        let mut state = lock(&self.0);
        if let Some(ends) = state.empty.pop() {
            return Some(FilePipe::new(ends, self));
        }
        if state.open >= state.bound {
            return None;
        }
        state.open += 1;
        drop(state);
        match open_pipe() {
            Ok(ends) => Some(FilePipe::new(ends, self)),
            Err(error) => {
                let mut state = lock(&self.0);
                state.open -= 1;
                // Learnt once, but for files of which this process has too many just now.
                if error.kind() == io::ErrorKind::PermissionDenied {
                    state.bound = state.open;
                }
                log::debug!("no pipe beside {} for map outputs: {error}", state.open);
                None
            }
        }
    }

    /// From now on there are no pipes: a file system or a container refuses to fill them.
    fn turn_off(&self) {
        let mut state = lock(&self.0);
        state.bound = 0;
        state.open -= state.empty.len();
        let unused = std::mem::take(&mut state.empty);
        drop(state);
        drop(unused);
    }

    fn give(&self, ends: Option<PipeEnds>) {
        let mut state = lock(&self.0);
        match ends {
            Some(ends) if state.bound > 0 => state.empty.push(ends),
            _ => state.open -= 1,
        }
    }
}

/// Returns whether a kernel of that release puts only pages into a pipe that have been read: before Linux 4.9 `splice`
/// returned while they were.
fn fills_before_it_returns(release: &str) -> bool {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (4, 9),
        _ => false,
    }
}

fn open_pipe() -> io::Result<PipeEnds> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    fcntl_setpipe_size(&writer, PIPE_PAGES * 4096)?;
    Ok(PipeEnds { reader, writer })
}

/// A pipe with bytes of files. Dropping it returns it to its pool; if it still has bytes, it is closed instead.
pub struct FilePipe {
    /// `None` only while it is dropped.
    ends: Option<PipeEnds>,
    held: usize,
    charge: Option<Charge>,
    pool: Arc<FilePipes>,
}

/// Reason why a pipe was not filled.
#[derive(Debug)]
pub enum NotPiped {
    /// These files cannot be sent by a pipe.
    Unsupported,
    /// The pipe has no place for more pages.
    Full,
    /// The file cannot be read, or is shorter (`UnexpectedEof`).
    Unread(io::Error),
}

impl FilePipe {
    fn new(ends: PipeEnds, pool: &Arc<FilePipes>) -> Self {
        Self {
            ends: Some(ends),
            held: 0,
            charge: None,
            pool: Arc::clone(pool),
        }
    }

    /// Keeps `charge` as long as the pipe is in use.
    pub fn charge_to(&mut self, charge: Charge) {
        self.charge = Some(charge);
    }

    /// Returns the bytes that it has.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Appends `length` bytes of a file from `offset` on; may wait for a disk.
    ///
    /// # Errors
    /// See `NotPiped`; the pipe then has a part of them.
    pub fn fill(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
    ) -> Result<(), NotPiped> {
        use rustix::io::Errno;
        let Some(ends) = &self.ends else {
            return Err(NotPiped::Full);
        };
        let (mut at, end) = (offset, offset + length as u64);
        while at < end {
            let left = (end - at) as usize;
            // A full pipe must not stop this thread; reading the file waits nevertheless.
            let flags = SpliceFlags::NONBLOCK;
            match splice(file, Some(&mut at), &ends.writer, None, left, flags) {
                Ok(0) => return Err(NotPiped::Unread(io::ErrorKind::UnexpectedEof.into())),
                Ok(bytes) => self.held += bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(NotPiped::Full),
                // `PERM` means that a container's list of allowed system calls lacks this one.
                Err(Errno::INVAL | Errno::NOSYS | Errno::PERM | Errno::OPNOTSUPP) => {
                    self.pool.turn_off();
                    return Err(NotPiped::Unsupported);
                }
                Err(error) => return Err(NotPiped::Unread(error.into())),
            }
        }
        Ok(())
    }

    /// Moves bytes to a socket, as many as it takes now; never waits for a disk.
    ///
    /// # Errors
    /// `WouldBlock` if the socket takes none; the socket's errors; `UnexpectedEof` if the pipe is empty.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let Some(ends) = self.ends.as_ref().filter(|_| self.held > 0) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let flags = SpliceFlags::NONBLOCK;
        match splice(&ends.reader, None, socket, None, self.held, flags)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => {
                self.held -= bytes.min(self.held);
                Ok(bytes)
            }
        }
    }
}

impl Drop for FilePipe {
    fn drop(&mut self) {
        let ends = self.ends.take();
        // Closed outside of the pool's lock.
        let (empty, rest) = match self.held {
            0 => (ends, None),
            _ => (None, ends),
        };
        drop(rest);
        self.pool.give(empty);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::fcntl_getpipe_size;
    use std::fs::File;
    use std::os::fd::AsFd as _;

    fn file_of(bytes: usize) -> (tempfile::NamedTempFile, File) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; bytes]).unwrap();
        let open = File::open(file.path()).unwrap();
        (file, open)
    }

    #[test]
    fn pipes_are_bounded_and_used_again_when_they_are_empty() {
        let pool = FilePipes::new();
        let mut held: Vec<FilePipe> = std::iter::from_fn(|| pool.try_take()).collect();
        assert_eq!(held.len(), MAX_PIPES);
        held.pop();
        assert!(pool.try_take().is_some());
        let (_kept, file) = file_of(10);
        for pipe in &mut held {
            pipe.fill(file.as_fd(), 0, 10).unwrap();
        }
        // Those with bytes are closed.
        drop(held);
        let state = lock(&pool.0);
        assert_eq!((state.open, state.empty.len()), (1, 1));
    }

    #[test]
    fn a_pipe_has_room_for_its_bytes_wherever_they_begin() {
        let pool = FilePipes::new();
        let (_kept, file) = file_of(2 * PIPE_BYTES);
        for offset in [0, 1, 4095, 4096, 100_001] {
            let mut pipe = pool.try_take().unwrap();
            pipe.fill(file.as_fd(), offset, PIPE_BYTES).unwrap();
            assert_eq!(pipe.held(), PIPE_BYTES);
        }
    }

    #[test]
    fn what_cannot_be_filled_says_why_and_waits_for_nobody() {
        let pool = FilePipes::new();
        let (_kept, file) = file_of(10_000);
        let mut pipe = pool.try_take().unwrap();
        let short = pipe.fill(file.as_fd(), 9_000, 2_000);
        assert!(
            matches!(short, Err(NotPiped::Unread(error)) if error.kind() == io::ErrorKind::UnexpectedEof)
        );
        let mut pipe = pool.try_take().unwrap();
        let places = fcntl_getpipe_size(&pipe.ends.as_ref().unwrap().writer).unwrap() / 4096;
        let filled = (0..=places).try_for_each(|at| pipe.fill(file.as_fd(), at as u64, 1));
        assert!(matches!(filled, Err(NotPiped::Full)), "{filled:?}");
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut pipe = pool.try_take().unwrap();
        let unsupported = pipe.fill(socket.as_fd(), 0, 1);
        assert!(
            !matches!(unsupported, Ok(()) | Err(NotPiped::Full)),
            "{unsupported:?}"
        );
    }

    #[test]
    fn kernels_that_fill_pipes_later_have_none() {
        for release in [
            "4.9.0",
            "4.18.0-553.el8_10.x86_64",
            "5.4",
            "6.18.44-fc-v782",
        ] {
            assert!(fills_before_it_returns(release), "{release}");
        }
        for release in ["3.10.0-1160.el7.x86_64", "4.8.17", "", "6"] {
            assert!(!fills_before_it_returns(release), "{release}");
        }
    }

    #[test]
    fn nothing_is_asked_for_after_a_refusal() {
        let pool = FilePipes::new();
        let (kept, idle) = (pool.try_take(), pool.try_take());
        drop(idle);
        pool.turn_off();
        assert!(pool.try_take().is_none());
        drop(kept);
        let state = lock(&pool.0);
        assert_eq!((state.open, state.empty.len()), (0, 0));
    }
}
