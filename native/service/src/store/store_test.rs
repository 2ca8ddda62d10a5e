use super::outputs::MAX_REMOVED;
use super::test_store::{bytes_of, id, TestStore};
use super::*;
use std::fs;
use std::os::unix::fs::MetadataExt;

#[test]
fn an_output_outlives_the_files_that_were_handed_over() {
    let place = TestStore::new();
    let store = place.store(1 << 30);
    let kept = store.keep(id(1), place.written(b"first")).unwrap();
    assert_eq!((kept.how, kept.replaced), (KeptAs::Links, false));
    fs::remove_file(place.spark.path().join("index")).unwrap();
    fs::remove_file(place.spark.path().join("data")).unwrap();
    assert_eq!(bytes_of(&store, id(1)).unwrap(), b"first");
    assert!(store.find(id(2)).is_none());
    assert_eq!(store.holding().bytes, 5 + 24);
}

#[test]
fn a_later_hand_over_replaces_the_earlier_one() {
    let place = TestStore::new();
    let store = place.store(1 << 30);
    store.keep(id(1), place.written(b"first")).unwrap();
    assert!(
        store
            .keep(id(1), place.written(b"second"))
            .unwrap()
            .replaced
    );
    assert_eq!(bytes_of(&store, id(1)).unwrap(), b"second");
    assert_eq!(place.names(), ["3_1_2.data", "3_1_2.index"]);
    let holding = store.holding();
    assert_eq!((holding.outputs, holding.bytes), (1, 6 + 24));
}

#[test]
fn a_quota_counts_what_is_here_and_not_what_was() {
    let place = TestStore::new();
    let store = place.store(100);
    store.keep(id(1), place.written(&[1; 60])).unwrap();
    let refused = store.keep(id(2), place.written(&[2; 60])).unwrap_err();
    assert!(
        matches!(
            refused,
            KeepError::Quota {
                held: 84,
                more: 84,
                quota: 100
            }
        ),
        "{refused}"
    );
    // In the place of itself it is no more.
    store.keep(id(1), place.written(&[3; 60])).unwrap();
    assert_eq!(store.forget(3).outputs, 1);
    store.keep(id(2), place.written(&[2; 60])).unwrap();
    assert_eq!(place.names().len(), 2);
}

#[test]
fn a_shuffle_goes_and_the_others_stay() {
    let place = TestStore::new();
    let store = place.store(1 << 30);
    let other = OutputId {
        shuffle_id: 4,
        map_id: 1,
    };
    store.keep(id(1), place.written(b"a")).unwrap();
    store.keep(other, place.written(b"b")).unwrap();
    assert_eq!(store.forget(3).outputs, 1);
    assert!(store.find(id(1)).is_none() && store.find(other).is_some());
    assert_eq!(store.end().outputs, 1);
    assert!(place.names().is_empty());
    let refused = store.keep(id(1), place.written(b"a")).unwrap_err();
    assert!(matches!(refused, KeepError::Ended), "{refused}");
}

/// A file system of its own, where there is one for tests.
#[test]
fn files_of_another_file_system_are_kept_open() {
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let place = TestStore {
        spark: elsewhere,
        kept: tempfile::tempdir().unwrap(),
    };
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(place.spark.path()) == device(place.kept.path()) {
        return;
    }
    let store = place.store(1 << 30);
    let kept = store.keep(id(1), place.written(b"far away")).unwrap();
    assert_eq!(kept.how, KeptAs::Descriptors);
    fs::remove_file(place.spark.path().join("data")).unwrap();
    assert_eq!(bytes_of(&store, id(1)).unwrap(), b"far away");
    assert!(place.names().is_empty());
    for map in 2..6 {
        store.keep(id(map), place.written(b"more")).unwrap();
    }
    let refused = store.keep(id(6), place.written(b"too many")).unwrap_err();
    assert!(
        matches!(refused, KeepError::Descriptors { held: 10, .. }),
        "{refused}"
    );
    assert_eq!(store.forget(3).outputs, 5);
    store.keep(id(6), place.written(b"again")).unwrap();
}

#[test]
fn a_copy_is_no_output_of_this_host() {
    let place = TestStore::new();
    let store = place.store(1 << 30);
    store
        .keep_as(Kind::Replica, id(1), place.written(b"a copy"))
        .unwrap();
    store.keep(id(2), place.written(b"its own")).unwrap();
    assert_eq!((store.holding().outputs, store.holding().replicas), (2, 1));
    assert_eq!(store.own_by_shuffle(), HashMap::from([(3, 1)]));
    assert_eq!(store.kind_of(id(1)), Some(Kind::Replica));
    assert_eq!(
        place.names(),
        [
            "3_2_2.data",
            "3_2_2.index",
            "replica_3_1_1.data",
            "replica_3_1_1.index"
        ]
    );
    // Found again as what they are.
    let (store, removed) = place.recovered();
    assert_eq!(removed, 0);
    assert_eq!(store.kind_of(id(1)), Some(Kind::Replica));
    assert_eq!(store.kind_of(id(2)), Some(Kind::Own));
    let gone = store.forget_replicas(3);
    assert_eq!((gone.outputs, gone.replicas), (1, 1));
    assert_eq!(place.names(), ["3_2_2.data", "3_2_2.index"]);
    assert_eq!(store.holding().replicas, 0);
}

#[test]
fn an_executors_output_goes_before_a_copy() {
    let place = TestStore::new();
    let store = place.store(1 << 30);
    let copy = |bytes| store.keep_as(Kind::Replica, id(1), place.written(bytes));
    copy(b"a copy").unwrap();
    assert!(copy(b"another copy").unwrap().replaced);
    store.keep(id(1), place.written(b"its own")).unwrap();
    assert_eq!(store.kind_of(id(1)), Some(Kind::Own));
    assert!(matches!(copy(b"late").unwrap_err(), KeepError::Own));
    assert_eq!((store.holding().outputs, store.holding().replicas), (1, 0));
    assert_eq!(place.names().len(), 2);
}

#[test]
fn no_copy_of_a_removed_shuffle_is_kept() {
    let place = TestStore::new();
    let store = place.store(1 << 30);
    store.forget(3);
    let late = store.keep_as(Kind::Replica, id(1), place.written(b"late"));
    assert!(matches!(late.unwrap_err(), KeepError::Removed));
    assert!(matches!(
        store.has_room(id(1), 1).unwrap_err(),
        KeepError::Removed
    ));
    assert_eq!(place.names(), [""; 0]);
    // What an executor hands over is Spark's to remove.
    store.keep(id(1), place.written(b"its own")).unwrap();
}

#[test]
fn the_latest_removed_shuffles_are_known() {
    let place = TestStore::new();
    let store = place.store(1 << 30);
    for shuffle in 0..=MAX_REMOVED as u32 {
        store.forget(shuffle);
    }
    let of = |shuffle_id| OutputId {
        shuffle_id,
        map_id: 1,
    };
    assert!(store.has_room(of(0), 1).is_ok());
    assert!(store.has_room(of(MAX_REMOVED as u32), 1).is_err());
}

#[test]
fn outputs_of_all_applications_are_bounded_together() {
    let records = OutputRecords::new(8);
    let places = [TestStore::new(), TestStore::new()];
    let [first, second] = [&places[0], &places[1]].map(|place| place.bounded(1 << 30, &records));
    let keep =
        |store: &Store, at: usize, map: i64| store.keep(id(map), places[at].written(b"abcd"));
    for map in 0..4 {
        keep(&first, 0, map).unwrap();
    }
    // One alone has half. What replaces an older one needs no room.
    let full = keep(&first, 0, 4).unwrap_err();
    assert!(matches!(full, KeepError::Full { held: 4 }), "{full}");
    keep(&first, 0, 3).unwrap();
    for map in 0..2 {
        keep(&second, 1, map).unwrap();
    }
    assert!(matches!(
        keep(&second, 1, 2),
        Err(KeepError::Full { held: 2 })
    ));
    first.end();
    for map in 2..4 {
        keep(&second, 1, map).unwrap();
    }
    assert!(keep(&second, 1, 4).is_err());
}

#[test]
fn who_has_something_does_not_make_room() {
    let place = TestStore::new();
    let store = place.store(1 << 30);
    store.keep(id(1), place.written(b"a")).unwrap();
    assert!(!store.end_if_empty());
    store.keep(id(2), place.written(b"b")).unwrap();
    store.forget(3);
    assert!(store.end_if_empty());
    let late = store.keep(id(1), place.written(b"late"));
    assert!(matches!(late, Err(KeepError::Ended)));
    assert!(place.names().is_empty());
}
