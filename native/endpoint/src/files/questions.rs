//! The map outputs that Java was asked for, and what waits for each answer.

use super::output::Output;
use crate::limits::MAX_UNRESOLVED;
use crossbeam_channel::{Receiver, Sender};
use faro_sync::lock;
use faro_wire::{BlockStatus, OutputId};
use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The answer to a question.
pub(crate) type Answer = Result<Arc<Output>, BlockStatus>;

/// Called with the answer. It must not block and must not call the catalog.
pub(crate) type Resume = Box<dyn FnOnce(Answer) + Send>;

/// A thread takes at most this part of the questions in the queue, and one, so that others have some.
const SHARE: usize = 4;

struct Question {
    since: Instant,
    waiting: Vec<Resume>,
}

/// What became of a question.
pub(super) enum Asked {
    /// It was answered a moment ago.
    Known(Arc<Output>),
    /// The `resume` was kept.
    Waiting,
    /// Too many questions are open.
    Full,
}

/// The open questions, each at most once in the queue.
pub(super) struct Questions {
    open: Mutex<HashMap<OutputId, Question>>,
    queue: (Sender<OutputId>, Receiver<OutputId>),
}

impl Questions {
    pub(super) fn new() -> Self {
        Self {
            open: Mutex::default(),
            queue: crossbeam_channel::bounded(MAX_UNRESOLVED),
        }
    }

    /// Asks for an output, unless `known` has it by now.
    pub(super) fn ask(
        &self,
        id: OutputId,
        known: impl FnOnce() -> Option<Arc<Output>>,
        resume: impl FnOnce() -> Resume,
    ) -> Asked {
        let mut open = lock(&self.open);
        // An answer is known before its question is closed.
        if let Some(output) = known() {
            return Asked::Known(output);
        }
        if open.len() >= MAX_UNRESOLVED && !open.contains_key(&id) {
            return Asked::Full;
        }
        match open.entry(id) {
            Entry::Occupied(mut question) => question.get_mut().waiting.push(resume()),
            Entry::Vacant(slot) => {
                if self.queue.0.try_send(id).is_err() {
                    return Asked::Full;
                }
                slot.insert(Question {
                    since: Instant::now(),
                    waiting: vec![resume()],
                });
            }
        }
        Asked::Waiting
    }

    /// Waits up to `timeout` for questions; at most `max` of them.
    pub(super) fn take(&self, max: usize, timeout: Duration) -> Vec<OutputId> {
        let queue = &self.queue.1;
        let mut ids: Vec<OutputId> = queue.recv_timeout(timeout).into_iter().collect();
        if !ids.is_empty() {
            let more = (queue.len() / SHARE).min(max.saturating_sub(1));
            ids.extend(queue.try_iter().take(more));
        }
        ids
    }

    /// Closes a question; what waits for the answer.
    pub(super) fn answered(&self, id: OutputId) -> Vec<Resume> {
        let question = lock(&self.open).remove(&id);
        question
            .map(|question| question.waiting)
            .unwrap_or_default()
    }

    /// The questions that have been open for longer than `age`.
    pub(super) fn older_than(&self, now: Instant, age: Duration) -> Vec<OutputId> {
        let open = lock(&self.open);
        let old = open
            .iter()
            .filter(|(_, question)| now.saturating_duration_since(question.since) > age);
        old.map(|(id, _)| *id).collect()
    }
}
