//! Two fabrics of one process, and somebody between them on the socket that the connection begins on.

#![allow(dead_code)] // Each test binary uses its own part.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{TcpConfig, TcpFabric};
use faro_fabric::verbs::{VerbsConfig, VerbsFabric, VerbsOptions};
use faro_fabric::{CloseReason, ConnectionId, Event, Fabric, Message, OwnIdentity};
use faro_pool::Pool;
use faro_secure::{Protection, Secret, SharedSecret, StaticKey};
use faro_wire::kind;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Of connecting; no machine is so slow.
pub const TIMEOUT: Duration = Duration::from_secs(3_600);

/// One side.
pub struct Side {
    pub fabric: Box<dyn Fabric>,
    pub pool: Arc<Pool>,
    pub identity: OwnIdentity,
    pub connection: Option<ConnectionId>,
    pub events: Vec<Event>,
}

/// Makes the identity of endpoint number `number`.
pub fn identity(number: u128, secret: &str) -> OwnIdentity {
    let shared = SharedSecret::new(secret.as_bytes().to_vec());
    OwnIdentity::new(
        StaticKey::public(number).unwrap(),
        &Secret::new([number as u8; 32]),
        Some(&shared),
        "app-1",
    )
    .unwrap()
}

impl Side {
    fn of(
        identity: OwnIdentity,
        make: impl FnOnce(OwnIdentity, Arc<Pool>) -> Box<dyn Fabric>,
    ) -> Self {
        let pool = Pool::new(faro_pool::MIN_LIMIT_BYTES).unwrap();
        Self {
            fabric: make(identity.clone(), Arc::clone(&pool)),
            pool,
            identity,
            connection: None,
            events: Vec::new(),
        }
    }

    /// Returns a side over TCP.
    pub fn new(identity: OwnIdentity, protection: Protection) -> Self {
        Self::of(identity, |identity, pool| {
            let config = TcpConfig {
                bind: "127.0.0.1:0".parse().unwrap(),
                advertise: String::new(),
                identity,
                protection,
                pool,
            };
            Box::new(TcpFabric::new(config).unwrap())
        })
    }

    /// Returns a side over shared memory.
    pub fn shm(identity: OwnIdentity, protection: Protection) -> Self {
        Self::of(identity, |identity, pool| {
            let config = ShmConfig {
                identity,
                protection,
                pool,
            };
            Box::new(ShmFabric::new(config).unwrap())
        })
    }

    /// Returns a side over RDMA.
    pub fn verbs(identity: OwnIdentity, protection: Protection) -> Self {
        Self::of(identity, |identity, pool| {
            let config = VerbsConfig {
                bind: "127.0.0.1:0".parse().unwrap(),
                advertise: String::new(),
                identity,
                protection,
                pool,
                options: VerbsOptions::default(),
            };
            Box::new(VerbsFabric::new(config).unwrap())
        })
    }

    pub fn sealed(endpoint: u128) -> Self {
        Self::new(identity(endpoint, "spark's"), Protection::Sealed)
    }

    pub fn poll(&mut self) {
        let before = self.events.len();
        self.fabric.poll(&mut self.events, Duration::ZERO).unwrap();
        for event in &self.events[before..] {
            if let Event::Connected { connection, .. } | Event::Accepted { connection, .. } = event
            {
                self.connection = Some(*connection);
            }
        }
    }

    /// Returns the number of connections that have not ended completely.
    fn connections(&self) -> u64 {
        let counters = self.fabric.counters();
        let mut counters = counters.iter();
        counters.find(|(name, _)| *name == "connections").unwrap().1
    }

    pub fn closed(&self) -> Option<&CloseReason> {
        self.events.iter().find_map(|event| match event {
            Event::Closed { reason, .. } => Some(reason),
            _ => None,
        })
    }

    pub fn messages(&self) -> Vec<&[u8]> {
        self.events
            .iter()
            .filter_map(|event| match event {
                Event::Message { message, .. } => Some(&message.body[..]),
                _ => None,
            })
            .collect()
    }

    pub fn say(&mut self, body: &[u8]) {
        let message = Message {
            kind: kind::FIRST_MESSAGE,
            id: 1,
            body: body.to_vec(),
        };
        self.fabric.send(self.connection.unwrap(), message).unwrap();
    }
}

/// One direction of a connection in the middle. A unit is a frame, or, where bytes are sealed and the handshake is over, a
/// record.
#[derive(Default)]
pub struct Direction {
    buffer: Vec<u8>,
    /// All units that came, as they were sent.
    pub seen: Vec<Vec<u8>>,
    ended: bool,
}

impl Direction {
    /// Returns all bytes that came.
    pub fn bytes(&self) -> Vec<u8> {
        [&self.seen.concat()[..], &self.buffer].concat()
    }

    /// Takes the complete units, with their numbers.
    fn take(&mut self, from: &mut TcpStream) -> Vec<(usize, Vec<u8>)> {
        let mut chunk = [0; 4096];
        loop {
            match from.read(&mut chunk) {
                Ok(0) => self.ended = true,
                Ok(bytes) => {
                    self.buffer.extend_from_slice(&chunk[..bytes]);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.ended = true,
            }
            break;
        }
        let mut units = Vec::new();
        loop {
            let number = |at: usize| -> Option<usize> {
                let bytes = self.buffer.get(at..at + 4)?;
                Some(u32::from_le_bytes(bytes.try_into().unwrap()) as usize)
            };
            let whole = match self.buffer.starts_with(b"FARO") {
                true => number(8).map(|length| 32 + length),
                false => number(0).map(|length| 4 + length),
            };
            match whole {
                Some(whole) if self.buffer.len() >= whole => {
                    let unit: Vec<u8> = self.buffer.drain(..whole).collect();
                    units.push((self.seen.len(), unit.clone()));
                    self.seen.push(unit);
                }
                _ => return units,
            }
        }
    }
}

/// Direction of a unit: up to the acceptor, or down to the connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Up,
    Down,
}

/// Takes a unit and its number among those that go its way; returns the units that are sent on instead.
pub type Tamper<'t> = dyn FnMut(Way, usize, Vec<u8>) -> Vec<Vec<u8>> + 't;

pub struct Middle {
    listener: TcpListener,
    sides: Option<(TcpStream, TcpStream)>,
    pub up: Direction,
    pub down: Direction,
}

impl Middle {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self {
            listener,
            sides: None,
            up: Direction::default(),
            down: Direction::default(),
        }
    }

    pub fn location(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    pub fn step(&mut self, to: &str, tamper: &mut Tamper<'_>) {
        if self.sides.is_none() {
            let Ok((near, _)) = self.listener.accept() else {
                return;
            };
            let far = TcpStream::connect(to).unwrap();
            near.set_nonblocking(true).unwrap();
            far.set_nonblocking(true).unwrap();
            self.sides = Some((near, far));
        }
        let (near, far) = self.sides.as_mut().unwrap();
        for (number, unit) in self.up.take(near) {
            for unit in tamper(Way::Up, number, unit) {
                let _ = far.write_all(&unit);
            }
        }
        for (number, unit) in self.down.take(far) {
            for unit in tamper(Way::Down, number, unit) {
                let _ = near.write_all(&unit);
            }
        }
        for (ended, other) in [(self.up.ended, far), (self.down.ended, near)] {
            if ended {
                let _ = other.shutdown(Shutdown::Write);
            }
        }
    }

    /// Ends one direction.
    pub fn end(&mut self, way: Way) {
        if let Some((near, far)) = &self.sides {
            let target = match way {
                Way::Up => far,
                Way::Down => near,
            };
            let _ = target.shutdown(Shutdown::Write);
        }
    }
}

pub struct Stage {
    pub connector: Side,
    pub acceptor: Side,
    pub middle: Middle,
}

impl Stage {
    pub fn new(connector: Side, acceptor: Side) -> Self {
        let mut stage = Self {
            connector,
            acceptor,
            middle: Middle::new(),
        };
        stage.connect();
        stage
    }

    fn connect(&mut self) {
        let (location, expected) = (self.middle.location(), self.acceptor.identity.clone());
        let deadline = Instant::now() + TIMEOUT;
        let fabric = &mut self.connector.fabric;
        fabric.connect(&location, &expected, deadline).unwrap();
    }

    /// Starts both sides again on a new connection; nothing is left of the last one.
    pub fn again(&mut self) {
        self.middle = Middle::new();
        while self.connector.connections() + self.acceptor.connections() > 0 {
            self.connector.poll();
            self.acceptor.poll();
        }
        for side in [&mut self.connector, &mut self.acceptor] {
            side.events.clear();
            side.connection = None;
        }
        self.connect();
    }

    pub fn sealed() -> Self {
        Self::new(Side::sealed(10), Side::sealed(20))
    }

    /// Returns why the connection ended: a side that knows the other one tells it.
    pub fn told(&self) -> Option<CloseReason> {
        let sides = [&self.acceptor, &self.connector];
        sides.iter().find_map(|side| side.closed()).cloned()
    }

    pub fn step(&mut self, tamper: &mut Tamper<'_>) {
        self.connector.poll();
        self.acceptor.poll();
        self.middle.step(&self.acceptor.fabric.location(), tamper);
    }

    pub fn until(&mut self, _what: &str, tamper: &mut Tamper<'_>, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            self.step(tamper);
        }
    }

    pub fn open(&mut self) {
        self.until("both ends", &mut pass, |stage| {
            stage.connector.connection.is_some() && stage.acceptor.connection.is_some()
        });
    }
}

pub fn pass(_: Way, _: usize, unit: Vec<u8>) -> Vec<Vec<u8>> {
    vec![unit]
}
