//! Map outputs on a slow disk: a file system of this test (FUSE) that answers a read when it is told to.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use faro_endpoint::{Endpoint, FabricChoice, OutputFiles};
use faro_wire::OutputId;
use fuser::{
    BackgroundSession, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, Request,
};
use std::ffi::OsStr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, UNIX_EPOCH};
use support::{block, collect, config, pattern, until_leases_are_back, CollectedBlocks, Server};

/// Longer than this test; the kernel asks for no attribute twice.
const FOREVER: Duration = Duration::from_secs(3_600);
const DATA: INodeNo = INodeNo(2);
const BYTES: usize = 3 << 20;
/// Reads from here on wait. Buffers before it and behind it are on their way at the same time.
const SLOW_FROM: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskState {
    Stuck,
    Works,
    Broken,
}

/// The disk's state, and how many reads have waited for it.
struct Disk {
    state: Mutex<(DiskState, u64)>,
    changed: Condvar,
}

impl Disk {
    fn new(state: DiskState) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new((state, 0)),
            changed: Condvar::new(),
        })
    }

    fn becomes(&self, state: DiskState) {
        self.state.lock().unwrap().0 = state;
        self.changed.notify_all();
    }

    fn until_a_read_waits(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |s| s.1 == 0).unwrap());
    }

    /// Waits while the disk is stuck; false if it is broken then.
    fn read(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        if state.0 == DiskState::Stuck {
            state.1 += 1;
            self.changed.notify_all();
        }
        let state = self.changed.wait_while(state, |s| s.0 == DiskState::Stuck);
        state.unwrap().0 == DiskState::Works
    }
}

/// One file of `BYTES`.
struct SlowFiles {
    disk: Arc<Disk>,
    content: Vec<u8>,
}

impl SlowFiles {
    fn mounted(disk: &Arc<Disk>, at: &std::path::Path) -> BackgroundSession {
        let files = Self {
            disk: Arc::clone(disk),
            content: pattern(3, BYTES),
        };
        // A read that waits takes one; attributes are answered meanwhile, as any disk does.
        let mut config = fuser::Config::default();
        config.n_threads = Some(8);
        let mounted = fuser::spawn_mount(files, at, &config);
        mounted.expect("this test needs /dev/fuse and the right to mount")
    }

    fn attributes(kind: FileType) -> FileAttr {
        let (ino, size) = match kind {
            FileType::Directory => (INodeNo::ROOT, 0),
            _ => (DATA, BYTES as u64),
        };
        FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: 0o755,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        }
    }
}

impl Filesystem for SlowFiles {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name == "data" {
            true => {
                let attributes = Self::attributes(FileType::RegularFile);
                reply.entry(&FOREVER, &attributes, Generation(0));
            }
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let kind = match ino == DATA {
            true => FileType::RegularFile,
            false => FileType::Directory,
        };
        reply.attr(&FOREVER, &Self::attributes(kind));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if offset + u64::from(size) > SLOW_FROM && !self.disk.read() {
            return reply.error(Errno::EIO);
        }
        let from = (offset as usize).min(BYTES);
        let to = (from + size as usize).min(BYTES);
        reply.data(&self.content[from..to]);
    }
}

/// A server with one output on the slow disk (shuffle 0) and others (shuffle 1), and a client of it.
struct SlowServer {
    server: Server,
    client: Arc<Endpoint>,
    peer: u64,
    disk: Arc<Disk>,
    /// Unmounts when it is dropped, behind the server.
    _mounted: BackgroundSession,
    _place: tempfile::TempDir,
}

impl SlowServer {
    fn start() -> Self {
        let (disk, place) = (Disk::new(DiskState::Stuck), tempfile::tempdir().unwrap());
        let mounted = SlowFiles::mounted(&disk, place.path());
        let server = Server::start(config("server", FabricChoice::Tcp));
        let id = OutputId {
            shuffle_id: 0,
            map_id: 0,
        };
        let index = support::write_output(server.dir.path(), id, &[vec![0; BYTES]]).index;
        let data = place.path().join("data");
        server.put_files(id, OutputFiles { data, index });
        for map in 0..20 {
            server.put(
                1,
                map,
                &[pattern(map as u64, 100), pattern(map as u64, 1 << 20)],
            );
        }
        let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
        let peer = server.peer_of(&client);
        Self {
            server,
            client,
            peer,
            disk,
            _mounted: mounted,
            _place: place,
        }
    }

    fn ask(&self, shuffle: u32, map: i64, partition: u32) -> u64 {
        let wanted = [block(shuffle, map, partition, partition + 1)];
        let (client, peer) = (&self.client, self.peer);
        client.fetch_to_verify(peer, &wanted, FOREVER).unwrap()
    }

    /// Small and large blocks of other outputs arrive.
    fn serves_others(&self) {
        for map in 0..20 {
            let requests = [self.ask(1, map, 0), self.ask(1, map, 1)];
            let mut found = collect(&self.client, &requests);
            for (request, bytes) in requests.iter().zip([100, 1 << 20]) {
                let fetched = found.remove(request).unwrap();
                assert!(fetched.bytes() == [pattern(map as u64, bytes)]);
            }
        }
    }

    /// All of the slow output, once the disk has become so.
    fn after(&self, becomes: DiskState) -> support::FetchOutcome {
        let slow = self.ask(0, 0, 0);
        self.disk.until_a_read_waits();
        self.serves_others();
        self.disk.becomes(becomes);
        let mut found = CollectedBlocks::of(&[slow]);
        while !found.all_have_ended() {
            found.take(&self.client, FOREVER);
        }
        found.done.remove(&slow).unwrap()
    }

    fn ends_with_nothing_held(self) {
        self.serves_others();
        until_leases_are_back(&self.client);
        until_leases_are_back(&self.server.endpoint);
        self.client.close();
    }
}

#[test]
#[ignore = "make test-all"]
fn a_read_that_waits_for_a_disk_holds_up_no_other() {
    let slow = SlowServer::start();
    assert!(slow.after(DiskState::Works).bytes() == [pattern(3, BYTES)]);
    slow.ends_with_nothing_held();
}

#[test]
#[ignore = "make test-all"]
fn a_disk_that_breaks_is_an_error_of_the_request() {
    let slow = SlowServer::start();
    let outcome = slow.after(DiskState::Broken);
    let is_wrong = outcome.blocks.iter().any(|(status, _)| *status != 0);
    assert!(is_wrong || outcome.failure.is_some(), "{outcome:?}");
    slow.ends_with_nothing_held();
}
