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
use super::questions::{Asked, Questions, Resume};
use super::stores::Stores;
use crate::limits::{MAX_KNOWN_BYTES, SWEPT_FILES, TICK};
use crate::payer::Payer;
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
        peer: Payer,
        id: OutputId,
        resume: impl FnOnce() -> Resume,
    ) -> Lookup {
        if let Some(output) = self.ready(id) {
            return Lookup::Ready(output);
        }
        match self.questions.ask(peer, id, || self.ready(id), resume) {
            Asked::Known(output) => Lookup::Ready(output),
            Asked::Waiting => Lookup::Waiting,
            Asked::Full => Lookup::Full,
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
mod tests {
    use super::*;
    use crate::limits::MAX_UNRESOLVED_OF_PEER;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
        ask_as(1, catalog, id, resumed)
    }

    fn ask_as(peer: u128, catalog: &Catalog, id: OutputId, resumed: &Arc<AtomicUsize>) -> Lookup {
        let resumed = Arc::clone(resumed);
        catalog.look_up(Payer::known(peer), id, || {
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
        let (catalog, resumed) = (Catalog::new(1 << 30), Arc::new(AtomicUsize::new(0)));
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
        let (catalog, resumed) = (Catalog::new(1 << 30), Arc::new(AtomicUsize::new(0)));
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
    fn a_peer_has_its_share_of_the_questions() {
        let (catalog, resumed) = (Catalog::new(1 << 30), Arc::new(AtomicUsize::new(0)));
        let share = MAX_UNRESOLVED_OF_PEER as i64;
        for map in 0..share {
            let lookup = ask_as(1, &catalog, id(map), &resumed);
            assert!(matches!(lookup, Lookup::Waiting), "{map}");
        }
        assert!(matches!(
            ask_as(1, &catalog, id(share), &resumed),
            Lookup::Full
        ));
        // A second request for an output that is asked for takes no question. Another peer has a share
        // of its own.
        assert!(matches!(
            ask_as(1, &catalog, id(0), &resumed),
            Lookup::Waiting
        ));
        assert!(matches!(
            ask_as(2, &catalog, id(share), &resumed),
            Lookup::Waiting
        ));
        catalog.answer(id(0), None);
        assert!(matches!(
            ask_as(1, &catalog, id(-1), &resumed),
            Lookup::Waiting
        ));
        assert!(matches!(
            ask_as(1, &catalog, id(-2), &resumed),
            Lookup::Full
        ));
    }

    #[test]
    fn old_questions_expire() {
        let (catalog, resumed) = (Catalog::new(1 << 30), Arc::new(AtomicUsize::new(0)));
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
    fn paths_and_offsets_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        let catalog = Catalog::new(4 << 20);
        for map in 0..20_000 {
            catalog.answer(id(map), Some(&files));
        }
        let (paths, offsets) = catalog.held_bytes();
        assert!(
            paths > 1 << 19 && paths <= 1 << 20,
            "{paths} bytes of paths"
        );
        assert!(offsets <= 1 << 20, "{offsets} bytes of offsets");
    }

    /// Reads every output of `maps` once, as a request does.
    fn scan(catalog: &Catalog, maps: std::ops::Range<i64>) {
        for map in maps {
            let output = catalog.ready(id(map)).unwrap();
            output.region().unwrap().open().unwrap();
            assert!(catalog.open_files() <= BOUND);
        }
    }

    const BOUND: usize = 32;

    #[test]
    fn all_outputs_stay_known_and_few_files_stay_open() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        let catalog = Catalog::bounded(BOUND, MAX_KNOWN_BYTES);
        for map in 0..5_000 {
            catalog.answer(id(map), Some(&files));
            assert!(catalog.open_files() <= BOUND);
        }
        scan(&catalog, 0..5_000);
        assert!(catalog.open_files() > 0);
        catalog.forget(1);
        assert_eq!(catalog.open_files(), 0);
        assert_eq!(catalog.stores.offset_bytes(), 0);
        assert!(catalog.ready(id(7)).is_none());
        catalog.forget(1);
    }

    #[test]
    fn a_scan_leaves_what_is_used_often_open() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        let catalog = Catalog::bounded(BOUND, MAX_KNOWN_BYTES);
        for map in 0..1_000 {
            catalog.answer(id(map), Some(&files));
        }
        let is_open = |map: i64| {
            let output = catalog.ready(id(map)).unwrap();
            let region = output.region().unwrap();
            region.opened().is_some()
        };
        for _ in 0..10 {
            scan(&catalog, 0..8);
        }
        scan(&catalog, 8..1_000);
        let open = (0..8).filter(|map| is_open(*map)).count();
        assert_eq!(open, 8, "of those used often");
    }

    #[test]
    fn many_threads_share_fewer_descriptors_than_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        let catalog = Catalog::bounded(4, MAX_KNOWN_BYTES);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (catalog, files) = (&catalog, &files);
                scope.spawn(move || {
                    for map in 0..200 {
                        let id = id(thread * 1_000 + map);
                        catalog.answer(id, Some(files));
                        let output = catalog.ready(id).unwrap();
                        let mut buffer = [0; 3];
                        let open = output.region().unwrap().open().unwrap();
                        open.read(0, &mut buffer).unwrap();
                        assert!(catalog.open_files() <= 4);
                        assert_eq!(&buffer, b"abc");
                    }
                });
            }
        });
    }

    #[test]
    fn what_did_not_change_stays_what_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        let catalog = Catalog::new(1 << 30);
        let name = || catalog.ready(id(7)).unwrap().region().unwrap().id();
        catalog.answer(id(7), Some(&files));
        let first = name();
        catalog.answer(id(7), Some(&files));
        assert_eq!(name(), first, "its cached chunks stay good");
        std::fs::write(dir.path().join("new"), b"ABC").unwrap();
        std::fs::rename(dir.path().join("new"), &files.data).unwrap();
        catalog.answer(id(7), Some(&files));
        let second = name();
        assert_ne!(second, first, "other bytes, another name");
        catalog.forget(1);
        catalog.answer(id(7), Some(&files));
        assert!(name() != first && name() != second);
        assert_eq!(name().group, 1);
    }

    #[test]
    fn deleted_files_are_closed_though_nothing_asks_for_them() {
        let dir = tempfile::tempdir().unwrap();
        let catalog = Catalog::new(1 << 30);
        for map in 0..3 * SWEPT_FILES as i64 {
            let own = dir.path().join(map.to_string());
            std::fs::create_dir(&own).unwrap();
            catalog.answer(id(map), Some(&files(&own)));
        }
        assert_eq!(catalog.open_files(), 3 * SWEPT_FILES);
        let stays = dir.path().join("0");
        for map in 1..3 * SWEPT_FILES {
            let data = dir.path().join(map.to_string()).join("d");
            std::fs::remove_file(data).unwrap();
        }
        while catalog.open_files() > 1 {
            assert!(catalog.questions(1, TICK).is_empty());
        }
        assert!(catalog.ready(id(0)).is_some(), "{}", stays.display());
        let resumed = Arc::new(AtomicUsize::new(0));
        let lookup = ask(&catalog, id(1), &resumed);
        assert!(matches!(lookup, Lookup::Waiting), "Java is asked anew");
    }

    #[test]
    fn each_of_several_threads_gets_some_of_many_questions() {
        let (catalog, resumed) = (Catalog::new(1 << 30), Arc::new(AtomicUsize::new(0)));
        for map in 0..400 {
            ask(&catalog, id(map), &resumed);
        }
        let mut asked = 0;
        for takes in 0..4 {
            let ids = catalog.questions(256, Duration::ZERO);
            assert!(
                !ids.is_empty() && ids.len() <= 101,
                "{takes}: {}",
                ids.len()
            );
            asked += ids.len();
        }
        while asked < 400 {
            asked += catalog.questions(256, Duration::ZERO).len();
        }
        assert!(catalog.questions(256, Duration::ZERO).is_empty());
    }
}
