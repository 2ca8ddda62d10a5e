//! A pair whose best fabric fails: the next one brings the blocks, the log says so once, and the
//! better one is taken again when it works.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use faro_endpoint::FabricChoice;
use faro_wire::Card;
use std::sync::Mutex;
use support::{block, config, counter, fetch, pattern, until, Server};

/// Keeps what is logged.
struct LogCapture(Mutex<Vec<(log::Level, String)>>);

impl log::Log for LogCapture {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        let line = (record.level(), record.args().to_string());
        self.0.lock().unwrap().push(line);
    }
    fn flush(&self) {}
}

static LOG: LogCapture = LogCapture(Mutex::new(Vec::new()));

fn lines(level: log::Level, part: &str) -> Vec<String> {
    let log = LOG.0.lock().unwrap();
    let wanted = log
        .iter()
        .filter(|(l, line)| *l == level && line.contains(part));
    wanted.map(|(_, line)| line.clone()).collect()
}

/// Returns the card with a shm location at which no endpoint listens, and with no other fabric
/// besides TCP.
fn with_dead_shm(card: &[u8]) -> Vec<u8> {
    let mut card = Card::decode(card).unwrap();
    card.addresses
        .retain(|a| ["shm", "tcp"].contains(&&*a.scheme));
    let shm = card.addresses.iter_mut().find(|a| a.scheme == "shm");
    let location = &mut shm.unwrap().location;
    let other = if location.ends_with('0') { "1" } else { "0" };
    location.replace_range(location.len() - 1.., other);
    card.encode()
}

#[test]
fn the_next_fabric_brings_the_blocks_and_the_log_says_so_once() {
    log::set_logger(&LOG).unwrap();
    log::set_max_level(log::LevelFilter::Info);
    let [one, two] = [0, 1].map(|n| {
        let server = Server::start(config(&format!("executor-{n}"), FabricChoice::Auto));
        server.put(0, n, &[pattern(n as u64, 1000)]);
        server
    });
    let client = &one.endpoint;
    let peer = client
        .add_peer(&with_dead_shm(&two.endpoint.card()))
        .unwrap();
    for _ in 0..3 {
        let fetched = fetch(client, peer, &[block(0, 1, 0, 1)]);
        assert_eq!(fetched.bytes(), [pattern(1, 1000)]);
    }
    assert_eq!(counter(client, "remoteBlocks.tcp"), 3);
    assert_eq!(counter(client, "requestsFailed"), 0);
    let warnings = lines(log::Level::Warn, "executor-1");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in [
        "arrive over tcp because shm failed",
        "no connection to",
        "tried again",
        "same user",
    ] {
        assert!(warnings[0].contains(part), "{}", warnings[0]);
    }

    // The peer can reach us by shm, and so we have a connection when shm is tried again.
    let back = one.peer_of(&two.endpoint);
    let fetched = fetch(&two.endpoint, back, &[block(0, 0, 0, 1)]);
    assert_eq!(fetched.bytes(), [pattern(0, 1000)]);
    assert_eq!(counter(&two.endpoint, "remoteBlocks.shm"), 1);
    until("shm is tried again", || {
        let fetched = fetch(client, peer, &[block(0, 1, 0, 1)]);
        assert_eq!(fetched.bytes(), [pattern(1, 1000)]);
        counter(client, "remoteBlocks.shm") > 0
    });
    let back = lines(log::Level::Info, "executor-1: shm works again");
    assert_eq!(back.len(), 1, "{back:?}");
    assert_eq!(lines(log::Level::Warn, "executor-1").len(), 1, "no other");
}
