//! Finding the files of a job's map outputs, some of which only Java can find.

use super::io::{submit, Shared, Work};
use super::job::Job;
use super::service::Returned;
use crate::files::{Answer, Lookup};
use crate::net::Inbox;
use faro_sync::lock;
use faro_wire::{BlockStatus, OutputId};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A job that waits for answers about its files.
struct Waiting {
    work: Mutex<Option<Work>>,
    answers: Mutex<Vec<(OutputId, Answer)>>,
    /// Answers that are missing, plus one until the job is in `work`.
    missing: AtomicUsize,
}

/// Finds all outputs. The job comes back if they are known, else it is queued again when the last
/// answer is in.
pub(super) fn look_up(
    shared: &Arc<Shared>,
    mut job: Box<Job>,
    home: &Inbox<Returned>,
) -> Option<Box<Job>> {
    let wanted = job.wanted();
    let mut waiting: Option<Arc<Waiting>> = None;
    for id in wanted {
        let lookup = shared.catalog.look_up(id, || {
            let waiting = Arc::clone(waiting.get_or_insert_with(|| {
                Arc::new(Waiting {
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
            Lookup::Full => {
                job.answers.insert(id, Err(BlockStatus::UnknownOutput));
            }
        }
    }
    match waiting {
        None => Some(job),
        Some(waiting) => {
            *lock(&waiting.work) = Some(Work {
                job,
                home: home.clone(),
            });
            arrive(shared, &waiting);
            None
        }
    }
}

/// Counts one arrival; the last one sends the job on.
fn arrive(shared: &Shared, waiting: &Waiting) {
    if waiting.missing.fetch_sub(1, Ordering::AcqRel) != 1 {
        return;
    }
    if let Some(mut work) = lock(&waiting.work).take() {
        work.job.answers.extend(lock(&waiting.answers).drain(..));
        submit(shared, work);
    }
}
