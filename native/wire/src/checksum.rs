//! CRC-32C (Castagnoli, RFC 3720 appendix B.4), the protocol's only checksum.

/// Returns the CRC-32C of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Returns the CRC-32C of the slices' bytes, one after the other.
#[must_use]
pub fn crc32c_of<'a>(slices: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    for bytes in slices {
        digest.update(bytes);
    }
    digest.finalize() as u32
}
