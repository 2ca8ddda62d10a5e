//! The known map outputs, and the jobs that wait for one that is not known.
//!
//! Only Spark knows where a map output is (its directory layout, migrated blocks), and native threads
//! never call into the JVM. So an unknown output is a question in a queue that Java threads take;
//! the job that needs it waits aside and returns with the answer. A "no such output" is not remembered:
//! a block may migrate here later.
//!
//! ```text
//!   Catalog ── known: id ─▶ Output (paths, what the files were)      bounded in bytes
//!      │                       │
//!      │                    Stores ── open files                     bounded in number
//!      │                       └───── offset tables                  bounded in bytes
//!      └────── questions: id ─▶ jobs that wait                       bounded in number
//! ```
//! What a store had no room for is opened or read again without a question to Java. An output whose
//! files turn out to be others, or gone, is not known any more, and the next job asks.

use super::cache::{self, Cache};
use super::descriptors::open_file_bound;
use super::identity::OutputFiles;
use super::output::Output;
use super::questions::{QuestionResult, Questions, Resume};
use super::stores::Stores;
use crate::limits::{MAX_KNOWN_BYTES, SWEPT_FILES, TICK};
use crate::quota_key::QuotaKey;
use faro_fabric::rare_log::RareLog;
use faro_sync::{clock, lock};
use faro_wire::{BlockStatus, OutputId};
use quick_cache::Weighter;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Bytes of a known output with usual paths, roughly.
const TYPICAL_OUTPUT: u64 = 1 << 10;

/// Answer to a look-up.
pub(crate) enum Lookup {
    /// Known.
    Ready(Arc<Output>),
    /// Asked for; the `resume` was kept.
    Waiting,
    /// The output was not asked for: too many questions are open, of this peer or of all.
    Full,
}

#[derive(Clone)]
struct OutputBytes;

impl Weighter<OutputId, Arc<Output>> for OutputBytes {
    fn weight(&self, _id: &OutputId, output: &Arc<Output>) -> u64 {
        output.bytes() as u64
    }
}

/// The map outputs of this endpoint.
pub(crate) struct Catalog {
    known: Cache<OutputId, Arc<Output>, OutputBytes>,
    stores: Arc<Stores>,
    questions: Questions,
    /// Time when `tick` and `sweep` looked last.
    looked: Mutex<Instant>,
    swept: Mutex<Instant>,
    /// Questions that Java has not answered: a peer chooses how many there are.
    unanswered: Mutex<RareLog>,
}

impl Catalog {
    /// Returns a catalog for an endpoint that may have `beside_bytes` bytes beside its arena: paths take up to a
    /// quarter of that, and so do offsets.
    pub(crate) fn new(beside_bytes: u64) -> Self {
        Self::bounded(open_file_bound(), MAX_KNOWN_BYTES.min(beside_bytes / 4))
    }

    /// Returns a catalog with at most `open_files` open files (at least 2), and at most `bytes`
    /// bytes of paths, and of offsets.
    fn bounded(open_files: usize, bytes: u64) -> Self {
        let outputs = (bytes / TYPICAL_OUTPUT) as usize;
        Self {
            known: cache::new(bytes, outputs, OutputBytes),
            stores: Stores::new(open_files, bytes),
            questions: Questions::new(),
            looked: Mutex::new(clock::now()),
            swept: Mutex::new(clock::now()),
            unanswered: Mutex::default(),
        }
    }

    /// Returns the bytes of paths, and of offsets.
    pub(crate) fn held_bytes(&self) -> (u64, u64) {
        (self.known.weight(), self.stores.offset_bytes())
    }

    /// Returns the output that `peer` wants, if it is known. Otherwise `resume` makes the receiver
    /// of the answer, which comes later.
    pub(crate) fn look_up(
        &self,
        peer: QuotaKey,
        id: OutputId,
        resume: impl FnOnce() -> Resume,
    ) -> Lookup {
        if let Some(output) = self.ready(id) {
            return Lookup::Ready(output);
        }
        match self.questions.ask(peer, id, || self.ready(id), resume) {
            QuestionResult::Known(output) => Lookup::Ready(output),
            QuestionResult::Waiting => Lookup::Waiting,
            QuestionResult::Full => Lookup::Full,
        }
    }

    /// Returns the output, if it is known. Does not sleep.
    pub(crate) fn ready(&self, id: OutputId) -> Option<Arc<Output>> {
        self.known.get(&id).filter(|output| !output.is_replaced())
    }

    /// Waits up to `timeout` for questions. Several threads may wait: each takes its share of a queue.
    /// Also closes files that were deleted, because these threads may sleep and always come back.
    pub(crate) fn questions(&self, max: usize, timeout: Duration) -> Vec<OutputId> {
        self.sweep();
        self.questions.take(max, timeout)
    }

    /// Questions wait to be taken.
    #[cfg(feature = "simulation")]
    pub(crate) fn has_questions(&self) -> bool {
        self.questions.has_any()
    }

    /// Answers a question; opens the files on the caller's thread.
    pub(crate) fn answer(&self, id: OutputId, files: Option<&OutputFiles>) {
        let opened = files
            .ok_or(BlockStatus::UnknownOutput)
            .and_then(|files| Output::open(&self.stores, id, files))
            .map(|output| self.keep(id, output));
        for resume in self.questions.answered(id) {
            resume(opened.clone());
        }
    }

    /// Drops all waiting requests, because this endpoint has closed.
    pub(crate) fn close(&self) {
        self.questions.close();
    }

    /// Expires questions older than `age`, once per tick. Every progress thread calls it, because any of
    /// them may end before the others; the first one does it for all.
    pub(crate) fn tick(&self, now: Instant, age: Duration) {
        if !is_due(&self.looked, now) {
            return;
        }
        // The Java side is gone or stuck: the answer is "no".
        for id in self.questions.older_than(now, age) {
            if let Some(left_out) = lock(&self.unanswered).at(now) {
                let (shuffle, map) = (id.shuffle_id, id.map_id);
                log::warn!("no answer from Java where map output {shuffle}/{map} is{left_out}");
            }
            self.answer(id, None);
        }
    }

    /// Forgets all outputs of a shuffle and closes their files. A later request asks for them
    /// again, and would keep files open that are deleted meanwhile: call this again afterwards, or
    /// `sweep` will find them.
    pub(crate) fn forget(&self, shuffle: u32) {
        self.known.retain(|id, output| {
            let stays = id.shuffle_id != shuffle;
            if !stays {
                // Jobs that have the output keep it, not its files.
                output.close();
            }
            stays
        });
    }

    /// Returns the number of open files, data and index.
    pub(crate) fn open_files(&self) -> usize {
        self.stores.descriptors.open_files()
    }

    /// Keeps an opened output, or returns the known one if nothing changed, so that its cached
    /// chunks stay valid.
    fn keep(&self, id: OutputId, opened: Output) -> Arc<Output> {
        match self.ready(id) {
            Some(known) if known.is_same(&opened) => return known,
            Some(known) => known.mark_replaced(),
            None => {}
        }
        let output = Arc::new(opened);
        if output.is_whole() {
            self.known.insert(id, Arc::clone(&output));
        } else {
            // Good for this answer; Spark may be writing the rest.
            self.known.remove(&id);
        }
        output
    }

    /// Looks at some open files, once per tick, and closes those that were deleted or replaced.
    fn sweep(&self) {
        if is_due(&self.swept, clock::now()) {
            self.stores.descriptors.sweep(SWEPT_FILES);
        }
    }
}

/// Returns whether a tick has passed, once for all threads that ask.
fn is_due(last: &Mutex<Instant>, now: Instant) -> bool {
    let Ok(mut last) = last.try_lock() else {
        return false;
    };
    let due = now.saturating_duration_since(*last) >= TICK;
    if due {
        *last = now;
    }
    due
}

#[cfg(test)]
#[path = "catalog_test.rs"]
mod tests;
