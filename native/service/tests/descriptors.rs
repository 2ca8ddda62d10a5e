//! A service that has no descriptors left.
//!
//! The bounds are parts of the process's limit of open files, so this test has a process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../endpoint/tests/support/mod.rs"]
#[macro_use]
mod support;
#[path = "support/executors.rs"]
mod executors;
#[path = "support/host.rs"]
mod host;

use executors::reader;
use host::Host;
use rustix::process::{getrlimit, setrlimit, Resource};
use std::fs::File;

/// Open files that this process may have.
const LIMIT: u64 = 512;

fn limit() {
    let mut limit = getrlimit(Resource::Nofile);
    (limit.current, limit.maximum) = (Some(LIMIT), Some(LIMIT));
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[test]
fn a_restart_without_descriptors_removes_nothing() {
    limit();
    let host = Host::new();
    let client = host.client(1).unwrap();
    for map in 0..10 {
        host.handed(&client, map, "kept").unwrap();
    }
    let names = host.kept_names();
    assert_eq!(names, 21);
    drop(client);
    let mut dir = host.stop();
    for left in 0..40 {
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
