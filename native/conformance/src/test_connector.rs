//! A connector by hand, for tests that speak to a fabric over a raw socket. Frames are built from `wire` and the
//! handshake from `secure`, so that a mistake of the fabric's own encoder cannot hide in both ends.

use faro_fabric::Identity;
use faro_secure::{Connector, Keys, Prologue, Protection, StaticKey, WELCOME_BYTES};
use faro_wire::header::{HEADER_BYTES, OLDEST_VERSION, VERSION};
use faro_wire::{kind, FrameHeader};
use zerocopy::IntoBytes;

/// Bytes of the frame with WELCOME.
pub const WELCOME_FRAME_BYTES: usize = HEADER_BYTES + WELCOME_BYTES;

/// A connector that has made its HELLO.
pub struct TestConnector(Connector);

impl TestConnector {
    /// Returns the frame with a HELLO to `to`, from endpoint number `own`. `fabric` is the first
    /// letter of its name.
    ///
    /// # Panics
    /// Without random numbers.
    pub fn hello(fabric: u8, protection: Protection, to: &Identity, own: u128) -> (Self, Vec<u8>) {
        Self::offering([OLDEST_VERSION, VERSION], fabric, protection, to, own)
    }

    /// Returns the frame with a HELLO of a build that speaks the protocol versions from `versions[0]` to `versions[1]`, as
    /// `hello` does.
    ///
    /// # Panics
    /// Without random numbers.
    pub fn offering(
        versions: [u8; 2],
        fabric: u8,
        protection: Protection,
        to: &Identity,
        own: u128,
    ) -> (Self, Vec<u8>) {
        let prologue = Prologue {
            versions,
            fabric,
            protection,
            acceptor: to.endpoint,
        };
        let own = StaticKey::public(own).expect("a key");
        let (connector, message) =
            Connector::hello(&own, &to.psk, &prologue).expect("there are random numbers");
        let sealed = u8::from(protection == Protection::Sealed);
        let mut body = vec![versions[0], versions[1], sealed, 0, 0, 0, 0, 0];
        body.extend_from_slice(&message);
        let header = FrameHeader::for_body(kind::HELLO, 0, &body).in_version(versions[0]);
        (Self(connector), [header.as_bytes(), &body].concat())
    }

    /// The frame with the proof (in the clear), from the frame with WELCOME, and the keys of the connection.
    ///
    /// # Panics
    /// It is no WELCOME to this HELLO.
    pub fn proof(self, welcome: &[u8]) -> (Vec<u8>, Keys) {
        let header = FrameHeader::parse(&welcome[..HEADER_BYTES]).expect("a frame");
        assert_eq!(header.kind, kind::WELCOME);
        let welcomed = self.0.welcomed(&welcome[HEADER_BYTES..]);
        let welcomed = welcomed.expect("WELCOME to this HELLO");
        let proof = FrameHeader::for_body(kind::PROOF, 0, &welcomed.proof);
        let proof = proof.in_version(header.version);
        ([proof.as_bytes(), &welcomed.proof].concat(), welcomed.keys)
    }
}
