//! The key pair of an endpoint, and the id that follows from it.
//!
//! An endpoint's id is a hash of its public key. So a member that has an id from a card can check
//! that the other end of a connection has the matching private key.

use crate::primitives::{public_of, KEY_BYTES};
use crate::zeroizing::wipe_stack;
use crate::{KeyError, Secret};
use ring::digest;
use std::fmt;
use std::sync::Arc;

/// Prefix that is hashed before the public key.
const LABEL: &[u8] = b"faro 2 endpoint id";

/// Returns the id of the endpoint with that public key: the first 128 bits of a SHA-256. Finding
/// another key with the id of a given endpoint takes 2^128 attempts. Two keys of one owner with the
/// same id are of no use to it.
pub(crate) fn id_of(public: &[u8; KEY_BYTES]) -> u128 {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(LABEL);
    context.update(public);
    let hash = context.finish();
    let mut id = [0; 16];
    for (to, from) in id.iter_mut().zip(hash.as_ref()) {
        *to = *from;
    }
    u128::from_le_bytes(id)
}

/// An endpoint's static X25519 key pair. The private key never leaves this crate.
#[derive(Clone)]
pub struct StaticKey {
    private: Arc<Secret>,
    public: [u8; KEY_BYTES],
    id: u128,
}

impl StaticKey {
    /// Returns a new random pair.
    ///
    /// # Errors
    /// Returns the error of the operating system's generator.
    pub fn random() -> Result<Self, getrandom::Error> {
        Ok(Self::of(Secret::random()?))
    }

    /// Returns the pair of a number, for tests and measurements only: every process can derive it.
    ///
    /// # Errors
    /// Returns `KeyError` if the derivation fails.
    pub fn public(number: u128) -> Result<Self, KeyError> {
        let mut seed = [0; KEY_BYTES];
        seed[..16].copy_from_slice(&number.to_le_bytes());
        Ok(Self::of(Secret::new(seed).derive(b"faro", &[b"public"])?))
    }

    fn of(private: Secret) -> Self {
        let public = public_of(private.expose());
        wipe_stack();
        Self {
            private: Arc::new(private),
            id: id_of(&public),
            public,
        }
    }

    /// Returns the endpoint's id.
    #[must_use]
    pub fn id(&self) -> u128 {
        self.id
    }

    pub(crate) fn public_key(&self) -> [u8; KEY_BYTES] {
        self.public
    }

    pub(crate) fn private(&self) -> &[u8; KEY_BYTES] {
        self.private.expose()
    }
}

impl fmt::Debug for StaticKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StaticKey({:032x})", self.id)
    }
}
