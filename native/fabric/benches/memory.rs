//! Measures the cost of registered memory on an RDMA device. Prints a JSON object per figure;
//! `tests/bench/memory/run` reads them.
//!
//! `cargo bench -p faro-fabric --bench memory -- registration|transfer|idle [ROUNDS]`
//!
//! - *registration*: `ibv_reg_mr` and `ibv_dereg_mr` of 4 KB to 1 GB.
//! - *transfer*: blocks written from one end to another of this process, with the source's memory
//!   registered for each block, lazily for each object, eagerly for each object, or in a slab.
//! - *idle*: a slab that is de-registered because it is idle, and registered again for its next use.

use faro_fabric::verbs::{CostProbe, VerbsConfig, VerbsFabric, VerbsOptions};
use faro_fabric::{
    ConnectionId, Event, Exposure, Fabric, Identity, Outcome, OwnIdentity, RemoteRange, Write,
    WriteSource,
};
use faro_pool::{Lease, Pool, PoolOptions, Purpose, PAGE_BYTES, SLAB_BYTES};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIMIT: u64 = 512 << 20;
/// Objects that a sender has, and times that it sends each.
const OBJECTS: usize = 64;
const USES: usize = 8;
/// Writes on their way at once.
const WINDOW: usize = 16;
/// Sizes of objects: up to a page, so that every mode has them.
const SIZES: [usize; 3] = [4 << 10, 64 << 10, PAGE_BYTES];

fn near() -> IpAddr {
    IpAddr::V4(Ipv4Addr::LOCALHOST)
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

fn registration(rounds: u32) {
    let probe = CostProbe::open(&VerbsOptions::default(), near()).expect("a device");
    eprintln!("{}", probe.describe());
    // 4 KB to 1 GB, by four. Touched, so that what is measured is not the kernel's clearing.
    let mut memory = vec![1_u8; 1 << 30];
    for round in 0..rounds {
        for bytes in (12..=30).step_by(2).map(|power| 1_usize << power) {
            let cost = match probe.measure(&mut memory[..bytes]) {
                Ok(cost) => cost,
                Err(error) => {
                    println!(
                        "{{\"part\": \"registration\", \"round\": {round}, \"bytes\": {bytes}, \
                         \"refused\": {:?}}}",
                        error.to_string()
                    );
                    continue;
                }
            };
            println!(
                "{{\"part\": \"registration\", \"round\": {round}, \"bytes\": {bytes}, \
                 \"register_us\": {:.2}, \"deregister_us\": {:.2}}}",
                micros(cost.register),
                micros(cost.deregister),
            );
        }
    }
}

struct Site {
    fabric: VerbsFabric,
    pool: Arc<Pool>,
}

fn site(endpoint: u128) -> Site {
    let pool = Pool::with_options(PoolOptions {
        idle_release: Duration::from_secs(3600),
        ..PoolOptions::new(LIMIT)
    })
    .expect("a pool");
    let config = VerbsConfig {
        bind: SocketAddr::new(near(), 0),
        advertise: String::new(),
        identity: OwnIdentity::public(endpoint),
        protection: faro_secure::Protection::Clear,
        pool: pool.clone(),
        options: VerbsOptions::default(),
    };
    let fabric = VerbsFabric::new(config).expect("a device");
    Site { fabric, pool }
}

/// Two ends in this process, connected.
struct ConnectedSites {
    writer: Site,
    target: Site,
    to: ConnectionId,
    from: ConnectionId,
}

impl ConnectedSites {
    fn new() -> Self {
        let (mut writer, mut target) = (site(1), site(2));
        let deadline = Instant::now() + Duration::from_secs(10);
        let location = target.fabric.location();
        let to = writer
            .fabric
            .connect(&location, &Identity::public(2), deadline)
            .expect("a location");
        let (mut connected, mut accepted) = (false, None);
        let mut events = Vec::new();
        while !connected || accepted.is_none() {
            for fabric in [&mut writer.fabric, &mut target.fabric] {
                fabric.poll(&mut events, Duration::ZERO).expect("a poll");
            }
            for event in events.drain(..) {
                match event {
                    Event::Connected { .. } => connected = true,
                    Event::Accepted { connection, .. } => accepted = Some(connection),
                    Event::Closed { reason, .. } => panic!("{reason}"),
                    _ => {}
                }
            }
        }
        let from = accepted.expect("just seen");
        Self {
            writer,
            target,
            to,
            from,
        }
    }

    fn expose(&mut self, lease: Lease) -> RemoteRange {
        let exposure = Exposure::Writable(lease);
        let exposed = self.target.fabric.expose(self.from, exposure);
        exposed.map_err(drop).expect("room for an exposure")
    }

    fn post(&mut self, source: &Arc<Lease>, target: RemoteRange) {
        let write = Write {
            token: 0,
            source: WriteSource::part(Arc::clone(source), 0, target.length as usize),
            target,
            immediate: Some(1),
            last: false,
        };
        let posted = self.writer.fabric.write(self.to, write);
        posted.map_err(drop).expect("room for a write");
    }

    /// Polls both once; writes that ended.
    fn turn(&mut self, events: &mut Vec<Event>) -> usize {
        self.writer
            .fabric
            .poll(events, Duration::ZERO)
            .expect("a poll");
        self.target
            .fabric
            .poll(events, Duration::ZERO)
            .expect("a poll");
        let mut ended = 0;
        for event in events.drain(..) {
            match event {
                Event::WriteEnded { outcome, .. } => {
                    assert_eq!(outcome, Outcome::Done);
                    ended += 1;
                }
                Event::Closed { reason, .. } => panic!("{reason}"),
                _ => {}
            }
        }
        ended
    }
}

/// The way in which a sender's objects are registered.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// Memory of its own for each block that is sent: registered, sent, de-registered.
    PerBlock,
    /// Memory of its own for each object, registered when it is first sent.
    Lazy,
    /// Memory of its own for each object, registered before anything is sent.
    EagerObject,
    /// A lease of a slab that is registered as a whole.
    EagerSlab,
}

impl Mode {
    const ALL: [(Self, &'static str); 4] = [
        (Self::PerBlock, "per block"),
        (Self::Lazy, "lazy, per object"),
        (Self::EagerObject, "eager, per object"),
        (Self::EagerSlab, "eager, slab"),
    ];
}

/// A sender's object, as it is between sends.
enum Object {
    /// The sender's own memory.
    Own(Box<[u8]>),
    /// A lease that stays.
    Lease(Arc<Lease>),
}

impl Object {
    /// Allocates and fills an object, and registers it in the modes that do.
    fn new(two: &mut ConnectedSites, mode: Mode, bytes: usize) -> Self {
        let pool = &two.writer.pool;
        let mut lease = match mode {
            Mode::PerBlock => return Self::Own(vec![1; bytes].into()),
            Mode::EagerSlab => pool.try_lease(bytes, Purpose::Serve),
            Mode::Lazy | Mode::EagerObject => pool.allocate_lazily(bytes),
        }
        .expect("room");
        lease.bytes_mut()[..bytes].fill(1);
        if mode == Mode::EagerObject {
            two.writer.fabric.register(&lease).expect("a registration");
        }
        Self::Lease(Arc::new(lease))
    }

    /// Returns the lease to send. Own memory is registered here, and de-registered when it was sent.
    fn source(&mut self, pool: &Arc<Pool>) -> Arc<Lease> {
        match self {
            Self::Lease(lease) => Arc::clone(lease),
            Self::Own(memory) => {
                let start = NonNull::from(&mut **memory).cast();
                // SAFETY: the memory stays with this object, which lives until all sends of it have
                // ended, and nobody touches it in between.
                let lease = unsafe { pool.wrap(start, memory.len(), Box::new(|| {})) };
                Arc::new(lease.expect("room"))
            }
        }
    }
}

/// Sends each object once, `WINDOW` at a time.
fn send(two: &mut ConnectedSites, targets: &[RemoteRange], objects: &mut [Object]) {
    let (mut posted, mut ended, mut events) = (0, 0, Vec::new());
    while ended < objects.len() {
        while posted < objects.len() && posted - ended < WINDOW {
            let source = objects[posted].source(&two.writer.pool);
            two.post(&source, targets[posted % targets.len()]);
            posted += 1;
        }
        ended += two.turn(&mut events);
    }
}

fn transfer(rounds: u32) {
    let mut two = ConnectedSites::new();
    // Every slab that is needed is there and registered before the first figure.
    for bytes in SIZES {
        let warm: Vec<_> = (0..OBJECTS)
            .map(|_| Object::new(&mut two, Mode::EagerSlab, bytes))
            .collect();
        drop(warm);
        two.turn(&mut Vec::new());
    }
    for bytes in SIZES {
        let mut targets = Vec::new();
        for _ in 0..WINDOW {
            let lease = two.target.pool.try_lease(bytes, Purpose::Read);
            targets.push(two.expose(lease.expect("room")));
        }
        for round in 0..rounds {
            for (mode, name) in Mode::ALL {
                let figures = one_transfer(&mut two, &targets, mode, bytes);
                println!(
                    "{{\"part\": \"transfer\", \"round\": {round}, \"mode\": \"{name}\", \
                     \"bytes\": {bytes}, {figures}}}"
                );
            }
        }
        for range in targets {
            drop(two.target.fabric.revoke(range.key));
        }
    }
}

/// Measures transfers. All figures are for one block or one object.
fn one_transfer(
    two: &mut ConnectedSites,
    targets: &[RemoteRange],
    mode: Mode,
    bytes: usize,
) -> String {
    let each = |time: Duration, count: usize| micros(time) / count as f64;
    let before = two.writer.pool.counters();
    let start = Instant::now();
    let mut objects: Vec<_> = (0..OBJECTS)
        .map(|_| Object::new(two, mode, bytes))
        .collect();
    let prepare = start.elapsed();
    let start = Instant::now();
    send(two, targets, &mut objects);
    let first = start.elapsed();
    let start = Instant::now();
    (1..USES).for_each(|_| send(two, targets, &mut objects));
    let later = start.elapsed();
    let steady = two.writer.pool.counters().registrations;
    let start = Instant::now();
    drop(objects);
    let release = start.elapsed();
    let after = two.writer.pool.counters();
    format!(
        "\"prepare_us\": {:.2}, \"first_us\": {:.2}, \"later_us\": {:.2}, \"release_us\": {:.2}, \
         \"all_us\": {:.2}, \"registrations\": {}, \"registration_us\": {:.2}",
        each(prepare, OBJECTS),
        each(first, OBJECTS),
        each(later, OBJECTS * (USES - 1)),
        each(release, OBJECTS),
        each(prepare + first + later + release, OBJECTS * USES),
        steady - before.registrations,
        (after.registration_ns - before.registration_ns) as f64 / 1e3,
    )
}

/// De-registers idle slabs, in three steps, and uses one of them again.
fn idle(rounds: u32) {
    let mut two = ConnectedSites::new();
    let pool = two.writer.pool.clone();
    let pages = SLAB_BYTES / PAGE_BYTES;
    let mut events = Vec::new();
    let target = two.target.pool.try_lease(PAGE_BYTES, Purpose::Read);
    let target = two.expose(target.expect("room"));
    for round in 0..rounds {
        // Two slabs' worth, all of it written; the connection's own memory is in the first.
        let mut leases: Vec<_> = (0..2 * pages)
            .map(|_| pool.try_lease(PAGE_BYTES, Purpose::Serve).expect("room"))
            .collect();
        leases
            .iter_mut()
            .for_each(|lease| lease.bytes_mut().fill(1));
        // Not every slab of the last round was registered again.
        for lease in &leases {
            two.writer.fabric.register(lease).expect("a registration");
        }
        drop(leases);
        let start = Instant::now();
        let rested = pool.mark_idle(Duration::ZERO);
        let rest = start.elapsed();
        let before = pool.counters().deregistrations;
        let start = Instant::now();
        while pool.counters().deregistrations < before + u64::from(rested) {
            two.turn(&mut events);
        }
        let let_go = start.elapsed();
        let start = Instant::now();
        assert_eq!(pool.release_idle_pages(u32::MAX), rested);
        let empty = start.elapsed();
        // The first use of a slab that was de-registered: its pages are new, and it is registered.
        let mut held = Vec::new();
        let (start, mut lease) = loop {
            let start = Instant::now();
            let lease = pool.try_lease(PAGE_BYTES, Purpose::Serve).expect("room");
            if pool.counters().idle_bytes < u64::from(rested) * SLAB_BYTES as u64 {
                break (start, lease);
            }
            held.push(lease);
        };
        lease.bytes_mut().fill(1);
        let source = Arc::new(lease);
        two.post(&source, target);
        while two.turn(&mut events) == 0 {}
        let back = start.elapsed();
        let start = Instant::now();
        two.post(&source, target);
        while two.turn(&mut events) == 0 {}
        let warm = start.elapsed();
        drop(held);
        println!(
            "{{\"part\": \"idle\", \"round\": {round}, \"slabs\": {rested}, \"rest_us\": {:.1}, \
             \"deregister_us\": {:.1}, \"give_back_us\": {:.1}, \"first_use_us\": {:.1}, \
             \"next_use_us\": {:.1}}}",
            micros(rest),
            micros(let_go) / f64::from(rested),
            micros(empty) / f64::from(rested),
            micros(back),
            micros(warm),
        );
    }
}

fn main() {
    // `cargo bench` adds an argument of its own.
    let mut arguments = std::env::args().skip(1).filter(|text| text != "--bench");
    let part = arguments.next().unwrap_or_default();
    let rounds = arguments.next();
    let rounds = rounds.map_or(3, |text| text.parse().expect("a number of rounds"));
    match part.as_str() {
        "registration" => registration(rounds),
        "transfer" => transfer(rounds),
        "idle" => idle(rounds),
        _ => {
            eprintln!("usage: memory registration|transfer|idle [ROUNDS]");
            std::process::exit(2);
        }
    }
}
