//! The handshake, and every message that it must refuse.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_secure::{
    Acceptor, Connector, HandshakeError, Keys, Prologue, Protection, Psk, Secret, SharedSecret,
    StaticKey, HEADER_BYTES, HELLO_BYTES, TAG_BYTES, WELCOME_BYTES,
};
use proptest::prelude::*;

fn own(number: u128) -> StaticKey {
    StaticKey::public(number).unwrap()
}

fn prologue() -> Prologue {
    Prologue {
        versions: [3, 5],
        fabric: b't',
        protection: Protection::Sealed,
        acceptor: own(20).id(),
    }
}

/// Begins the handshake of endpoint 10, which connects.
fn hello() -> (Connector, [u8; HELLO_BYTES]) {
    Connector::hello(&own(10), &key(), &prologue()).unwrap()
}

/// Answers for endpoint 20, which accepts.
fn welcome(hello: &[u8]) -> Result<(Acceptor, [u8; WELCOME_BYTES]), HandshakeError> {
    Acceptor::welcome(&own(20), &key(), &prologue(), 4, hello)
}

/// Asks whether a HELLO is for endpoint 20.
fn check(hello: &[u8]) -> Result<(), HandshakeError> {
    Acceptor::check(&own(20), &key(), &prologue(), hello)
}

fn psk(card: u8, secret: Option<&str>, application: &str) -> Psk {
    let shared = secret.map(|text| SharedSecret::new(text.as_bytes().to_vec()));
    Psk::derive(&Secret::new([card; 32]), shared.as_ref(), application).unwrap()
}

fn key() -> Psk {
    psk(1, Some("spark's"), "app-1")
}

fn unproven(message: &'static str) -> HandshakeError {
    HandshakeError::Unproven { message }
}

/// Carries a message from one side to the other.
fn carry(from: &mut Keys, to: &mut Keys, bytes: &[u8]) {
    let mut record = [&[0; HEADER_BYTES], bytes, &[0; TAG_BYTES]].concat();
    from.sealer.seal(&mut record).unwrap();
    assert!(!record.windows(bytes.len()).any(|part| part == bytes));
    assert_eq!(to.opener.open(&mut record).unwrap(), bytes);
}

#[test]
fn members_of_an_application_get_keys_and_know_each_other() {
    let (connector, hello) = hello();
    let (acceptor, welcome) = welcome(&hello).unwrap();
    let welcomed = connector.welcomed(&welcome).unwrap();
    assert_eq!(welcomed.version, 4, "what the acceptor chose");
    let proven = acceptor.proven(&welcomed.proof).unwrap();
    assert_eq!(proven.connector, own(10).id());
    let (mut near, mut far) = (welcomed.keys, proven.keys);
    carry(&mut near, &mut far, b"sixteen bytes ->");
    carry(&mut far, &mut near, b"<- sixteen bytes");
    // Neither direction opens the other's records.
    let mut record = [&[0; HEADER_BYTES][..], b"sixteen bytes ->", &[0; TAG_BYTES]].concat();
    near.sealer.seal(&mut record).unwrap();
    assert!(near.opener.open(&mut record).is_err());
}

#[test]
fn what_differs_ends_it_at_hello() {
    let other = |change: fn(&mut Prologue)| {
        let mut other = prologue();
        change(&mut other);
        other
    };
    let same = prologue();
    let cases = [
        ("the card", psk(2, Some("spark's"), "app-1"), same),
        ("Spark's secret", psk(1, Some("another"), "app-1"), same),
        ("no secret", psk(1, None, "app-1"), same),
        ("the application", psk(1, Some("spark's"), "app-2"), same),
        ("the lowest version", key(), other(|p| p.versions[0] = 2)),
        ("the highest version", key(), other(|p| p.versions[1] = 4)),
        ("the fabric", key(), other(|p| p.fabric = b'v')),
        (
            "the protection",
            key(),
            other(|p| p.protection = Protection::Clear),
        ),
        ("the acceptor", key(), other(|p| p.acceptor = 21)),
    ];
    for (what, psk, prologue) in cases {
        let (_, hello) = Connector::hello(&own(10), &psk, &prologue).unwrap();
        let refused = welcome(&hello).err();
        assert_eq!(refused, Some(unproven("HELLO")), "{what}");
        assert_eq!(check(&hello), Err(unproven("HELLO")), "{what}");
    }
    let (_, hello) = hello();
    assert_eq!(check(&hello), Ok(()), "nothing differs");
    assert_eq!(check(&hello[1..]), Err(unproven("HELLO")));
}

/// Another holder of the card answers in the place of its owner, and must be refused.
#[test]
fn a_card_does_not_make_its_holder_the_endpoint_on_it() {
    let (connector, hello) = hello();
    let (_, welcome) = Acceptor::welcome(&own(66), &key(), &prologue(), 4, &hello).unwrap();
    let refused = connector.welcomed(&welcome).err();
    assert_eq!(refused, Some(HandshakeError::AnotherEndpoint));
}

/// The prologue is the offer that the acceptor saw. Its choice is authenticated, but must be
/// checked nevertheless.
#[test]
fn a_version_that_was_not_offered_is_refused() {
    for got in [2, 6] {
        let (connector, hello) = hello();
        let (_, welcome) = Acceptor::welcome(&own(20), &key(), &prologue(), got, &hello).unwrap();
        let (lowest, highest) = (3, 5);
        let refused = HandshakeError::Version {
            got,
            lowest,
            highest,
        };
        assert_eq!(connector.welcomed(&welcome).err(), Some(refused));
    }
}

#[test]
fn a_recorded_hello_gets_no_further_than_welcome() {
    let (connector, hello) = hello();
    let (_, first) = welcome(&hello).unwrap();
    let proof = connector.welcomed(&first).unwrap().proof;
    let (replayed, second) = welcome(&hello).unwrap();
    assert_ne!(first, second);
    assert_eq!(replayed.proven(&proof).err(), Some(unproven("PROOF")));
}

#[test]
fn sessions_cannot_be_spliced() {
    let ((one, hello_one), (_, hello_two)) = (hello(), hello());
    let (_, welcome_two) = welcome(&hello_two).unwrap();
    assert!(welcome(&hello_one).is_ok());
    assert_eq!(one.welcomed(&welcome_two).err(), Some(unproven("WELCOME")));
}

#[test]
fn secrets_are_in_no_text() {
    let secret = Secret::new([0xab; 32]);
    let shared = SharedSecret::new(b"abracadabra".to_vec());
    let psk = Psk::derive(&secret, Some(&shared), "app").unwrap();
    let text = format!("{secret:?} {shared:?} {psk:?} {:?}", own(1));
    let id = own(1).id();
    let shown = format!("Secret(..) SharedSecret(..) Psk(Secret(..)) StaticKey({id:032x})");
    assert_eq!(text, shown);
}

fn flipped(message: &[u8], bit: usize) -> Vec<u8> {
    let mut message = message.to_vec();
    let at = bit % (message.len() * 8);
    message[at / 8] ^= 1 << (at % 8);
    message
}

proptest! {
    /// Random bytes, and every message of a handshake with one bit changed, must be refused.
    #[test]
    fn nothing_but_the_messages_passes(bytes in prop::collection::vec(any::<u8>(), 0..200), bit in 0_usize..904) {
        prop_assert!(welcome(&bytes).is_err());
        let (connector, first) = hello();
        let (acceptor, second) = welcome(&first).unwrap();
        let third = connector.welcomed(&second).unwrap().proof;
        prop_assert!(acceptor.proven(&flipped(&third, bit)).is_err());
        let (connector, first) = hello();
        let (acceptor, second) = welcome(&first).unwrap();
        prop_assert!(acceptor.proven(&bytes).is_err());
        prop_assert!(connector.welcomed(&flipped(&second, bit)).is_err());
        prop_assert!(welcome(&flipped(&first, bit)).is_err());
        prop_assert!(hello().0.welcomed(&bytes).is_err());
    }
}
