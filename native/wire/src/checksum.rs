//! CRC-32C (Castagnoli, RFC 3720 appendix B.4), the protocol's only checksum.

/// Returns the CRC-32C of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}
