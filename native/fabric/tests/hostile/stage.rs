//! A fabric under attack, a good pair beside it, and raw sockets.

use faro_conformance::{TestConnector, WELCOME_FRAME_BYTES};
use faro_fabric::tcp::{Bounds, TcpConfig, TcpFabric};
use faro_fabric::{
    CloseReason, ConnectionId, EndpointId, Event, Exposure, Fabric, Identity, Message, OwnIdentity,
    RemoteRange, RevokeStatus, Write, WriteSource,
};
use faro_pool::{Pool, Purpose};
use faro_secure::Protection;
use faro_sync::clock;
use faro_sync::simulated::SimulationGuard;
use faro_wire::{crc32c, kind, FrameHeader};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use zerocopy::IntoBytes;

/// Bound of the fabric under attack.
pub const CONNECTIONS: usize = 100;
/// Number of connections that may have proven nothing.
pub const UNAUTHENTICATED: usize = 50;
const FRIEND: u128 = 0xf21e_11d0;

/// The clock of its fabrics stands still until the test moves it, so that no bound of time is reached by itself,
/// however slow the machine is.
pub struct Stage {
    clock: SimulationGuard,
    now: Duration,
    /// Under attack.
    fabric: TcpFabric,
    pool: Arc<Pool>,
    pub endpoint: EndpointId,
    friend: TcpFabric,
    friends_pool: Arc<Pool>,
    /// The good pair, each by the other's name.
    good: (ConnectionId, ConnectionId),
    /// The friend is connected.
    connected: bool,
    /// The attacker's connection.
    attacker: Option<ConnectionId>,
    keys: Vec<u64>,
    events: Vec<Event>,
    sent: u64,
}

/// Returns a frame made by hand.
pub fn frame(kind: u8, id: u64, body: &[u8]) -> Vec<u8> {
    [FrameHeader::for_body(kind, id, body).as_bytes(), body].concat()
}

fn connector(to: EndpointId) -> (TestConnector, Vec<u8>) {
    TestConnector::hello(b't', Protection::Clear, &Identity::public(to), 0xbad)
}

/// Returns a valid HELLO to `to`.
pub fn hello(to: EndpointId) -> Vec<u8> {
    connector(to).1
}

/// Returns a WRITE without immediate.
pub fn write_frame(range: RemoteRange, payload: &[u8]) -> Vec<u8> {
    let mut head = range.key.to_le_bytes().to_vec();
    head.extend_from_slice(&range.offset.to_le_bytes());
    head.extend_from_slice(&[0; 8]);
    let length = (head.len() + payload.len()) as u32;
    let header = FrameHeader::sealed(kind::WRITE, 0, 1, length, crc32c(&head));
    [header.as_bytes(), &head, payload].concat()
}

fn fabric(endpoint: EndpointId, bounds: Bounds) -> (TcpFabric, Arc<Pool>) {
    let pool = Pool::new(faro_pool::MIN_LIMIT_BYTES).unwrap();
    let config = TcpConfig {
        bind: "127.0.0.1:0".parse().unwrap(),
        advertise: String::new(),
        identity: OwnIdentity::public(endpoint),
        protection: Protection::Clear,
        pool: pool.clone(),
    };
    (TcpFabric::with_bounds(config, bounds).unwrap(), pool)
}

impl Stage {
    pub fn new() -> Self {
        Self::with_bounds(Bounds {
            connections: CONNECTIONS,
            unauthenticated: UNAUTHENTICATED,
            ..Bounds::default()
        })
    }

    pub fn with_hello_timeout_ms(ms: u64) -> Self {
        Self::with_bounds(Bounds {
            hello_timeout: Duration::from_millis(ms),
            ..Bounds::default()
        })
    }

    fn with_bounds(bounds: Bounds) -> Self {
        let endpoint = 0x1009;
        let clock = SimulationGuard::begin(1, u8::MAX);
        let (fabric, pool) = fabric(endpoint, bounds);
        let (friend, friends_pool) = self::fabric(FRIEND, Bounds::default());
        let mut stage = Self {
            clock,
            now: Duration::ZERO,
            fabric,
            pool,
            endpoint,
            friend,
            friends_pool,
            good: (ConnectionId(0), ConnectionId(0)),
            connected: false,
            attacker: None,
            keys: Vec::new(),
            events: Vec::new(),
            sent: 0,
        };
        let location = stage.fabric.location();
        let deadline = clock::now() + Duration::from_secs(10);
        let arrived = stage
            .friend
            .connect(&location, &Identity::public(endpoint), deadline)
            .unwrap();
        let mut opened = None;
        stage.until("the good pair", |stage| {
            opened = opened.or(stage.take(|event| match event {
                Event::Accepted {
                    connection,
                    endpoint,
                } if *endpoint == Identity::public(FRIEND).endpoint => Some(*connection),
                _ => None,
            }));
            opened.is_some() && stage.connected
        });
        stage.good = (opened.unwrap(), arrived);
        stage.exchange();
        stage
    }

    fn step(&mut self) {
        let wait = Duration::from_micros(100);
        self.fabric.poll(&mut self.events, Duration::ZERO).unwrap();
        let mut arrived = Vec::new();
        self.friend.poll(&mut arrived, Duration::ZERO).unwrap();
        for event in &arrived {
            self.connected |= matches!(event, Event::Connected { .. });
            assert!(
                !matches!(event, Event::Closed { .. }),
                "the good pair broke"
            );
        }
        if self.events.is_empty() && arrived.is_empty() {
            self.fabric.poll(&mut self.events, wait).unwrap();
        }
    }

    /// Moves the clock by a millisecond.
    pub fn pass_a_millisecond(&mut self) {
        self.now += Duration::from_millis(1);
        self.clock.set(self.now);
    }

    /// Waits without a deadline: the condition must come about.
    pub fn until(&mut self, _what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        while !condition(self) {
            self.step();
        }
    }

    fn take<T>(&mut self, pick: impl Fn(&Event) -> Option<T>) -> Option<T> {
        let mut found = None;
        self.events.retain(|event| {
            if found.is_none() {
                found = pick(event);
                return found.is_none();
            }
            true
        });
        found
    }

    fn wait<T>(&mut self, what: &str, pick: impl Fn(&Event) -> Option<T>) -> T {
        let mut found = None;
        self.until(what, |stage| {
            found = stage.take(&pick);
            found.is_some()
        });
        found.unwrap()
    }

    /// Sends a write and a message between the honest pair, and checks both.
    pub fn exchange(&mut self) {
        self.sent += 1;
        let seed = self.sent as u8;
        let lease = self.pool.try_lease(4096, Purpose::Read).unwrap();
        let exposure = Exposure::Writable(lease);
        let range = self
            .fabric
            .expose(self.good.0, exposure)
            .map_err(drop)
            .unwrap();
        let mut source = self.friends_pool.try_lease(4096, Purpose::Serve).unwrap();
        source.bytes_mut().fill(seed);
        let write = Write {
            token: 1,
            source: WriteSource::part(Arc::new(source), 0, 4096),
            target: range,
            immediate: None,
            last: false,
        };
        self.friend.write(self.good.1, write).map_err(drop).unwrap();
        let message = Message {
            kind: kind::FIRST_MESSAGE,
            id: self.sent,
            body: vec![seed; 64],
        };
        self.friend.send(self.good.1, message.clone()).unwrap();
        let good = self.good.0;
        let got = self.wait("the good pair's message", |event| match event {
            Event::Message {
                connection,
                message,
            } if *connection == good => Some(message.clone()),
            _ => None,
        });
        assert_eq!(got, message);
        match self.fabric.revoke(range.key) {
            RevokeStatus::Now(exposure) => {
                assert!(exposure.lease().bytes().iter().all(|byte| *byte == seed));
            }
            _ => panic!("not revoked at once"),
        }
    }

    /// Opens a raw connection that has sent nothing.
    pub fn dial(&mut self) -> TcpStream {
        TcpStream::connect(self.fabric.location()).unwrap()
    }

    /// Sends a valid HELLO and returns the answer.
    pub fn welcome(&mut self, socket: &mut TcpStream) -> Vec<u8> {
        let mut welcome = vec![0; WELCOME_FRAME_BYTES];
        let mut read = 0;
        socket.set_nonblocking(true).unwrap();
        self.until("WELCOME", |_| {
            match socket.read(&mut welcome[read..]) {
                Ok(0) => panic!("the connection was closed"),
                Ok(bytes) => read += bytes,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            read == welcome.len()
        });
        socket.set_nonblocking(false).unwrap();
        welcome
    }

    /// Opens a raw connection and makes the fabric accept it.
    pub fn authenticate(&mut self) -> TcpStream {
        let mut socket = self.dial();
        let (connector, hello) = connector(self.endpoint);
        socket.write_all(&hello).unwrap();
        let welcome = self.welcome(&mut socket);
        socket.write_all(&connector.proof(&welcome).0).unwrap();
        self.accepted();
        socket
    }

    /// Waits until the fabric has accepted a raw connection.
    pub fn accepted(&mut self) {
        let good = self.good.0;
        let connection = self.wait("Accepted", |event| match event {
            Event::Accepted { connection, .. } if *connection != good => Some(*connection),
            _ => None,
        });
        self.attacker = Some(connection);
    }

    /// Returns a HELLO of a build that speaks these protocol versions.
    pub fn offering(&self, versions: [u8; 2]) -> (TestConnector, Vec<u8>) {
        let to = Identity::public(self.endpoint);
        TestConnector::offering(versions, b't', Protection::Clear, &to, 0xbad)
    }

    /// Returns why an attacker's connection ended.
    pub fn closed(&mut self) -> CloseReason {
        self.wait("Closed", |event| match event {
            Event::Closed { reason, .. } => Some(reason.clone()),
            _ => None,
        })
    }

    /// Reads until the fabric has closed its end; what it said.
    pub fn until_gone(&mut self, mut socket: TcpStream) -> Vec<u8> {
        socket.set_nonblocking(true).unwrap();
        let mut said = Vec::new();
        self.until("the fabric to close", |_| {
            let mut buffer = [0; 4096];
            loop {
                match socket.read(&mut buffer) {
                    Ok(0) => return true,
                    Ok(bytes) => said.extend_from_slice(&buffer[..bytes]),
                    Err(error) => return error.kind() != ErrorKind::WouldBlock,
                }
            }
        });
        said
    }

    /// Returns the text of the GOODBYE, which must be the fabric's only answer.
    pub fn goodbye(&mut self, socket: TcpStream) -> String {
        let said = self.until_gone(socket);
        let header = FrameHeader::parse(&said).unwrap();
        assert_eq!(header.kind, kind::GOODBYE);
        header.check_body(&said[32..]).unwrap();
        String::from_utf8(said[32 + 8..].to_vec()).unwrap()
    }

    /// Sends all of `bytes` while the fabric keeps running.
    pub fn feed(&mut self, socket: &mut TcpStream, mut bytes: &[u8]) {
        socket.set_nonblocking(true).unwrap();
        self.until("the bytes to be taken", |_| {
            match socket.write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            bytes.is_empty()
        });
        socket.set_nonblocking(false).unwrap();
    }

    pub fn counter(&self, name: &str) -> u64 {
        let counters = self.fabric.counters();
        counters.iter().find(|(got, _)| *got == name).unwrap().1
    }

    fn expose(&mut self, exposure: Exposure) -> RemoteRange {
        let connection = self.attacker.unwrap();
        let range = self
            .fabric
            .expose(connection, exposure)
            .map_err(drop)
            .unwrap();
        self.keys.push(range.key);
        range
    }

    /// Exposes memory of zeros that the last attacker greeted may write.
    pub fn expose_to_attacker(&mut self, bytes: usize) -> RemoteRange {
        let mut lease = self.pool.try_lease(bytes, Purpose::Read).unwrap();
        lease.bytes_mut().fill(0);
        self.expose(Exposure::Writable(lease))
    }

    /// Exposes a page that the last attacker greeted may read.
    pub fn expose_readable_to_attacker(&mut self) -> RemoteRange {
        let lease = self.pool.try_lease(faro_pool::PAGE_BYTES, Purpose::Read);
        self.expose(Exposure::Readable(Arc::new(lease.unwrap())))
    }

    /// Takes memory back that must still be all zeros.
    pub fn assert_untouched(&mut self, key: u64) {
        self.keys.retain(|got| *got != key);
        match self.fabric.revoke(key) {
            RevokeStatus::Now(exposure) => {
                assert!(exposure.lease().bytes().iter().all(|byte| *byte == 0));
            }
            _ => panic!("not revoked at once"),
        }
    }

    pub fn revoke_all(&mut self) -> Vec<Exposure> {
        let keys = std::mem::take(&mut self.keys);
        keys.into_iter()
            .filter_map(|key| match self.fabric.revoke(key) {
                RevokeStatus::Now(exposure) => Some(exposure),
                _ => None,
            })
            .collect()
    }

    pub fn assert_only_the_good_pair_is_left(&mut self) {
        self.until("the others to be gone", |stage| {
            stage.counter("connections") == 1
        });
        self.exchange();
    }
}
