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
    catalog.look_up(QuotaKey::known(peer), id, || {
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
