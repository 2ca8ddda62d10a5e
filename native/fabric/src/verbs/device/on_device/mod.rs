//! The device layer on a device: two queue pairs of one port, connected to each other.
//!
//! Every test is `#[ignore]`d, because it needs a device; `tests/softroce/run --hosts 1` gives
//! one. They run one after the other: some count what the kernel holds, some take the link down.

mod data;
mod faults;
mod life;
mod news;

use super::*;
use faro_pool::{Lease, Pool, Purpose};
use faro_secure::Protection;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// No machine is so slow: the guard of the tests ends what shows no progress.
const PATIENCE: Timespec = Timespec {
    tv_sec: 3_600,
    tv_nsec: 0,
};
/// A lease: one frame.
const BYTES: usize = 256 << 10;
/// Queue depths that all tests do with.
const DEPTH: Depth = Depth {
    send: 128,
    receive: 128,
    reads: 4,
};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // A test that failed holds nothing that the next one needs.
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open() -> Arc<Device> {
    Device::open(&VerbsOptions::default(), IpAddr::from(Ipv4Addr::LOCALHOST)).unwrap()
}

/// Returns whether a descriptor gets readable; at once, or within the patience of a test.
fn readable(fd: BorrowedFd<'_>, wait: bool) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(if wait { &PATIENCE } else { &now })).unwrap() == 1
}

/// A device with what a fabric would make of it. Fields drop in order.
struct DeviceBench {
    queue: Arc<CompletionQueue>,
    channel: Arc<Channel>,
    region: Registration,
    pool: Arc<Pool>,
    device: Arc<Device>,
    _alone: MutexGuard<'static, ()>,
}

impl DeviceBench {
    fn new() -> Self {
        Self::of(Protection::Clear)
    }

    fn of(protection: Protection) -> Self {
        let alone = alone();
        let near = IpAddr::from(Ipv4Addr::LOCALHOST);
        let device = Device::open_for(&VerbsOptions::default(), near, protection).unwrap();
        let pool = Pool::new(32 << 20).unwrap();
        // The pool maps its first slab with its first lease.
        drop(pool.try_lease(BYTES, Purpose::Serve).unwrap());
        let region = Registration::of_slab(&device, pool.slab(0).unwrap()).unwrap();
        let channel = Channel::new(&device).unwrap();
        let queue = CompletionQueue::new(&device, &channel, 1024).unwrap();
        assert!(queue.depth() >= 1024);
        Self {
            queue,
            channel,
            region,
            pool,
            device,
            _alone: alone,
        }
    }

    /// Drops everything before another test begins.
    fn end(self) -> MutexGuard<'static, ()> {
        self._alone
    }

    /// Returns memory of the registered slab, filled with `byte`.
    fn memory(&self, byte: u8) -> Lease {
        let mut lease = self.pool.try_lease(BYTES, Purpose::Serve).unwrap();
        assert_eq!(lease.slab(), 0);
        lease.bytes_mut().fill(byte);
        lease
    }

    fn address(&self, lease: &Lease) -> u64 {
        self.region.address_of(lease.offset())
    }

    fn queue_pair(&self) -> QueuePair {
        QueuePair::new(&self.device, &self.queue, DEPTH).unwrap()
    }

    /// Returns two queue pairs that are connected to each other.
    fn pair(&self) -> [QueuePair; 2] {
        self.pair_with(&VerbsOptions::default())
    }

    fn pair_with(&self, options: &VerbsOptions) -> [QueuePair; 2] {
        let [mut a, mut b] = [self.queue_pair(), self.queue_pair()];
        a.connect(7, &self.remote(&b, 9), options).unwrap();
        b.connect(9, &self.remote(&a, 7), options).unwrap();
        [a, b]
    }

    fn remote(&self, pair: &QueuePair, psn: u32) -> Remote {
        Remote {
            address: self.device.address(),
            qp: pair.number(),
            psn,
            reads: pair.depth().reads,
        }
    }

    fn piece(&self, lease: &Lease, offset: u64, length: u32) -> MemoryPieces {
        MemoryPieces::one(self.address(lease) + offset, length, self.region.lkey())
    }

    /// Returns a request on the first `length` bytes of a lease, with a completion.
    fn request(
        &self,
        id: u64,
        operation: WorkOperation,
        lease: &Lease,
        length: u32,
    ) -> WorkRequest {
        WorkRequest {
            id,
            operation,
            memory: self.piece(lease, 0, length),
            signaled: true,
            inline: false,
        }
    }

    fn receive(&self, id: u64, lease: &Lease, length: u32) -> ReceiveRequest {
        ReceiveRequest {
            id,
            memory: self.piece(lease, 0, length),
        }
    }

    fn write(&self, to: &Lease, immediate: Option<u32>) -> WorkOperation {
        WorkOperation::Write {
            address: self.address(to),
            rkey: self.region.rkey(),
            immediate,
        }
    }

    fn read(&self, from: &Lease) -> WorkOperation {
        WorkOperation::Read {
            address: self.address(from),
            rkey: self.region.rkey(),
        }
    }

    /// Waits as the fabric does, by arming and the channel, for that many completions, sorted by
    /// their ids. There are no more of them.
    fn completions(&self, count: usize) -> Vec<WorkCompletion> {
        let mut got = Vec::new();
        loop {
            while self.queue.poll(&mut got).unwrap() > 0 {}
            if got.len() >= count {
                break;
            }
            self.queue.arm().unwrap();
            // One that came before the arming causes no wake-up.
            if self.queue.poll(&mut got).unwrap() > 0 {
                continue;
            }
            assert!(readable(self.channel.fd(), true), "no more than {got:?}");
            self.channel.drain();
        }
        got.sort_by_key(|completion| completion.id);
        assert_eq!(got.len(), count, "{got:?}");
        got
    }
}

/// Returns the result of each of them.
fn ends(completions: &[WorkCompletion]) -> Vec<(u64, &CompletionStatus, CompletionKind)> {
    completions
        .iter()
        .map(|completion| (completion.id, &completion.status, completion.kind))
        .collect()
}
