use crate::store::test_store::{bytes_of, id, TestStore};
use std::fs::{self, File};

#[test]
fn a_restart_finds_what_is_whole() {
    let place = TestStore::new();
    let store = place.store(1 << 30);
    for map in 0..10 {
        store
            .keep(id(map), place.written(&[map as u8; 100]))
            .unwrap();
    }
    drop(store);
    let (store, removed) = place.recovered();
    assert_eq!((store.holding().outputs, removed), (10, 0));
    assert_eq!(bytes_of(&store, id(7)).unwrap(), [7; 100]);
    // A generation of before is not used again.
    store.keep(id(7), place.written(b"new")).unwrap();
    assert!(place.names().contains(&"3_7_11.index".to_owned()));
}

#[test]
fn an_index_or_a_data_file_that_is_torn_at_any_byte_is_found() {
    let place = TestStore::new();
    for (part, bytes) in [("3_1_1.index", 24), ("3_1_1.data", 9)] {
        for end in 0..bytes {
            let store = place.store(1 << 30);
            store.keep(id(1), place.written(b"all of it")).unwrap();
            drop(store);
            let file = File::options()
                .write(true)
                .open(place.kept.path().join(part));
            file.unwrap().set_len(end).unwrap();
            let (store, removed) = place.recovered();
            assert_eq!(
                (store.holding().outputs, removed),
                (0, 2),
                "{part} of {end} bytes"
            );
            assert!(place.names().is_empty());
        }
    }
}

#[test]
fn a_crash_between_the_two_links_leaves_no_output() {
    let place = TestStore::new();
    let store = place.store(1 << 30);
    store.keep(id(1), place.written(b"old")).unwrap();
    drop(store);
    // The data file of the next generation was linked, its index was not.
    let data = place.kept.path().join("3_1_2.data");
    fs::write(data, b"newer").unwrap();
    let (store, removed) = place.recovered();
    assert_eq!(removed, 1);
    assert_eq!(bytes_of(&store, id(1)).unwrap(), b"old");
    // And one that crashed before it removed the older links.
    fs::copy(
        place.kept.path().join("3_1_1.data"),
        place.kept.path().join("3_1_9.data"),
    )
    .unwrap();
    fs::copy(
        place.kept.path().join("3_1_1.index"),
        place.kept.path().join("3_1_9.index"),
    )
    .unwrap();
    let (store, removed) = place.recovered();
    assert_eq!((store.holding().outputs, removed), (1, 2));
    assert_eq!(place.names(), ["3_1_9.data", "3_1_9.index"]);
}

#[test]
fn what_is_not_the_services_is_not_served() {
    let place = TestStore::new();
    let secret = place.spark.path().join("secret");
    fs::write(&secret, b"all of it").unwrap();
    let store = place.store(1 << 30);
    store.keep(id(1), place.written(b"all of it")).unwrap();
    drop(store);
    let data = place.kept.path().join("3_1_1.data");
    fs::remove_file(&data).unwrap();
    std::os::unix::fs::symlink(&secret, &data).unwrap();
    for name in [
        "3_01_1.data",
        "3_1.index",
        "-3_1_1.index",
        "x",
        "3_1_1_1.data",
    ] {
        fs::write(place.kept.path().join(name), b"").unwrap();
    }
    let (store, removed) = place.recovered();
    assert_eq!((store.holding().outputs, removed), (0, 7));
    assert!(place.names().is_empty());
    assert!(secret.exists());
}
