//! The conformance suite, on every fabric of this crate.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

mod front;

use faro_conformance::{fabric_conformance, Bench, Rig, Site};
use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{Bounds, TcpConfig, TcpFabric};
use faro_fabric::{
    FilePipe, FilePipes, Outcome, OwnIdentity, RejectedPost, RemoteRange, Write, WriteSource,
    PIPE_BYTES,
};
use faro_pool::Pool;
use faro_secure::Protection;
use front::Front;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

static NEXT: AtomicU64 = AtomicU64::new(1);

fn endpoint() -> u128 {
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64 | 0xfa20
}

struct Tcp {
    host: IpAddr,
    protection: Protection,
    /// The port that all fabrics share; without it, each has its own.
    front: Option<Front>,
}

impl Tcp {
    fn on(host: &str) -> Self {
        Self {
            host: host.parse().unwrap(),
            protection: Protection::Clear,
            front: None,
        }
    }

    fn sealed() -> Self {
        Self {
            protection: Protection::Sealed,
            ..Self::on("127.0.0.1")
        }
    }

    fn behind_one_port(self) -> Self {
        Self {
            front: Some(Front::on(self.host)),
            ..self
        }
    }
}

impl Bench for Tcp {
    fn site(&self) -> Site {
        let pool = Pool::new(128 << 20).unwrap();
        let identity = OwnIdentity::public(endpoint());
        let config = TcpConfig {
            bind: SocketAddr::new(self.host, 0),
            advertise: String::new(),
            identity: identity.clone(),
            protection: self.protection,
            pool: pool.clone(),
        };
        let fabric = match &self.front {
            Some(front) => TcpFabric::behind(&front.port, config, Bounds::default()),
            None => TcpFabric::new(config),
        };
        Site {
            fabric: Box::new(fabric.unwrap()),
            pool,
            identity,
        }
    }

    fn nowhere(&self) -> String {
        // A port that was free a moment ago.
        let listener = TcpListener::bind(SocketAddr::new(self.host, 0)).unwrap();
        listener.local_addr().unwrap().to_string()
    }

    fn learns_refusals(&self) -> bool {
        false
    }
}

struct Shm;

impl Bench for Shm {
    fn site(&self) -> Site {
        let pool = Pool::new(128 << 20).unwrap();
        let identity = OwnIdentity::public(endpoint());
        let config = ShmConfig {
            identity: identity.clone(),
            protection: Protection::Clear,
            pool: pool.clone(),
        };
        Site {
            fabric: Box::new(ShmFabric::new(config).unwrap()),
            pool,
            identity,
        }
    }

    fn nowhere(&self) -> String {
        let host = faro_fabric::shm::host_identity().unwrap();
        format!("{host}/faro-{:032x}", 0)
    }

    fn learns_refusals(&self) -> bool {
        true
    }
}

fabric_conformance!(tcp_v4, Tcp::on("127.0.0.1"));
fabric_conformance!(
    #[ignore = "make test-all"]
    tcp_v6,
    Tcp::on("::1")
);
fabric_conformance!(
    #[ignore = "make test-all"]
    tcp_sealed,
    Tcp::sealed()
);
fabric_conformance!(
    #[ignore = "make test-all"]
    tcp_behind_one_port,
    Tcp::on("127.0.0.1").behind_one_port()
);
fabric_conformance!(tcp_sealed_behind_one_port, Tcp::sealed().behind_one_port());
fabric_conformance!(shm, Shm);

/// Returns a pipe with `bytes` bytes of a file, and those bytes.
fn filled(pipes: &Arc<FilePipes>, bytes: usize) -> (FilePipe, Vec<u8>) {
    let content: Vec<u8> = (0..bytes as u32 + 1000)
        .map(|at| ((at * 7) >> 3) as u8)
        .collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &content).unwrap();
    let mut pipe = pipes.try_take().unwrap();
    pipe.fill(file.as_file().as_fd(), 1000, bytes).unwrap();
    (pipe, content[1000..].to_vec())
}

fn writing(token: u64, source: WriteSource, target: RemoteRange) -> Write {
    Write {
        token,
        source,
        target,
        immediate: None,
        last: true,
    }
}

/// They arrive in order with leases and messages, also where the socket takes a part at a time.
#[test]
fn writes_from_pipes_land_as_those_from_leases_do() {
    let (mut rig, link) = Rig::pair(&Tcp::on("127.0.0.1"));
    assert!(rig.fabric(0).write_sources(link.from.1).pipes);
    let pipes = FilePipes::new();
    let mut expected = Vec::new();
    // The peer takes nothing until all are posted.
    rig.sleep(1, true);
    for token in 0..24 {
        let length = [PIPE_BYTES, 70_001, 1][token as usize % 3];
        let target = rig.writable(link.to, PIPE_BYTES, 0);
        if token % 4 == 3 {
            let source = Arc::new(rig.lease(0, PIPE_BYTES, token as u8));
            expected.push((target, source.bytes()[..length].to_vec()));
            let source = WriteSource::part(source, 0, length);
            rig.write(link.from, writing(token, source, target));
        } else {
            let (pipe, bytes) = filled(&pipes, length);
            expected.push((target, bytes));
            rig.write(link.from, writing(token, WriteSource::Pipe(pipe), target));
        }
        rig.step(0);
    }
    rig.sleep(1, false);
    for token in 0..24 {
        assert_eq!(rig.write_end(link.from, token), Outcome::Done);
    }
    rig.fence(link);
    let piped: usize = [6, 6, 6]
        .iter()
        .zip([PIPE_BYTES, 70_001, 1])
        .map(|(n, l)| n * l)
        .sum();
    assert_eq!(rig.counter(0, "piped_bytes"), piped as u64);
    for (target, bytes) in expected {
        let landed = rig.revoke(1, target.key);
        assert!(landed.lease().bytes()[..bytes.len()] == bytes);
    }
    // All are empty again.
    assert!(pipes.try_take().is_some());
}

/// What is sealed has to be in memory, and shm sends no bytes.
#[test]
fn other_connections_take_no_pipes() {
    let benches: [&dyn Bench; 2] = [&Tcp::sealed(), &Shm];
    for bench in benches {
        let (mut rig, link) = Rig::pair(bench);
        assert!(!rig.fabric(0).write_sources(link.from.1).pipes);
        let (pipe, _) = filled(&FilePipes::new(), 10);
        let target = rig.writable(link.to, PIPE_BYTES, 0);
        let write = writing(1, WriteSource::Pipe(pipe), target);
        assert!(matches!(
            rig.fabric(0).write(link.from.1, write),
            Err(RejectedPost::TooLarge(..))
        ));
    }
}

#[test]
fn a_connection_that_ends_lets_go_of_its_pipes() {
    let (mut rig, link) = Rig::pair(&Tcp::on("127.0.0.1"));
    let pipes = FilePipes::new();
    rig.sleep(1, true);
    let target = rig.writable(link.to, PIPE_BYTES, 0);
    let mut token = 0;
    while let Some(mut pipe) = pipes.try_take() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(PIPE_BYTES as u64).unwrap();
        pipe.fill(file.as_fd(), 0, PIPE_BYTES).unwrap();
        rig.write(link.from, writing(token, WriteSource::Pipe(pipe), target));
        token += 1;
    }
    rig.kill(1);
    for token in 0..token {
        rig.write_end(link.from, token);
    }
    let again: Vec<FilePipe> = std::iter::from_fn(|| pipes.try_take()).collect();
    assert_eq!(again.len() as u64, token);
}
