//! Records: the bytes of a sealed connection.
//!
//! ```text
//!   0 length u32 (of what follows)   4 ciphertext   4 + n tag (16)          length = n + 16, n from 1 to 65,536
//! ```
//! The length is authenticated too. The nonce is the record's number, which is not sent: a missing,
//! repeated or moved record does not open. Each direction has a key of its own, and a new one every
//! [`REKEY`] records, derived from the last one, which is wiped.

use crate::primitives::aead_key;
use crate::secret::Secret;
use crate::zeroizing::{wipe_stack, ZeroizingBox};
use crate::KeyError;
use ring::aead::{Aad, LessSafeKey, Nonce, NONCE_LEN};
use thiserror::Error;

/// Maximum bytes of one record before it is sealed.
pub const RECORD_BYTES: usize = 64 << 10;
/// Bytes of its length.
pub const HEADER_BYTES: usize = 4;
/// Bytes of its tag.
pub const TAG_BYTES: usize = 16;
/// Bytes that sealing adds.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + TAG_BYTES;
/// Records of one key: 2^24, 1 TiB. NIST SP 800-38D allows 2^32.
const REKEY: u64 = 1 << 24;

/// Reason why a record was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordError {
    /// No record has that length.
    #[error("a record of {got} bytes; it has from {} to {}", TAG_BYTES + 1, RECORD_BYTES + TAG_BYTES)]
    Length {
        /// Length as received.
        got: u64,
    },
    /// It was changed, left out, repeated or made with another key.
    #[error("record {number} of this key was changed, left out or repeated on its way")]
    Tag {
        /// Its number under its key, from 0.
        number: u64,
    },
    /// No key could be derived.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// One direction's key and the number of its next record.
struct Sequence {
    key: ZeroizingBox<LessSafeKey>,
    secret: Secret,
    next: u64,
    rekey: u64,
}

impl Sequence {
    fn new(secret: Secret, rekey: u64) -> Result<Self, KeyError> {
        let key = aead_key(secret.expose());
        wipe_stack();
        Ok(Self {
            key: key.map_err(|_| KeyError)?,
            secret,
            next: 0,
            rekey,
        })
    }

    /// Returns the next record's nonce. Changes the key if this one has sealed its maximum number
    /// of records.
    fn nonce(&mut self) -> Result<Nonce, KeyError> {
        if self.next == self.rekey {
            let next = self.secret.derive(b"faro 2", &[b"next key"])?;
            *self = Self::new(next, self.rekey)?;
        }
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - 8..].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        Ok(Nonce::assume_unique_for_key(nonce))
    }
}

/// Seals the bytes that one side sends.
pub struct Sealer(Sequence);

impl Sealer {
    pub(crate) fn new(secret: Secret) -> Result<Self, KeyError> {
        Ok(Self(Sequence::new(secret, REKEY)?))
    }

    /// Seals a record in its buffer: `record` has room for the length, then the bytes, then room for the tag.
    ///
    /// # Errors
    /// Returns `Length` for 0 bytes or more than `RECORD_BYTES`, or `Key`; nothing was sealed.
    pub fn seal(&mut self, record: &mut [u8]) -> Result<(), RecordError> {
        let bytes = record.len().saturating_sub(OVERHEAD_BYTES);
        if bytes == 0 || bytes > RECORD_BYTES {
            let got = bytes as u64;
            return Err(RecordError::Length { got });
        }
        let (header, body) = record.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&((bytes + TAG_BYTES) as u32).to_le_bytes());
        let (bytes, tag) = body.split_at_mut(bytes);
        let nonce = self.0.nonce()?;
        let sealed = self
            .0
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(&*header), bytes)
            .map_err(|_| KeyError)?;
        tag.copy_from_slice(sealed.as_ref());
        Ok(())
    }
}

#[cfg(test)]
impl Sealer {
    pub(crate) fn secret(&self) -> &Secret {
        &self.0.secret
    }
}

/// Opens the records of the other side.
pub struct Opener(Sequence);

impl Opener {
    pub(crate) fn new(secret: Secret) -> Result<Self, KeyError> {
        Ok(Self(Sequence::new(secret, REKEY)?))
    }

    /// Returns the length of the whole record that begins with `header`.
    ///
    /// # Errors
    /// Returns `Length` if no record has it.
    pub fn length(header: [u8; HEADER_BYTES]) -> Result<usize, RecordError> {
        let got = u32::from_le_bytes(header);
        match got as usize {
            length if (TAG_BYTES + 1..=RECORD_BYTES + TAG_BYTES).contains(&length) => {
                Ok(HEADER_BYTES + length)
            }
            _ => Err(RecordError::Length { got: got.into() }),
        }
    }

    /// Opens a whole record in place and returns its bytes. After an error no further record opens.
    ///
    /// # Errors
    /// Returns `Length`, `Tag` or `Key`; the buffer is then undefined.
    pub fn open<'r>(&mut self, record: &'r mut [u8]) -> Result<&'r mut [u8], RecordError> {
        let length = record.len() as u64;
        let Some((header, body)) = record.split_first_chunk_mut::<HEADER_BYTES>() else {
            return Err(RecordError::Length { got: length });
        };
        if Self::length(*header)? as u64 != length {
            return Err(RecordError::Length { got: length });
        }
        let nonce = self.0.nonce()?;
        let number = self.0.next - 1;
        self.0
            .key
            .open_in_place(nonce, Aad::from(&*header), body)
            .map_err(|_| RecordError::Tag { number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(rekey: u64) -> (Sealer, Opener) {
        let secret = Secret::new([7; 32]);
        let sequence = |secret| Sequence::new(secret, rekey).unwrap();
        (Sealer(sequence(secret.clone())), Opener(sequence(secret)))
    }

    fn sealed(sealer: &mut Sealer, bytes: &[u8]) -> Vec<u8> {
        let mut record = [&[0; HEADER_BYTES], bytes, &[0; TAG_BYTES]].concat();
        sealer.seal(&mut record).unwrap();
        record
    }

    #[test]
    fn both_sides_change_their_keys_after_the_same_record() {
        let (mut sealer, mut opener) = pair(3);
        let mut seen = Vec::new();
        for i in 0..10_u8 {
            let mut record = sealed(&mut sealer, &[i; 40]);
            assert!(!seen.contains(&record));
            seen.push(record.clone());
            assert_eq!(opener.open(&mut record).unwrap(), [i; 40]);
        }
        // The fourth record has number 0 again, under another key.
        assert_eq!(sealer.0.next, 1);
        let (mut other, _) = pair(REKEY);
        assert_ne!(sealed(&mut other, &[3; 40]), seen[3]);
    }

    #[test]
    fn what_is_repeated_left_out_or_swapped_does_not_open() {
        let (mut sealer, _) = pair(REKEY);
        let records: Vec<_> = (0..3_u8).map(|i| sealed(&mut sealer, &[i; 9])).collect();
        for (order, bad) in [([0, 0, 1], 1), ([0, 2, 1], 1), ([1, 0, 2], 0)] {
            let (_, mut opener) = pair(REKEY);
            for (at, &record) in order.iter().enumerate() {
                let opened = opener
                    .open(&mut records[record].clone())
                    .map(|b| b.to_vec());
                if at < bad {
                    assert_eq!(opened.unwrap(), [record as u8; 9]);
                } else {
                    let number = at as u64;
                    assert_eq!(opened.unwrap_err(), RecordError::Tag { number });
                    break;
                }
            }
        }
    }

    #[test]
    fn any_changed_bit_is_found() {
        let (mut sealer, _) = pair(REKEY);
        let record = sealed(&mut sealer, b"row");
        for bit in 0..record.len() * 8 {
            let (_, mut opener) = pair(REKEY);
            let mut changed = record.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(opener.open(&mut changed).is_err(), "bit {bit}");
        }
        for length in 0..record.len() {
            let (_, mut opener) = pair(REKEY);
            assert!(opener.open(&mut record[..length].to_vec()).is_err());
        }
    }

    #[test]
    fn lengths_that_no_record_has() {
        for got in [0, 1, 16, 65_553, u32::MAX] {
            let error = Opener::length(got.to_le_bytes()).unwrap_err();
            assert_eq!(error, RecordError::Length { got: got.into() });
        }
        assert_eq!(Opener::length(17_u32.to_le_bytes()), Ok(21));
        assert_eq!(Opener::length(65_552_u32.to_le_bytes()), Ok(65_556));
    }
}
