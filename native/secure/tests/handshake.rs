//! Two sides that shake hands, and all that must not pass for one of them.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_secure::{
    Acceptor, Connector, HandshakeError, Keys, Prologue, Protection, Psk, Secret, SharedSecret,
    HEADER_BYTES, TAG_BYTES,
};
use proptest::prelude::*;

const PROLOGUE: Prologue = Prologue {
    version: 3,
    fabric: b't',
    protection: Protection::Sealed,
    acceptor: 20,
};

fn psk(card: u8, secret: Option<&str>, application: &str) -> Psk {
    let shared = secret.map(|text| SharedSecret::new(text.as_bytes().to_vec()));
    Psk::derive(&Secret::new([card; 32]), shared.as_ref(), application)
}

fn key() -> Psk {
    psk(1, Some("spark's"), "app-1")
}

fn unproven(message: &'static str) -> HandshakeError {
    HandshakeError::Unproven { message }
}

/// A message from one side to the other.
fn carry(from: &mut Keys, to: &mut Keys, bytes: &[u8]) {
    let mut record = [&[0; HEADER_BYTES], bytes, &[0; TAG_BYTES]].concat();
    from.sealer.seal(&mut record).unwrap();
    assert!(!record.windows(bytes.len()).any(|part| part == bytes));
    assert_eq!(to.opener.open(&mut record).unwrap(), bytes);
}

#[test]
fn members_of_an_application_get_keys() {
    let (connector, hello) = Connector::hello(&key(), &PROLOGUE, 10).unwrap();
    let (acceptor, mut theirs, welcome) = Acceptor::welcome(&key(), &PROLOGUE, &hello).unwrap();
    assert_eq!(acceptor.connector, 10);
    let (mut ours, proof) = connector.welcomed(&welcome).unwrap();
    acceptor.proven(&proof).unwrap();
    carry(&mut ours, &mut theirs, b"sixteen bytes ->");
    carry(&mut theirs, &mut ours, b"<- sixteen bytes");
    // Neither direction opens the other's records.
    let mut record = [&[0; HEADER_BYTES][..], b"sixteen bytes ->", &[0; TAG_BYTES]].concat();
    ours.sealer.seal(&mut record).unwrap();
    assert!(ours.opener.open(&mut record).is_err());
}

#[test]
fn what_differs_ends_it_at_hello() {
    let other = |change: fn(&mut Prologue)| {
        let mut other = PROLOGUE;
        change(&mut other);
        other
    };
    let cases = [
        ("the card", psk(2, Some("spark's"), "app-1"), PROLOGUE),
        ("Spark's secret", psk(1, Some("another"), "app-1"), PROLOGUE),
        ("no secret", psk(1, None, "app-1"), PROLOGUE),
        (
            "the application",
            psk(1, Some("spark's"), "app-2"),
            PROLOGUE,
        ),
        ("the version", key(), other(|p| p.version = 4)),
        ("the fabric", key(), other(|p| p.fabric = b'v')),
        (
            "the protection",
            key(),
            other(|p| p.protection = Protection::Clear),
        ),
        ("the acceptor", key(), other(|p| p.acceptor = 21)),
    ];
    for (what, psk, prologue) in cases {
        let (_, hello) = Connector::hello(&psk, &prologue, 10).unwrap();
        let refused = Acceptor::welcome(&key(), &PROLOGUE, &hello).err();
        assert_eq!(refused, Some(unproven("HELLO")), "{what}");
    }
}

#[test]
fn a_recorded_hello_gets_no_further_than_welcome() {
    let (connector, hello) = Connector::hello(&key(), &PROLOGUE, 10).unwrap();
    let (_, _, first) = Acceptor::welcome(&key(), &PROLOGUE, &hello).unwrap();
    let (_, proof) = connector.welcomed(&first).unwrap();
    let (replayed, _, second) = Acceptor::welcome(&key(), &PROLOGUE, &hello).unwrap();
    assert_ne!(first, second);
    assert_eq!(replayed.proven(&proof), Err(unproven("PROOF")));
}

#[test]
fn sessions_cannot_be_spliced() {
    let (one, hello_one) = Connector::hello(&key(), &PROLOGUE, 10).unwrap();
    let (_, hello_two) = Connector::hello(&key(), &PROLOGUE, 10).unwrap();
    let (_, _, welcome_two) = Acceptor::welcome(&key(), &PROLOGUE, &hello_two).unwrap();
    assert!(Acceptor::welcome(&key(), &PROLOGUE, &hello_one).is_ok());
    assert_eq!(one.welcomed(&welcome_two).err(), Some(unproven("WELCOME")));
}

#[test]
fn secrets_are_in_no_text() {
    let secret = Secret::new([0xab; 32]);
    let shared = SharedSecret::new(b"abracadabra".to_vec());
    let psk = Psk::derive(&secret, Some(&shared), "app");
    let text = format!("{secret:?} {shared:?} {psk:?}");
    assert_eq!(text, "Secret(..) SharedSecret(..) Psk(Secret(..))");
}

proptest! {
    /// Bytes from anywhere, and every message of a handshake with a bit changed.
    #[test]
    fn nothing_but_the_messages_passes(bytes in prop::collection::vec(any::<u8>(), 0..200), bit in 0_usize..512) {
        prop_assert!(Acceptor::welcome(&key(), &PROLOGUE, &bytes).is_err());
        let (connector, mut hello) = Connector::hello(&key(), &PROLOGUE, 10).unwrap();
        let (acceptor, _, mut welcome) = Acceptor::welcome(&key(), &PROLOGUE, &hello).unwrap();
        prop_assert!(acceptor.proven(&bytes).is_err());
        let at = bit % (welcome.len() * 8);
        welcome[at / 8] ^= 1 << (at % 8);
        prop_assert!(connector.welcomed(&welcome).is_err());
        let at = bit % (hello.len() * 8);
        hello[at / 8] ^= 1 << (at % 8);
        prop_assert!(Acceptor::welcome(&key(), &PROLOGUE, &hello).is_err());
        let (connector, _) = Connector::hello(&key(), &PROLOGUE, 10).unwrap();
        prop_assert!(connector.welcomed(&bytes).is_err());
    }
}
