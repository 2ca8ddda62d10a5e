//! The frame header.
//!
//! ```text
//!  0       4         5      6       8        12           16        24         28         32
//!  +-------+---------+------+-------+--------+------------+---------+----------+----------+
//!  | magic | version | kind | flags | length | header_crc | id      | body_crc | reserved |
//!  | u32   | u8      | u8   | u16   | u32    | u32        | u64     | u32      | u32      |
//!  +-------+---------+------+-------+--------+------------+---------+----------+----------+
//! ```
//! `length` counts the body, which follows the header. `header_crc` is the CRC-32C of the 32 header
//! bytes with that field zero, so that a flipped bit of the length is an error. `body_crc` is
//! the CRC-32C of the body; for `kind::WRITE` and `kind::READ_REPLY` only of the head before the payload,
//! whose own checksum the endpoint layer sends in `DATA_WRITTEN`.

use crate::{crc32c, VersionGap, VersionRange, WireError};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `b"FARO"`, read as a little-endian integer.
pub const MAGIC: u32 = u32::from_le_bytes(*b"FARO");
/// The newest protocol version that this build speaks.
pub const VERSION: u8 = 5;
/// The oldest one: the version before, from the first one on that another version works with.
pub const OLDEST_VERSION: u8 = 5;
/// All that this build speaks.
pub const VERSIONS: VersionRange = VersionRange::new(OLDEST_VERSION as u16, VERSION as u16);
/// Bytes of a [`FrameHeader`].
pub const HEADER_BYTES: usize = 32;
/// Largest body of a two-sided message, in bytes.
pub const MAX_MESSAGE_BYTES: u32 = 2 << 20;
/// Largest payload of one one-sided operation, in bytes (a slab).
pub const MAX_PAYLOAD_BYTES: u32 = 16 << 20;

/// Frame kinds. Below `FIRST_MESSAGE`: the stream fabrics' own. From there on: endpoint messages.
pub mod kind {
    /// Connector to acceptor, first frame: the first message of the handshake.
    pub const HELLO: u8 = 0x01;
    /// Acceptor to connector: the second one.
    pub const WELCOME: u8 = 0x02;
    /// Either side: the connection closes, and why.
    pub const GOODBYE: u8 = 0x03;
    /// One-sided write: a `WriteHead`, then the payload.
    pub const WRITE: u8 = 0x04;
    /// One-sided read request.
    pub const READ: u8 = 0x05;
    /// Answer to `READ`: a `ReadReplyHead`, then the payload.
    pub const READ_REPLY: u8 = 0x06;
    /// shm: write by reference to a slab of the sender.
    pub const WRITE_REF: u8 = 0x07;
    /// shm: the referenced bytes were copied, or refused.
    pub const WRITE_ACK: u8 = 0x08;
    /// shm: asks for the file descriptor of a slab.
    pub const SLAB_REQUEST: u8 = 0x09;
    /// shm: the descriptor, by `SCM_RIGHTS`.
    pub const SLAB_REPLY: u8 = 0x0a;
    /// verbs: the sender's queue pair.
    pub const QP_INFO: u8 = 0x0b;
    /// verbs: the first message over the queue pairs; both are ready.
    pub const QP_READY: u8 = 0x0c;
    /// verbs: memory that the receiver may access from now on, and how.
    pub const EXPOSE: u8 = 0x0d;
    /// verbs: the receiver must stop accessing exposed memory.
    pub const REVOKE: u8 = 0x0e;
    /// verbs: the answer to `REVOKE`: the sender no longer accesses that memory.
    pub const REVOKED: u8 = 0x0f;
    /// verbs: asks for permission for an operation that no exposed memory covers.
    pub const ACCESS_QUERY: u8 = 0x10;
    /// verbs: the answer to `ACCESS_QUERY`.
    pub const ACCESS_REPLY: u8 = 0x11;
    /// Connector to acceptor: the last message of the handshake.
    pub const PROOF: u8 = 0x12;

    /// First kind that belongs to the endpoint layer.
    pub const FIRST_MESSAGE: u8 = 0x20;
    /// Client to server: blocks wanted, first buffers.
    pub const FETCH: u8 = 0x20;
    /// Server to client: status and exact length of every block.
    pub const FETCH_RESPONSE: u8 = 0x21;
    /// Client to server: more buffers.
    pub const MORE_BUFFERS: u8 = 0x22;
    /// Server to client: buffers that it has written, with the CRC of each.
    pub const DATA_WRITTEN: u8 = 0x23;
    /// Client to server: ends a request.
    pub const CANCEL: u8 = 0x24;
    /// Server to client: the request failed or was cancelled; no write follows.
    pub const FAILED: u8 = 0x25;
    /// Server to client: the location of all bytes, for one-sided reads.
    pub const READ_OFFER: u8 = 0x26;

    /// Member of an application to another: something to do, or to send.
    pub const COMMAND: u8 = 0x30;
    /// The answer to `COMMAND`: whether it will be done, or what was asked for.
    pub const COMMAND_ANSWER: u8 = 0x31;

    /// Member of a team to another: the sender's number and rank.
    pub const JOIN: u8 = 0x40;
    /// Receiver of a part to its sender: buffers for it, and the round's shape.
    pub const CLEAR_TO_SEND: u8 = 0x41;
    /// Sender of a part to its receiver: chunks that it has written.
    pub const DATA_READY: u8 = 0x42;
    /// Member of a team to all that sent it a `JOIN`: it leaves the team, and why.
    pub const ABORT: u8 = 0x43;
}

/// The header; the module's diagram has its layout.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct FrameHeader {
    /// Always [`MAGIC`].
    pub magic: U32,
    /// Protocol version of the connection.
    pub version: u8,
    /// One of [`kind`].
    pub kind: u8,
    /// Kind-specific bits; unknown bits must be zero.
    pub flags: U16,
    /// Bytes of body after the header.
    pub length: U32,
    /// CRC-32C of this header with this field zero.
    pub header_crc: U32,
    /// Request id (messages) or token (one-sided operations).
    pub id: U64,
    /// CRC-32C of the body; of `WRITE` and `READ_REPLY`, of the head before the payload.
    pub body_crc: U32,
    /// Zero.
    pub reserved: U32,
}

impl FrameHeader {
    /// Returns a sealed header for `body`, with its checksum.
    #[must_use]
    pub fn for_body(kind: u8, id: u64, body: &[u8]) -> Self {
        Self::sealed(kind, 0, id, body.len() as u32, crc32c(body))
    }

    /// Returns a header with every field given and its own checksum set.
    #[must_use]
    pub fn sealed(kind: u8, flags: u16, id: u64, length: u32, body_crc: u32) -> Self {
        let mut header = Self {
            magic: MAGIC.into(),
            version: VERSION,
            kind,
            flags: flags.into(),
            length: length.into(),
            header_crc: 0.into(),
            id: id.into(),
            body_crc: body_crc.into(),
            reserved: 0.into(),
        };
        header.header_crc = crc32c(header.as_bytes()).into();
        header
    }

    /// Returns the header as a peer of `version` reads it. The layout is the same in all versions.
    #[must_use]
    pub fn in_version(self, version: u8) -> Self {
        if version == self.version {
            return self;
        }
        let mut header = Self {
            version,
            header_crc: 0.into(),
            ..self
        };
        header.header_crc = crc32c(header.as_bytes()).into();
        header
    }

    /// Checks magic, version, checksum and reserved field of the first [`HEADER_BYTES`] of `bytes`. A HELLO and a GOODBYE may
    /// have any version: the one says in its body what the sender speaks, and the other why it goes.
    ///
    /// # Errors
    /// `Truncated`, `BadMagic`, `UnsupportedVersion`, `BadChecksum`, `BadValue`. The caller checks
    /// kind and length, whose bounds depend on the connection's state.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let (header, _) = Self::read_from_prefix(bytes).map_err(|_| WireError::Truncated {
            what: "frame header",
            needed: HEADER_BYTES,
            got: bytes.len(),
        })?;
        if header.magic.get() != MAGIC {
            return Err(WireError::BadMagic {
                got: header.magic.get(),
            });
        }
        let version = u16::from(header.version);
        let in_all_versions = matches!(header.kind, kind::HELLO | kind::GOODBYE);
        let own = VERSIONS.spoken();
        if !in_all_versions && !own.has(version) {
            let peer = VersionRange::new(version, version);
            return Err(VersionGap { own, peer }.into());
        }
        let expected = crc32c(
            Self {
                header_crc: 0.into(),
                ..header
            }
            .as_bytes(),
        );
        if expected != header.header_crc.get() {
            return Err(WireError::BadChecksum {
                what: "frame header",
                expected,
                got: header.header_crc.get(),
            });
        }
        if header.reserved.get() != 0 {
            return Err(WireError::BadValue {
                what: "frame header's reserved field",
                got: u64::from(header.reserved.get()),
            });
        }
        Ok(header)
    }

    /// Checks `body` against `body_crc`.
    ///
    /// # Errors
    /// `BadChecksum`.
    pub fn check_body(&self, body: &[u8]) -> Result<(), WireError> {
        let expected = crc32c(body);
        if expected == self.body_crc.get() {
            return Ok(());
        }
        Err(WireError::BadChecksum {
            what: "frame body",
            expected,
            got: self.body_crc.get(),
        })
    }
}
