//! The client's check of bytes: their CRC-32C as they arrived against the one as the server read
//! them from its file. No block is handed out before, unless its reader verifies it.

use faro_wire::crc32c;

/// Two checksums that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChecksumMismatch {
    pub(super) expected: u32,
    pub(super) got: u32,
}

/// The checksum of bytes that have arrived. It is computed when they arrive and are still in the
/// processor's cache, which may be before it can be compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunningChecksum(u32);

impl RunningChecksum {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(crc32c(bytes))
    }

    /// Compares it with the server's.
    ///
    /// # Errors
    /// They differ.
    pub(super) fn check(self, expected: u32) -> Result<(), ChecksumMismatch> {
        match self.0 {
            got if got == expected => Ok(()),
            got => Err(ChecksumMismatch { expected, got }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_changed_are_corrupt() {
        let expected = crc32c(b"0123456789");
        assert_eq!(RunningChecksum::of(b"0123456789").check(expected), Ok(()));
        let got = crc32c(b"0123456788");
        let corrupt = Err(ChecksumMismatch { expected, got });
        assert_eq!(RunningChecksum::of(b"0123456788").check(expected), corrupt);
    }
}
