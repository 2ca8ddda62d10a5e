//! Many connections on an RDMA device: what they cost of the arena, and what their end gives back.
//!
//! Needs a device, and so is run by `tests/softroce/run`: `... -- --ignored`.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_fabric::verbs::{VerbsConfig, VerbsFabric, VerbsOptions};
use faro_fabric::{CloseReason, ConnectionId, Event, Fabric, Identity, Message, OwnIdentity};
use faro_pool::{Pool, Purpose};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The default of `spark.faro.memory.limit`.
const ARENA: u64 = 256 << 20;
/// Connections that are opened at once.
const OPENING: usize = 32;
/// Only a hang reaches it.
const TIMEOUT: Duration = Duration::from_secs(3_600);
/// Any kind that carries bytes.
const KIND: u8 = 0x80;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Site {
    fabric: VerbsFabric,
    pool: Arc<Pool>,
    /// Those that are open.
    open: HashSet<ConnectionId>,
    /// Messages that arrived, by connection.
    messages: HashMap<ConnectionId, Vec<Message>>,
    /// Reasons for which connections did not come to be.
    refusals: Vec<String>,
    /// Connections are expected to end.
    ending: bool,
}

impl Site {
    fn new(endpoint: u128, limit: u64) -> Self {
        let pool = Pool::new(limit).unwrap();
        let fabric = VerbsFabric::new(VerbsConfig {
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise: String::new(),
            identity: OwnIdentity::public(endpoint),
            protection: faro_secure::Protection::Clear,
            pool: pool.clone(),
            options: VerbsOptions::default(),
        })
        .unwrap();
        Self {
            fabric,
            pool,
            open: HashSet::new(),
            messages: HashMap::new(),
            refusals: Vec::new(),
            ending: false,
        }
    }

    fn poll(&mut self) {
        let mut events = Vec::new();
        self.fabric.poll(&mut events, Duration::ZERO).unwrap();
        for event in events {
            match event {
                Event::Connected { connection, .. } | Event::Accepted { connection, .. } => {
                    self.open.insert(connection);
                }
                Event::Message {
                    connection,
                    message,
                } => self.messages.entry(connection).or_default().push(message),
                Event::Closed { connection, reason } => {
                    if !self.open.remove(&connection) {
                        self.refusals.push(reason.to_string());
                        continue;
                    }
                    // A thousand goodbyes take longer than the side that says them waits.
                    assert!(self.ending, "{reason}");
                }
                _ => panic!("nothing else was asked for"),
            }
        }
    }

    fn say(&mut self, connection: ConnectionId, id: u64, bytes: usize) {
        let message = Message {
            kind: KIND,
            id,
            body: vec![id as u8; bytes],
        };
        self.fabric.send(connection, message).map_err(drop).unwrap();
    }

    fn rings(&self) -> u64 {
        self.pool.held_bytes(Purpose::Serve)
    }
}

/// Two ends in this process.
struct ConnectedSites {
    near: Site,
    far: Site,
    _alone: MutexGuard<'static, ()>,
}

impl ConnectedSites {
    fn new(limit: u64) -> Self {
        let alone = alone();
        // Two sockets for each connection.
        let wanted = Rlimit {
            current: Some(16 << 10),
            maximum: Some(
                getrlimit(Resource::Nofile)
                    .maximum
                    .unwrap_or(16 << 10)
                    .max(16 << 10),
            ),
        };
        setrlimit(Resource::Nofile, wanted).unwrap();
        Self {
            near: Site::new(1, limit),
            far: Site::new(2, limit),
            _alone: alone,
        }
    }

    fn until(&mut self, _what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            self.near.poll();
            self.far.poll();
        }
    }

    /// Begins `count` connections from the near end: how many came to be.
    fn connect(&mut self, count: usize) -> usize {
        let location = self.far.fabric.location();
        let mut begun = 0;
        let before = self.near.open.len() + self.near.refusals.len();
        self.until("connections", |two| {
            let ended = two.near.open.len() + two.near.refusals.len() - before;
            while begun < count && begun - ended < OPENING {
                let deadline = Instant::now() + TIMEOUT;
                two.near
                    .fabric
                    .connect(&location, &Identity::public(2), deadline)
                    .unwrap();
                begun += 1;
            }
            ended == count
        });
        self.until("both ends", |two| two.near.open.len() == two.far.open.len());
        self.near.open.len()
    }
}

impl ConnectedSites {
    /// Ends all connections: nothing of the arena is held any more.
    fn end(&mut self) {
        (self.near.ending, self.far.ending) = (true, true);
        for connection in self.near.open.clone() {
            self.near.fabric.disconnect(connection, CloseReason::Local);
        }
        self.until("the end", |two| {
            let over = |site: &Site| site.open.is_empty() && site.rings() == 0;
            over(&two.near) && over(&two.far)
        });
        assert_eq!(
            self.near.fabric.connection_bytes() + self.far.fabric.connection_bytes(),
            0
        );
    }
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_thousand_connections_cost_an_eighth_of_the_arena_and_give_it_back() {
    const CONNECTIONS: usize = 1_000;
    let mut two = ConnectedSites::new(ARENA);
    let start = Instant::now();
    assert_eq!(two.connect(CONNECTIONS), CONNECTIONS);
    // Each end says something on each, larger than a segment.
    for site in [&mut two.near, &mut two.far] {
        for (id, connection) in site.open.clone().into_iter().enumerate() {
            site.say(connection, id as u64, 6_000);
        }
    }
    let all_said = |site: &Site| site.messages.len() == CONNECTIONS;
    two.until("messages", |two| all_said(&two.near) && all_said(&two.far));
    for site in [&two.near, &two.far] {
        for message in site.messages.values().flatten() {
            assert_eq!(message.body, vec![message.id as u8; 6_000]);
        }
        assert!(site.rings() <= 32 << 20, "{} bytes are held", site.rings());
    }
    println!(
        "{CONNECTIONS} connections: {} KiB of the arena, {:?}",
        two.near.rings() >> 10,
        start.elapsed()
    );
    two.end();
}

/// Connections for which the share has no room are refused, with a reason; the others continue.
#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn connections_beyond_the_share_are_refused_and_no_ring_is_lost() {
    // An eighth of it are 1,024 segments: five for each of 204 connections.
    const SMALL: u64 = 32 << 20;
    let mut two = ConnectedSites::new(SMALL);
    assert_eq!(two.connect(220), 204);
    assert!(two.near.fabric.wants_fewer_connections());
    let refusals = &two.near.refusals;
    assert_eq!(refusals.len(), 16);
    assert!(
        refusals.iter().all(|why| why.contains("an eighth of")),
        "{refusals:?}"
    );
    for (id, connection) in two.near.open.clone().into_iter().enumerate() {
        two.near.say(connection, id as u64, 100_000);
    }
    two.until("messages", |two| two.far.messages.len() == 204);
    let held = two.far.rings();
    assert!(held <= SMALL / 8, "{held} bytes are held");
    two.end();
}

/// A ring grows with use, so that a busy connection does not wait for credits.
#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_ring_grows_with_use_and_goes_with_its_connection() {
    let mut two = ConnectedSites::new(ARENA);
    assert_eq!(two.connect(1), 1);
    assert!(!two.far.fabric.wants_fewer_connections());
    // Four receive requests and a segment to send.
    assert_eq!(two.far.fabric.connection_bytes(), 5 * 4096);
    let connection = *two.near.open.iter().next().unwrap();
    for id in 0..20 {
        two.near.say(connection, id, 100_000);
    }
    two.until("messages", |two| {
        two.far.messages.values().flatten().count() == 20
    });
    for (id, message) in (0..).zip(two.far.messages.values().flatten()) {
        assert_eq!((message.id, &message.body), (id, &vec![id as u8; 100_000]));
    }
    assert_eq!(two.far.fabric.connection_bytes(), 65 * 4096);
    two.until("what was lent to send", |two| {
        two.near.fabric.connection_bytes() < 10 * 4096
    });
    two.end();
}
