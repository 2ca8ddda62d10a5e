//! The map outputs that Java was asked for, and what waits for each answer.
//!
//! A question counts for the peer that asked it first; others that want the same output wait with it for nothing. What a
//! peer may have open is bounded, and what all unknown peers together may have open: so one that asks for invented outputs does
//! not shut the others out, whatever ids it makes for itself (see [`QuotaKey`]).

use super::output::Output;
use crate::limits::{MAX_UNRESOLVED, MAX_UNRESOLVED_OF_PEER};
use crate::quota_key::{QuotaKey, UNKNOWN_PEERS_SHARE};
use crossbeam_channel::{Receiver, Sender};
use faro_fabric::EndpointId;
use faro_sync::{clock, lock, HashMap};
use faro_wire::{BlockStatus, OutputId};
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The answer to a question.
pub(crate) type OutputAnswer = Result<Arc<Output>, BlockStatus>;

/// Called with the answer. It must not block and must not call the catalog.
pub(crate) type Resume = Box<dyn FnOnce(OutputAnswer) + Send>;

/// A thread takes at most this part of the questions in the queue, and one, so that others have some.
const SHARE: usize = 4;

struct OutputQuestion {
    since: Instant,
    /// The peer that it counts for.
    peer: QuotaKey,
    waiting: Vec<Resume>,
}

/// Result of a question.
pub(super) enum QuestionResult {
    /// It was answered a moment ago.
    Known(Arc<Output>),
    /// The `resume` was kept.
    Waiting,
    /// Too many questions are open: of this peer, or of all.
    Full,
}

#[derive(Default)]
struct OpenQuestion {
    questions: HashMap<OutputId, OutputQuestion>,
    /// Number of questions of each peer. No entry is zero.
    of_peer: HashMap<EndpointId, usize>,
    /// Number of questions of unknown peers.
    of_unknown: usize,
}

impl OpenQuestion {
    fn has_room(&self, peer: QuotaKey) -> bool {
        let of_peer = self.of_peer.get(&peer.endpoint).copied().unwrap_or(0);
        self.questions.len() < MAX_UNRESOLVED
            && of_peer < MAX_UNRESOLVED_OF_PEER
            && !(peer.is_unknown && self.of_unknown >= MAX_UNRESOLVED / UNKNOWN_PEERS_SHARE)
    }

    /// Removes a question.
    fn close(&mut self, id: OutputId) -> Option<OutputQuestion> {
        let question = self.questions.remove(&id)?;
        self.of_unknown -= usize::from(question.peer.is_unknown);
        if let Entry::Occupied(mut of_peer) = self.of_peer.entry(question.peer.endpoint) {
            *of_peer.get_mut() -= 1;
            if *of_peer.get() == 0 {
                of_peer.remove();
            }
        }
        Some(question)
    }
}

/// The open questions, each at most once in the queue.
pub(super) struct Questions {
    open: Mutex<OpenQuestion>,
    queue: (Sender<OutputId>, Receiver<OutputId>),
}

impl Questions {
    pub(super) fn new() -> Self {
        Self {
            open: Mutex::default(),
            queue: crossbeam_channel::bounded(MAX_UNRESOLVED),
        }
    }

    /// Asks for an output that `peer` wants, unless `known` has it by now.
    pub(super) fn ask(
        &self,
        peer: QuotaKey,
        id: OutputId,
        known: impl FnOnce() -> Option<Arc<Output>>,
        resume: impl FnOnce() -> Resume,
    ) -> QuestionResult {
        let open = &mut *lock(&self.open);
        // An answer is known before its question is closed.
        if let Some(output) = known() {
            return QuestionResult::Known(output);
        }
        if let Some(question) = open.questions.get_mut(&id) {
            question.waiting.push(resume());
            return QuestionResult::Waiting;
        }
        if !open.has_room(peer) || self.queue.0.try_send(id).is_err() {
            return QuestionResult::Full;
        }
        let question = OutputQuestion {
            since: clock::now(),
            peer,
            waiting: vec![resume()],
        };
        open.questions.insert(id, question);
        open.of_unknown += usize::from(peer.is_unknown);
        *open.of_peer.entry(peer.endpoint).or_default() += 1;
        QuestionResult::Waiting
    }

    /// Returns whether any question waits in the queue.
    #[cfg(feature = "simulation")]
    pub(super) fn has_any(&self) -> bool {
        !self.queue.1.is_empty()
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
        let question = lock(&self.open).close(id);
        question
            .map(|question| question.waiting)
            .unwrap_or_default()
    }

    /// Closes all questions; what waits for the answers is dropped. It has references to all that an endpoint has, so
    /// that a question which stays open would keep its arena for ever.
    pub(super) fn close(&self) {
        let open = std::mem::take(&mut *lock(&self.open));
        drop(open);
    }

    /// Returns the questions that have been open for longer than `age`.
    pub(super) fn older_than(&self, now: Instant, age: Duration) -> Vec<OutputId> {
        let open = lock(&self.open);
        let old = open
            .questions
            .iter()
            .filter(|(_, question)| now.saturating_duration_since(question.since) > age);
        old.map(|(id, _)| *id).collect()
    }
}
