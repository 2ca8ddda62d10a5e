//! Bodies of the verbs fabric's own frames, the head of a segment, and the immediate.
//!
//! Little-endian, fixed-width (but for the GID, which is in network order as everywhere).
//!
//! ```text
//! QP_INFO          0 queue_pair u32  4 psn u32  8 gid (16)  24 lid u16  26 mtu u8  27 reads u8
//!                 28 receives u32  32 segment_bytes u32  36 link u8  37 flags u8  38 P_Key u16 40
//! EXPOSE           0 key u64  8 address u64  16 rkey u32  20 length u32  24 slot u16
//!                 26 writable u8  27 0 u8  28 0 u32                                         32
//! REVOKE, REVOKED  0 key u64                                                                 8
//! ACCESS_QUERY     0 key u64  8 offset u64  16 length u32  20 writes u32                    24
//! ACCESS_REPLY     0 verdict u32  4 0 u32                                                    8
//! segment          0 credits u32  4 bytes u32  8 bytes of the stream                        8 +
//! segment, sealed  a record of: 0 credits u32  4 bytes of the stream                        4 +
//!
//! immediate   31        30     29 ... 16   15 ... 0
//!             has word  last   slot        word
//! ```
//! A link and a P_Key of 0 say nothing, and are not compared.
//! `header.id` of ACCESS_QUERY is the operation's sequence number, and comes back in ACCESS_REPLY.

use crate::frame::bodies::{layout, Layout};
use faro_wire::WireError;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

layout! {
    /// The sender's queue pair and how to reach it.
    QpInfo: 40 {
        queue_pair: U32,
        psn: U32,
        gid: [u8; 16],
        lid: U16,
        mtu: u8,
        reads: u8,
        receives: U32,
        segment_bytes: U32,
        link: u8,
        flags: u8,
        partition: U16,
    }
}
layout! {
    /// Memory that the receiver may reach.
    Expose: 32 {
        key: U64,
        address: U64,
        rkey: U32,
        length: U32,
        slot: U16,
        writable: u8,
        reserved: u8,
        reserved2: U32,
    }
}
layout! {
    /// The key of an exposure.
    Key: 8 { key: U64, }
}
layout! {
    /// Asks whether an operation that no announcement covers is allowed.
    AccessQuery: 24 { key: U64, offset: U64, length: U32, writes: U32, }
}
layout! {
    /// The verdict: `DONE` or `REFUSED`.
    AccessReply: 8 { verdict: U32, reserved: U32, }
}
layout! {
    /// Precedes the bytes of each SEND.
    SegmentHead: 8 { credits: U32, bytes: U32, }
}

/// Bit of QP_INFO's flags: the sender's port needs a global header (GRH).
pub(super) const NEEDS_GRH: u8 = 1;
/// Bytes of a segment: one packet at the largest RDMA MTU, and a size class of the pool.
pub(super) const SEGMENT_BYTES: usize = 4 << 10;
/// Bytes of a [`SegmentHead`].
pub(super) const SEGMENT_HEAD: usize = size_of::<SegmentHead>();
/// Bytes of the credits that a sealed segment's record begins with.
pub(super) const SEALED_HEAD: usize = 4;
/// Bytes of the stream that fit a segment.
pub(super) const SEGMENT_ROOM: usize = SEGMENT_BYTES - SEGMENT_HEAD;
/// Slots that an immediate can name.
pub(super) const SLOTS: usize = 1 << 14;

/// Contents of a write's immediate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Immediate {
    /// Below [`SLOTS`].
    pub(super) slot: u16,
    pub(super) word: Option<u16>,
    pub(super) last: bool,
}

impl Immediate {
    pub(super) fn encode(self) -> u32 {
        u32::from(self.word.is_some()) << 31
            | u32::from(self.last) << 30
            | u32::from(self.slot) << 16
            | u32::from(self.word.unwrap_or(0))
    }

    pub(super) fn decode(bits: u32) -> Self {
        Self {
            slot: (bits >> 16) as u16 & (SLOTS - 1) as u16,
            word: (bits >> 31 == 1).then_some(bits as u16),
            last: bits >> 30 & 1 == 1,
        }
    }
}

/// Returns the credits and the bytes of the stream in a segment.
pub(super) fn open_segment(segment: &[u8]) -> Result<(u32, &[u8]), WireError> {
    let (head, bytes) =
        SegmentHead::read_from_prefix(segment).map_err(|_| WireError::Truncated {
            what: "segment",
            needed: SEGMENT_HEAD,
            got: segment.len(),
        })?;
    if head.bytes.get() as usize != bytes.len() {
        return Err(WireError::BadValue {
            what: "length of a segment",
            got: u64::from(head.bytes.get()),
        });
    }
    Ok((head.credits.get(), bytes))
}

/// Returns the credits and the bytes of the stream in an opened record.
pub(super) fn open_sealed_segment(record: &[u8]) -> Result<(u32, &[u8]), WireError> {
    let (credits, bytes) = U32::read_from_prefix(record).map_err(|_| WireError::Truncated {
        what: "sealed segment",
        needed: SEALED_HEAD,
        got: record.len(),
    })?;
    Ok((credits.get(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediates_survive_the_wire() {
        for slot in [0, 1, 0x2aaa, (SLOTS - 1) as u16] {
            for word in [None, Some(0), Some(u16::MAX)] {
                for last in [false, true] {
                    let immediate = Immediate { slot, word, last };
                    assert_eq!(Immediate::decode(immediate.encode()), immediate);
                }
            }
        }
    }

    #[test]
    fn a_segment_must_be_as_long_as_it_says() {
        let head = SegmentHead {
            credits: 3.into(),
            bytes: 5.into(),
        };
        let segment = [head.as_bytes(), b"hello"].concat();
        assert_eq!(open_segment(&segment), Ok((3, &b"hello"[..])));
        assert!(open_segment(&segment[..12]).is_err());
        assert!(open_segment(&segment[..7]).is_err());
    }

    #[test]
    fn a_peer_may_say_nothing_of_its_port() {
        let mut body = [0; 40];
        let info = QpInfo::decode(&body).unwrap();
        assert_eq!((info.link, info.flags, info.partition.get()), (0, 0, 0));
        body[36..].copy_from_slice(&[1, NEEDS_GRH, 0x05, 0x80]);
        let info = QpInfo::decode(&body).unwrap();
        let said = (info.link, info.flags, info.partition.get());
        assert_eq!(said, (1, NEEDS_GRH, 0x8005));
    }

    #[test]
    fn bodies_have_exactly_their_length() {
        assert!(Expose::decode(&[0; 31]).is_err());
        assert!(QpInfo::decode(&[0; 41]).is_err());
    }
}
