//! One frame to send: an inline head (header, and a small body or the head of a payload) and the bytes
//! behind it: a message's body, or parts of leases, which are sent from where they lie.

use crate::{FilePipe, Outcome, RemoteRange, Write, WritePart, WriteSource};
use faro_wire::{crc32c, header::HEADER_BYTES, FrameHeader};
use std::os::fd::AsFd;
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of the header and the largest body or head that goes inline.
const INLINE_BYTES: usize = HEADER_BYTES + 40;

/// A file descriptor to send with a frame.
pub(crate) type Descriptor = Arc<dyn AsFd + Send + Sync>;

/// The bytes after the inline head.
pub(crate) enum FrameTail {
    Nothing,
    Bytes(Vec<u8>),
    Parts(Vec<WritePart>),
    /// Bytes of files, which this process never sees. Only on connections that send no records.
    Pipe {
        pipe: FilePipe,
        length: usize,
    },
    /// No bytes: an operation for the device, in order with the frames around it.
    Work(DeviceOperation),
}

/// A one-sided operation for a device, under its sequence number.
pub(crate) enum DeviceOperation {
    Write(u64, Write),
    Read(u64, RemoteRange),
}

/// The operation that ends when the kernel (or a segment) has taken a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SendCompletion {
    /// No operation.
    Nothing,
    /// A message of that many bytes.
    Message { bytes: usize },
    /// A write, which the peer would refuse by its `sequence`.
    Write {
        token: u64,
        sequence: u64,
        bytes: usize,
        outcome: Outcome,
    },
    /// The reply to a read that the peer posted.
    ReadServed,
}

/// One frame, ready to send.
pub(crate) struct Frame {
    /// Header and inline bytes; the first `inline` count.
    head: [u8; INLINE_BYTES],
    inline: usize,
    pub(super) tail: FrameTail,
    pub(crate) ends: SendCompletion,
    pub(super) descriptor: Option<Descriptor>,
}

impl Frame {
    /// Returns a frame whose whole body is inline.
    pub(crate) fn small(kind: u8, id: u64, body: &[u8]) -> Self {
        Self::assemble(
            FrameHeader::for_body(kind, id, body),
            body,
            FrameTail::Nothing,
        )
    }

    pub(crate) fn owned(kind: u8, id: u64, body: Vec<u8>, ends: SendCompletion) -> Self {
        let header = FrameHeader::for_body(kind, id, &body);
        let mut frame = Self::assemble(header, &[], FrameTail::Bytes(body));
        frame.ends = ends;
        frame
    }

    pub(crate) fn handshake(kind: u8, body: &[u8]) -> Self {
        Self::owned(kind, 0, body.to_vec(), SendCompletion::Nothing)
    }

    /// Returns a frame of a head under its CRC and a payload after it.
    pub(crate) fn payload(
        kind: u8,
        id: u64,
        head: &[u8],
        tail: FrameTail,
        ends: SendCompletion,
    ) -> Self {
        let length = head.len() + tail.length();
        let header = FrameHeader::sealed(kind, 0, id, length as u32, crc32c(head));
        let mut frame = Self::assemble(header, head, tail);
        frame.ends = ends;
        frame
    }

    /// Sets the protocol version of the connection that the frame is for.
    #[inline]
    pub(crate) fn set_version(&mut self, version: u8) {
        if self.inline == 0 {
            return;
        }
        if let Ok((header, _)) = FrameHeader::mut_from_prefix(&mut self.head) {
            *header = header.in_version(version);
        }
    }

    pub(crate) fn work(work: DeviceOperation, ends: SendCompletion) -> Self {
        Self {
            head: [0; INLINE_BYTES],
            inline: 0,
            tail: FrameTail::Work(work),
            ends,
            descriptor: None,
        }
    }

    /// Adds a descriptor to the frame.
    pub(crate) fn with_descriptor(mut self, descriptor: Option<Descriptor>) -> Self {
        self.descriptor = descriptor;
        self
    }

    fn assemble(header: FrameHeader, body: &[u8], tail: FrameTail) -> Self {
        let mut head = [0; INLINE_BYTES];
        let inline = HEADER_BYTES + body.len();
        debug_assert!(inline <= INLINE_BYTES, "longer bodies are the tail");
        head[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        head[HEADER_BYTES..inline].copy_from_slice(body);
        Self {
            head,
            inline,
            tail,
            ends: SendCompletion::Nothing,
            descriptor: None,
        }
    }

    /// Returns the frame's bytes, without a descriptor.
    #[inline]
    pub(super) fn length(&self) -> usize {
        self.inline + self.tail.length()
    }

    #[inline]
    pub(super) fn inline(&self) -> &[u8] {
        &self.head[..self.inline]
    }

    /// Returns the frame's bytes in slices, at most `MAX_PARTS` behind the inline ones.
    #[inline]
    pub(super) fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let tail = (0..).map_while(|at| self.tail.slice(at));
        std::iter::once(self.inline()).chain(tail)
    }
}

impl FrameTail {
    /// Returns the tail of what a write sends.
    pub(crate) fn of(source: WriteSource) -> Self {
        match source {
            WriteSource::Parts(parts) => Self::Parts(parts),
            WriteSource::Pipe(pipe) => {
                let length = pipe.held();
                Self::Pipe { pipe, length }
            }
        }
    }

    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Nothing | Self::Work(_) => 0,
            Self::Bytes(bytes) => bytes.len(),
            Self::Parts(parts) => parts.iter().map(|part| part.length).sum(),
            Self::Pipe { length, .. } => *length,
        }
    }

    /// Returns the bytes of ordinary memory that it holds.
    pub(super) fn bytes_held(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Nothing | Self::Work(_) | Self::Parts(_) | Self::Pipe { .. } => 0,
        }
    }

    /// Returns the slice at that place in the tail; a pipe has none.
    #[inline]
    fn slice(&self, at: usize) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) if at == 0 => Some(bytes),
            Self::Parts(parts) => parts.get(at).map(WritePart::bytes),
            Self::Bytes(_) | Self::Nothing | Self::Work(_) | Self::Pipe { .. } => None,
        }
    }
}
