//! A host with its service, in this process.
#![allow(clippy::unwrap_used, dead_code)] // Test code; each file of tests uses some.

use faro_endpoint::FabricChoice;
use faro_service::{Listener, Options, Service, Users, CONNECTIONS};
use faro_wire::OutputId;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub const IDLE: Duration = Duration::from_secs(3_600);

pub struct Host {
    pub dir: tempfile::TempDir,
    pub service: Arc<Service>,
    pub listener: Option<Listener>,
}

/// Options of a service below `dir`, with a quota that holds what most tests hand over.
pub fn options(dir: &Path) -> Options {
    Options {
        socket_directory: dir.join("socket"),
        data_directory: dir.join("data"),
        bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
        advertise: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        fabric: FabricChoice::Tcp,
        memory: 64 << 20,
        connections: CONNECTIONS,
        applications: 2,
        quota: 64 << 20,
        idle: IDLE,
        users: Users::Own,
        replica_bandwidth: 1 << 40,
    }
}

impl Host {
    /// Starts a service with directories that may have been another one's.
    pub fn at(dir: tempfile::TempDir, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = options(dir.path());
        change(&mut options);
        let service = Service::open(options).unwrap();
        let listener = Some(Listener::start(&service).unwrap());
        Self {
            dir,
            service,
            listener,
        }
    }

    /// Ends as after SIGTERM; its directories stay.
    pub fn stop(mut self) -> tempfile::TempDir {
        drop(self.listener.take());
        self.service.close();
        let empty = tempfile::tempdir().unwrap();
        std::mem::replace(&mut self.dir, empty)
    }

    pub fn figure(&self, name: &str) -> u64 {
        let figures = self.service.figures();
        figures.iter().find(|(n, _)| *n == name).unwrap().1
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.listener.take());
        self.service.close();
    }
}

pub fn id(map_id: i64) -> OutputId {
    OutputId {
        shuffle_id: 1,
        map_id,
    }
}
