//! The open map outputs, and the jobs that wait for one that is not open.
//!
//! Only Spark knows where a map output is (its directory layout, migrated blocks), and native threads
//! never call into the JVM. So an unknown output is a question in a queue that a Java thread takes;
//! the job that needs it waits aside and returns with the answer. An output never changes under a map
//! id, which is unique to the attempt, so an open file stays right until the shuffle is forgotten. A
//! "no such output" is not remembered: a block may migrate here later.

use super::{Output, OutputFiles};
use crate::limits::{MAX_OFFSET_BYTES, MAX_OPEN_OUTPUTS, MAX_UNRESOLVED, TICK};
use crossbeam_channel::{Receiver, Sender};
use faro_sync::lock;
use faro_wire::{BlockStatus, OutputId};
use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The answer to a question.
pub(crate) type Answer = Result<Arc<Output>, BlockStatus>;

/// Called with the answer. It must not block and must not call the catalog.
pub(crate) type Resume = Box<dyn FnOnce(Answer) + Send>;

/// Answer to a look-up.
pub(crate) enum Lookup {
    /// Open.
    Ready(Arc<Output>),
    /// Asked for; the `resume` was kept.
    Waiting,
    /// Not asked for: too many questions are open.
    Full,
}

struct Question {
    since: Instant,
    waiting: Vec<Resume>,
}

#[derive(Default)]
struct State {
    open: HashMap<OutputId, Arc<Output>>,
    /// Sum of `offset_bytes` of `open`.
    offset_bytes: usize,
    asked: HashMap<OutputId, Question>,
}

/// The map outputs of this endpoint.
pub(crate) struct Catalog {
    state: Mutex<State>,
    questions: (Sender<OutputId>, Receiver<OutputId>),
    clock: AtomicU64,
    /// When `tick` looked last.
    looked: Mutex<Instant>,
}

impl Catalog {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            questions: crossbeam_channel::bounded(MAX_UNRESOLVED),
            clock: AtomicU64::new(1),
            looked: Mutex::new(Instant::now()),
        }
    }

    /// The output; or `resume`, which is made only then, is called with the answer later.
    pub(crate) fn look_up(&self, id: OutputId, resume: impl FnOnce() -> Resume) -> Lookup {
        let mut state = self.lock();
        if let Some(output) = state.find(id, &self.clock) {
            return Lookup::Ready(output);
        }
        if state.asked.len() >= MAX_UNRESOLVED && !state.asked.contains_key(&id) {
            return Lookup::Full;
        }
        match state.asked.entry(id) {
            Entry::Occupied(mut question) => question.get_mut().waiting.push(resume()),
            Entry::Vacant(slot) => {
                if self.questions.0.try_send(id).is_err() {
                    return Lookup::Full;
                }
                slot.insert(Question {
                    since: Instant::now(),
                    waiting: vec![resume()],
                });
            }
        }
        Lookup::Waiting
    }

    /// The output, if it is open.
    pub(crate) fn ready(&self, id: OutputId) -> Option<Arc<Output>> {
        self.lock().find(id, &self.clock)
    }

    /// Waits up to `timeout` for questions.
    pub(crate) fn questions(&self, max: usize, timeout: Duration) -> Vec<OutputId> {
        let mut ids: Vec<OutputId> = self.questions.1.recv_timeout(timeout).into_iter().collect();
        if !ids.is_empty() {
            ids.extend(self.questions.1.try_iter().take(max.saturating_sub(1)));
        }
        ids
    }

    /// Answers a question; opens the files on the caller's thread.
    pub(crate) fn answer(&self, id: OutputId, files: Option<&OutputFiles>) {
        let opened = files
            .ok_or(BlockStatus::UnknownOutput)
            .and_then(|files| Output::open(id, files))
            .map(Arc::new);
        let mut state = self.lock();
        let waiting = state
            .asked
            .remove(&id)
            .map(|question| question.waiting)
            .unwrap_or_default();
        if let Ok(output) = &opened {
            output.used.store(
                self.clock.fetch_add(1, Ordering::Relaxed),
                Ordering::Relaxed,
            );
            state.offset_bytes += output.offset_bytes();
            if let Some(old) = state.open.insert(id, Arc::clone(output)) {
                state.offset_bytes -= old.offset_bytes();
            }
            state.evict(id);
        }
        drop(state);
        for resume in waiting {
            resume(opened.clone());
        }
    }

    /// Expires questions older than `age`, once per tick. Every progress thread calls it, because any of
    /// them may end before the others; the first one does it for all.
    pub(crate) fn tick(&self, now: Instant, age: Duration) {
        let Ok(mut looked) = self.looked.try_lock() else {
            return;
        };
        if now.saturating_duration_since(*looked) >= TICK {
            *looked = now;
            drop(looked);
            self.expire(now, age);
        }
    }

    /// Answers "no" to questions older than `age`: the Java side is gone or stuck.
    fn expire(&self, now: Instant, age: Duration) {
        let old: Vec<OutputId> = self
            .lock()
            .asked
            .iter()
            .filter(|(_, question)| now.saturating_duration_since(question.since) > age)
            .map(|(id, _)| *id)
            .collect();
        for id in old {
            log::warn!(
                "no answer from Java where map output {}/{} is",
                id.shuffle_id,
                id.map_id
            );
            self.answer(id, None);
        }
    }

    /// Closes all files of a shuffle.
    pub(crate) fn forget(&self, shuffle: u32) {
        let mut state = self.lock();
        let before = std::mem::take(&mut state.open);
        state.open = before
            .into_iter()
            .filter(|(id, _)| id.shuffle_id != shuffle)
            .collect();
        state.offset_bytes = state
            .open
            .values()
            .map(|output| output.offset_bytes())
            .sum();
    }

    /// Number of open outputs.
    pub(crate) fn open_outputs(&self) -> usize {
        self.lock().open.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every critical section leaves the maps whole, even if it panics between two of them.
        lock(&self.state)
    }
}

impl State {
    fn find(&self, id: OutputId, clock: &AtomicU64) -> Option<Arc<Output>> {
        let output = self.open.get(&id)?;
        let now = clock.fetch_add(1, Ordering::Relaxed);
        output.used.store(now, Ordering::Relaxed);
        Some(Arc::clone(output))
    }

    /// Drops the least recently used eighth when a bound is passed. Files in use by a request stay
    /// open until it ends, through its `Arc`.
    fn evict(&mut self, keep: OutputId) {
        if self.open.len() <= MAX_OPEN_OUTPUTS && self.offset_bytes <= MAX_OFFSET_BYTES {
            return;
        }
        let mut by_use: Vec<(u64, OutputId)> = self
            .open
            .iter()
            .filter(|(id, _)| **id != keep)
            .map(|(id, output)| (output.used.load(Ordering::Relaxed), *id))
            .collect();
        by_use.sort_unstable();
        for (_, id) in by_use.iter().take(by_use.len() / 8 + 1) {
            if let Some(output) = self.open.remove(id) {
                self.offset_bytes -= output.offset_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn id(map_id: i64) -> OutputId {
        OutputId {
            shuffle_id: 1,
            map_id,
        }
    }

    fn files(dir: &std::path::Path) -> OutputFiles {
        let files = OutputFiles {
            data: dir.join("d"),
            index: dir.join("i"),
        };
        std::fs::write(&files.data, b"abc").unwrap();
        std::fs::write(&files.index, [0u64, 3].map(u64::to_be_bytes).concat()).unwrap();
        files
    }

    /// Counts the answers: 1 for each yes, 100 for each `UnknownOutput`.
    fn ask(catalog: &Catalog, id: OutputId, resumed: &Arc<AtomicUsize>) -> Lookup {
        let resumed = Arc::clone(resumed);
        catalog.look_up(id, || {
            Box::new(move |answer| {
                let weight = match answer {
                    Ok(_) => 1,
                    Err(BlockStatus::UnknownOutput) => 100,
                    Err(other) => panic!("{other:?}"),
                };
                resumed.fetch_add(weight, Ordering::SeqCst);
            })
        })
    }

    #[test]
    fn one_question_for_many_jobs() {
        let dir = tempfile::tempdir().unwrap();
        let (catalog, resumed) = (Catalog::new(), Arc::new(AtomicUsize::new(0)));
        for _ in 0..3 {
            assert!(matches!(ask(&catalog, id(7), &resumed), Lookup::Waiting));
        }
        assert_eq!(catalog.questions(10, Duration::ZERO), [id(7)]);
        catalog.answer(id(7), Some(&files(dir.path())));
        assert_eq!(resumed.load(Ordering::SeqCst), 3);
        assert!(matches!(ask(&catalog, id(7), &resumed), Lookup::Ready(_)));
        assert!(catalog.questions(10, Duration::ZERO).is_empty());
    }

    #[test]
    fn a_no_is_an_answer_but_is_not_remembered() {
        let (catalog, resumed) = (Catalog::new(), Arc::new(AtomicUsize::new(0)));
        ask(&catalog, id(7), &resumed);
        ask(&catalog, id(7), &resumed);
        catalog.answer(id(7), None);
        assert_eq!(resumed.load(Ordering::SeqCst), 200);
        assert!(
            matches!(ask(&catalog, id(7), &resumed), Lookup::Waiting),
            "asked anew"
        );
    }

    #[test]
    fn old_questions_expire() {
        let (catalog, resumed) = (Catalog::new(), Arc::new(AtomicUsize::new(0)));
        let (asked, age) = (Instant::now(), Duration::from_secs(3600));
        ask(&catalog, id(7), &resumed);
        catalog.tick(asked + TICK, age);
        assert_eq!(resumed.load(Ordering::SeqCst), 0);
        let later = asked + age + TICK;
        catalog.tick(later, age);
        assert_eq!(resumed.load(Ordering::SeqCst), 100);
        ask(&catalog, id(8), &resumed);
        catalog.tick(later + TICK / 2, Duration::ZERO);
        assert_eq!(
            resumed.load(Ordering::SeqCst),
            100,
            "looked at a moment ago"
        );
        catalog.tick(later + TICK, Duration::ZERO);
        assert_eq!(resumed.load(Ordering::SeqCst), 200);
    }

    #[test]
    fn open_files_are_bounded_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        let catalog = Catalog::new();
        for map in 0..MAX_OPEN_OUTPUTS as i64 + 10 {
            catalog.answer(id(map), Some(&files));
        }
        assert!(catalog.open_outputs() <= MAX_OPEN_OUTPUTS);
        let resumed = Arc::new(AtomicUsize::new(0));
        assert!(
            matches!(ask(&catalog, id(0), &resumed), Lookup::Waiting),
            "oldest went first"
        );
        catalog.forget(1);
        assert_eq!(catalog.open_outputs(), 0);
        assert_eq!(catalog.lock().offset_bytes, 0);
    }
}
