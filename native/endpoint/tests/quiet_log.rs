//! A member cannot fill the log: what it causes again and again is one line in a minute, or a few.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/by_hand.rs"]
mod by_hand;
mod support;
#[path = "support/turns.rs"]
mod turns;
#[path = "support/virtual_time.rs"]
mod virtual_time;

use by_hand::fabric_by_hand;
use faro_endpoint::{Config, Endpoint, FabricChoice};
use faro_fabric::{Event, Message, OwnIdentity};
use faro_pool::Pool;
use faro_secure::Protection;
use faro_sync::clock;
use faro_wire::message::Fetch;
use faro_wire::{kind, Card};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{block, config, counter, MEMORY, TIMEOUT};
use turns::Turns;
use virtual_time::{endpoint, EndpointDriver};

struct LogCapture(Mutex<Vec<String>>);

impl log::Log for LogCapture {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        self.0.lock().unwrap().push(record.args().to_string());
    }
    fn flush(&self) {}
}

static LOG: LogCapture = LogCapture(Mutex::new(Vec::new()));

fn lines(part: &str) -> usize {
    let log = LOG.0.lock().unwrap();
    log.iter().filter(|line| line.contains(part)).count()
}

/// Connects, sends the message, and waits until the server has answered it or closed the connection. `each` is the time
/// that passes until it is looked at again.
fn say(turns: &Turns, server: &Endpoint, message: &Message, each: Duration) {
    let card = Card::decode(&server.card()).unwrap();
    let own = OwnIdentity::public(0xfa50_0000_0000_0001);
    let pool = Pool::new(MEMORY).unwrap();
    let (_, mut fabric) = fabric_by_hand(FabricChoice::Tcp, own, Protection::Clear, pool);
    let location = &card.addresses[0].location;
    let deadline = clock::now() + TIMEOUT;
    let connected = fabric.connect(location, &support::identity(&card), deadline);
    let connection = connected.unwrap();
    let (mut events, mut over) = (Vec::new(), false);
    turns.until("an answer or the end", &mut || {
        turns.pass(each);
        fabric.poll(&mut events, Duration::ZERO).unwrap();
        for event in events.drain(..) {
            match event {
                Event::Connected { .. } => {
                    assert!(fabric.send(connection, message.clone()).is_ok());
                    fabric.flush();
                }
                Event::Closed { .. } | Event::Message { .. } => over = true,
                _ => {}
            }
        }
        over
    });
}

/// Time that the Java side may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

fn server(turns: &Turns) -> Arc<Endpoint> {
    let config = Config {
        request_timeout: ANSWER,
        ..config("server", FabricChoice::Tcp)
    };
    endpoint(turns, config)
}

#[test]
fn a_member_that_misbehaves_a_hundred_times_is_named_once() {
    log::set_logger(&LOG).unwrap();
    log::set_max_level(log::LevelFilter::Info);
    // Less than a minute passes, by its clock.
    let turns = Turns::over(FabricChoice::Tcp);
    let server = server(&turns);
    let wrong = Message {
        kind: kind::CANCEL,
        id: 1,
        body: vec![1],
    };
    for _ in 0..100 {
        say(&turns, &server, &wrong, Duration::ZERO);
    }
    turns.until("all are closed", &mut || {
        counter(&server, "connections.tcp") == 0
    });
    assert_eq!(lines("closing the connection"), 1);
    let told = lines("tcp connection ");
    assert!(
        (1..=16).contains(&told),
        "{told} lines of closed connections"
    );

    // It asks for 200 outputs, and no thread of Java's says where they are.
    let server = self::server(&turns);
    let asked = Fetch {
        deadline_ms: TIMEOUT.as_millis() as u32,
        writes_only: false,
        reader_verifies: false,
        buffers: Vec::new(),
        blocks: (0..200).map(|map| block(0, map, 0, 1)).collect(),
    };
    let asked = Message {
        kind: kind::FETCH,
        id: 1,
        body: asked.encode(),
    };
    say(&turns, &server, &asked, Duration::from_secs(1));
    // All 200 have been looked at then.
    turns.pass(ANSWER + Duration::from_secs(1));
    assert_eq!(lines("no answer from Java"), 1);
}
