//! Tests what the network between two hosts shows of a shuffle over RDMA, and what somebody on the way can do to it.
//!
//! `tests/softroce/suite capture` runs it on the bridge of two hosts, which have an RDMA device each. The endpoints are
//! processes on the hosts; this one passes their packets on (`capture/switch.rs`).

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "capture/roce.rs"]
mod roce;
mod support;
#[path = "capture/switch.rs"]
mod switch;

use faro_endpoint::{Config, Endpoint, FabricChoice, Protection, Security, SharedSecret};
use faro_sync::lock;
use faro_wire::{kind, Card};
use roce::Carries;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use support::{block, config, counter, fetch, until, Server};
use switch::{Change, Packet, Switch};

/// Content of the shuffle.
const MARKER: &[u8] = b"a row that only two executors know, of a shuffle, again and again. ";
const BYTES: usize = 1 << 20;
const SECRET: &str = "the secret of Spark, which only members know";
/// Length of a record's head, which is in the clear.
const RECORD_LENGTH: usize = faro_secure::HEADER_BYTES;
/// A record of four bytes.
const CREDITS_ONLY: usize = faro_secure::OVERHEAD_BYTES + 4;
/// There is one switch.
static ONE: Mutex<()> = Mutex::new(());

fn shuffle() -> Vec<u8> {
    MARKER.iter().copied().cycle().take(BYTES).collect()
}

/// Task of a process on a host, from its environment; `None` in a run of the whole file.
struct Host {
    config: Config,
    files: PathBuf,
}

impl Host {
    fn here() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        let address: IpAddr = variable("FARO_HOST_ADDRESS")?.parse().unwrap();
        let protection = match variable("FARO_HOST_SEALED") {
            Some(_) => Protection::Sealed,
            None => Protection::Clear,
        };
        let security = Security {
            protection,
            application: "app-20261122-0001".to_owned(),
            secret: Some(SharedSecret::new(SECRET.as_bytes().to_vec())),
        };
        let config = Config {
            bind: address,
            advertise: address,
            security,
            ..config("capture", FabricChoice::Verbs)
        };
        let files = variable("FARO_HOST_FILES")?.into();
        Some(Self { config, files })
    }

    fn log_to(&self, name: &str) {
        log::set_boxed_logger(Box::new(LogFile(self.files.join(name)))).unwrap();
        log::set_max_level(log::LevelFilter::Info);
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let part = self.files.join(format!("{name}.part"));
        fs::write(&part, bytes).unwrap();
        fs::rename(part, self.files.join(name)).unwrap();
    }
}

#[test]
#[ignore = "the other tests run it on a host"]
fn server_on_a_host() {
    let Some(host) = Host::here() else { return };
    host.log_to("server.log");
    let server = Server::start(host.config.clone());
    server.put(0, 0, &[shuffle()]);
    host.write("server", &server.endpoint.card());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
#[ignore = "the other tests run it on a host"]
fn client_on_a_host() {
    let Some(host) = Host::here() else { return };
    host.log_to("log");
    let client = Endpoint::start(host.config.clone()).unwrap();
    host.write("client", &client.card());
    let card = fs::read(host.files.join("server")).unwrap();
    let peer = client.add_peer(&card).unwrap();
    // On a slow machine a connection takes longer than an endpoint waits for it.
    let mut fetched = None;
    until("the shuffle", || {
        let this = fetch(&client, peer, &[block(0, 0, 0, 1)]);
        let done = this.failure.is_none();
        fetched = Some(this);
        done
    });
    assert!(fetched.unwrap().bytes() == [shuffle()]);
    for name in ["crcErrors", "connections.verbs"] {
        let count = counter(&client, name);
        host.write(name, count.to_string().as_bytes());
    }
    client.close();
}

struct LogFile(PathBuf);

impl log::Log for LogFile {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut options = fs::OpenOptions::new();
        let mut file = options.create(true).append(true).open(&self.0).unwrap();
        writeln!(file, "{}", record.args()).unwrap();
    }

    fn flush(&self) {}
}

/// Ends with its test.
struct OnHost(Child);

impl OnHost {
    fn start(number: u8, test: &str, protection: Protection, files: &Path) -> Self {
        let mut command = Command::new("at");
        command
            .arg(format!("h{number}"))
            .arg(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", test])
            .env("FARO_HOST_ADDRESS", format!("10.77.0.{number}"))
            .env("FARO_HOST_FILES", files)
            // Its results are not those of the suite.
            .stdout(Stdio::null())
            .stdin(Stdio::piped());
        if protection == Protection::Sealed {
            command.env("FARO_HOST_SEALED", "1");
        }
        Self(command.spawn().unwrap())
    }
}

impl Drop for OnHost {
    fn drop(&mut self) {
        // The server ends with its input.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Results of a shuffle between two hosts.
struct Exchange {
    packets: Vec<Packet>,
    files: tempfile::TempDir,
}

/// A client on h2 fetches from a server on h1, and gets the right bytes.
fn exchange(protection: Protection, change: Change) -> Exchange {
    let files = tempfile::tempdir().unwrap();
    let switch = Switch::start(change);
    let mut server = OnHost::start(1, "server_on_a_host", protection, files.path());
    until("the server's card", || {
        let running = server.0.try_wait().unwrap().is_none();
        assert!(running, "the server ended");
        files.path().join("server").exists()
    });
    let mut client = OnHost::start(2, "client_on_a_host", protection, files.path());
    let ended = client.0.wait().unwrap();
    let log = fs::read_to_string(files.path().join("log")).unwrap_or_default();
    assert!(ended.success(), "the client: {ended}\n{log}");
    drop(server);
    let packets = switch.stop();
    Exchange { packets, files }
}

impl Exchange {
    fn count(&self, name: &str) -> u64 {
        let text = fs::read_to_string(self.files.path().join(name)).unwrap();
        text.parse().unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.files.path().join("log")).unwrap_or_default()
    }

    /// Returns the bytes of payload that the server's device sent.
    fn rdma_bytes(&self) -> usize {
        let sent = self.packets.iter().filter(|packet| packet.from == 0);
        sent.filter_map(|packet| roce::payload(&packet.bytes))
            .map(|(_, range)| range.len())
            .sum()
    }

    fn shows(&self, bytes: &[u8]) -> bool {
        let has = |packet: &Packet| packet.bytes.windows(bytes.len()).any(|b| b == bytes);
        self.packets.iter().any(has)
    }

    /// Returns the kinds of the frames on the control channel that begin unencrypted.
    fn frames(&self) -> Vec<u8> {
        let mut kinds: Vec<u8> = self
            .packets
            .iter()
            .filter(|packet| roce::whole(&packet.bytes).is_none())
            .flat_map(|packet| packet.bytes.windows(6))
            .filter(|bytes| bytes.starts_with(b"FARO"))
            .map(|bytes| bytes[5])
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Checks that neither a secret nor an endpoint's id is visible.
    fn shows_no_secret(&self) {
        let card = |name| Card::decode(&fs::read(self.files.path().join(name)).unwrap()).unwrap();
        assert!(!self.shows(SECRET.as_bytes()));
        for card in [card("server"), card("client")] {
            assert!(!self.shows(card.secret.expose()), "a card's secret");
            assert!(!self.shows(&card.endpoint.to_le_bytes()), "an id");
            assert!(!self.shows(&card.endpoint.to_be_bytes()), "an id");
        }
    }
}

/// Flips a bit in the middle of the first long payload of the server's, under a right checksum.
fn flip_one(wanted: Carries) -> Change {
    let mut done = false;
    Box::new(move |from, frame| {
        let Some((carries, payload)) = roce::payload(frame).filter(|_| from == 0) else {
            return;
        };
        if done || carries != wanted || payload.len() < 1_000 {
            return;
        }
        let whole = roce::whole(frame).unwrap();
        assert_eq!(frame[whole.end - 4..whole.end], roce::checksum(frame));
        frame[payload.start + payload.len() / 2] ^= 1;
        roce::set_checksum(frame);
        done = true;
    })
}

/// The bytes that the other tests do not find can be found where they are in the clear; and devices take what was
/// changed for what was sent.
#[test]
#[ignore = "needs two hosts with RDMA devices: tests/softroce/suite"]
fn in_the_clear_the_network_shows_the_shuffle_and_can_change_it() {
    let _one = lock(&ONE);
    let exchange = exchange(Protection::Clear, flip_one(Carries::Write));
    assert!(exchange.rdma_bytes() >= BYTES);
    assert!(exchange.shows(MARKER));
    assert!(exchange.frames().contains(&kind::QP_INFO));
    exchange.shows_no_secret();
    // No attack but an accident: its author would have changed the CRC, too.
    assert_eq!(exchange.count("crcErrors"), 1);
}

#[test]
#[ignore = "needs two hosts with RDMA devices: tests/softroce/suite"]
fn sealed_the_network_shows_neither_bytes_nor_secrets_nor_ids() {
    let _one = lock(&ONE);
    let exchange = exchange(Protection::Sealed, Box::new(|_, _| {}));
    assert!(exchange.rdma_bytes() >= BYTES);
    assert!(!exchange.shows(&MARKER[..12]));
    assert_eq!(exchange.frames(), [kind::HELLO, kind::WELCOME, kind::PROOF]);
    exchange.shows_no_secret();
    assert_eq!(exchange.count("connections.verbs"), 1);
}

#[test]
#[ignore = "needs two hosts with RDMA devices: tests/softroce/suite"]
fn sealed_a_bit_that_is_changed_on_the_way_ends_the_connection() {
    let _one = lock(&ONE);
    let exchange = exchange(Protection::Sealed, flip_one(Carries::Send));
    noticed(&exchange);
}

/// A record is put in the place of a later one of the same length.
#[test]
#[ignore = "needs two hosts with RDMA devices: tests/softroce/suite"]
fn sealed_a_record_that_is_repeated_on_the_way_ends_the_connection() {
    let _one = lock(&ONE);
    let mut earlier: Option<Vec<u8>> = None;
    let done = Arc::new(Mutex::new(false));
    let change: Change = Box::new({
        let done = Arc::clone(&done);
        move |from, frame| {
            let Some((Carries::Send, payload)) = roce::payload(frame).filter(|_| from == 0) else {
                return;
            };
            if payload.len() < 1_000 || *lock(&done) {
                return;
            }
            match &earlier {
                Some(earlier) if earlier.len() == payload.len() => {
                    frame[payload].copy_from_slice(earlier);
                    roce::set_checksum(frame);
                    *lock(&done) = true;
                }
                Some(_) => {}
                None => earlier = Some(frame[payload].to_vec()),
            }
        }
    });
    let exchange = exchange(Protection::Sealed, change);
    assert!(*lock(&done));
    noticed(&exchange);
}

/// The credits that a segment of the server's gives the client are changed: no more than four bytes at its front.
#[test]
#[ignore = "needs two hosts with RDMA devices: tests/softroce/suite"]
fn sealed_credits_that_are_changed_on_the_way_end_the_connection() {
    let _one = lock(&ONE);
    let mut done = false;
    let change: Change = Box::new(move |from, frame| {
        let sent = roce::payload(frame).filter(|(carries, _)| *carries == Carries::Send);
        let Some((_, payload)) = sent.filter(|(_, payload)| from == 0 && payload.len() >= 1_000)
        else {
            return;
        };
        if !std::mem::replace(&mut done, true) {
            frame[payload.start + RECORD_LENGTH] ^= 0x40;
            roce::set_checksum(frame);
        }
    });
    let exchange = exchange(Protection::Sealed, change);
    noticed(&exchange);
}

/// A SEND of the client's that has nothing but credits is a record too. Here it gets the head that it would have in the
/// clear, with credits that no side gave.
#[test]
#[ignore = "needs two hosts with RDMA devices: tests/softroce/suite"]
fn sealed_a_forged_segment_without_bytes_ends_the_connection() {
    let _one = lock(&ONE);
    let done = Arc::new(Mutex::new(false));
    let change: Change = Box::new({
        let done = Arc::clone(&done);
        move |from, frame| {
            let Some((Carries::Send, payload)) = roce::payload(frame).filter(|_| from == 1) else {
                return;
            };
            if payload.len() != CREDITS_ONLY || std::mem::replace(&mut *lock(&done), true) {
                return;
            }
            frame[payload.start..][..4].copy_from_slice(&4_000_u32.to_le_bytes());
            frame[payload.start + 4..][..4].fill(0);
            roce::set_checksum(frame);
        }
    });
    let exchange = exchange(Protection::Sealed, change);
    assert!(*lock(&done), "the client sent credits alone");
    // Its reason reaches the client only if the client has room for it left.
    let log = fs::read_to_string(exchange.files.path().join("server.log")).unwrap();
    assert!(log.contains("verbs connection 1: a record of"), "{log}");
    assert_eq!(exchange.count("connections.verbs"), 1);
    assert_eq!(exchange.count("crcErrors"), 0);
    exchange.shows_no_secret();
}

/// Checks that the client reports the change, and gets the right bytes by another connection
/// (`exchange` compares them).
fn noticed(exchange: &Exchange) {
    let log = exchange.log();
    assert!(log.contains("changed, left out or repeated"), "{log}");
    assert_eq!(exchange.count("connections.verbs"), 1);
    assert_eq!(exchange.count("crcErrors"), 0);
    assert!(!exchange.shows(&MARKER[..12]));
    exchange.shows_no_secret();
}
