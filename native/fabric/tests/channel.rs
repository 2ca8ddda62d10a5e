//! A sealed pair, and somebody between the two who changes, drops, repeats, reorders and mixes what they send. Neither
//! side ever sees a byte that the other did not send, and nothing on the way shows what was sent.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_fabric::tcp::{TcpConfig, TcpFabric};
use faro_fabric::{
    CloseReason, ConnectionId, Event, Exposure, Fabric, Identity, Message, RemoteRange, Revoked,
    Write as PostedWrite,
};
use faro_pool::{Pool, Purpose};
use faro_secure::{Protection, Secret, SharedSecret};
use faro_wire::kind;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(60);
const ROW: &[u8] = b"a row that nobody else may read ";

/// One side.
struct Side {
    fabric: TcpFabric,
    pool: Arc<Pool>,
    identity: Identity,
    connection: Option<ConnectionId>,
    events: Vec<Event>,
}

fn identity(endpoint: u128, secret: &str) -> Identity {
    let shared = SharedSecret::new(secret.as_bytes().to_vec());
    Identity::new(
        endpoint,
        &Secret::new([endpoint as u8; 32]),
        Some(&shared),
        "app-1",
    )
}

impl Side {
    fn new(identity: Identity, protection: Protection) -> Self {
        let pool = Pool::new(faro_pool::MIN_LIMIT_BYTES).unwrap();
        let config = TcpConfig {
            bind: "127.0.0.1:0".parse().unwrap(),
            advertise: String::new(),
            identity: identity.clone(),
            protection,
            pool: pool.clone(),
        };
        Self {
            fabric: TcpFabric::new(config).unwrap(),
            pool,
            identity,
            connection: None,
            events: Vec::new(),
        }
    }

    fn sealed(endpoint: u128) -> Self {
        Self::new(identity(endpoint, "spark's"), Protection::Sealed)
    }

    fn poll(&mut self) {
        let before = self.events.len();
        self.fabric.poll(&mut self.events, Duration::ZERO).unwrap();
        for event in &self.events[before..] {
            if let Event::Connected { connection, .. } | Event::Accepted { connection, .. } = event
            {
                self.connection = Some(*connection);
            }
        }
    }

    fn closed(&self) -> Option<&CloseReason> {
        self.events.iter().find_map(|event| match event {
            Event::Closed { reason, .. } => Some(reason),
            _ => None,
        })
    }

    fn messages(&self) -> Vec<&[u8]> {
        self.events
            .iter()
            .filter_map(|event| match event {
                Event::Message { message, .. } => Some(&message.body[..]),
                _ => None,
            })
            .collect()
    }

    fn say(&mut self, body: &[u8]) {
        let message = Message {
            kind: kind::FIRST_MESSAGE,
            id: 1,
            body: body.to_vec(),
        };
        self.fabric.send(self.connection.unwrap(), message).unwrap();
    }
}

/// One direction of a connection in the middle: a greeting's frame, then records.
#[derive(Default)]
struct Direction {
    buffer: Vec<u8>,
    greeted: bool,
    /// All units that came, as they were sent.
    seen: Vec<Vec<u8>>,
    ended: bool,
}

impl Direction {
    /// The units that are whole.
    fn take(&mut self, from: &mut TcpStream) -> Vec<Vec<u8>> {
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
            let whole = if self.greeted {
                number(0).map(|length| 4 + length)
            } else {
                number(8).map(|length| 32 + length)
            };
            match whole {
                Some(whole) if self.buffer.len() >= whole => {
                    self.greeted = true;
                    let unit: Vec<u8> = self.buffer.drain(..whole).collect();
                    self.seen.push(unit.clone());
                    units.push(unit);
                }
                _ => return units,
            }
        }
    }
}

/// Takes a unit of the connector's and its number; returns the units that are sent on instead.
type Tamper<'t> = dyn FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + 't;

struct Middle {
    listener: TcpListener,
    sides: Option<(TcpStream, TcpStream)>,
    up: Direction,
    down: Direction,
}

impl Middle {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self {
            listener,
            sides: None,
            up: Direction::default(),
            down: Direction::default(),
        }
    }

    fn location(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    fn step(&mut self, to: &str, tamper: &mut Tamper<'_>) {
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
        for unit in self.up.take(near) {
            let number = self.up.seen.len() - 1;
            for unit in tamper(number, unit) {
                let _ = far.write_all(&unit);
            }
        }
        for unit in self.down.take(far) {
            let _ = near.write_all(&unit);
        }
        for (ended, other) in [(self.up.ended, far), (self.down.ended, near)] {
            if ended {
                let _ = other.shutdown(Shutdown::Write);
            }
        }
    }

    /// Nothing more comes from the connector.
    fn end(&mut self) {
        if let Some((_, far)) = &self.sides {
            let _ = far.shutdown(Shutdown::Write);
        }
    }
}

struct Stage {
    connector: Side,
    acceptor: Side,
    middle: Middle,
}

impl Stage {
    fn new(connector: Side, acceptor: Side) -> Self {
        let mut stage = Self {
            connector,
            acceptor,
            middle: Middle::new(),
        };
        let (location, expected) = (stage.middle.location(), stage.acceptor.identity.clone());
        let deadline = Instant::now() + TIMEOUT;
        stage
            .connector
            .fabric
            .connect(&location, &expected, deadline)
            .unwrap();
        stage
    }

    fn sealed() -> Self {
        Self::new(Side::sealed(10), Side::sealed(20))
    }

    /// Why the connection ended: a side that knows the other one tells it.
    fn told(&self) -> Option<CloseReason> {
        let sides = [&self.acceptor, &self.connector];
        sides.iter().find_map(|side| side.closed()).cloned()
    }

    fn step(&mut self, tamper: &mut Tamper<'_>) {
        self.connector.poll();
        self.acceptor.poll();
        self.middle.step(&self.acceptor.fabric.location(), tamper);
    }

    fn until(&mut self, what: &str, tamper: &mut Tamper<'_>, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !done(self) {
            assert!(Instant::now() < deadline, "gave up waiting for {what}");
            self.step(tamper);
        }
    }

    fn open(&mut self) {
        self.until("both ends", &mut pass, |stage| {
            stage.connector.connection.is_some() && stage.acceptor.connection.is_some()
        });
    }
}

fn pass(_: usize, unit: Vec<u8>) -> Vec<Vec<u8>> {
    vec![unit]
}

/// HELLO, the proof, and then one record for each of three messages.
const MESSAGES: [&[u8]; 3] = [b"one row", b"another one", b"the last"];

/// HELLO, the proof, and the messages.
const UNITS: usize = 2 + MESSAGES.len();

/// A connection on which units are tampered with, and why it ended if it did. What the acceptor got is a beginning of
/// what was said.
fn tampered(tamper: &mut Tamper<'_>) -> (Stage, Option<CloseReason>) {
    let mut stage = Stage::sealed();
    let mut said = 0;
    let deadline = Instant::now() + TIMEOUT;
    while stage.acceptor.messages().len() < MESSAGES.len() && stage.told().is_none() {
        assert!(Instant::now() < deadline, "still running");
        stage.step(tamper);
        let open = stage.connector.connection.is_some() && stage.connector.closed().is_none();
        if open && said < MESSAGES.len() {
            stage.connector.say(MESSAGES[said]);
            said += 1;
        }
        // A record that seems longer than it is waits for bytes that never come.
        if stage.middle.up.seen.len() == UNITS {
            stage.middle.end();
        }
    }
    let got = stage.acceptor.messages();
    assert_eq!(got, MESSAGES[..got.len()]);
    let told = stage.told();
    (stage, told)
}

#[test]
fn what_is_not_touched_arrives() {
    let (stage, _) = tampered(&mut pass);
    assert_eq!(stage.acceptor.messages(), MESSAGES);
}

#[test]
fn no_flipped_bit_is_taken_for_what_was_sent() {
    for unit in 0..5 {
        // Of a record: its length, its ciphertext, its tag. Of a frame: its header, HELLO's versions and its handshake.
        for place in [0, 3, 4, 40, usize::MAX] {
            let (stage, told) = tampered(&mut |number, mut bytes: Vec<u8>| {
                if number == unit {
                    let at = place.min(bytes.len() - 1);
                    bytes[at] ^= 0x10;
                }
                vec![bytes]
            });
            let got = stage.acceptor.messages().len();
            assert!(
                got <= unit.saturating_sub(2),
                "unit {unit}, byte {place}: {got}"
            );
            assert!(told.is_some(), "unit {unit}, byte {place}");
        }
    }
}

#[test]
fn what_is_dropped_repeated_or_swapped_ends_the_connection() {
    for unit in 1..4 {
        let mut held = Vec::new();
        let drop_it = |number, bytes| if number == unit { vec![] } else { vec![bytes] };
        let twice = |number, bytes: Vec<u8>| vec![bytes; if number == unit { 2 } else { 1 }];
        let swap = |number, bytes: Vec<u8>| {
            if number == unit {
                held = bytes;
                return vec![];
            }
            let mut units = vec![bytes];
            if number == unit + 1 {
                units.push(std::mem::take(&mut held));
            }
            units
        };
        let cases: [(&str, Box<Tamper<'_>>); 3] = [
            ("dropped", Box::new(drop_it)),
            ("repeated", Box::new(twice)),
            ("swapped", Box::new(swap)),
        ];
        for (what, mut tamper) in cases {
            let (stage, told) = tampered(&mut *tamper);
            let got = stage.acceptor.messages().len();
            // Of one that is repeated, the first copy is good.
            let good = (unit - 1).saturating_sub(usize::from(what != "repeated"));
            assert!(got <= good, "{what} {unit}: {got} messages");
            let text = told.unwrap_or_else(|| panic!("{what} {unit}")).to_string();
            assert!(is_right(&text, unit), "{what} {unit}: {text}");
        }
    }
}

/// The acceptor says why, once the proof (unit 1) has come.
fn is_right(reason: &str, unit: usize) -> bool {
    reason.contains("changed, left out or repeated")
        || unit == 1 && reason.contains("the peer ended the stream")
}

#[test]
fn records_of_another_connection_are_refused() {
    let (other, _) = tampered(&mut pass);
    let theirs = other.middle.up.seen;
    for (unit, other) in theirs.iter().enumerate().skip(1) {
        let (stage, told) =
            tampered(&mut |number, bytes| vec![if number == unit { other.clone() } else { bytes }]);
        assert!(stage.acceptor.messages().len() < MESSAGES.len());
        let text = told.unwrap().to_string();
        assert!(is_right(&text, unit), "unit {unit}: {text}");
    }
}

#[test]
fn a_recorded_connection_cannot_be_played_again() {
    let (mut stage, _) = tampered(&mut pass);
    let recorded = stage.middle.up.seen.concat();
    stage.acceptor.events.clear();
    let mut replay = TcpStream::connect(stage.acceptor.fabric.location()).unwrap();
    replay.write_all(&recorded).unwrap();
    replay.set_nonblocking(true).unwrap();
    let mut answer = Vec::new();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        assert!(Instant::now() < deadline, "the replay is not ended");
        stage.acceptor.poll();
        match replay.read_to_end(&mut answer) {
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    assert!(stage.acceptor.events.is_empty(), "it is never a peer");
}

#[test]
fn nothing_on_the_way_shows_what_was_sent() {
    let mut stage = Stage::sealed();
    stage.open();
    let plain: Vec<u8> = ROW.iter().copied().cycle().take(300_000).collect();
    let lease = stage
        .acceptor
        .pool
        .try_lease(256 << 10, Purpose::Read)
        .unwrap();
    let accepted = stage.acceptor.connection.unwrap();
    let exposed = stage
        .acceptor
        .fabric
        .expose(accepted, Exposure::Writable(lease));
    let range: RemoteRange = exposed.map_err(drop).unwrap();
    let mut source = stage
        .connector
        .pool
        .try_lease(256 << 10, Purpose::Serve)
        .unwrap();
    source.bytes_mut().copy_from_slice(&plain[..256 << 10]);
    let write = PostedWrite {
        token: 1,
        source: Arc::new(source),
        offset: 0,
        length: 256 << 10,
        target: range,
        immediate: None,
        last: false,
    };
    let connection = stage.connector.connection.unwrap();
    stage
        .connector
        .fabric
        .write(connection, write)
        .map_err(drop)
        .unwrap();
    stage.connector.say(&plain);
    stage.until("the message", &mut pass, |stage| {
        !stage.acceptor.messages().is_empty()
    });
    assert_eq!(stage.acceptor.messages(), [&plain[..]]);
    match stage.acceptor.fabric.revoke(range.key) {
        Revoked::Now(exposure) => assert!(exposure.lease().bytes() == &plain[..256 << 10]),
        _ => panic!("not revoked at once"),
    }
    let seen = stage.middle.up.seen.concat();
    assert!(seen.len() > 556_000);
    let key = range.key.to_le_bytes();
    assert!(!seen.windows(12).any(|bytes| bytes == &ROW[..12]));
    assert!(
        !seen.windows(8).any(|bytes| bytes == key),
        "nor what names memory"
    );
    let id = 10_u128.to_le_bytes();
    assert!(!seen.windows(16).any(|bytes| bytes == id), "nor who it is");
}

#[test]
fn who_is_not_of_the_application_is_refused_by_name_of_the_cause() {
    let member = || identity(20, "spark's");
    let sealed = Protection::Sealed;
    let unproven = "HELLO does not prove membership in this application";
    let differ = "the security settings differ";
    let cases = [
        (identity(20, "another"), sealed, unproven),
        (identity(21, "spark's"), sealed, unproven),
        (Identity::public(20), sealed, unproven),
        (member(), Protection::Clear, differ),
    ];
    for (expected, protection, cause) in cases {
        let mut stage = Stage::new(
            Side::new(identity(10, "spark's"), protection),
            Side::sealed(20),
        );
        stage.acceptor.identity = member();
        let deadline = Instant::now() + TIMEOUT;
        let location = stage.acceptor.fabric.location();
        let connection = stage
            .connector
            .fabric
            .connect(&location, &expected, deadline)
            .unwrap();
        stage.until("a refusal", &mut pass, |stage| {
            stage.connector.events.iter().any(
                |event| matches!(event, Event::Closed { connection: got, .. } if *got == connection),
            )
        });
        let reason = stage.connector.events.iter().find_map(|event| match event {
            Event::Closed {
                connection: got,
                reason,
            } if *got == connection => Some(reason.to_string()),
            _ => None,
        });
        let reason = reason.unwrap();
        assert!(reason.contains(cause), "{reason}");
        assert!(
            !reason.contains("spark's") && !reason.contains("another secret s"),
            "{reason}"
        );
    }
    // The other way round: the acceptor has its bytes in the clear.
    let clear = Side::new(member(), Protection::Clear);
    let mut stage = Stage::new(Side::sealed(10), clear);
    stage.until("a refusal", &mut pass, |stage| {
        stage.connector.closed().is_some()
    });
    assert!(stage
        .connector
        .closed()
        .unwrap()
        .to_string()
        .contains(differ));
    assert!(stage.acceptor.events.is_empty());
}
