//! A bounds-checked reader of a body; no other code of this crate slices a received body.

use super::MAX_DETAIL_BYTES;
use crate::WireError;
use integer_encoding::VarInt;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The rest of a body.
pub(super) struct BodyReader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> BodyReader<'a> {
    pub(super) fn new(what: &'static str, rest: &'a [u8]) -> Self {
        Self { what, rest }
    }

    pub(super) fn u32(&mut self) -> Result<u32, WireError> {
        let mut word = [0; 4];
        word.copy_from_slice(self.bytes(4)?);
        Ok(u32::from_le_bytes(word))
    }

    /// Takes a count of at most `limit`, by which memory may be allocated.
    pub(super) fn count(&mut self, what: &'static str, limit: u32) -> Result<usize, WireError> {
        let got = self.u32()?;
        WireError::check_limit(what, u64::from(got), u64::from(limit))?;
        Ok(got as usize)
    }

    pub(super) fn bytes(&mut self, needed: usize) -> Result<&'a [u8], WireError> {
        if self.rest.len() < needed {
            return Err(WireError::Truncated {
                what: self.what,
                needed,
                got: self.rest.len(),
            });
        }
        let (taken, rest) = self.rest.split_at(needed);
        self.rest = rest;
        Ok(taken)
    }

    /// Takes one fixed-size value.
    pub(super) fn one<T: FromBytes + Immutable + KnownLayout + Unaligned + Copy>(
        &mut self,
    ) -> Result<T, WireError> {
        let bytes = self.bytes(size_of::<T>())?;
        // Cannot fail: `bytes` is exactly as long as `T`.
        T::read_from_bytes(bytes).map_err(|_| WireError::Truncated {
            what: self.what,
            needed: size_of::<T>(),
            got: bytes.len(),
        })
    }

    pub(super) fn array<T: FromBytes + Immutable + KnownLayout + Unaligned + Copy>(
        &mut self,
        count: usize,
    ) -> Result<Vec<T>, WireError> {
        let needed = count.saturating_mul(size_of::<T>());
        let bytes = self.bytes(needed)?;
        // Cannot fail: `T` is unaligned and `bytes` exactly `count` of them.
        <[T]>::ref_from_bytes(bytes)
            .map(<[T]>::to_vec)
            .map_err(|_| WireError::Truncated {
                what: self.what,
                needed,
                got: bytes.len(),
            })
    }

    /// Takes a variable-length integer.
    pub(super) fn var<T: VarInt>(&mut self) -> Result<T, WireError> {
        /// Seven bits a byte.
        const LONGEST: usize = 10;
        if let Some((value, length)) = T::decode_var(self.rest) {
            self.rest = &self.rest[length..];
            return Ok(value);
        }
        match self.rest.get(LONGEST - 1) {
            Some(byte) => Err(WireError::BadValue {
                what: "tenth byte of a variable-length integer",
                got: u64::from(*byte),
            }),
            None => Err(WireError::Truncated {
                what: self.what,
                needed: self.rest.len() + 1,
                got: self.rest.len(),
            }),
        }
    }

    /// Takes a variable-length integer of at most 32 bits.
    pub(super) fn small(&mut self, what: &'static str) -> Result<u32, WireError> {
        let got = self.var::<u64>()?;
        u32::try_from(got).map_err(|_| WireError::TooLarge {
            what,
            got,
            limit: u64::from(u32::MAX),
        })
    }

    /// Checks that a reserved field is zero: a later version may give it a meaning, which must not
    /// be ignored.
    pub(super) fn zero(&self, reserved: u32) -> Result<(), WireError> {
        if reserved == 0 {
            return Ok(());
        }
        Err(WireError::BadValue {
            what: "reserved field",
            got: u64::from(reserved),
        })
    }

    /// Checks that a count or length is at least 1.
    pub(super) fn nonzero(&self, what: &'static str, value: u32) -> Result<(), WireError> {
        if value != 0 {
            return Ok(());
        }
        Err(WireError::BadValue { what, got: 0 })
    }

    /// Checks that `offset + length` does not overflow, so that receivers may add to an offset.
    pub(super) fn range(
        &self,
        what: &'static str,
        offset: u64,
        length: u32,
    ) -> Result<(), WireError> {
        match offset.checked_add(u64::from(length)) {
            Some(_) => Ok(()),
            None => Err(WireError::BadValue { what, got: offset }),
        }
    }

    /// Takes a text for people, of at most [`MAX_DETAIL_BYTES`].
    pub(super) fn detail(&mut self, what: &'static str) -> Result<String, WireError> {
        let length = self.count(what, MAX_DETAIL_BYTES as u32)?;
        let text = std::str::from_utf8(self.bytes(length)?);
        text.map(str::to_owned)
            .map_err(|_| WireError::NotUtf8 { what })
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Checks that nothing follows.
    pub(super) fn end(self) -> Result<(), WireError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(WireError::Trailing {
            what: self.what,
            extra: self.rest.len(),
        })
    }
}

/// Appends a text for people, cut at [`MAX_DETAIL_BYTES`] between two characters.
pub(super) fn put_detail(out: &mut Vec<u8>, detail: &str) {
    let mut end = detail.len().min(MAX_DETAIL_BYTES);
    while !detail.is_char_boundary(end) {
        end -= 1;
    }
    put_u32(out, end);
    out.extend_from_slice(&detail.as_bytes()[..end]);
}

/// Appends a count or code.
pub(super) fn put_u32(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(&(value as u32).to_le_bytes());
}
