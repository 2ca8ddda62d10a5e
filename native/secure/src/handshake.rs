//! The handshake: three messages, after which both ends know that the other one has the key, and have keys that no
//! other connection has.
//!
//! ```text
//!   connector                                              acceptor
//!     HELLO    psk, e, { connector's endpoint id }  ──────▶   only a holder of the key can make or read it
//!     ◀────────────────────────── e, ee, { }  WELCOME         proves the acceptor: it has read HELLO
//!     PROOF    HMAC of the handshake's hash  ─────────────▶   proves the connector: HELLO is no replay
//! ```
//! A HELLO without the key costs the acceptor two hashes and one decryption, and no arithmetic on curves. Each side's
//! key pair is used once, so what was recorded stays closed if a secret is lost later.

use crate::record::{Opener, Sealer};
use crate::secret::{Psk, Secret};
use crate::Protection;
use ring::hmac;
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use thiserror::Error;

/// Bytes of an X25519 public key, of an AEAD tag, and of an endpoint id.
const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const ID_BYTES: usize = 16;
/// Bytes of HELLO's Noise message.
pub const HELLO_BYTES: usize = KEY_BYTES + ID_BYTES + TAG_BYTES;
/// Bytes of WELCOME's.
pub const WELCOME_BYTES: usize = KEY_BYTES + TAG_BYTES;
/// Bytes of a proof.
pub const PROOF_BYTES: usize = 32;
const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";

/// What both ends have to agree on before the first message. A message of a handshake with another one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prologue {
    /// Version of the wire protocol.
    pub version: u8,
    /// First byte of the fabric's name: a message cannot be carried to another fabric of the acceptor.
    pub fabric: u8,
    /// What follows the handshake.
    pub protection: Protection,
    /// Endpoint id of the acceptor.
    pub acceptor: u128,
}

impl Prologue {
    fn bytes(&self) -> [u8; 23] {
        let mut bytes = [0; 23];
        bytes[..4].copy_from_slice(b"faro");
        bytes[4] = self.version;
        bytes[5] = self.fabric;
        bytes[6] = self.protection.byte();
        bytes[7..].copy_from_slice(&self.acceptor.to_le_bytes());
        bytes
    }
}

/// Why a handshake ended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The message was not made with the key, or for another endpoint, protocol version or protection.
    #[error("{message} does not prove membership in this application: another secret, a stale card, or another setting")]
    Unproven {
        /// HELLO, WELCOME or PROOF.
        message: &'static str,
    },
    /// The operating system gives no random numbers, or the library refuses its own parameters.
    #[error("the handshake cannot begin: {0}")]
    Unable(String),
}

fn unable(error: snow::Error) -> HandshakeError {
    HandshakeError::Unable(error.to_string())
}

/// The state of either side.
fn state(psk: &Psk, prologue: &Prologue, initiates: bool) -> Result<HandshakeState, snow::Error> {
    let pattern: NoiseParams = PATTERN.parse()?;
    let prologue = prologue.bytes();
    let builder = Builder::new(pattern)
        .prologue(&prologue)?
        .psk(0, psk.bytes())?;
    if initiates {
        builder.build_initiator()
    } else {
        builder.build_responder()
    }
}

/// What a handshake gives one side.
pub struct Keys {
    /// For what this side sends.
    pub sealer: Sealer,
    /// For what it receives.
    pub opener: Opener,
}

/// The side that connects, after its HELLO.
pub struct Connector(Box<HandshakeState>);

impl Connector {
    /// Makes HELLO for an acceptor whose key is `psk`; `own` is the connector's endpoint id.
    ///
    /// # Errors
    /// `Unable`.
    pub fn hello(
        psk: &Psk,
        prologue: &Prologue,
        own: u128,
    ) -> Result<(Self, [u8; HELLO_BYTES]), HandshakeError> {
        let mut state = state(psk, prologue, true).map_err(unable)?;
        let mut message = [0; HELLO_BYTES];
        state
            .write_message(&own.to_le_bytes(), &mut message)
            .map_err(unable)?;
        Ok((Self(Box::new(state)), message))
    }

    /// Takes WELCOME, and makes the proof.
    ///
    /// # Errors
    /// `Unproven`.
    pub fn welcomed(mut self, message: &[u8]) -> Result<(Keys, [u8; PROOF_BYTES]), HandshakeError> {
        read(&mut self.0, "WELCOME", message, &mut [])?;
        let (ours, theirs, proof) = split(&mut self.0);
        let mut tag = [0; PROOF_BYTES];
        tag.copy_from_slice(hmac::sign(&proof, self.0.get_handshake_hash()).as_ref());
        let keys = Keys {
            sealer: Sealer::new(ours),
            opener: Opener::new(theirs),
        };
        Ok((keys, tag))
    }
}

/// The side that accepts, after its WELCOME.
pub struct Acceptor {
    /// The endpoint id that the connector says it has. The key is all that proves it.
    pub connector: u128,
    proof: hmac::Key,
    hash: Vec<u8>,
}

impl Acceptor {
    /// Takes HELLO, and makes WELCOME. Sealed bytes may come right behind the HELLO's answer, so the keys are there
    /// before the proof.
    ///
    /// # Errors
    /// `Unproven`, `Unable`.
    pub fn welcome(
        psk: &Psk,
        prologue: &Prologue,
        message: &[u8],
    ) -> Result<(Self, Keys, [u8; WELCOME_BYTES]), HandshakeError> {
        let mut state = state(psk, prologue, false).map_err(unable)?;
        let mut id = [0; ID_BYTES];
        read(&mut state, "HELLO", message, &mut id)?;
        let mut welcome = [0; WELCOME_BYTES];
        state.write_message(&[], &mut welcome).map_err(unable)?;
        let (theirs, ours, proof) = split(&mut state);
        let acceptor = Self {
            connector: u128::from_le_bytes(id),
            proof,
            hash: state.get_handshake_hash().to_vec(),
        };
        let keys = Keys {
            sealer: Sealer::new(ours),
            opener: Opener::new(theirs),
        };
        Ok((acceptor, keys, welcome))
    }

    /// Takes the proof: the connector has read WELCOME.
    ///
    /// # Errors
    /// `Unproven`.
    pub fn proven(&self, tag: &[u8]) -> Result<(), HandshakeError> {
        hmac::verify(&self.proof, &self.hash, tag)
            .map_err(|_| HandshakeError::Unproven { message: "PROOF" })
    }
}

/// Reads a message whose payload is exactly as long as `payload`.
fn read(
    state: &mut HandshakeState,
    name: &'static str,
    message: &[u8],
    payload: &mut [u8],
) -> Result<(), HandshakeError> {
    // The library writes a payload only where its tag was right, and needs room for what could be there.
    let mut room = [0; HELLO_BYTES];
    match state.read_message(message, &mut room) {
        Ok(bytes) if bytes == payload.len() => {
            payload.copy_from_slice(&room[..bytes]);
            Ok(())
        }
        Ok(_) | Err(_) => Err(HandshakeError::Unproven { message: name }),
    }
}

/// The keys of the connector's bytes, of the acceptor's, and of the proof.
fn split(state: &mut HandshakeState) -> (Secret, Secret, hmac::Key) {
    let (connector, acceptor) = state.dangerously_get_raw_split();
    let (connector, acceptor) = (Secret::new(connector), Secret::new(acceptor));
    let proof = connector.derive(b"faro 1", &[b"proof"]);
    let proof = hmac::Key::new(hmac::HMAC_SHA256, proof.expose());
    (
        connector.derive(b"faro 1", &[b"records"]),
        acceptor.derive(b"faro 1", &[b"records"]),
        proof,
    )
}
