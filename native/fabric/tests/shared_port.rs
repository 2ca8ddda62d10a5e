//! Several endpoints behind one port: each is reached with its own card only, and what comes without
//! one reaches none.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_conformance::{TestConnector, Xorshift, WELCOME_FRAME_BYTES};
use faro_fabric::tcp::{Bounds, PortAcceptor, SharedPort, TcpConfig, TcpFabric};
use faro_fabric::{CloseReason, ConnectionId, Event, Fabric, FabricError, Identity, OwnIdentity};
use faro_pool::{Pool, MIN_LIMIT_BYTES};
use faro_secure::{Protection, Secret, StaticKey, SECRET_BYTES};
use faro_sync::clock;
use faro_sync::simulated::SimulationGuard;
use faro_wire::header::VERSION;
use faro_wire::{kind, FrameHeader};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// The endpoints of two applications, and one that connects.
const FIRST: u128 = 1;
const SECOND: u128 = 2;
const READER: u128 = 3;

/// An endpoint with a card of its own.
fn own(number: u128) -> OwnIdentity {
    let secret = Secret::new([number as u8; SECRET_BYTES]);
    OwnIdentity::new(StaticKey::public(number).unwrap(), &secret, None, "").unwrap()
}

/// What its card says.
fn card(number: u128) -> Identity {
    own(number).identity
}

fn config(endpoint: u128, protection: Protection) -> TcpConfig {
    TcpConfig {
        bind: ([127, 0, 0, 1], 0).into(),
        advertise: String::new(),
        identity: own(endpoint),
        protection,
        pool: Pool::new(MIN_LIMIT_BYTES).unwrap(),
    }
}

struct Site {
    fabric: TcpFabric,
    events: Vec<Event>,
    /// True if it is not polled, as if its thread hung.
    asleep: bool,
}

impl Site {
    fn counter(&self, name: &str) -> u64 {
        counter(&self.fabric.counters(), name)
    }
}

fn counter(counters: &[(&'static str, u64)], name: &str) -> u64 {
    counters.iter().find(|(got, _)| *got == name).unwrap().1
}

/// A port and the fabrics behind it and elsewhere, driven by one thread. Their clock stands still until the test moves
/// it, so that no bound of time is reached by itself, however slow the machine is.
struct Stage {
    clock: SimulationGuard,
    port: SharedPort,
    acceptor: PortAcceptor,
    sites: Vec<Option<Site>>,
}

impl Stage {
    fn new(bounds: Bounds) -> Self {
        let bind = SocketAddr::from(([127, 0, 0, 1], 0));
        let (port, acceptor) = SharedPort::open(bind, "", bounds).unwrap();
        Self {
            clock: SimulationGuard::begin(1, u8::MAX),
            port,
            acceptor,
            sites: Vec::new(),
        }
    }

    /// A port with the endpoints of two applications.
    fn of_two() -> Self {
        let mut stage = Self::new(Bounds::default());
        stage.add(FIRST, Protection::Clear, Bounds::default());
        stage.add(SECOND, Protection::Clear, Bounds::default());
        stage
    }

    fn enter(&mut self, fabric: TcpFabric) -> usize {
        self.sites.push(Some(Site {
            fabric,
            events: Vec::new(),
            asleep: false,
        }));
        self.sites.len() - 1
    }

    /// Adds an endpoint behind the port.
    fn add(&mut self, endpoint: u128, protection: Protection, bounds: Bounds) -> usize {
        let config = config(endpoint, protection);
        let fabric = TcpFabric::behind(&self.port, config, bounds).unwrap();
        assert_eq!(fabric.location(), self.port.address().to_string());
        self.enter(fabric)
    }

    /// Adds an endpoint with a port of its own.
    fn reader(&mut self, protection: Protection) -> usize {
        self.enter(TcpFabric::new(config(READER, protection)).unwrap())
    }

    fn site(&mut self, site: usize) -> &mut Site {
        self.sites[site].as_mut().unwrap()
    }

    fn step(&mut self) {
        self.acceptor.poll(Duration::ZERO).unwrap();
        for site in self.sites.iter_mut().flatten().filter(|site| !site.asleep) {
            site.fabric.poll(&mut site.events, Duration::ZERO).unwrap();
        }
    }

    /// Waits without a deadline: the condition must come about.
    fn until<T>(&mut self, _what: &str, mut found: impl FnMut(&mut Self) -> Option<T>) -> T {
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            self.step();
        }
    }

    fn until_counter(&mut self, name: &str, value: u64) {
        let what = format!("{name} to be {value}");
        self.until(&what, |stage| (stage.counter(name) == value).then_some(()));
    }

    fn counter(&self, name: &str) -> u64 {
        counter(&self.acceptor.counters(), name)
    }

    /// Takes the first event of a site that `pick` knows.
    fn wait<T>(&mut self, site: usize, what: &str, pick: impl Fn(&Event) -> Option<T>) -> T {
        self.until(what, |stage| {
            let events = &mut stage.site(site).events;
            let at = events.iter().position(|event| pick(event).is_some())?;
            pick(&events.remove(at))
        })
    }

    fn connect(&mut self, from: usize, to: &Identity) -> ConnectionId {
        let location = self.port.address().to_string();
        let deadline = clock::now() + Duration::from_secs(10);
        let fabric = &mut self.site(from).fabric;
        fabric.connect(&location, to, deadline).unwrap()
    }

    /// Connects a reader to the endpoint of that number, which is at that site.
    fn link(&mut self, reader: usize, endpoint: u128, site: usize) {
        let connection = self.connect(reader, &card(endpoint));
        let from = self.site(reader).fabric.location();
        self.wait(reader, "Connected", |event| match event {
            Event::Connected {
                connection: got, ..
            } if *got == connection => Some(()),
            Event::Closed { reason, .. } => panic!("{from}: {reason}"),
            _ => None,
        });
        let expected = card(READER).endpoint;
        self.wait(site, "Accepted", |event| match event {
            Event::Accepted { endpoint, .. } if *endpoint == expected => Some(()),
            _ => None,
        });
    }

    /// Connects with a key that does not fit. Returns the reason that the reader gets.
    fn refused(&mut self, reader: usize, to: &Identity) -> String {
        let connection = self.connect(reader, to);
        let reason = self.wait(reader, "Closed", |event| match event {
            Event::Closed {
                connection: got,
                reason,
            } if *got == connection => Some(reason.clone()),
            _ => None,
        });
        assert!(matches!(reason, CloseReason::Peer { .. }), "{reason}");
        reason.to_string()
    }

    fn dial(&self) -> TcpStream {
        TcpStream::connect(self.port.address()).unwrap()
    }

    /// Reads until the other side has closed; what it said.
    fn until_gone(&mut self, mut socket: TcpStream) -> Vec<u8> {
        socket.set_nonblocking(true).unwrap();
        let mut said = Vec::new();
        self.until("the connection to be closed", |_| {
            let mut buffer = [0; 4096];
            match socket.read(&mut buffer) {
                Ok(0) => Some(()),
                Ok(bytes) => {
                    said.extend_from_slice(&buffer[..bytes]);
                    None
                }
                Err(error) => (error.kind() != ErrorKind::WouldBlock).then_some(()),
            }
        });
        said
    }

    /// Returns the text of the GOODBYE, which must be the only answer.
    fn goodbye(&mut self, socket: TcpStream) -> String {
        let said = self.until_gone(socket);
        let header = FrameHeader::parse(&said).unwrap();
        assert_eq!(header.kind, kind::GOODBYE);
        header.check_body(&said[32..]).unwrap();
        String::from_utf8(said[32 + 8..].to_vec()).unwrap()
    }

    /// Waits for WELCOME, and answers it with the proof.
    fn prove(&mut self, socket: &mut TcpStream, connector: TestConnector) {
        let mut welcome = vec![0; WELCOME_FRAME_BYTES];
        let mut read = 0;
        socket.set_nonblocking(true).unwrap();
        self.until("WELCOME", |_| {
            match socket.read(&mut welcome[read..]) {
                Ok(0) => panic!("the connection was closed"),
                Ok(bytes) => read += bytes,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            (read == welcome.len()).then_some(())
        });
        socket.set_nonblocking(false).unwrap();
        socket.write_all(&connector.proof(&welcome).0).unwrap();
    }
}

/// Of a connector that knows the card of that endpoint.
fn connector(to: u128) -> (TestConnector, Vec<u8>) {
    TestConnector::hello(b't', Protection::Clear, &card(to), READER)
}

fn hello(to: u128) -> Vec<u8> {
    connector(to).1
}

fn small() -> Bounds {
    Bounds {
        connections: 100,
        unauthenticated: 50,
        ..Bounds::default()
    }
}

#[test]
fn each_endpoint_is_reached_with_its_own_card_only() {
    let mut stage = Stage::of_two();
    let reader = stage.reader(Protection::Clear);
    stage.link(reader, FIRST, 0);
    stage.link(reader, SECOND, 1);
    let [first, second] = [FIRST, SECOND].map(card);
    let crossed = [(&first, &second), (&second, &first)].map(|(one, other)| Identity {
        endpoint: one.endpoint,
        psk: other.psk.clone(),
    });
    for crossed in &crossed {
        let told = stage.refused(reader, crossed);
        assert!(told.contains("HELLO does not prove membership"), "{told}");
        for known in [&first, &second] {
            assert!(!told.contains(&format!("{:x}", known.endpoint)), "{told}");
        }
    }
    for site in [0, 1] {
        assert_eq!(stage.site(site).counter("accepted"), 1);
        assert_eq!(stage.site(site).counter("handshakes_failed"), 0);
    }
    assert_eq!(stage.counter("passed_on"), 2);
    assert_eq!(stage.counter("handshakes_failed"), 2);
}

#[test]
fn endpoints_that_seal_and_that_do_not_are_behind_one_port() {
    let mut stage = Stage::new(Bounds::default());
    let clear = stage.add(FIRST, Protection::Clear, Bounds::default());
    let sealed = stage.add(SECOND, Protection::Sealed, Bounds::default());
    let reader = stage.reader(Protection::Clear);
    stage.link(reader, FIRST, clear);
    let told = stage.refused(reader, &card(SECOND));
    assert!(told.contains("another setting"), "{told}");
    let reader = stage.reader(Protection::Sealed);
    stage.link(reader, SECOND, sealed);
}

/// As an endpoint with a port of its own says.
#[test]
fn a_setting_that_no_endpoint_has_is_named() {
    let mut stage = Stage::of_two();
    let reader = stage.reader(Protection::Sealed);
    let told = stage.refused(reader, &card(FIRST));
    assert!(told.contains("the security settings differ"), "{told}");
}

#[test]
fn what_has_no_key_reaches_no_endpoint() {
    let mut stage = Stage::of_two();
    let of_no_endpoint = hello(7);
    let newer = [VERSION + 1; 2];
    let to = card(FIRST);
    let (_, of_another_version) =
        TestConnector::offering(newer, b't', Protection::Clear, &to, READER);
    let (_, of_another_fabric) =
        TestConnector::hello(b'v', Protection::Clear, &card(FIRST), READER);
    let mut damaged = hello(FIRST);
    *damaged.last_mut().unwrap() ^= 1;
    for (bytes, text) in [
        (of_no_endpoint, "HELLO does not prove membership"),
        (of_another_fabric, "HELLO does not prove membership"),
        (of_another_version, "this side speaks"),
        (damaged, "frame body"),
        (vec![b'x'; 400], "magic"),
    ] {
        let mut outsider = stage.dial();
        outsider.write_all(&bytes).unwrap();
        let told = stage.goodbye(outsider);
        assert!(told.contains(text), "{told}");
    }
    for site in [0, 1] {
        assert_eq!(stage.site(site).counter("bytes_in"), 0);
    }
    assert_eq!(stage.counter("passed_on"), 0);
}

#[test]
fn random_byte_strings_reach_no_endpoint() {
    let mut stage = Stage::of_two();
    let mut dice = Xorshift::new(0xfa20_0003);
    for _ in 0..2_000 {
        let mut attacker = stage.dial();
        let length = 1 + dice.below(300);
        let mut bytes = dice.bytes(length);
        // Some look right at first.
        match dice.below(4) {
            0 if bytes.len() >= 32 => bytes[..4].copy_from_slice(b"FARO"),
            1 => bytes.splice(..0, hello(7)).for_each(drop),
            2 => {
                // So many bytes are missing that what follows cannot be them.
                let mut start = hello(FIRST);
                start.truncate(1 + dice.below(start.len() - 16));
                bytes.splice(..0, start).for_each(drop);
            }
            _ => {}
        }
        // It may close before it has all of it.
        let _ = attacker.write_all(&bytes);
        let _ = attacker.shutdown(Shutdown::Write);
        stage.until_gone(attacker);
    }
    stage.until_counter("connections", 0);
    assert_eq!(stage.counter("buffered_bytes"), 0);
    assert_eq!(stage.counter("passed_on"), 0);
    let reader = stage.reader(Protection::Clear);
    stage.link(reader, FIRST, 0);
}

#[test]
fn a_hello_in_pieces_holds_up_no_other() {
    let mut stage = Stage::of_two();
    let (connector, bytes) = connector(SECOND);
    let mut slow = stage.dial();
    let reader = stage.reader(Protection::Clear);
    for (at, byte) in bytes.iter().enumerate() {
        slow.write_all(&[*byte]).unwrap();
        if at % 16 == 0 {
            stage.link(reader, FIRST, 0);
            stage.until_counter("connections", 1);
        }
    }
    stage.prove(&mut slow, connector);
    let expected = card(READER).endpoint;
    stage.wait(1, "Accepted", |event| match event {
        Event::Accepted { endpoint, .. } if *endpoint == expected => Some(()),
        _ => None,
    });
    assert_eq!(stage.counter("connections"), 0);
}

#[test]
fn half_a_hello_ends_at_its_deadline() {
    let timeout = Duration::from_millis(30);
    let mut stage = Stage::new(Bounds {
        hello_timeout: timeout,
        ..Bounds::default()
    });
    let first = stage.add(FIRST, Protection::Clear, Bounds::default());
    let bytes = hello(FIRST);
    let mut now = Duration::ZERO;
    for cut in [0, 1, 31, 32, 33, bytes.len() - 1] {
        let mut slow = stage.dial();
        slow.write_all(&bytes[..cut]).unwrap();
        stage.until_counter("connections", 1);
        let failed = stage.counter("handshakes_failed");
        stage.clock.set(now + timeout - Duration::from_millis(1));
        (0..10).for_each(|_| stage.step());
        assert_eq!(stage.counter("handshakes_failed"), failed, "too early");
        now += timeout;
        stage.clock.set(now);
        let told = stage.goodbye(slow);
        stage.until_counter("connections", 0);
        let bound = "has not proven who it is reached its bound of 30";
        assert!(told.contains(bound), "{cut}: {told}");
    }
    assert_eq!(stage.site(first).counter("bytes_in"), 0);
}

#[test]
fn half_a_hello_and_the_end_are_gone_at_once() {
    let mut stage = Stage::of_two();
    let bytes = hello(FIRST);
    for cut in [0, 1, 32, bytes.len() - 1] {
        let mut outsider = stage.dial();
        outsider.write_all(&bytes[..cut]).unwrap();
        outsider.shutdown(Shutdown::Write).unwrap();
        assert!(stage.until_gone(outsider).is_empty());
    }
    stage.until_counter("connections", 0);
}

#[test]
fn strangers_that_say_nothing_keep_no_member_out() {
    let mut stage = Stage::new(small());
    let first = stage.add(FIRST, Protection::Clear, Bounds::default());
    let bounds = small();
    let held: Vec<_> = (0..bounds.connections + 20).map(|_| stage.dial()).collect();
    let displaced = (held.len() - bounds.unauthenticated) as u64;
    stage.until_counter("connections_refused", displaced);
    assert_eq!(stage.counter("connections"), bounds.unauthenticated as u64);
    let reader = stage.reader(Protection::Clear);
    stage.link(reader, FIRST, first);
    // It has taken the place of one more.
    assert_eq!(stage.counter("connections_refused"), displaced + 1);
    assert_eq!(stage.site(first).counter("connections"), 1);
    drop(held);
    stage.until_counter("connections", 0);
}

#[test]
fn a_newcomer_to_an_endpoint_that_has_ended_is_refused() {
    let mut stage = Stage::of_two();
    let mut newcomer = stage.dial();
    stage.until_counter("connections", 1);
    stage.sites[0] = None;
    assert_eq!(stage.counter("endpoints"), 1);
    newcomer.write_all(&hello(FIRST)).unwrap();
    let told = stage.goodbye(newcomer);
    assert!(told.contains("HELLO does not prove membership"), "{told}");
    let reader = stage.reader(Protection::Clear);
    stage.link(reader, SECOND, 1);
}

#[test]
fn an_endpoint_that_hangs_holds_up_no_other() {
    let mut stage = Stage::new(Bounds::default());
    let bounds = Bounds {
        unauthenticated: 4,
        ..Bounds::default()
    };
    let hangs = stage.add(FIRST, Protection::Clear, bounds);
    let other = stage.add(SECOND, Protection::Clear, Bounds::default());
    stage.site(hangs).asleep = true;
    let waiting: Vec<_> = (0..4)
        .map(|at| {
            let (connector, hello) = connector(FIRST);
            let mut socket = stage.dial();
            socket.write_all(&hello).unwrap();
            stage.until_counter("passed_on", at + 1);
            (socket, connector)
        })
        .collect();
    let mut late = stage.dial();
    late.write_all(&hello(FIRST)).unwrap();
    let told = stage.goodbye(late);
    let bound = "connections that wait for their endpoint reached its bound of 4";
    assert!(told.contains(bound), "{told}");
    let reader = stage.reader(Protection::Clear);
    stage.link(reader, SECOND, other);
    stage.site(hangs).asleep = false;
    for (mut socket, connector) in waiting {
        stage.prove(&mut socket, connector);
    }
    stage.until("all to be accepted", |stage| {
        (stage.site(hangs).counter("accepted") == 4).then_some(())
    });
}

#[test]
fn connections_that_wait_for_an_endpoint_end_with_it() {
    let mut stage = Stage::of_two();
    stage.site(0).asleep = true;
    let mut newcomer = stage.dial();
    newcomer.write_all(&hello(FIRST)).unwrap();
    stage.until_counter("passed_on", 1);
    stage.sites[0] = None;
    assert!(stage.until_gone(newcomer).is_empty());
}

#[test]
fn a_port_that_is_taken_is_named() {
    let stage = Stage::of_two();
    let address = stage.port.address();
    match SharedPort::open(address, "", Bounds::default()).map(drop) {
        Err(FabricError::Io { what, source }) => {
            assert!(what.contains(&address.to_string()), "{what}");
            assert_eq!(source.kind(), ErrorKind::AddrInUse);
        }
        other => panic!("{other:?}"),
    }
}
