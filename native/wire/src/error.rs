//! Errors of received bytes. Every variant carries the offending value.

use crate::VersionGap;
use thiserror::Error;

/// Reason why a message is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireError {
    /// Fewer bytes than the layout needs.
    #[error("{what} needs {needed} bytes, got {got}")]
    Truncated {
        what: &'static str,
        needed: usize,
        got: usize,
    },
    /// More bytes than the layout has.
    #[error("{what} has {extra} bytes after its end")]
    Trailing { what: &'static str, extra: usize },
    /// First four bytes are not `FARO`.
    #[error("not a Faro frame: magic {got:#010x}")]
    BadMagic { got: u32 },
    /// Both sides have no protocol version in common.
    #[error(transparent)]
    UnsupportedVersion(#[from] VersionGap),
    /// A frame kind this build does not know.
    #[error("unknown frame kind {got:#04x}")]
    UnknownKind { got: u8 },
    /// A length or count beyond the protocol's bound.
    #[error("{what} is {got}, at most {limit} is allowed")]
    TooLarge {
        what: &'static str,
        got: u64,
        limit: u64,
    },
    /// A field with a value outside its domain.
    #[error("{what} has the invalid value {got}")]
    BadValue { what: &'static str, got: u64 },
    /// CRC-32C disagrees.
    #[error("{what}: checksum {got:#010x}, expected {expected:#010x}")]
    BadChecksum {
        what: &'static str,
        expected: u32,
        got: u32,
    },
    /// Text that is not UTF-8.
    #[error("{what} is not UTF-8")]
    NotUtf8 { what: &'static str },
}

impl WireError {
    /// Checks a length or count against its bound.
    ///
    /// # Errors
    /// `TooLarge` if `got` is above `limit`.
    #[inline]
    pub fn check_limit(what: &'static str, got: u64, limit: u64) -> Result<(), Self> {
        if got > limit {
            return Err(Self::TooLarge { what, got, limit });
        }
        Ok(())
    }
}
