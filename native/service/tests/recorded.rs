//! Messages as they were recorded, one file for each version of the protocol that a daemon and a jar may still speak: what a
//! neighbouring release sends is read, and what this one sends has not changed by accident.
//!
//! A new version adds a file (`FARO_BLESS=1` writes that of the newest version, if there is none); old ones are never edited, and
//! go when `VERSIONS` leaves their version out.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_service::{
    ApplicationStatus, Hello, LoanState, Record, Refusal, Reply, Request, Status, Token, VERSIONS,
};
use faro_wire::{OutputId, VersionRange};
use std::path::PathBuf;

/// Returns this build's samples, by name.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let request = |request: Request| request.encode().to_vec();
    let reply = |reply: Reply| reply.encode().to_vec();
    let id = OutputId {
        shuffle_id: 7,
        map_id: 4_711,
    };
    let hello = Hello {
        application: "app-20261128120000-0001".to_owned(),
        executor: "3".to_owned(),
        sealed: true,
        token: Token::new([0xa5; 32]),
        secret: b"secret".to_vec().into(),
    };
    let figures = vec![("outputs".into(), 2), ("output_bytes".into(), 1 << 40)];
    let status = Status {
        version: "0.1.0".to_owned(),
        protocols: VersionRange::new(4, 4),
        figures: figures.clone(),
        applications: vec![ApplicationStatus {
            name: "app-20261128120000-0001".to_owned(),
            user: 1_000,
            state: "serving".into(),
            figures,
        }],
    };
    vec![
        (
            "request.hello",
            request(Request::Hello(hello, VersionRange::new(4, 4))),
        ),
        (
            "request.output",
            request(Request::Output { id, has_data: true }),
        ),
        ("request.forget", request(Request::Forget { shuffle: 7 })),
        ("request.end", request(Request::End)),
        (
            "request.lend",
            request(Request::Lend {
                shuffle: 7,
                files: true,
                maps: vec![0, 4_711],
            }),
        ),
        (
            "request.host",
            request(Request::Host {
                replicas: 2,
                at: 1,
                of: 3,
                card: b"card".to_vec(),
            }),
        ),
        ("request.behind", request(Request::Behind)),
        ("request.status", request(Request::Status { from: 5 })),
        (
            "reply.welcome",
            reply(Reply::Welcome {
                version: 4,
                card: b"card".to_vec(),
            }),
        ),
        ("reply.done", reply(Reply::Done)),
        (
            "reply.lent",
            reply(Reply::Lent(vec![
                LoanState::NotHere,
                LoanState::Empty,
                LoanState::Whole,
            ])),
        ),
        (
            "reply.refused",
            reply(Reply::Refused {
                why: Refusal::Quota,
                text: "too many bytes".to_owned(),
            }),
        ),
        ("reply.behind", reply(Reply::Behind(9))),
        ("status", status.encode(0)),
    ]
}

fn path(version: u16) -> PathBuf {
    let name = format!("tests/recorded/version-{version}.txt");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the messages of a file: `name: bytes as hex digits`.
fn recorded(version: u16) -> Vec<(String, Vec<u8>)> {
    let path = path(version);
    if !path.exists() && std::env::var_os("FARO_BLESS").is_some_and(|value| value == "1") {
        let lines = samples().into_iter();
        let lines = lines.map(|(name, bytes)| format!("{name}: {}\n", hex(&bytes)));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let line = |line: &str| {
        let (name, digits) = line.split_once(": ").unwrap();
        let digits = digits.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        (name.to_owned(), digits.map(byte).collect())
    };
    text.lines().map(line).collect()
}

#[test]
fn this_version_sends_what_was_recorded() {
    let samples: Vec<_> = samples()
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), hex(&bytes)))
        .collect();
    let recorded: Vec<_> = recorded(VERSIONS.newest)
        .into_iter()
        .map(|(name, bytes)| (name, hex(&bytes)))
        .collect();
    assert_eq!(
        samples, recorded,
        "a change of these bytes is a new version"
    );
}

#[test]
fn every_version_that_is_spoken_is_read() {
    for version in VERSIONS.oldest..=VERSIONS.newest {
        for (name, bytes) in recorded(version) {
            let what = format!("{name} of version {version}");
            match name.split('.').next().unwrap() {
                "request" => drop(Request::decode(&bytes).expect(&what)),
                "reply" => drop(Reply::decode(&bytes).expect(&what)),
                "status" => drop(Status::decode(&bytes).expect(&what)),
                other => panic!("{other}: no kind of message"),
            }
        }
    }
}

/// The record of an application is read by the daemon that comes after an upgrade, and by the one before it after a way back.
#[test]
fn the_record_in_the_data_directory_has_not_changed() {
    let bytes =
        b"faro app\x01\x00\xe8\x03\x00\x0001234567-89ab-cdef-0123-456789abcdef\x05\x00app-1";
    let bytes = [&bytes[..], &faro_wire::crc32c(bytes).to_le_bytes()].concat();
    let record = Record::decode(&bytes).unwrap();
    assert_eq!((&*record.application, record.owner), ("app-1", 1_000));
    assert_eq!(record.encode(), bytes);
}
