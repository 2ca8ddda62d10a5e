//! Descriptors: those on their way to readers who do not take them, and a service that has none left.
//!
//! The bounds are parts of the process's limit of open files, so these tests have a process of their own, and run one
//! after the other.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../endpoint/tests/support/mod.rs"]
#[macro_use]
mod support;
#[path = "support/executors.rs"]
mod executors;
#[path = "support/host.rs"]
mod host;
#[path = "support/raw.rs"]
mod raw;

use executors::reader;
use faro_service::{send, Client, ClientError, Request};
use host::{id, Host};
use raw::registered;
use rustix::process::{getrlimit, setrlimit, Resource};
use std::fs::{metadata, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use support::{until, write_output};

/// Open files that this process may have.
const LIMIT: u64 = 512;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn limited() -> MutexGuard<'static, ()> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let mut limit = getrlimit(Resource::Nofile);
    (limit.current, limit.maximum) = (Some(LIMIT), Some(LIMIT));
    setrlimit(Resource::Nofile, limit).unwrap();
    guard
}

fn borrows(host: &Host, client: &Client, application: u8, map: i64) -> bool {
    let reader = reader(application);
    let outputs = host.figure("lent_total");
    let here = client.borrow(&reader, 1, &[map]).unwrap()[0];
    assert_eq!(host.figure("lent_total"), outputs + u64::from(here));
    reader.close();
    here
}

#[test]
fn files_that_a_reader_does_not_take_stay_counted() {
    let _limited = limited();
    let host = Host::new();
    let [own, others] = [1, 2].map(|application| host.client(application).unwrap());
    for map in 0..20 {
        host.handed(&own, map, "some").unwrap();
    }
    host.handed(&others, 5, "of another").unwrap();
    // Readers that ask and take no answer. Each question ends with one that is refused, so that it is known when all have
    // their answers.
    let lend = Request::Lend {
        shuffle: 1,
        files: true,
        maps: (0..20).collect(),
    };
    let no_host = Request::Host {
        replicas: 0,
        at: 1,
        of: 1,
        card: Vec::new(),
    };
    let refused = host.figure("refused_total");
    let silent: Vec<_> = (0..4).map(|_| registered(&host, 1)).collect();
    for socket in &silent {
        for _ in 0..4 {
            send(socket.as_fd(), &lend.encode(), &[]).unwrap();
        }
        send(socket.as_fd(), &no_host.encode(), &[]).unwrap();
    }
    until("all questions were answered", || {
        host.figure("refused_total") == refused + silent.len() as u64
    });
    let files = 2 * host.figure("lent_total");
    assert!(
        (1..=LIMIT / 16).contains(&files),
        "{files} files of one application are on their way, half of an eighth of {LIMIT} may be"
    );
    assert!(!borrows(&host, &own, 1, 0), "its share is on its way");
    assert!(borrows(&host, &others, 2, 5), "another one has its share");
    // Those of readers that have gone do not count.
    drop(silent);
    assert!(borrows(&host, &own, 1, 0));
}

#[test]
fn an_application_whose_files_are_kept_open_leaves_as_many_as_it_has() {
    let _limited = limited();
    let host = Host::with(|options| options.quota = 1 << 30);
    let Ok(spark) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let device = |path: &Path| metadata(path).unwrap().dev();
    if device(spark.path()) == device(host.dir.path()) {
        return;
    }
    let files = write_output(spark.path(), id(1), &[b"far".to_vec(), b"away".to_vec()]);
    let hand_over = |client: &Client, map| client.hand_over(id(map), &files.index, &files.data);
    let [first, second] = [1, 2].map(|application| host.client(application).unwrap());
    // Two files each, of half of a quarter.
    let outputs = LIMIT as i64 / 16;
    (0..outputs).for_each(|map| hand_over(&first, map).unwrap());
    match hand_over(&first, outputs).unwrap_err() {
        ClientError::Refused { text, .. } => assert!(text.contains("64 files"), "{text}"),
        other => panic!("{other}"),
    }
    hand_over(&second, 1).unwrap();
    assert_eq!(host.figure("kept_open_total"), outputs as u64 + 1);
    first.end().unwrap();
    hand_over(&second, 2).unwrap();
}

#[test]
fn a_restart_without_descriptors_removes_nothing() {
    let _limited = limited();
    let host = Host::new();
    let client = host.client(1).unwrap();
    for map in 0..10 {
        host.handed(&client, map, "kept").unwrap();
    }
    let names = host.kept_names();
    assert_eq!(names, 21);
    drop(client);
    let mut dir = host.stop();
    for left in (0..40).step_by(4) {
        let mut filler = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            filler.push(file);
        }
        filler.truncate(filler.len() - left);
        let opened = faro_service::Service::open(host::options(dir.path()));
        let started = opened.ok().map(|service| {
            let listener = faro_service::Listener::start(&service);
            drop(filler);
            (service, listener)
        });
        let Some((service, listener)) = started else {
            continue;
        };
        let host = Host {
            dir,
            service,
            listener: listener.ok(),
        };
        assert_eq!(host.kept_names(), names, "with {left} descriptors");
        dir = host.stop();
    }
    // What could not be looked at is looked at when it is wanted.
    let host = Host::again(dir);
    let (client, reader) = (host.client(1).unwrap(), reader(1));
    let maps: Vec<i64> = (0..10).collect();
    let borrowed = client.borrow(&reader, 1, &maps[..1]).unwrap();
    assert_eq!(borrowed, [true]);
    assert_eq!(host.figure("outputs"), 10);
    reader.close();
}
