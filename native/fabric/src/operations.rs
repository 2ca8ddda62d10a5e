//! What goes into a fabric and comes out of it: messages, one-sided writes and reads, exposed memory, events.

use crate::error::CloseReason;
use crate::file_pipe::FilePipe;
use crate::identity::{ConnectionId, EndpointId};
use faro_pool::Lease;
use faro_wire::header::MAX_PAYLOAD_BYTES;
use std::sync::Arc;

/// A key and a range that a peer may read or write one-sidedly. The same key with a larger `offset`
/// and a smaller `length` names a part of it. `offset` starts at a value that the fabric chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteRange {
    /// Key, given out by `expose`.
    pub key: u64,
    /// Offset relative to what the key names.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

/// Memory to expose: always leases of the pool that the fabric was made with.
pub enum Exposure {
    /// A peer may write; the fabric holds the lease until it is revoked.
    Writable(Lease),
    /// A peer may read.
    Readable(Arc<Lease>),
}

impl Exposure {
    /// Returns the memory.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        match self {
            Self::Writable(lease) => lease,
            Self::Readable(lease) => lease,
        }
    }
}

/// Answer to [`Fabric::revoke`](crate::Fabric::revoke).
pub enum RevokeStatus {
    /// From now on no peer changes a byte of it, and no read that sees a byte changed from now on
    /// ends `Done`. (Replies being sent keep a `Readable`'s `Arc` until they are sent.)
    Now(Exposure),
    /// The fabric cannot stop the peer by itself. [`Event::Revoked`] returns the exposure when the
    /// peer has confirmed the revocation or its connection has ended; until then the peer may
    /// change it.
    Later,
    /// The key is unknown.
    Unknown,
}

/// A two-sided message: a kind (≥ `wire::kind::FIRST_MESSAGE`), a request id, a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// `wire::kind`.
    pub kind: u8,
    /// Request id.
    pub id: u64,
    /// The message's bytes, at most `wire::header::MAX_MESSAGE_BYTES`.
    pub body: Vec<u8>,
}

/// Memory that a write sends from. Its bytes do not change as long as the value lives, which a fabric keeps until no
/// device and no peer reads it.
pub trait SourceMemory: Send + Sync {
    /// Returns the lease that has the bytes.
    fn lease(&self) -> &Lease;
}

impl SourceMemory for Lease {
    fn lease(&self) -> &Lease {
        self
    }
}

/// Most parts of one write. In a device's queue a request has room for as many addresses, or for a small message in their
/// place.
pub const MAX_PARTS: usize = 8;

/// A range of memory that a write sends.
pub struct WritePart {
    /// The memory.
    pub memory: Arc<dyn SourceMemory>,
    /// First byte in it.
    pub offset: usize,
    /// Bytes.
    pub length: usize,
}

impl WritePart {
    /// Returns the bytes of a part that ends in its lease.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.memory.lease().bytes()[self.offset..self.offset + self.length]
    }
}

/// What a write sends.
pub enum WriteSource {
    /// These, one after the other.
    Parts(Vec<WritePart>),
    /// All that a pipe holds.
    Pipe(FilePipe),
}

impl WriteSource {
    /// Returns the source of `length` bytes from `offset` in one lease.
    #[must_use]
    pub fn part<M: SourceMemory + 'static>(memory: Arc<M>, offset: usize, length: usize) -> Self {
        Self::Parts(vec![WritePart {
            memory,
            offset,
            length,
        }])
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        match self {
            Self::Parts(parts) => parts.iter().map(|part| part.length).sum(),
            Self::Pipe(pipe) => pipe.held(),
        }
    }

    /// Returns the parts; a pipe has none.
    #[must_use]
    pub fn parts(&self) -> &[WritePart] {
        match self {
            Self::Parts(parts) => parts,
            Self::Pipe(_) => &[],
        }
    }
}

/// What writes to one peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteSources {
    /// Parts of one write, at least one and at most [`MAX_PARTS`].
    pub parts: usize,
    /// It may be a pipe.
    pub pipes: bool,
    /// A device takes the bytes from memory, and nothing of this process reads them.
    pub by_device: bool,
}

impl WriteSources {
    /// Of connections that copy bytes into frames or records.
    pub const FRAMES: Self = Self {
        parts: MAX_PARTS,
        pipes: false,
        by_device: false,
    };

    /// Returns the limit that a write exceeds: that of the protocol, the end of a lease, or the number of parts.
    ///
    /// # Errors
    /// The limit.
    pub fn check(&self, source: &WriteSource) -> Result<(), u64> {
        for part in source.parts() {
            let room = part.memory.lease().capacity().checked_sub(part.offset);
            if room.is_none_or(|room| part.length > room) {
                return Err(room.unwrap_or(0) as u64);
            }
        }
        if source.length() > MAX_PAYLOAD_BYTES as usize {
            return Err(u64::from(MAX_PAYLOAD_BYTES));
        }
        let is_allowed = match source {
            WriteSource::Parts(parts) => (1..=self.parts).contains(&parts.len()),
            WriteSource::Pipe(_) => self.pipes,
        };
        is_allowed.then_some(()).ok_or(self.parts as u64)
    }
}

/// A one-sided write. The source stays untouched and alive until its `WriteEnded`.
///
/// The target takes all of it or nothing: a range that is not wholly exposed to the writer, or
/// revoked before the last byte came, yields no `Written`; in the second case some bytes may have
/// landed before the revocation, none after it.
pub struct Write {
    /// Comes back in the event.
    pub token: u64,
    /// What is sent.
    pub source: WriteSource,
    /// The peer's memory to write to.
    pub target: RemoteRange,
    /// Delivered to the target in `Event::Written`, after the bytes. Sixteen bits, because the
    /// 32 of verbs have to name the exposure as well.
    pub immediate: Option<u16>,
    /// The last write under that key: once its bytes are there (which the target knows from
    /// `Written` or from a later message), revoking is `Now` on every fabric. Later writes
    /// under the key may be refused.
    pub last: bool,
}

/// A one-sided read into a lease of this side.
pub struct Read {
    /// Comes back in the event.
    pub token: u64,
    /// The peer's memory to read from.
    pub source: RemoteRange,
    /// The lease that receives the bytes, from its first byte on; the event returns it.
    pub target: Lease,
}

/// Result of an accepted operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A read: the bytes are in the target. A write: the source may be reused, and no more than
    /// that. Only some fabrics know at once whether the target took it (shm: `Done` says so; tcp:
    /// the kernel has the bytes, and a later refusal counts in `writes_refused_by_peer`). A caller
    /// that must know lets a message with a checksum follow the write.
    Done,
    /// The peer does not (or no longer) expose that range. A read's target then holds anything.
    Refused,
    /// The connection closed first. A write may have been taken nevertheless; its source is safe
    /// to drop, the fabric holds it as long as the peer might read it.
    Flushed,
}

/// An event that `poll` reports.
pub enum Event {
    /// An outgoing connection is usable.
    Connected {
        connection: ConnectionId,
        endpoint: EndpointId,
    },
    /// A peer has connected to this endpoint.
    Accepted {
        connection: ConnectionId,
        endpoint: EndpointId,
    },
    /// A message came. Ordered with the writes of the same peer: all writes the peer posted before
    /// it are in memory.
    Message {
        connection: ConnectionId,
        message: Message,
    },
    /// A peer wrote into this side's memory (only for writes with an immediate).
    Written {
        connection: ConnectionId,
        key: u64,
        immediate: u16,
        length: u32,
    },
    /// This side's write ended.
    WriteEnded {
        connection: ConnectionId,
        token: u64,
        outcome: Outcome,
    },
    /// This side's read ended; the target comes back.
    ReadEnded {
        connection: ConnectionId,
        token: u64,
        target: Lease,
        outcome: Outcome,
    },
    /// A revocation that was `Later` is complete.
    Revoked { key: u64, exposure: Exposure },
    /// The connection ended; the last event that names it. Also the result of a failed `connect`.
    Closed {
        connection: ConnectionId,
        reason: CloseReason,
    },
}

/// Wakes the thread that waits in `poll`; may be called from any thread.
pub type Waker = Arc<dyn Fn() + Send + Sync>;
