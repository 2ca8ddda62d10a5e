//! Connects queue pairs on threads of their own.
//!
//! A device that is asked to connect may first have to find its peer on the network, which takes a
//! second where the peer does not answer. The progress thread serves other peers meanwhile. While a
//! queue pair is connected here, it belongs to the thread, with its memory: the peer sends nothing
//! before it has an answer, which is given only afterwards.

use super::device::{Remote, VerbsError, VerbsOptions};
use super::queue_pair::QueuePairConnection;
use crate::ConnectionId;
use crossbeam_channel::{bounded, Receiver, Sender, TrySendError};
use rustix::event::{eventfd, EventfdFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Queue pairs that are connected at a time, so that one peer that cannot be found does not hold up
/// all others.
const THREADS: usize = 4;
/// Maximum number of queue pairs that were given to the threads and not taken back.
const JOBS: usize = 4096;

/// A queue pair to connect.
pub(super) struct ConnectJob {
    pub(super) connection: ConnectionId,
    pub(super) queue_pair: Box<QueuePairConnection>,
    pub(super) remote: Remote,
    pub(super) options: VerbsOptions,
}

/// A queue pair that comes back.
pub(crate) struct ConnectResult {
    pub(super) connection: ConnectionId,
    pub(super) queue_pair: Box<QueuePairConnection>,
    pub(super) result: Result<(), VerbsError>,
}

/// The threads. The first jobs start them; dropping this value waits for the jobs that have begun.
pub(super) struct ConnectThreads {
    threads: Vec<JoinHandle<()>>,
    jobs: Option<Sender<ConnectJob>>,
    waiting: Receiver<ConnectJob>,
    done: Sender<ConnectResult>,
    results: Receiver<ConnectResult>,
    /// Jobs whose result was not taken.
    under_way: usize,
    /// Readable after a result came.
    event: Arc<OwnedFd>,
}

impl ConnectThreads {
    /// # Errors
    /// There is no descriptor left.
    pub(super) fn new() -> io::Result<Self> {
        let (jobs, waiting) = bounded(JOBS);
        let (done, results) = bounded(JOBS);
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            threads: Vec::new(),
            jobs: Some(jobs),
            waiting,
            done,
            results,
            under_way: 0,
            event: Arc::new(event),
        })
    }

    /// Returns a descriptor that is readable after a result came.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Takes a job, or returns it because too many wait, or because no thread can be started.
    pub(super) fn start(&mut self, job: ConnectJob) -> Result<(), Box<ConnectJob>> {
        if self.under_way >= JOBS {
            return Err(Box::new(job));
        }
        if self.threads.len() < THREADS.min(self.under_way + 1) {
            match self.thread() {
                Ok(thread) => self.threads.push(thread),
                Err(error) => log::warn!("cannot start a thread that connects: {error}"),
            }
        }
        let Some(jobs) = self.jobs.as_ref().filter(|_| !self.threads.is_empty()) else {
            return Err(Box::new(job));
        };
        jobs.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(job) | TrySendError::Disconnected(job) => Box::new(job),
        })?;
        self.under_way += 1;
        Ok(())
    }

    /// Returns the next result.
    pub(super) fn take_result(&mut self) -> Option<ConnectResult> {
        let result = self.results.try_recv().ok()?;
        self.under_way -= 1;
        Some(result)
    }

    fn thread(&self) -> io::Result<JoinHandle<()>> {
        let (waiting, done) = (self.waiting.clone(), self.done.clone());
        let event = Arc::clone(&self.event);
        let builder = std::thread::Builder::new().name("faro-connect".to_owned());
        builder.spawn(move || {
            for job in waiting {
                let ConnectJob {
                    connection,
                    mut queue_pair,
                    remote,
                    options,
                } = job;
                let result = queue_pair.connect(&remote, &options);
                let result = ConnectResult {
                    connection,
                    queue_pair,
                    result,
                };
                // If the receiver was dropped, the queue pair is destroyed here.
                drop(done.send(result));
                if let Err(error) = rustix::io::write(event.as_fd(), &1u64.to_ne_bytes()) {
                    log::error!("cannot wake the progress thread: {error}");
                }
            }
        })
    }
}

impl Drop for ConnectThreads {
    fn drop(&mut self) {
        drop(self.jobs.take());
        // Those that wait are not begun.
        self.waiting.try_iter().for_each(drop);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                log::error!("a thread that connects panicked");
            }
        }
    }
}
