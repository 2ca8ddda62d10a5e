//! Files on their way to readers. The kernel counts them for this service's user until they are received, and a reader may
//! leave them in its socket: so they count here until it has taken them, or has closed its connection.
//!
//! No word of the reader says that, as it could lie. The kernel does: it frees a message of a Unix socket when it is received,
//! or when the receiving socket is closed, and says how many bytes of messages are not free yet. So a connection that is
//! ended for its reader's silence is kept here until then.

use crate::message::Key;
use crate::shares::fits;
use faro_sync::{clock, lock, Arc, Mutex};
use rustix::ioctl::{ioctl, Getter, Opcode};
use rustix::net::{shutdown, Shutdown};
use std::collections::HashMap;
use std::ffi::c_int;
#[cfg(test)]
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How many bytes of messages of a socket are not received yet, with the kernel's own for each; the same number on all
/// machines for which there is a build.
const SIOCOUTQ: Opcode = 0x5411;

/// How long a reader may take for the files that it has asked for.
pub(crate) const TAKE_WAIT: Duration = Duration::from_secs(5);

/// Files of an answer that are counted.
#[derive(Debug)]
pub(crate) struct LoanCount {
    of: Arc<LoanLimits>,
    application: Key,
    files: usize,
}

/// An answer that was sent.
#[derive(Debug)]
struct SentAnswer {
    socket: Arc<OwnedFd>,
    files: LoanCount,
    at: Instant,
    /// Whether the connection was ended, because its reader did not take it.
    is_ended: bool,
}

#[derive(Debug, Default)]
struct LoanCounts {
    all: usize,
    of: HashMap<Key, usize>,
}

/// All files on their way.
#[derive(Debug)]
pub(crate) struct LoanLimits {
    max: usize,
    counts: Mutex<LoanCounts>,
    sent: Mutex<Vec<SentAnswer>>,
}

impl LoanLimits {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            counts: Mutex::default(),
            sent: Mutex::default(),
        })
    }

    /// Counts so many more, if they fit the application's share ([`fits`]). Otherwise returns how many are on their way.
    pub(crate) fn take(
        self: &Arc<Self>,
        application: Key,
        files: usize,
    ) -> Result<LoanCount, usize> {
        self.count(application, files).or_else(|_| {
            // Most readers have taken theirs by now.
            self.look(clock::now());
            self.count(application, files)
        })
    }

    fn count(self: &Arc<Self>, application: Key, files: usize) -> Result<LoanCount, usize> {
        let mut counts = lock(&self.counts);
        let of = counts.of.get(&application).copied().unwrap_or(0);
        if !fits(of, files, counts.all, self.max) {
            return Err(counts.all);
        }
        counts.all += files;
        *counts.of.entry(application).or_default() += files;
        Ok(LoanCount {
            of: Arc::clone(self),
            application,
            files,
        })
    }

    /// They were sent by that connection: they count until its reader has taken them.
    pub(crate) fn sent(&self, socket: &Arc<OwnedFd>, files: Vec<LoanCount>) {
        let Some(files) = joined(files) else {
            return;
        };
        lock(&self.sent).push(SentAnswer {
            socket: Arc::clone(socket),
            files,
            at: clock::now(),
            is_ended: false,
        });
    }

    /// Forgets what was taken, and ends connections whose readers do not take theirs. Nothing here waits.
    pub(crate) fn look(&self, now: Instant) {
        let mut taken = Vec::new();
        let mut sent = lock(&self.sent);
        for mut one in std::mem::take(&mut *sent) {
            if is_taken(&one.socket) {
                taken.push(one);
                continue;
            }
            if !one.is_ended && now.saturating_duration_since(one.at) >= TAKE_WAIT {
                one.is_ended = true;
                log::debug!("a reader leaves {} files in its socket", one.files.files);
                // The files stay in the reader's socket until the reader closes it.
                let _ = shutdown(&*one.socket, Shutdown::Both);
            }
            sent.push(one);
        }
        drop(sent);
        // Without the lock: this may close a socket, with what its reader has sent in it.
        drop(taken);
    }

    /// Returns how many files readers have been sent and have not taken yet.
    pub(crate) fn on_their_way(&self) -> usize {
        lock(&self.counts).all
    }

    /// Returns how many of these are one application's.
    pub(crate) fn on_their_way_of(&self, application: Key) -> usize {
        lock(&self.counts)
            .of
            .get(&application)
            .copied()
            .unwrap_or(0)
    }
}

impl Drop for LoanCount {
    fn drop(&mut self) {
        let mut counts = lock(&self.of.counts);
        counts.all -= self.files;
        if let Some(of) = counts.of.get_mut(&self.application) {
            *of -= self.files;
            if *of == 0 {
                counts.of.remove(&self.application);
            }
        }
    }
}

/// One count of all.
fn joined(mut files: Vec<LoanCount>) -> Option<LoanCount> {
    let mut first = files.pop()?;
    for mut one in files {
        first.files += std::mem::take(&mut one.files);
    }
    Some(first)
}

/// Whether all that was sent by the socket was received, or its other end is closed. Until the kernel says so it is not.
fn is_taken(socket: &OwnedFd) -> bool {
    // SAFETY: SIOCOUTQ writes an int, which is the output here.
    let unread = unsafe { ioctl(socket, Getter::<SIOCOUTQ, c_int>::new()) };
    unread.is_ok_and(|bytes| bytes == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Token;
    use crate::socket::{receive, send};
    use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
    use std::fs::File;

    fn key(application: u8) -> Key {
        Token::new([application; 32]).key()
    }

    fn pair() -> (Arc<OwnedFd>, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (service, reader) = pair.unwrap();
        (Arc::new(service), reader)
    }

    fn lends(lending: &Arc<LoanLimits>, application: u8, socket: &Arc<OwnedFd>) {
        let files = (0..2).map(|_| lending.take(key(application), 1).unwrap());
        let files = files.collect();
        let file = File::open("/dev/null").unwrap();
        send(socket.as_fd(), b"an answer", &[file.as_fd(); 2]).unwrap();
        lending.sent(socket, files);
    }

    #[test]
    fn files_count_until_their_reader_has_taken_them() {
        let lending = LoanLimits::new(100);
        let (service, reader) = pair();
        lends(&lending, 1, &service);
        let start = clock::now();
        lending.look(start);
        assert_eq!(lending.on_their_way(), 2);
        receive(reader.as_fd()).unwrap();
        lending.look(start);
        assert_eq!(lending.on_their_way(), 0);
        // A reader that has gone has taken all.
        lends(&lending, 1, &service);
        drop(reader);
        lending.look(start);
        assert_eq!(lending.on_their_way(), 0);
        assert!(lock(&lending.counts).of.is_empty());
    }

    #[test]
    fn a_reader_that_takes_nothing_loses_its_connection_and_still_counts() {
        let lending = LoanLimits::new(100);
        let (service, reader) = pair();
        lends(&lending, 1, &service);
        let start = clock::now();
        lending.look(start + TAKE_WAIT - Duration::from_millis(100));
        send(reader.as_fd(), b"another question", &[]).unwrap();
        receive(service.as_fd()).unwrap();
        lending.look(start + 2 * TAKE_WAIT);
        let ended = receive(service.as_fd());
        assert!(matches!(ended, Err(crate::SocketError::Closed)));
        // Its thread has gone; the files are still in the reader's socket.
        drop(service);
        lending.look(start + 100 * TAKE_WAIT);
        assert_eq!(lending.on_their_way(), 2);
        receive(reader.as_fd()).unwrap();
        lending.look(start + 100 * TAKE_WAIT);
        assert_eq!(lending.on_their_way(), 0);
    }

    #[test]
    fn an_application_leaves_as_many_as_it_has() {
        let lending = LoanLimits::new(8);
        let (service, reader) = pair();
        lends(&lending, 1, &service);
        lends(&lending, 1, &service);
        assert_eq!(lending.take(key(1), 1).unwrap_err(), 4);
        let other = lending.take(key(2), 2).unwrap();
        assert!(lending.take(key(2), 1).is_err());
        assert!(lending.take(key(3), 1).is_ok(), "a third one finds some");
        drop(other);
        // Readers that have taken theirs make room at once.
        receive(reader.as_fd()).unwrap();
        receive(reader.as_fd()).unwrap();
        assert!(lending.take(key(1), 4).is_ok());
    }
}
