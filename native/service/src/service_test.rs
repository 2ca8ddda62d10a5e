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
    let (key, released) = (first.key, hang(&first));
    drop(first);
    // Nothing here waits for the disk: not the figures, not another application, not the end.
    assert_eq!(service.status().applications, 1);
    let ends = service.end(key, "has ended").unwrap();
    service.tick(clock::now());
    assert!(ends.try_recv().is_err());
    let (refusal, _) = service.register(&hello(1), owner).err().unwrap();
    assert_eq!(refusal, Refusal::System);
    let second = service.register(&hello(2), owner).unwrap();
    assert_eq!(second.disk().ask(|| 7).unwrap(), 7);
    let key = second.key;
    drop(second);
    assert!(service.end(key, "has ended").unwrap().recv().is_ok());
    assert_eq!(service.status().applications, 1);
    drop(released);
    ends.recv().unwrap();
    assert_eq!(service.status().applications, 0);
    service.register(&hello(1), owner).unwrap();
    service.close();
}

#[test]
fn nobody_starts_an_application_of_a_service_that_ends() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::open(options(dir.path())).unwrap();
    service.close();
    let refused = service.register(&hello(1), geteuid().as_raw()).err();
    assert_eq!(refused.unwrap().0, Refusal::System);
    assert_eq!(service.status().applications, 0);
}
