//! Bytes that only members of an application know. They are wiped when they are dropped, and no formatting shows them.

use ring::hkdf;
use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of a [`Secret`].
pub const SECRET_BYTES: usize = 32;

/// 256 secret bits.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// Takes over bytes that are secret already.
    #[must_use]
    pub fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// From the operating system's generator.
    ///
    /// # Errors
    /// It gives none.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut secret = Self([0; SECRET_BYTES]);
        getrandom::fill(&mut secret.0)?;
        Ok(secret)
    }

    /// The bytes, for a key or for the text of a card.
    #[must_use]
    pub fn expose(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    /// HKDF-SHA-256 with this as its key material.
    pub(crate) fn derive(&self, salt: &[u8], info: &[&[u8]]) -> Self {
        expand(
            &hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(&self.0),
            info,
        )
    }
}

/// 256 bits of a pseudo-random key.
fn expand(key: &hkdf::Prk, info: &[&[u8]]) -> Secret {
    let mut secret = Secret([0; SECRET_BYTES]);
    let filled = key
        .expand(info, hkdf::HKDF_SHA256)
        .and_then(|okm| okm.fill(&mut secret.0));
    // HKDF-SHA-256 gives up to 8,160 bytes.
    debug_assert!(filled.is_ok());
    secret
}

impl PartialEq for Secret {
    /// Takes the same time wherever they differ.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What all executors of an application know and nothing else does: Spark's authentication secret, of any length.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SharedSecret(Vec<u8>);

impl SharedSecret {
    /// Takes over its bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret(..)")
    }
}

/// The key that both ends of a handshake know before it. It belongs to the endpoint that accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Psk(Secret);

impl Psk {
    /// Of the endpoint with that card, in an application. `shared`: Spark's secret if Spark authenticates; without it,
    /// the card alone proves the membership, so it is protected as well as the way on which cards travel.
    #[must_use]
    pub fn derive(card: &Secret, shared: Option<&SharedSecret>, application: &str) -> Self {
        let shared: &[u8] = shared.map_or(&[], |secret| &secret.0);
        let key = hkdf::Salt::new(hkdf::HKDF_SHA256, card.expose()).extract(shared);
        Self(expand(&key, &[b"faro 1 psk", application.as_bytes()]))
    }

    pub(crate) fn bytes(&self) -> &[u8; SECRET_BYTES] {
        self.0.expose()
    }
}
