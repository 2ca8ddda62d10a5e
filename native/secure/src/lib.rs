//! Lets two endpoints prove to each other that they belong to one application, and seals the bytes
//! of their connection.
//!
//! ```text
//!   setup      Secret (of a card), SharedSecret (of Spark) ──▶ Psk ──┐
//!              StaticKey (of an endpoint; its id is a hash) ─────────┴▶ Connector / Acceptor ──▶ Keys
//!   datapath   Sealer, Opener: records of up to 64 KiB
//! ```
//! | What | Algorithm | Source |
//! |---|---|---|
//! | pre-shared key | HKDF-SHA-256 (RFC 5869) of the acceptor's card and Spark's secret | `ring` |
//! | endpoint id | SHA-256 of the static public key, 128 bits of it | `ring` |
//! | handshake | Noise `XXpsk0`, X25519, AES-256-GCM, SHA-256 (Noise protocol framework, revision 34) | `snow`, with `ring` and `curve25519-dalek` |
//! | records | AES-256-GCM (NIST SP 800-38D), nonces from a counter, a new key every 2^24 records | `ring` |
//!
//! The crate does no I/O and reads no clock. Memory of keys is overwritten when they are dropped
//! (`zeroizing`).

mod handshake;
mod identity;
mod noise;
mod primitives;
mod record;
mod secret;
mod zeroizing;
#[cfg(test)]
mod zeroizing_test;

pub use handshake::{Acceptor, AuthResult, Connector, Keys, WelcomeResult};
pub use identity::StaticKey;
pub use noise::{HandshakeError, Prologue, HELLO_BYTES, PROOF_BYTES, WELCOME_BYTES};
pub use record::{
    Opener, RecordError, Sealer, HEADER_BYTES, OVERHEAD_BYTES, RECORD_BYTES, TAG_BYTES,
};
pub use secret::{Psk, Secret, SharedSecret, SECRET_BYTES};

use thiserror::Error;

/// The cryptographic library returned no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no key could be derived")]
pub struct KeyError;

/// Protection of a connection's bytes once both ends have proven their identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protection {
    /// Sent in clear. The handshake authenticates peers, but does not protect against somebody on
    /// the path.
    #[default]
    Clear,
    /// Encrypted and authenticated.
    Sealed,
}

impl Protection {
    /// Its code in messages.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Self::Clear => 0,
            Self::Sealed => 1,
        }
    }
}
