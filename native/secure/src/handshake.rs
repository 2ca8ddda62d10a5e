//! The handshake: three messages that authenticate both endpoints and derive the connection's keys.
//!
//! ```text
//!   connector                                              acceptor
//!     HELLO    psk, e  ───────────────────────────────────▶   only a holder of the key can make or read it
//!     ◀────── e, ee, s, es, { version }  WELCOME              proves the acceptor: its id is a hash of its key s
//!     PROOF    s, se  ────────────────────────────────────▶   proves the connector in the same way
//! ```
//! A HELLO without the key costs the acceptor two hashes and one decryption, and no arithmetic on
//! curves. Each side's ephemeral key pair (e) is used once, so recorded traffic stays sealed if a
//! secret or a static key (s) is stolen later. Neither side reveals its id before the other has
//! proven that it knows the key.
//!
//! An id is a hash of a static key, so an endpoint authenticates even if this side has never seen
//! its card.

use crate::noise::{
    HandshakeError, NoiseState, Prologue, HELLO_BYTES, PROOF_BYTES, VERSION_BYTES, WELCOME_BYTES,
};
use crate::record::{Opener, Sealer};
use crate::secret::Psk;
use crate::StaticKey;

/// One side's keys of a connection.
pub struct Keys {
    /// For the bytes that this side sends.
    pub sealer: Sealer,
    /// For the bytes that it receives.
    pub opener: Opener,
}

/// The side that connects, after its HELLO.
pub struct Connector {
    state: NoiseState,
    prologue: Prologue,
}

/// Result of WELCOME.
pub struct WelcomeResult {
    /// Keys of the connection.
    pub keys: Keys,
    /// The offered version that the acceptor chose.
    pub version: u8,
    /// The PROOF to send.
    pub proof: [u8; PROOF_BYTES],
}

impl Connector {
    /// Makes HELLO for an acceptor whose key is `psk`; `own` proves which endpoint connects.
    ///
    /// # Errors
    /// Returns `Unable` or `Key`.
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

    /// Reads WELCOME and makes PROOF.
    ///
    /// # Errors
    /// Returns `Unproven`, `AnotherEndpoint`, `Version` or `Key`.
    pub fn welcomed(mut self, message: &[u8]) -> Result<WelcomeResult, HandshakeError> {
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
        Ok(WelcomeResult {
            keys,
            version: got,
            proof,
        })
    }
}

/// The side that accepts, after its WELCOME.
pub struct Acceptor(NoiseState);

/// Result of PROOF.
pub struct AuthResult {
    /// The endpoint that has connected.
    pub connector: u128,
    /// Keys of the connection.
    pub keys: Keys,
}

impl Acceptor {
    /// Reads HELLO and makes WELCOME, which contains the connection's version.
    ///
    /// # Errors
    /// Returns `Unproven`, `Unable` or `Key`.
    pub fn welcome(
        own: &StaticKey,
        psk: &Psk,
        prologue: &Prologue,
        version: u8,
        message: &[u8],
    ) -> Result<(Self, [u8; WELCOME_BYTES]), HandshakeError> {
        let mut state = Self::read_hello(own, psk, prologue, message)?;
        let welcome = state.write(&[version])?;
        Ok((Self(state), welcome))
    }

    /// Checks whether HELLO was made with that key and for that prologue, without arithmetic on
    /// curves. An acceptor with several keys tries each.
    ///
    /// # Errors
    /// Returns `Unproven` or `Unable`.
    pub fn check(
        own: &StaticKey,
        psk: &Psk,
        prologue: &Prologue,
        message: &[u8],
    ) -> Result<(), HandshakeError> {
        Self::read_hello(own, psk, prologue, message).map(drop)
    }

    fn read_hello(
        own: &StaticKey,
        psk: &Psk,
        prologue: &Prologue,
        message: &[u8],
    ) -> Result<NoiseState, HandshakeError> {
        let mut state = NoiseState::new(own, psk, prologue, false)?;
        state.read("HELLO", message, &mut [])?;
        Ok(state)
    }

    /// Reads PROOF, which authenticates the connector.
    ///
    /// # Errors
    /// Returns `Unproven` or `Key`.
    pub fn proven(mut self, message: &[u8]) -> Result<AuthResult, HandshakeError> {
        self.0.read("PROOF", message, &mut [])?;
        let connector = self.0.peer("PROOF")?;
        let [receiving, sending] = self.0.split()?;
        let keys = Keys {
            sealer: Sealer::new(sending)?,
            opener: Opener::new(receiving)?,
        };
        Ok(AuthResult { connector, keys })
    }
}
