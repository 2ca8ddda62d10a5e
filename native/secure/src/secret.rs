//! Secrets of an application. They are wiped when dropped, and formatting never shows them.

use crate::zeroizing::wipe_stack;
use crate::KeyError;
use ring::hkdf;
use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Length of a [`Secret`] in bytes.
pub const SECRET_BYTES: usize = 32;

/// 256 secret bits, boxed so that a move leaves no copy.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret(Box<[u8; SECRET_BYTES]>);

impl Secret {
    /// Copies `bytes`. The caller must wipe its own copy, or use [`Self::try_fill`].
    #[must_use]
    pub fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        let bytes = Zeroizing::new(bytes);
        let mut secret = Self::zero();
        secret.0.copy_from_slice(&*bytes);
        secret
    }

    fn zero() -> Self {
        Self(Box::new([0; SECRET_BYTES]))
    }

    /// Returns a secret that `fill` writes in place.
    ///
    /// # Errors
    /// Returns the error of `fill`.
    pub fn try_fill<E>(
        fill: impl FnOnce(&mut [u8; SECRET_BYTES]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut secret = Self::zero();
        fill(&mut secret.0)?;
        Ok(secret)
    }

    /// Returns a random secret.
    ///
    /// # Errors
    /// Returns the error of the operating system's generator.
    pub fn random() -> Result<Self, getrandom::Error> {
        Self::try_fill(|bytes| getrandom::fill(bytes))
    }

    /// Returns the bytes, for a key or for the text of a card.
    #[must_use]
    pub fn expose(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    /// Derives a secret by HKDF-SHA-256 with this one as its key material.
    pub(crate) fn derive(&self, salt: &[u8], info: &[&[u8]]) -> Result<Self, KeyError> {
        derive(salt, &*self.0, info)
    }
}

/// Derives a secret by HKDF-SHA-256 (RFC 5869).
fn derive(salt: &[u8], material: &[u8], info: &[&[u8]]) -> Result<Secret, KeyError> {
    let derived = expand(salt, material, info, SECRET_BYTES);
    wipe_stack();
    derived
}

/// Expands to a secret. `length` is part of HKDF's input.
#[inline(never)]
fn expand(salt: &[u8], material: &[u8], info: &[&[u8]], length: usize) -> Result<Secret, KeyError> {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let key = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(material);
    let bytes = key.expand(info, Length(length)).map_err(|_| KeyError)?;
    Secret::try_fill(|room| bytes.fill(room).map_err(|_| KeyError))
}

impl PartialEq for Secret {
    /// Compares in constant time.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&*other.0).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Spark's authentication secret, of any length. Only the executors of one application know it.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SharedSecret(Vec<u8>);

impl SharedSecret {
    /// Wraps the bytes without a copy.
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

/// The pre-shared key of a handshake. It belongs to the accepting endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Psk(Secret);

impl Psk {
    /// Derives the key of the endpoint with that card, in an application. `shared` is Spark's
    /// secret if Spark authenticates. Without it, the key is only as secure as the transport of
    /// cards.
    ///
    /// # Errors
    /// Returns `KeyError` if the derivation fails.
    pub fn derive(
        card: &Secret,
        shared: Option<&SharedSecret>,
        application: &str,
    ) -> Result<Self, KeyError> {
        let shared: &[u8] = shared.map_or(&[], |secret| &secret.0);
        let info: [&[u8]; 2] = [b"faro 2 psk", application.as_bytes()];
        Ok(Self(derive(card.expose(), shared, &info)?))
    }

    pub(crate) fn bytes(&self) -> &[u8; SECRET_BYTES] {
        self.0.expose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HKDF-SHA-256 gives up to 8,160 bytes, and a secret has 32.
    #[test]
    fn a_derivation_that_fails_is_an_error() {
        for length in [8_161, 31, 33] {
            assert_eq!(expand(b"salt", b"material", &[], length), Err(KeyError));
        }
        assert!(expand(b"salt", b"material", &[], SECRET_BYTES).is_ok());
    }
}
