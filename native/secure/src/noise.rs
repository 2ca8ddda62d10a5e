//! One side's Noise state, which makes and reads the handshake's messages, and the values that both
//! sides must agree on first.

use crate::identity::id_of;
use crate::primitives::{Primitives, KEY_BYTES};
use crate::secret::{Psk, Secret};
use crate::zeroizing::{wipe_stack, ZeroizingBox};
use crate::{KeyError, Protection, StaticKey};
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use thiserror::Error;
use zeroize::Zeroize;

/// Bytes of an AEAD tag.
const TAG_BYTES: usize = 16;
/// Bytes of the version in WELCOME.
pub(crate) const VERSION_BYTES: usize = 1;
/// Bytes of HELLO's Noise message.
pub const HELLO_BYTES: usize = KEY_BYTES + TAG_BYTES;
/// Bytes of WELCOME's Noise message.
pub const WELCOME_BYTES: usize = KEY_BYTES + KEY_BYTES + TAG_BYTES + VERSION_BYTES + TAG_BYTES;
/// Bytes of PROOF's Noise message.
pub const PROOF_BYTES: usize = KEY_BYTES + TAG_BYTES + TAG_BYTES;
/// The protocol's name in the Noise framework.
const PATTERN: &str = "Noise_XXpsk0_25519_AESGCM_SHA256";

/// Values on which both ends must agree before the first message. Messages with other values are
/// refused, so nobody on the path can change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prologue {
    /// Versions of the wire protocol that the connector offers, the lowest and the highest.
    pub versions: [u8; 2],
    /// First byte of the fabric's name: a message cannot be carried to another fabric of the
    /// acceptor.
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
    /// The message was not made with the key, or for another endpoint, protocol version or
    /// protection.
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
    /// No key could be derived.
    #[error(transparent)]
    Key(#[from] KeyError),
}

fn unable(error: snow::Error) -> HandshakeError {
    HandshakeError::Unable(error.to_string())
}

/// The library's state of either side. It has keys in it, and so have the stacks of its calls.
pub(crate) struct NoiseState(ZeroizingBox<HandshakeState>);

impl NoiseState {
    pub(crate) fn new(
        key: &StaticKey,
        psk: &Psk,
        prologue: &Prologue,
        initiates: bool,
    ) -> Result<Self, HandshakeError> {
        let prologue = prologue.bytes();
        let made = ZeroizingBox::try_new(|| {
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

    /// Makes a message, which has a fixed length. The library makes a shorter one where a key is
    /// missing.
    ///
    /// # Errors
    /// Returns `Unable` and `Key`.
    pub(crate) fn write<const BYTES: usize>(
        &mut self,
        payload: &[u8],
    ) -> Result<[u8; BYTES], HandshakeError> {
        let mut message = [0; BYTES];
        let written = self.0.write_message(payload, &mut message);
        wipe_stack();
        match written.map_err(unable)? {
            length if length == BYTES => Ok(message),
            _ => Err(KeyError.into()),
        }
    }

    /// Reads a message whose payload is exactly as long as `payload`.
    ///
    /// # Errors
    /// Returns `Unproven`, with the message's `name`.
    pub(crate) fn read(
        &mut self,
        name: &'static str,
        message: &[u8],
        payload: &mut [u8],
    ) -> Result<(), HandshakeError> {
        // The library writes a payload only where its tag was right, and needs room for what could
        // be there.
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
    pub(crate) fn peer(&self, name: &'static str) -> Result<u128, HandshakeError> {
        let key = self.0.get_remote_static().and_then(<[u8]>::first_chunk);
        key.map(id_of)
            .ok_or(HandshakeError::Unproven { message: name })
    }

    /// Returns the keys of the connector's bytes, and of the acceptor's.
    pub(crate) fn split(mut self) -> Result<[Secret; 2], KeyError> {
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
