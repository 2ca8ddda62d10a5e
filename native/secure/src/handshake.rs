//! The handshake: three messages, after which both ends know which endpoint the other one is, and have keys that no
//! other connection has.
//!
//! ```text
//!   connector                                              acceptor
//!     HELLO    psk, e  ───────────────────────────────────▶   only a holder of the key can make or read it
//!     ◀────── e, ee, s, es, { version }  WELCOME              proves the acceptor: its id is a hash of its key s
//!     PROOF    s, se  ────────────────────────────────────▶   proves the connector in the same way
//! ```
//! A HELLO without the key costs the acceptor two hashes and one decryption, and no arithmetic on curves. Each side's
//! ephemeral key pair (e) is used once, so what was recorded stays closed if a secret or a static key (s) is lost later.
//! Neither side says who it is before the other one has proven that it knows the key.
//!
//! An id is a hash of a static key, so it needs no card to be proven: a connection from an endpoint whose card this side
//! has never seen is proven as well as any other.

use crate::identity::id_of;
use crate::primitives::{Primitives, KEY_BYTES};
use crate::record::{Opener, Sealer};
use crate::secret::{Psk, Secret};
use crate::wiped::{wipe_stack, Wiped};
use crate::{KeyError, Protection, StaticKey};
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use thiserror::Error;
use zeroize::Zeroize;

/// Bytes of an AEAD tag, and of the version in WELCOME.
const TAG_BYTES: usize = 16;
const VERSION_BYTES: usize = 1;
/// Bytes of HELLO's Noise message.
pub const HELLO_BYTES: usize = KEY_BYTES + TAG_BYTES;
/// Bytes of WELCOME's.
pub const WELCOME_BYTES: usize = KEY_BYTES + KEY_BYTES + TAG_BYTES + VERSION_BYTES + TAG_BYTES;
/// Bytes of PROOF's.
pub const PROOF_BYTES: usize = KEY_BYTES + TAG_BYTES + TAG_BYTES;
const PATTERN: &str = "Noise_XXpsk0_25519_AESGCM_SHA256";

/// Values on which both ends have to agree before the first message. A message of a handshake with another one is
/// refused, so nothing of it can be changed on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prologue {
    /// Versions of the wire protocol that the connector offers, the lowest and the highest.
    pub versions: [u8; 2],
    /// First byte of the fabric's name: a message cannot be carried to another fabric of the acceptor.
    pub fabric: u8,
    /// Protection of the bytes after the handshake.
    pub protection: Protection,
    /// Endpoint id of the acceptor.
    pub acceptor: u128,
}

impl Prologue {
    fn bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(b"faro");
        bytes[4..6].copy_from_slice(&self.versions);
        bytes[6] = self.fabric;
        bytes[7] = self.protection.byte();
        bytes[8..].copy_from_slice(&self.acceptor.to_le_bytes());
        bytes
    }
}

/// Reason why a handshake ended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The message was not made with the key, or for another endpoint, protocol version or protection.
    #[error("{message} does not prove membership in this application: another secret, a stale card, or another setting")]
    Unproven {
        /// HELLO, WELCOME or PROOF.
        message: &'static str,
    },
    /// The acceptor is not the endpoint on the card.
    #[error("the endpoint that answers has not the key of the one on the card")]
    AnotherEndpoint,
    /// The acceptor chose a version that was not offered.
    #[error("WELCOME chooses version {got} of the protocol; offered were {lowest} to {highest}")]
    Version {
        /// The acceptor's choice.
        got: u8,
        /// The connector's lowest.
        lowest: u8,
        /// The connector's highest.
        highest: u8,
    },
    /// The operating system gives no random numbers, or the library refuses its own parameters.
    #[error("the handshake cannot begin: {0}")]
    Unable(String),
    /// No key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

fn unable(error: snow::Error) -> HandshakeError {
    HandshakeError::Unable(error.to_string())
}

/// The library's state of either side. It has keys in it, and so have the stacks of its calls.
struct NoiseState(Wiped<HandshakeState>);

impl NoiseState {
    fn new(
        key: &StaticKey,
        psk: &Psk,
        prologue: &Prologue,
        initiates: bool,
    ) -> Result<Self, HandshakeError> {
        let prologue = prologue.bytes();
        let made = Wiped::try_new(|| {
            let pattern: NoiseParams = PATTERN.parse()?;
            let own = Some(key.public_key());
            let builder = Builder::with_resolver(pattern, Box::new(Primitives { own }))
                .prologue(&prologue)?
                .local_private_key(key.private())?
                .psk(0, psk.bytes())?;
            match initiates {
                true => builder.build_initiator(),
                false => builder.build_responder(),
            }
        });
        wipe_stack();
        Ok(Self(made.map_err(unable)?))
    }

    /// Makes a message, which has a fixed length: a shorter one is the library's when a key is missing.
    fn write<const BYTES: usize>(&mut self, payload: &[u8]) -> Result<[u8; BYTES], HandshakeError> {
        let mut message = [0; BYTES];
        let written = self.0.write_message(payload, &mut message);
        wipe_stack();
        match written.map_err(unable)? {
            length if length == BYTES => Ok(message),
            _ => Err(KeyError.into()),
        }
    }

    /// Reads a message whose payload is exactly as long as `payload`.
    fn read(
        &mut self,
        name: &'static str,
        message: &[u8],
        payload: &mut [u8],
    ) -> Result<(), HandshakeError> {
        // The library writes a payload only where its tag was right, and needs room for what could be there.
        let mut room = [0; WELCOME_BYTES];
        let read = self.0.read_message(message, &mut room);
        wipe_stack();
        match read {
            Ok(bytes) if bytes == payload.len() => {
                payload.copy_from_slice(&room[..bytes]);
                Ok(())
            }
            Ok(_) | Err(_) => Err(HandshakeError::Unproven { message: name }),
        }
    }

    /// Returns the id of the other end, which has proven its static key.
    fn peer(&self, name: &'static str) -> Result<u128, HandshakeError> {
        let key = self.0.get_remote_static().and_then(<[u8]>::first_chunk);
        key.map(id_of)
            .ok_or(HandshakeError::Unproven { message: name })
    }

    /// Returns the keys of the connector's bytes, and of the acceptor's.
    fn split(mut self) -> Result<[Secret; 2], KeyError> {
        let split = raw_split(&mut self.0);
        wipe_stack();
        let [connector, acceptor] = split;
        Ok([
            connector.derive(b"faro 2", &[b"records"])?,
            acceptor.derive(b"faro 2", &[b"records"])?,
        ])
    }
}

#[inline(never)]
fn raw_split(state: &mut HandshakeState) -> [Secret; 2] {
    let (mut connector, mut acceptor) = state.dangerously_get_raw_split();
    let split = [Secret::new(connector), Secret::new(acceptor)];
    connector.zeroize();
    acceptor.zeroize();
    split
}

/// Keys that a handshake gives one side.
pub struct Keys {
    /// Seals what this side sends.
    pub sealer: Sealer,
    /// Opens what it receives.
    pub opener: Opener,
}

/// The side that connects, after its HELLO.
pub struct Connector {
    state: NoiseState,
    prologue: Prologue,
}

/// Result of WELCOME.
pub struct Welcomed {
    /// The connection's.
    pub keys: Keys,
    /// The version that the acceptor chose, of those that were offered.
    pub version: u8,
    /// To be sent.
    pub proof: [u8; PROOF_BYTES],
}

impl Connector {
    /// Makes HELLO for an acceptor whose key is `psk`; `own` proves which endpoint connects.
    ///
    /// # Errors
    /// `Unable`, `Key`.
    pub fn hello(
        own: &StaticKey,
        psk: &Psk,
        prologue: &Prologue,
    ) -> Result<(Self, [u8; HELLO_BYTES]), HandshakeError> {
        let mut state = NoiseState::new(own, psk, prologue, true)?;
        let message = state.write(&[])?;
        let prologue = *prologue;
        Ok((Self { state, prologue }, message))
    }

    /// Takes WELCOME, and makes the proof.
    ///
    /// # Errors
    /// `Unproven`, `AnotherEndpoint`, `Version`, `Key`.
    pub fn welcomed(mut self, message: &[u8]) -> Result<Welcomed, HandshakeError> {
        let mut version = [0; VERSION_BYTES];
        self.state.read("WELCOME", message, &mut version)?;
        if self.state.peer("WELCOME")? != self.prologue.acceptor {
            return Err(HandshakeError::AnotherEndpoint);
        }
        let ([got], [lowest, highest]) = (version, self.prologue.versions);
        if !(lowest..=highest).contains(&got) {
            return Err(HandshakeError::Version {
                got,
                lowest,
                highest,
            });
        }
        let proof = self.state.write(&[])?;
        let [sending, receiving] = self.state.split()?;
        let keys = Keys {
            sealer: Sealer::new(sending)?,
            opener: Opener::new(receiving)?,
        };
        Ok(Welcomed {
            keys,
            version: got,
            proof,
        })
    }
}

/// The side that accepts, after its WELCOME.
pub struct Acceptor(NoiseState);

/// Result of PROOF.
pub struct Proven {
    /// The endpoint that has connected.
    pub connector: u128,
    /// The connection's.
    pub keys: Keys,
}

impl Acceptor {
    /// Takes HELLO, and makes WELCOME, which says which version the connection has.
    ///
    /// # Errors
    /// `Unproven`, `Unable`, `Key`.
    pub fn welcome(
        own: &StaticKey,
        psk: &Psk,
        prologue: &Prologue,
        version: u8,
        message: &[u8],
    ) -> Result<(Self, [u8; WELCOME_BYTES]), HandshakeError> {
        let mut state = Self::hear(own, psk, prologue, message)?;
        let welcome = state.write(&[version])?;
        Ok((Self(state), welcome))
    }

    /// Checks whether HELLO was made with that key and for that prologue, without arithmetic on curves. An acceptor
    /// that has several keys finds the one that is meant by trying each.
    ///
    /// # Errors
    /// `Unproven`, `Unable`.
    pub fn check(
        own: &StaticKey,
        psk: &Psk,
        prologue: &Prologue,
        message: &[u8],
    ) -> Result<(), HandshakeError> {
        Self::hear(own, psk, prologue, message).map(drop)
    }

    fn hear(
        own: &StaticKey,
        psk: &Psk,
        prologue: &Prologue,
        message: &[u8],
    ) -> Result<NoiseState, HandshakeError> {
        let mut state = NoiseState::new(own, psk, prologue, false)?;
        state.read("HELLO", message, &mut [])?;
        Ok(state)
    }

    /// Takes the proof: the connector has read WELCOME, and has the key of its id.
    ///
    /// # Errors
    /// `Unproven`, `Key`.
    pub fn proven(mut self, message: &[u8]) -> Result<Proven, HandshakeError> {
        self.0.read("PROOF", message, &mut [])?;
        let connector = self.0.peer("PROOF")?;
        let [receiving, sending] = self.0.split()?;
        let keys = Keys {
            sealer: Sealer::new(sending)?,
            opener: Opener::new(receiving)?,
        };
        Ok(Proven { connector, keys })
    }
}
