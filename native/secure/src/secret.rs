//! Bytes that only members of an application know. They are wiped when they are dropped, and no formatting shows them.

use crate::zeroizing::wipe_stack;
use crate::KeyError;
use ring::hkdf;
use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of a [`Secret`].
pub const SECRET_BYTES: usize = 32;

/// 256 secret bits, in memory of their own: a move leaves no copy.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret(Box<[u8; SECRET_BYTES]>);

impl Secret {
    /// Takes over bytes that are secret already. Only the caller can wipe the bytes that it had: see [`Self::try_fill`].
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

    /// Makes a secret, which `fill` writes into its memory.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn try_fill<E>(
        fill: impl FnOnce(&mut [u8; SECRET_BYTES]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut secret = Self::zero();
        fill(&mut secret.0)?;
        Ok(secret)
    }

    /// From the operating system's generator.
    ///
    /// # Errors
    /// It gives none.
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

/// Expands to a secret. `length` is the length that HKDF is asked for, which is part of its input.
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
    /// Takes the same time wherever they differ.
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

/// Secret that all executors of an application know and nothing else does: Spark's authentication secret, of any
/// length.
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
    /// Derives the key of the endpoint with that card, in an application. `shared` is Spark's
    /// secret if Spark authenticates. Without it, the card alone proves the membership, which is
    /// then only as secure as the way on which cards travel.
    ///
    /// # Errors
    /// `KeyError`.
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
