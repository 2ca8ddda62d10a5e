//! Primitives of Noise: AES-256-GCM and SHA-256 of `ring`, X25519 of `curve25519-dalek`. Each wipes its state.
//!
//! `ring`'s X25519 allows each key only once, but a static key is used in every handshake.

use crate::zeroizing::ZeroizingBox;
use curve25519_dalek::montgomery::MontgomeryPoint;
use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM, NONCE_LEN};
use ring::digest::{Context, SHA256};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use snow::Error;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes of an X25519 key, private or public.
pub(crate) const KEY_BYTES: usize = 32;

/// Returns the public key of a private one (RFC 7748).
pub(crate) fn public_of(private: &[u8; KEY_BYTES]) -> [u8; KEY_BYTES] {
    MontgomeryPoint::mul_base_clamped(*private).to_bytes()
}

/// Makes an AES-256-GCM key in memory that is wiped. The caller must wipe the stack.
pub(crate) fn aead_key(
    key: &[u8; KEY_BYTES],
) -> Result<ZeroizingBox<LessSafeKey>, ring::error::Unspecified> {
    ZeroizingBox::try_new(|| Ok(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key)?)))
}

/// Resolves the primitives of the one pattern in use.
#[derive(Default)]
pub(crate) struct Primitives {
    /// The static key's public key, so that no handshake computes it again.
    pub(crate) own: Option<[u8; KEY_BYTES]>,
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(System))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        match choice {
            DHChoice::Curve25519 => Some(Box::new(X25519 {
                known: self.own,
                ..X25519::default()
            })),
            _ => None,
        }
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        match choice {
            HashChoice::SHA256 => {
                let context = ZeroizingBox::try_new(|| Ok::<_, Error>(Context::new(&SHA256)));
                Some(Box::new(Sha256(context.ok()?)))
            }
            _ => None,
        }
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        match choice {
            CipherChoice::AESGCM => Some(Box::new(AesGcm(None))),
            _ => None,
        }
    }
}

/// The operating system's generator.
struct System;

impl Random for System {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        getrandom::fill(dest).map_err(|_| Error::Rng)
    }
}

/// A key pair.
#[derive(Default)]
struct X25519 {
    private: Zeroizing<[u8; KEY_BYTES]>,
    public: [u8; KEY_BYTES],
    /// The public key of the one that is set.
    known: Option<[u8; KEY_BYTES]>,
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_BYTES
    }

    fn priv_len(&self) -> usize {
        KEY_BYTES
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.public = self.known.unwrap_or_else(|| public_of(&self.private));
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), Error> {
        random.try_fill_bytes(&mut *self.private)?;
        self.public = public_of(&self.private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &*self.private
    }

    /// Refuses a point of small order, whose result is independent of the private key (RFC 7748, section 6.1).
    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let point = public.first_chunk().ok_or(Error::Dh)?;
        let shared = MontgomeryPoint(*point).mul_clamped(*self.private);
        let shared = Zeroizing::new(shared.to_bytes());
        if bool::from(shared.ct_eq(&[0; KEY_BYTES])) {
            return Err(Error::Dh);
        }
        out.get_mut(..KEY_BYTES)
            .ok_or(Error::Dh)?
            .copy_from_slice(&*shared);
        Ok(())
    }
}

/// SHA-256.
struct Sha256(ZeroizingBox<Context>);

impl Hash for Sha256 {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        SHA256.block_len()
    }

    fn hash_len(&self) -> usize {
        SHA256.output_len()
    }

    fn reset(&mut self) {
        *self.0 = Context::new(&SHA256);
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        let context = std::mem::replace(&mut *self.0, Context::new(&SHA256));
        out[..SHA256.output_len()].copy_from_slice(context.finish().as_ref());
    }
}

/// AES-256-GCM. Without a key it encrypts nothing: the message is too short, and the handshake ends.
struct AesGcm(Option<ZeroizingBox<LessSafeKey>>);

/// Returns a nonce as in Noise, section 12.4: 32 zero bits and the number, big-endian.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

impl AesGcm {
    fn seal(&self, number: u64, associated: &[u8], plain: &[u8], out: &mut [u8]) -> Option<usize> {
        let (bytes, rest) = out.split_at_mut_checked(plain.len())?;
        let place = rest.get_mut(..AES_256_GCM.tag_len())?;
        let key = self.0.as_ref()?;
        bytes.copy_from_slice(plain);
        match key.seal_in_place_separate_tag(nonce(number), Aad::from(associated), bytes) {
            Ok(tag) => {
                place.copy_from_slice(tag.as_ref());
                Some(plain.len() + AES_256_GCM.tag_len())
            }
            Err(_) => {
                bytes.fill(0);
                None
            }
        }
    }
}

impl Cipher for AesGcm {
    fn name(&self) -> &'static str {
        "AESGCM"
    }

    fn set(&mut self, key: &[u8; KEY_BYTES]) {
        self.0 = aead_key(key).ok();
    }

    fn encrypt(&self, number: u64, associated: &[u8], plain: &[u8], out: &mut [u8]) -> usize {
        self.seal(number, associated, plain, out).unwrap_or(0)
    }

    fn decrypt(
        &self,
        number: u64,
        associated: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let key = self.0.as_ref().ok_or(Error::Decrypt)?;
        let mut bytes = Zeroizing::new(sealed.to_vec());
        let plain = key
            .open_in_place(nonce(number), Aad::from(associated), &mut bytes)
            .map_err(|_| Error::Decrypt)?;
        out.get_mut(..plain.len())
            .ok_or(Error::Decrypt)?
            .copy_from_slice(plain);
        Ok(plain.len())
    }
}

#[cfg(test)]
#[path = "primitives_test.rs"]
mod tests;
