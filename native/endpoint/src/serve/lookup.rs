//! Finding the files of a job's map outputs, some of which only Java can find.

use super::job::ServeJob;
use super::work::{ReturnedWork, ServeShared, Work};
use crate::files::{Lookup, OutputAnswer};
use crate::net::Inbox;
use faro_sync::lock;
use faro_wire::OutputId;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A job that waits for answers about its files.
struct WaitingJob {
    work: Mutex<Option<Work>>,
    answers: Mutex<Vec<(OutputId, OutputAnswer)>>,
    /// Answers that are missing, plus one until the job is in `work`.
    missing: AtomicUsize,
}

/// Result of a look-up.
pub(super) enum LookedUp {
    /// All outputs are known.
    Known(Box<ServeJob>),
    /// The job is queued again when the last answer is in. It may have to look up more then.
    Waiting,
    /// Nothing could be asked: the job's peer, or all together, have as many questions open as they
    /// may.
    Full(Box<ServeJob>),
}

/// Finds the outputs that the job has no answer for. Those that its peer may not ask for now are
/// left out, and the job looks them up when the answers to the others are in.
pub(super) fn look_up(
    shared: &Arc<ServeShared>,
    mut job: Box<ServeJob>,
    home: &Inbox<ReturnedWork>,
) -> LookedUp {
    let wanted = job.missing();
    let mut waiting: Option<Arc<WaitingJob>> = None;
    job.is_short = false;
    for id in wanted {
        let lookup = shared.catalog.look_up(job.peer, id, || {
            let waiting = Arc::clone(waiting.get_or_insert_with(|| {
                Arc::new(WaitingJob {
                    work: Mutex::new(None),
                    answers: Mutex::default(),
                    missing: AtomicUsize::new(1),
                })
            }));
            waiting.missing.fetch_add(1, Ordering::Relaxed);
            let shared = Arc::clone(shared);
            Box::new(move |answer| {
                lock(&waiting.answers).push((id, answer));
                arrive(&shared, &waiting);
            })
        });
        match lookup {
            Lookup::Ready(output) => {
                job.answers.insert(id, Ok(output));
            }
            Lookup::Waiting => {}
            Lookup::Full => job.is_short = true,
        }
    }
    match waiting {
        None if job.is_short => LookedUp::Full(job),
        None => LookedUp::Known(job),
        Some(waiting) => {
            *lock(&waiting.work) = Some(Work {
                job,
                home: home.clone(),
            });
            arrive(shared, &waiting);
            LookedUp::Waiting
        }
    }
}

/// Counts one arrival; the last one sends the job on.
fn arrive(shared: &ServeShared, waiting: &WaitingJob) {
    if waiting.missing.fetch_sub(1, Ordering::AcqRel) != 1 {
        return;
    }
    if let Some(mut work) = lock(&waiting.work).take() {
        work.job.answers.extend(lock(&waiting.answers).drain(..));
        shared.submit(work);
    }
}
