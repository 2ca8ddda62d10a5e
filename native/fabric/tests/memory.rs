//! Tests which parts of the arena are registered with a device, and when: idle slabs, lazy and wrapped
//! memory.
//!
//! Needs a device, and so is run by `tests/softroce/run`: `... -- --ignored`. One after the other:
//! they count what the kernel holds.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_fabric::verbs::{VerbsConfig, VerbsFabric, VerbsOptions};
use faro_fabric::{
    ConnectionId, Event, Exposure, Fabric, Identity, Outcome, OwnIdentity, RemoteRange,
    RevokeStatus, Write, WriteSource,
};
use faro_pool::{Lease, Pool, PoolOptions, Purpose, PAGE_BYTES, SLAB_BYTES};
use std::net::SocketAddr;
use std::process::Command;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const PAGES_PER_SLAB: usize = SLAB_BYTES / PAGE_BYTES;
const SLABS: usize = 4;
/// Only a hang reaches it.
const TIMEOUT: Duration = Duration::from_secs(3_600);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Site {
    fabric: VerbsFabric,
    pool: Arc<Pool>,
}

impl Site {
    fn new(endpoint: u128) -> Self {
        let pool = Pool::with_options(PoolOptions {
            // Slabs rest when a test says so.
            idle_release: Duration::from_secs(3600),
            huge_pages: false,
            ..PoolOptions::new((SLABS * SLAB_BYTES) as u64)
        })
        .unwrap();
        let fabric = VerbsFabric::new(VerbsConfig {
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise: String::new(),
            identity: OwnIdentity::public(endpoint),
            protection: faro_secure::Protection::Clear,
            pool: pool.clone(),
            options: VerbsOptions::default(),
        })
        .unwrap();
        Self { fabric, pool }
    }
}

/// Two ends in this process: `writer` writes into what `target` exposed.
struct ConnectedSites {
    writer: Site,
    target: Site,
    /// The target, as the writer knows it, and the reverse.
    peers: [ConnectionId; 2],
    _alone: MutexGuard<'static, ()>,
}

impl ConnectedSites {
    fn new() -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut writer, target) = (Site::new(1), Site::new(2));
        let deadline = Instant::now() + TIMEOUT;
        let location = target.fabric.location();
        let connection = writer
            .fabric
            .connect(&location, &Identity::public(2), deadline)
            .unwrap();
        let mut two = Self {
            writer,
            target,
            peers: [connection, connection],
            _alone: alone,
        };
        let (mut connected, mut accepted) = (false, None);
        two.turn_until(|event| {
            match event {
                Event::Connected { .. } => connected = true,
                Event::Accepted { connection, .. } => accepted = Some(*connection),
                _ => {}
            }
            connected && accepted.is_some()
        });
        two.peers[1] = accepted.unwrap();
        two
    }

    /// Polls both until an event is what is waited for.
    fn turn_until(&mut self, mut done: impl FnMut(&Event) -> bool) {
        let mut events = Vec::new();
        loop {
            self.turn(&mut events);
            // The last event of a connection, and the first thing to know.
            for event in &events {
                if let Event::Closed { reason, .. } = event {
                    panic!("the connection broke: {reason}");
                }
            }
            for event in events.drain(..) {
                if done(&event) {
                    return;
                }
            }
        }
    }

    fn turn(&mut self, events: &mut Vec<Event>) {
        self.writer.fabric.poll(events, Duration::ZERO).unwrap();
        self.target.fabric.poll(events, Duration::ZERO).unwrap();
    }

    /// Turns both until neither has a slab registered that rests; another thread may be at it.
    fn let_go(&mut self) {
        let mut events = Vec::new();
        let settled = |pool: &Pool| {
            let slabs = (0..).take_while(|at| pool.slab(*at).is_some()).count();
            let now = pool.counters();
            now.registered_bytes + now.idle_bytes <= (slabs * SLAB_BYTES) as u64
        };
        // The first turn registers new memory.
        self.turn(&mut events);
        while !settled(&self.writer.pool) || !settled(&self.target.pool) {
            self.turn(&mut events);
        }
        assert!(events.is_empty());
    }

    fn expose(&mut self, lease: Lease) -> RemoteRange {
        let exposure = Exposure::Writable(lease);
        let connection = self.peers[1];
        self.target
            .fabric
            .expose(connection, exposure)
            .map_err(drop)
            .unwrap()
    }

    fn write(&mut self, source: &Arc<Lease>, to: RemoteRange, last: bool) {
        let write = Write {
            token: 7,
            source: WriteSource::part(
                Arc::clone(source),
                0,
                source.capacity().min(to.length as usize),
            ),
            target: to,
            immediate: Some(1),
            last,
        };
        let connection = self.peers[0];
        self.writer
            .fabric
            .write(connection, write)
            .map_err(drop)
            .unwrap();
        let (mut ended, mut written) = (false, false);
        self.turn_until(|event| {
            match event {
                Event::WriteEnded { outcome, .. } => {
                    assert_eq!(*outcome, Outcome::Done);
                    ended = true;
                }
                Event::Written { .. } => written = true,
                _ => {}
            }
            ended && written
        });
    }

    fn revoke(&mut self, range: RemoteRange) -> Lease {
        match self.target.fabric.revoke(range.key) {
            RevokeStatus::Now(Exposure::Writable(lease)) => lease,
            _ => panic!("not revoked at once, although the last write is there"),
        }
    }

    /// Writes `byte` from new memory of each side's into new memory of the other's.
    fn cycle(&mut self, mut source: Lease, target: Lease, byte: u8) {
        let length = source.capacity().min(target.capacity());
        source.bytes_mut().fill(byte);
        let range = self.expose(target);
        self.write(&Arc::new(source), range, true);
        let lease = self.revoke(range);
        assert!(lease.bytes()[..length].iter().all(|got| *got == byte));
    }
}

fn page(pool: &Arc<Pool>) -> Lease {
    pool.try_lease(PAGE_BYTES, Purpose::Serve).unwrap()
}

/// Leases all remaining pages.
fn fill(pool: &Arc<Pool>) -> Vec<Lease> {
    std::iter::from_fn(|| pool.try_lease(PAGE_BYTES, Purpose::Serve).ok()).collect()
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_write_from_memory_that_cannot_be_registered_ends_with_its_connection() {
    let mut two = ConnectedSites::new();
    // A lease of a slab that the fabric's own pool does not have.
    let other = Site::new(3);
    let leases = fill(&other.pool);
    let foreign = leases
        .into_iter()
        .find(|lease| two.writer.pool.slab(lease.slab()).is_none());
    let target = page(&two.target.pool);
    let range = two.expose(target);
    let write = Write {
        token: 9,
        source: WriteSource::part(Arc::new(foreign.unwrap()), 0, PAGE_BYTES),
        target: range,
        immediate: None,
        last: true,
    };
    let connection = two.peers[0];
    two.writer
        .fabric
        .write(connection, write)
        .map_err(drop)
        .unwrap();
    let (mut events, mut ended) = (Vec::new(), None);
    loop {
        two.turn(&mut events);
        for event in events.drain(..) {
            match event {
                Event::WriteEnded { token, outcome, .. } => ended = Some((token, outcome)),
                Event::Closed {
                    connection: closed, ..
                } if closed == connection => {
                    assert_eq!(ended, Some((9, Outcome::Flushed)));
                    return;
                }
                _ => {}
            }
        }
    }
}

/// Behind `tests/softroce/nic.c`, which registers six slabs: two of the writer's four are left.
#[test]
#[ignore = "needs an RDMA device behind tests/softroce/nic.c: tests/softroce/suite refused"]
fn slabs_refused_by_the_device_cap_the_arena() {
    let mut two = ConnectedSites::new();
    let (pool, target) = (two.writer.pool.clone(), two.target.pool.clone());
    drop(fill(&target));
    two.let_go();
    drop(fill(&pool));
    let mut events = Vec::new();
    two.turn(&mut events);
    assert!(events.is_empty(), "the connection stays");
    assert_eq!(
        pool.share_bytes(Purpose::Serve),
        (2 * SLAB_BYTES) as u64,
        "{:?}",
        pool.counters()
    );
    assert_eq!(pool.counters().registered_bytes, (2 * SLAB_BYTES) as u64);
    let left = fill(&pool);
    // The connection has a page for its segments.
    assert_eq!(left.len(), 2 * PAGES_PER_SLAB - 1);
    for (at, lease) in left.into_iter().enumerate() {
        let to = page(&target);
        two.cycle(lease, to, at as u8 | 1);
    }
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn an_idle_slab_is_deregistered_and_comes_back() {
    let mut two = ConnectedSites::new();
    let pool = two.writer.pool.clone();
    // All four are mapped, and registered with the next turn.
    drop(fill(&pool));
    two.let_go();
    let all = pool.counters();
    assert_eq!(all.registered_bytes, (SLABS * SLAB_BYTES) as u64);
    assert_eq!(all.registrations, SLABS as u64);
    assert_eq!(all.registered_high_water_bytes, all.limit_bytes);

    let rested = pool.mark_idle(Duration::ZERO);
    // The connection's own segments lie in the first one.
    assert_eq!(rested, SLABS as u32 - 1);
    assert_eq!(
        pool.release_idle_pages(u32::MAX),
        0,
        "the device has them still"
    );
    two.let_go();
    assert_eq!(pool.release_idle_pages(u32::MAX), rested);
    let idle = pool.counters();
    assert_eq!(idle.registered_bytes, SLAB_BYTES as u64);
    assert_eq!(idle.deregistrations, u64::from(rested));
    assert_eq!(idle.slabs_released, u64::from(rested));

    // Used again: every page of every slab goes over the device once, with the right bytes.
    for (at, lease) in fill(&pool).into_iter().enumerate() {
        let target = page(&two.target.pool);
        two.cycle(lease, target, at as u8 | 1);
    }
    let again = pool.counters();
    assert_eq!(again.registered_bytes, (SLABS * SLAB_BYTES) as u64);
    assert_eq!(again.registrations, all.registrations + u64::from(rested));
    assert_eq!(again.slabs_mapped, SLABS as u64);
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_slab_that_wakes_before_the_device_let_go_keeps_its_bytes() {
    let mut two = ConnectedSites::new();
    let pool = two.target.pool.clone();
    drop(fill(&pool));
    two.let_go();
    for round in 0..8_u8 {
        pool.mark_idle(Duration::ZERO);
        // De-registered one by one with each turn, and woken in the middle of it or, every fourth
        // time, after it: how far a turn gets depends on the machine.
        let turns = round % 4;
        if turns == 3 {
            two.let_go();
        } else {
            let mut events = Vec::new();
            for _ in 0..turns {
                two.turn(&mut events);
            }
        }
        pool.release_idle_pages(u32::from(round) % 3);
        let source = page(&two.writer.pool);
        let targets = fill(&pool);
        let count = targets.len();
        let mut source = Some(source);
        for (at, target) in targets.into_iter().enumerate() {
            if at % PAGES_PER_SLAB == 0 || at + 1 == count {
                let from = source.take().unwrap_or_else(|| page(&two.writer.pool));
                two.cycle(from, target, round + 1);
            }
        }
    }
    let counters = pool.counters();
    assert!(
        counters.deregistrations > 0 && counters.slabs_released > 0,
        "{counters:?}"
    );
    assert_eq!(counters.registered_bytes, (SLABS * SLAB_BYTES) as u64);
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn memory_outside_the_slabs_is_registered_when_first_used_and_goes_with_its_lease() {
    let mut two = ConnectedSites::new();
    let pool = two.writer.pool.clone();
    let before = pool.counters();
    let bytes = 3 * PAGE_BYTES + 5;
    let mut owned = vec![9_u8; bytes].into_boxed_slice();
    let start = NonNull::new(owned.as_mut_ptr()).unwrap();
    let gone = Arc::new(AtomicBool::new(false));
    let told = gone.clone();
    let clean_up = Box::new(move || {
        assert!(owned.iter().all(|byte| *byte == 9));
        told.store(true, Ordering::Relaxed);
    });
    // SAFETY: the box is valid, initialised and owned by this test until `clean_up` drops it.
    let source = Arc::new(unsafe { pool.wrap(start, bytes, clean_up) }.unwrap());
    two.let_go();
    assert_eq!(
        pool.counters().registrations,
        before.registrations,
        "lazily"
    );
    let target = two.target.pool.allocate_lazily(bytes).unwrap();
    let range = two.expose(target);
    for _ in 0..5 {
        two.write(&source, range, false);
    }
    two.write(&source, range, true);
    let used = pool.counters();
    assert_eq!(used.registrations, before.registrations + 1, "once");
    assert_eq!(
        used.registered_bytes,
        before.registered_bytes + bytes as u64
    );
    assert!(!gone.load(Ordering::Relaxed));
    // On another thread: wherever a lease is dropped, it is de-registered.
    std::thread::spawn(move || drop(source)).join().unwrap();
    assert!(gone.load(Ordering::Relaxed));
    let after = pool.counters();
    assert_eq!(after.registered_bytes, before.registered_bytes);
    assert_eq!(after.deregistrations, before.deregistrations + 1);
    let target = two.revoke(range);
    assert!(target.bytes().iter().all(|byte| *byte == 9));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_fabric_that_goes_leaves_nothing_with_memory_that_stays() {
    let mut two = ConnectedSites::new();
    let pool = two.writer.pool.clone();
    let source = Arc::new(pool.allocate_lazily(PAGE_BYTES).unwrap());
    let target = page(&two.target.pool);
    let range = two.expose(target);
    two.write(&source, range, true);
    assert!(pool.counters().registered_bytes > 0);
    drop(two);
    assert_eq!(pool.counters().registered_bytes, 0);
    assert!(source.bytes().iter().all(|byte| *byte == 0), "still there");
}

/// Returns the kernel's counts for all processes: `pd 1 cq 2 qp 3 cm_id 0 mr 4 ctx 1 srq 0`.
fn held() -> String {
    let output = Command::new("rdma").arg("resource").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn mapped_pages() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn ten_thousand_lives_over_a_device_leave_nothing() {
    let mut two = ConnectedSites::new();
    let cycle = |two: &mut ConnectedSites, at: usize| {
        let source = two.writer.pool.allocate_lazily(1 + at % 8192).unwrap();
        let target = match at % 2 {
            0 => two.target.pool.allocate_lazily(8192).unwrap(),
            _ => two.target.pool.try_lease(8192, Purpose::Read).unwrap(),
        };
        two.cycle(source, target, at as u8 | 1);
        if at % 1_000 == 0 {
            for pool in [two.writer.pool.clone(), two.target.pool.clone()] {
                drop(fill(&pool));
                two.let_go();
                pool.mark_idle(Duration::ZERO);
                two.let_go();
                pool.release_idle_pages(u32::MAX);
            }
        }
    };
    // Twice the rare part, so that everything that is kept is there.
    cycle(&mut two, 0);
    cycle(&mut two, 0);
    let (before, pages) = ((held(), descriptors()), mapped_pages());
    let registered = two.writer.pool.counters();
    for at in 1..=10_000 {
        cycle(&mut two, at);
    }
    assert_eq!((held(), descriptors()), before);
    // The bound of the heap's growth; far less than a page for each cycle.
    assert!(
        mapped_pages() <= pages + 256,
        "{} from {pages}",
        mapped_pages()
    );
    let after = two.writer.pool.counters();
    assert_eq!(after.registered_bytes, registered.registered_bytes);
    assert!(after.registrations >= registered.registrations + 10_000);
    assert_eq!(after.external_bytes, 0);
    assert_eq!(after.leased_bytes, registered.leased_bytes);
}
