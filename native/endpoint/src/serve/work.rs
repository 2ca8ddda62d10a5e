//! The work of the I/O threads: jobs and prefetches in a queue, and what a job's turn returns to
//! its progress thread.

use super::job::{JobTurn, ServeJob};
use crate::files::{Catalog, Output};
use crate::memory::Memory;
use crate::net::Inbox;
use crossbeam_channel::Sender;
use std::sync::Arc;

/// A job and the progress thread that it returns to.
pub(super) struct Work {
    pub(super) job: Box<ServeJob>,
    pub(super) home: Inbox<ReturnedWork>,
}

/// A value that an I/O thread returns.
pub(crate) enum ReturnedWork {
    /// A job, and what its turn gave.
    Turned(Box<ServeJob>, JobTurn),
    /// The job of that serial number is lost: the turn panicked.
    Lost(u64),
}

impl ReturnedWork {
    /// Returns the serial number of the job.
    pub(super) fn serial(&self) -> u64 {
        match self {
            Self::Turned(job, _) => job.serial,
            Self::Lost(serial) => *serial,
        }
    }
}

/// The next task of a thread.
pub(super) enum Task {
    JobTurn(Work),
    /// Bring an output into the chunk cache.
    Prefetch(Arc<Output>),
    Stop,
}

/// State that the threads share.
pub(super) struct ServeShared {
    pub(super) memory: Arc<Memory>,
    pub(super) catalog: Arc<Catalog>,
    /// Work that waited for its files comes back by it, too. The channel has no bound of its own:
    /// every job is in it at most once, and jobs are bounded by the budget of each progress thread;
    /// prefetches are left out when it is long.
    pub(super) queue: Sender<Task>,
}

impl ServeShared {
    /// Queues a turn of a job; if the threads have ended, the job returns to its progress thread.
    pub(super) fn submit(&self, work: Work) {
        if let Err(error) = self.queue.send(Task::JobTurn(work)) {
            if let Task::JobTurn(Work { job, home }) = error.into_inner() {
                let detail = "the I/O threads have ended".to_owned();
                home.send(ReturnedWork::Turned(job, JobTurn::Broken { detail }));
            }
        }
    }
}
