//! By what an application proves itself, and the name that the service derives from it.

use ring::digest;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

const TOKEN_BYTES: usize = 32;

/// A secret that only the executors of one application know.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Token([u8; TOKEN_BYTES]);

impl Token {
    /// Takes over bytes that are secret already.
    #[must_use]
    pub fn new(bytes: [u8; TOKEN_BYTES]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8; TOKEN_BYTES] {
        &self.0
    }

    /// The application's name in the service. The token cannot be calculated from it.
    #[must_use]
    pub fn key(&self) -> Key {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"faro service 1 application");
        context.update(&self.0);
        let hash = context.finish();
        let mut key = [0; Key::BYTES];
        key.copy_from_slice(&hash.as_ref()[..Key::BYTES]);
        Key(key)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// An application, as the service names it; its directory has this as hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; Key::BYTES]);

impl Key {
    const BYTES: usize = 16;

    /// The key that a directory is named by; `None`: it is no such name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let digit = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        if name.len() != 2 * Self::BYTES || !name.bytes().all(digit) {
            return None;
        }
        let mut key = [0; Self::BYTES];
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&name[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self(key))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
