//! Bodies of the stream fabrics' own frames (`wire` owns kinds and the header before each body).
//!
//! Little-endian, fixed-width, readable at any alignment. Every frame but `WRITE` and `READ_REPLY`
//! has its whole body under `body_crc`. In those two the payload follows a small head; the
//! head's own CRC is in `body_crc`, so that a flipped bit can never redirect a write. The payload's
//! checksum travels end to end above the fabric.
//!
//! ```text
//! HELLO       0 lowest u8, highest u8, protection u8, 5 x u8 0  8 handshake (48)              56
//! WELCOME     0 handshake (97)                                                               97
//! PROOF       0 handshake (64)                                                               64
//! GOODBYE     0 code u32  4 text_bytes u32  8 text (UTF-8)                                    8 +
//! WRITE       0 key u64  8 offset u64  16 immediate u32  20 has_immediate u32  24 payload    24 +
//! READ        0 key u64  8 offset u64  16 length u32  20 0 u32                               24
//! READ_REPLY  0 verdict u32  4 0 u32  8 payload (only if done)                                8 +
//! WRITE_REF   0 key u64  8 offset u64  16 immediate u32  20 has_immediate u32
//!            24 source_slab u32  28 source_offset u32  32 length u32  36 0 u32               40
//! WRITE_ACK   n x { 0 sequence u64  8 verdict u32  12 0 u32 }                               16 n
//! SLAB_REQUEST  0 slab u32  4 0 u32                                                           8
//! SLAB_REPLY    0 slab u32  4 found u32  8 bytes u64 (+ a descriptor, SCM_RIGHTS, if found)  16
//! ```
//! `header.id` is the sender's sequence number in WRITE, READ and WRITE_REF, and comes back in
//! READ_REPLY's `header.id` and in WRITE_ACK's entries.

use faro_secure::{Protection, HELLO_BYTES, PROOF_BYTES, WELCOME_BYTES};
use faro_wire::{header, VersionRange, WireError};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A body (or head) of fixed length.
pub(crate) trait Layout: FromBytes + Sized {
    /// Names the layout's length in errors.
    const LENGTH_OF: &'static str;

    /// Reads a body of exactly this layout.
    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        Self::read_from_bytes(bytes).map_err(|_| WireError::BadValue {
            what: Self::LENGTH_OF,
            got: bytes.len() as u64,
        })
    }
}

/// Defines a body of fixed length.
macro_rules! layout {
    ($(#[$doc:meta])* $name:ident : $bytes:literal { $($(#[$field_doc:meta])* $field:ident : $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub(crate) struct $name {
            $($(#[$field_doc])* pub(crate) $field: $kind,)*
        }
        const _: () = assert!(size_of::<$name>() == $bytes);
        impl Layout for $name {
            const LENGTH_OF: &'static str = concat!("length of ", stringify!($name));
        }
    };
}

pub(crate) use layout;

layout! {
    /// Connector to acceptor: its range of protocol versions, whether it seals bytes, and the first
    /// message of the handshake.
    Hello: 56 {
        lowest: u8,
        highest: u8,
        protection: u8,
        reserved: [u8; 5],
        handshake: [u8; HELLO_BYTES],
    }
}
layout! {
    /// Acceptor to connector: the second message.
    Welcome: 97 { handshake: [u8; WELCOME_BYTES], }
}
layout! {
    /// Connector to acceptor: the last one.
    Proof: 64 { handshake: [u8; PROOF_BYTES], }
}
layout! {
    /// Head of a GOODBYE; the text follows.
    GoodbyeHead: 8 { code: U32, text_bytes: U32, }
}
layout! {
    /// Head of a WRITE; the payload follows.
    WriteHead: 24 { key: U64, offset: U64, immediate: U32, has_immediate: U32, }
}
layout! {
    /// A READ.
    ReadRequest: 24 { key: U64, offset: U64, length: U32, reserved: U32, }
}
layout! {
    /// Head of a READ_REPLY; the payload follows if the verdict is `DONE`.
    ReadReplyHead: 8 { verdict: U32, reserved: U32, }
}
layout! {
    /// A write by reference.
    WriteRef: 40 {
        key: U64,
        offset: U64,
        immediate: U32,
        has_immediate: U32,
        source_slab: U32,
        source_offset: U32,
        length: U32,
        reserved: U32,
    }
}
layout! {
    /// One entry of a WRITE_ACK.
    AckEntry: 16 { sequence: U64, verdict: U32, reserved: U32, }
}
layout! {
    /// Asks for a slab's descriptor.
    SlabRequest: 8 { slab: U32, reserved: U32, }
}
layout! {
    /// A slab's descriptor, or that there is none.
    SlabReply: 16 { slab: U32, found: U32, bytes: U64, }
}

/// Verdict: the bytes were taken or follow.
pub(crate) const DONE: u32 = 0;
/// Verdict: that range is not exposed to this peer.
pub(crate) const REFUSED: u32 = 1;

/// Maximum number of entries of one WRITE_ACK.
pub(crate) const MAX_ACKS: usize = 256;
/// Longest text of a GOODBYE, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 512;

/// Reason why a side ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum GoodbyeCode {
    /// It needs the connection no longer, or cannot serve it.
    Closing = 0,
    /// The other side broke the protocol.
    Protocol = 1,
    /// The other side did not prove who it is.
    Unproven = 2,
    /// A bound was reached.
    Bound = 3,
}

/// A decoded GOODBYE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Goodbye {
    pub(crate) code: u32,
    pub(crate) text: String,
}

impl Goodbye {
    pub(crate) fn encode(code: GoodbyeCode, text: &str) -> Vec<u8> {
        let mut end = text.len().min(MAX_TEXT_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let head = GoodbyeHead {
            code: (code as u32).into(),
            text_bytes: (end as u32).into(),
        };
        [head.as_bytes(), &text.as_bytes()[..end]].concat()
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, WireError> {
        let (head, text) =
            GoodbyeHead::read_from_prefix(body).map_err(|_| WireError::Truncated {
                what: "GOODBYE",
                needed: size_of::<GoodbyeHead>(),
                got: body.len(),
            })?;
        if head.text_bytes.get() as usize != text.len() || text.len() > MAX_TEXT_BYTES {
            return Err(WireError::BadValue {
                what: "length of GOODBYE's text",
                got: u64::from(head.text_bytes.get()),
            });
        }
        let text = std::str::from_utf8(text).map_err(|_| WireError::NotUtf8 {
            what: "GOODBYE's text",
        })?;
        Ok(Self {
            code: head.code.get(),
            // It goes to logs, so it must be one line.
            text: text
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect(),
        })
    }
}

impl Hello {
    pub(crate) fn new(protection: Protection, handshake: [u8; HELLO_BYTES]) -> Self {
        let spoken = header::VERSIONS.spoken();
        Self {
            lowest: spoken.oldest as u8,
            highest: spoken.newest as u8,
            protection: protection.byte(),
            reserved: [0; 5],
            handshake,
        }
    }

    /// Returns the protocol versions that the connector speaks.
    pub(crate) fn versions(&self) -> VersionRange {
        VersionRange::new(self.lowest.into(), self.highest.into())
    }
}

impl WriteHead {
    pub(crate) fn new(key: u64, offset: u64, immediate: Option<u16>) -> Self {
        Self {
            key: key.into(),
            offset: offset.into(),
            immediate: u32::from(immediate.unwrap_or(0)).into(),
            has_immediate: u32::from(immediate.is_some()).into(),
        }
    }
}

/// Decodes the immediate of a WRITE or WRITE_REF.
pub(crate) fn immediate(value: U32, has: U32) -> Result<Option<u16>, WireError> {
    match has.get() {
        0 => Ok(None),
        1 => u16::try_from(value.get())
            .map(Some)
            .map_err(|_| WireError::BadValue {
                what: "WRITE's immediate",
                got: u64::from(value.get()),
            }),
        got => Err(WireError::BadValue {
            what: "WRITE's immediate flag",
            got: u64::from(got),
        }),
    }
}

pub(crate) fn acks(body: &[u8]) -> Result<&[AckEntry], WireError> {
    <[AckEntry]>::ref_from_bytes(body).map_err(|_| WireError::BadValue {
        what: "length of WRITE_ACK",
        got: body.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodbye_survives_the_wire_and_is_one_line() {
        let body = Goodbye::encode(GoodbyeCode::Bound, "too\nmany");
        let got = Goodbye::decode(&body).unwrap();
        assert_eq!(got.code, GoodbyeCode::Bound as u32);
        assert_eq!(got.text, "too many");
        assert!(Goodbye::decode(&body[..body.len() - 1]).is_err());
        assert!(Goodbye::decode(&body[..7]).is_err());
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let text = "ü".repeat(MAX_TEXT_BYTES);
        let got = Goodbye::decode(&Goodbye::encode(GoodbyeCode::Closing, &text)).unwrap();
        assert_eq!(got.text.len(), MAX_TEXT_BYTES);
    }

    #[test]
    fn wrong_lengths_name_the_layout() {
        let error = WriteRef::decode(&[0; 39]).unwrap_err();
        assert_eq!(
            error,
            WireError::BadValue {
                what: "length of WriteRef",
                got: 39
            }
        );
        assert!(acks(&[0; 17]).is_err());
        assert_eq!(acks(&[0; 32]).unwrap().len(), 2);
    }
}
