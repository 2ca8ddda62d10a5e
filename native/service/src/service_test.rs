#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

use super::*;
use crate::message::Token;
use faro_endpoint::FabricChoice;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::mpsc::{self, Sender};

fn options(dir: &Path) -> Options {
    Options {
        socket_directory: dir.join("socket"),
        data_directory: dir.join("data"),
        bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
        advertise: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        fabric: FabricChoice::Tcp,
        memory: 128 << 20,
        connections: 8,
        applications: 2,
        quota: 1 << 20,
        idle: Duration::from_secs(3_600),
        users: Users::Own,
        replica_bandwidth: 1 << 30,
    }
}

fn hello(application: u8) -> Hello {
    Hello {
        application: format!("app-{application}"),
        executor: "1".to_owned(),
        sealed: false,
        token: Token::new([application; 32]),
        secret: Default::default(),
    }
}

/// All its threads wait until what is returned is dropped.
fn hang(application: &Application) -> Vec<Sender<()>> {
    let hangs = |_| {
        let (release, waits) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let work = move || {
            begin.send(()).unwrap();
            let _ = waits.recv();
        };
        application.disk().put(work).unwrap();
        begun.recv().unwrap();
        release
    };
    (0..crate::disk::THREADS).map(hangs).collect()
}

#[test]
fn a_disk_that_hangs_stops_its_application_only() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::open(options(dir.path())).unwrap();
    let owner = geteuid().as_raw();
    let first = service.register(&hello(1), owner).unwrap();
    let released = hang(&first);
    // Nothing here waits for the disk: not the figures, not another application.
    assert_eq!(service.status(0).applications.len(), 1);
    service.tick(clock::now());
    let second = service.register(&hello(2), owner).unwrap();
    assert_eq!(second.disk().ask(|| 7).unwrap(), 7);
    let keys = [second.key, first.key];
    drop((first, second));
    // Nor its end.
    for (left, key) in [(1, keys[0]), (0, keys[1])] {
        service.end(key, "has ended").unwrap().recv().unwrap();
        assert_eq!(service.status(0).applications.len(), left);
    }
    drop(released);
    service.register(&hello(1), owner).unwrap();
    service.close();
}

#[test]
fn an_application_that_cannot_end_takes_no_place_of_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    options.applications = 1;
    let service = Service::open(options).unwrap();
    let owner = geteuid().as_raw();
    let mut hung = Vec::new();
    // One at a time may be here, and as many may be ending.
    for application in 1..=2 {
        let serving = service.register(&hello(application), owner).unwrap();
        let hangs = serving.hangs();
        let key = serving.key;
        drop(serving);
        let ends = service.end(key, "has ended").unwrap();
        assert!(ends.try_recv().is_err());
        let (refusal, _) = service.register(&hello(application), owner).err().unwrap();
        assert_eq!(refusal, Refusal::System);
        hung.push((ends, hangs));
    }
    let (refusal, why) = service.register(&hello(3), owner).err().unwrap();
    assert_eq!(refusal, Refusal::Full, "{why}");
    let (ends, hangs) = hung.remove(0);
    drop(hangs);
    ends.recv().unwrap();
    service.register(&hello(3), owner).unwrap();
    assert_eq!(service.status(0).applications.len(), 2);
    service.close();
}

#[test]
fn nobody_starts_an_application_of_a_service_that_ends() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::open(options(dir.path())).unwrap();
    service.close();
    let refused = service.register(&hello(1), geteuid().as_raw()).err();
    assert_eq!(refused.unwrap().0, Refusal::System);
    assert_eq!(service.status(0).applications.len(), 0);
}
