//! Raw Unix sockets that say anything at all to a `ShmFabric`: wrong references, wrong files,
//! descriptors without end. A good pair exchanges messages meanwhile.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_conformance::{
    Bench, ConnectedPair, Rig, Site, TestConnector, Xorshift, WELCOME_FRAME_BYTES,
};
use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::{
    CloseReason, ConnectionId, EndpointId, Event, Exposure, FabricError, Identity, OwnIdentity,
    RemoteRange,
};
use faro_pool::Pool;
use faro_secure::Protection;
use faro_wire::{kind, FrameHeader, WireError};
use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};
use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::cell::Cell;
use std::io::{ErrorKind, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use zerocopy::IntoBytes;

struct Shm(Cell<EndpointId>);

impl Bench for Shm {
    fn site(&self) -> Site {
        let pool = Pool::new(64 << 20).unwrap();
        let identity = OwnIdentity::public(self.0.replace(self.0.get() + 1));
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
        String::new()
    }
    fn learns_refusals(&self) -> bool {
        true
    }
}

/// Station 1 is under attack, 0 is its friend.
struct Stage {
    rig: Rig,
    good: ConnectedPair,
    attacker: ConnectionId,
}

fn frame(kind: u8, id: u64, body: &[u8]) -> Vec<u8> {
    [FrameHeader::for_body(kind, id, body).as_bytes(), body].concat()
}

fn numbers(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn slab_reply(slab: u32, bytes: u64) -> Vec<u8> {
    let (low, high) = (bytes as u32, (bytes >> 32) as u32);
    frame(kind::SLAB_REPLY, 0, &numbers(&[slab, 1, low, high]))
}

fn write_ref(range: RemoteRange, slab: u32, offset: u32, length: u32) -> Vec<u8> {
    let mut body = range.key.to_le_bytes().to_vec();
    body.extend_from_slice(&range.offset.to_le_bytes());
    body.extend(numbers(&[0, 0, slab, offset, length, 0]));
    frame(kind::WRITE_REF, 1, &body)
}

fn memfd(bytes: u64, seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
    let file = memfd_create("attack", flags).unwrap();
    ftruncate(&file, bytes).unwrap();
    fcntl_add_seals(&file, seals).unwrap();
    file
}

fn send_with(socket: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(files)));
    let slices = [IoSlice::new(bytes)];
    sendmsg(socket, &slices, &mut control, SendFlags::NOSIGNAL).is_ok()
}

impl Stage {
    fn new() -> Self {
        let mut rig = Rig::new(&Shm(Cell::new(1)), 2);
        let good = rig.link(0, 1);
        Self {
            rig,
            good,
            attacker: ConnectionId(0),
        }
    }

    fn dial(&mut self) -> UnixStream {
        let location = self.rig.fabric(1).location();
        let name = location.split_once('/').unwrap().1;
        let address = SocketAddr::from_abstract_name(name).unwrap();
        UnixStream::connect_addr(&address).unwrap()
    }

    fn authenticate(&mut self) -> UnixStream {
        let mut socket = self.dial();
        let to = self.rig.at(1).identity.clone();
        let (connector, hello) = TestConnector::hello(b's', Protection::Clear, &to, 0xbad);
        socket.write_all(&hello).unwrap();
        let mut welcome = [0; WELCOME_FRAME_BYTES];
        socket.set_nonblocking(true).unwrap();
        let mut read = 0;
        self.rig.drive_until("WELCOME", |_| {
            read += socket.read(&mut welcome[read..]).unwrap_or(0);
            (read == welcome.len()).then_some(())
        });
        socket.set_nonblocking(false).unwrap();
        let (proof, _) = connector.proof(&welcome);
        socket.write_all(&proof).unwrap();
        self.attacker = self.rig.wait(1, "Accepted", |event| match event {
            Event::Accepted { connection, .. } => Some(*connection),
            _ => None,
        });
        socket
    }

    fn closed(&mut self) -> CloseReason {
        let reason = self.rig.wait(1, "Closed", |event| match event {
            Event::Closed { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        self.rig.fence(self.good);
        reason
    }

    fn expect(&mut self, what: &str) {
        match self.closed() {
            CloseReason::Protocol(WireError::BadValue { what: got, .. }) => assert_eq!(got, what),
            reason => panic!("{what}: {reason}"),
        }
    }

    fn until_gone(&mut self, mut socket: UnixStream) {
        socket.set_nonblocking(true).unwrap();
        self.rig.drive_until("the fabric to close", |_| {
            let mut buffer = [0; 4096];
            loop {
                match socket.read(&mut buffer) {
                    Ok(0) => return Some(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                    Err(_) => return Some(()),
                }
            }
        });
    }
}

#[test]
fn only_safe_files_are_mapped() {
    let mut stage = Stage::new();
    let shrinking = memfd(1 << 20, SealFlags::GROW);
    let short = memfd(4096, SealFlags::SHRINK);
    let exe = OwnedFd::from(std::fs::File::open("/proc/self/exe").unwrap());
    let (socket, _other) = UnixStream::pair().unwrap();
    for (file, bytes, what) in [
        (shrinking.as_fd(), 1 << 20, "slab's seals"),
        (exe.as_fd(), 4096, "slab's seals"),
        (socket.as_fd(), 4096, "slab's seals"),
        (short.as_fd(), 8192, "slab file's length"),
        (short.as_fd(), 0, "slab's length"),
        (short.as_fd(), u64::MAX, "slab's length"),
    ] {
        let attacker = stage.authenticate();
        assert!(send_with(&attacker, &slab_reply(0, bytes), &[file]));
        stage.expect(what);
        stage.until_gone(attacker);
    }
    assert_eq!(stage.rig.counter(1, "slabs_mapped"), 0);
}

#[test]
fn references_stay_within_what_was_given() {
    let mut stage = Stage::new();
    let slab = memfd(8192, SealFlags::SHRINK);
    for (slab_number, offset, length, what) in [
        (1, 0, 4096, "WRITE_REF's slab"),
        (u32::MAX, 0, 4096, "WRITE_REF's slab"),
        (
            0,
            8192 - 4095,
            4096,
            "end of WRITE_REF's source in its slab",
        ),
        (0, u32::MAX, 4096, "end of WRITE_REF's source in its slab"),
    ] {
        let mut attacker = stage.authenticate();
        let range = stage.rig.writable((1, stage.attacker), 4096, 9);
        assert!(send_with(&attacker, &slab_reply(0, 8192), &[slab.as_fd()]));
        let bytes = write_ref(range, slab_number, offset, length);
        attacker.write_all(&bytes).unwrap();
        stage.expect(what);
        let exposure = stage.rig.revoke(1, range.key);
        faro_conformance::assert_filled(exposure.lease().bytes(), 9, what);
        stage.until_gone(attacker);
    }
    // The same frame within the bounds is a write.
    let mut attacker = stage.authenticate();
    let range = stage.rig.writable((1, stage.attacker), 4096, 9);
    assert!(send_with(&attacker, &slab_reply(0, 8192), &[slab.as_fd()]));
    attacker
        .write_all(&write_ref(range, 0, 4096, 4096))
        .unwrap();
    stage.rig.drive_until("the write", |rig| {
        (rig.counter(1, "writes_in") == 1).then_some(())
    });
    let exposure = stage.rig.revoke(1, range.key);
    assert!(exposure.lease().bytes().iter().all(|byte| *byte == 0));
}

#[test]
fn descriptors_and_frames_must_agree() {
    let mut stage = Stage::new();
    let slab = memfd(8192, SealFlags::SHRINK);
    let mut attacker = stage.authenticate();
    attacker.write_all(&slab_reply(3, 8192)).unwrap();
    stage.expect("SLAB_REPLY without a descriptor, slab");
    let attacker = stage.authenticate();
    for _ in 0..2 {
        assert!(send_with(&attacker, &slab_reply(3, 8192), &[slab.as_fd()]));
    }
    stage.expect("slab that was given before");
    // Descriptors beside messages that have none.
    let attacker = stage.authenticate();
    let message = frame(kind::FIRST_MESSAGE, 1, b"m");
    for _ in 0..20 {
        send_with(&attacker, &message, &[slab.as_fd()]);
    }
    let reason = stage.closed();
    assert!(matches!(reason, CloseReason::Bound { .. }), "{reason}");
    let attacker = stage.authenticate();
    assert!(send_with(&attacker, &message, &[slab.as_fd(); 8]));
    let reason = stage.closed();
    assert!(matches!(reason, CloseReason::Lost { .. }), "{reason}");
    let attacker = stage.authenticate();
    let directory = slab_reply(u32::MAX, 8192);
    assert!(send_with(&attacker, &directory, &[slab.as_fd()]));
    stage.expect("directory's length");
}

#[test]
fn frames_of_other_fabrics_and_answers_to_nothing_close() {
    let mut stage = Stage::new();
    for never in [kind::WRITE, kind::READ, kind::READ_REPLY, kind::HELLO] {
        let mut attacker = stage.authenticate();
        attacker.write_all(&frame(never, 1, &[0; 24])).unwrap();
        let expected = WireError::UnknownKind { got: never };
        assert_eq!(stage.closed(), CloseReason::Protocol(expected));
    }
    let mut attacker = stage.authenticate();
    attacker
        .write_all(&frame(kind::WRITE_ACK, 0, &[0; 16]))
        .unwrap();
    stage.expect("WRITE_ACK's write");
}

#[test]
fn slabs_are_given_once_and_no_queue_grows() {
    let mut stage = Stage::new();
    let mut attacker = stage.authenticate();
    attacker.set_nonblocking(true).unwrap();
    let same = frame(kind::SLAB_REQUEST, 0, &numbers(&[0, 0])).repeat(100);
    for _ in 0..100 {
        let _ = attacker.write(&same);
        stage.rig.fence(stage.good);
        assert!(stage.rig.counter(1, "queued_frames") <= 2);
    }
    // Numbers that name nothing, without end.
    let mut attacker = stage.authenticate();
    attacker.set_nonblocking(true).unwrap();
    let mut next = 1_000;
    let reason = stage.rig.drive_until("Closed", |rig| {
        for _ in 0..200 {
            let request = frame(kind::SLAB_REQUEST, 0, &numbers(&[next, 0]));
            // A send this small is taken whole or not at all.
            if attacker.write(&request).is_err() {
                break;
            }
            next += 1;
        }
        let (reason, _) = rig.take(1, |event| match event {
            Event::Closed { reason, .. } => Some(reason.clone()),
            _ => None,
        })?;
        Some(reason)
    });
    assert!(
        matches!(reason, CloseReason::Bound { .. } | CloseReason::Protocol(_)),
        "{reason}"
    );
    stage.rig.fence(stage.good);
}

#[test]
fn random_frames_beside_random_descriptors() {
    let mut stage = Stage::new();
    let mut dice = Xorshift::new(0xfa20_0003);
    let slab = memfd(8192, SealFlags::SHRINK);
    for round in 0..1_000 {
        let mut attacker = stage.authenticate();
        let range = stage.rig.writable((1, stage.attacker), 4096, 5);
        for _ in 0..1 + dice.below(5) {
            let bytes = match dice.below(4) {
                0 => slab_reply(dice.below(3) as u32, 8192),
                1 => write_ref(
                    range,
                    dice.below(3) as u32,
                    dice.roll() as u32,
                    dice.roll() as u32,
                ),
                _ => {
                    let length = dice.below(48);
                    let body = dice.bytes(length);
                    frame(dice.below(0x22) as u8, dice.roll(), &body)
                }
            };
            if dice.below(2) == 0 {
                send_with(&attacker, &bytes, &[slab.as_fd()]);
            } else {
                let _ = attacker.write_all(&bytes);
            }
        }
        let _ = attacker.shutdown(Shutdown::Write);
        stage.until_gone(attacker);
        assert!(matches!(
            stage.rig.revoke(1, range.key),
            Exposure::Writable(_)
        ));
        stage.rig.events(1);
        if round % 100 == 0 {
            stage.rig.fence(stage.good);
        }
    }
    stage.rig.drive_until("the others to be gone", |rig| {
        (rig.counter(1, "connections") == 1).then_some(())
    });
}

#[test]
fn another_host_is_known_at_once() {
    let mut stage = Stage::new();
    let location = stage.rig.fabric(1).location();
    let (host, name) = location.split_once('/').unwrap();
    for elsewhere in [
        format!("{}0/{name}", host),
        format!("00000000-0000-0000-0000-000000000000.1/{name}"),
    ] {
        match stage
            .rig
            .fabric(0)
            .connect(&elsewhere, &Identity::public(2), Rig::deadline())
        {
            Err(FabricError::BadLocation { detail, .. }) => {
                assert!(detail.contains("another host"), "{detail}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Counts the lines of the log about refused connections.
struct Lines(AtomicUsize);

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        let line = record.args().to_string();
        if line.starts_with("refused a same-host connection") {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn flush(&self) {}
}

/// Needs root, which starts a process of another user.
#[test]
fn another_user_is_refused_and_writes_one_line_for_all_attempts() {
    const ATTEMPTS: u64 = 300;
    const NOBODY: u32 = 65_534;
    static LINES: Lines = Lines(AtomicUsize::new(0));
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can start a process of another user");
        return;
    }
    log::set_logger(&LINES).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let mut stage = Stage::new();
    let location = stage.rig.fabric(1).location();
    let name = location.split_once('/').unwrap().1;
    let script = "import socket, sys\n\
        for _ in range(int(sys.argv[2])): socket.socket(socket.AF_UNIX).connect('\\0' + sys.argv[1])";
    let mut outsider = Command::new("/usr/bin/env")
        .args(["python3", "-c", script, name, &ATTEMPTS.to_string()])
        .current_dir("/")
        .uid(NOBODY)
        .spawn()
        .unwrap();
    stage.rig.drive_until("the attempts", |rig| {
        let ended = outsider.try_wait().unwrap();
        assert!(ended.is_none_or(|status| status.success()));
        (rig.counter(1, "connections_refused") == ATTEMPTS).then_some(())
    });
    assert!(outsider.wait().unwrap().success());
    assert_eq!(LINES.0.load(Ordering::Relaxed), 1);
    stage.rig.fence(stage.good);
}
