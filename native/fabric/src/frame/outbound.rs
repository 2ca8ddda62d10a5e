//! Frames to send: a queue whose bytes are gathered into few system calls.
//!
//! A frame is an inline head (header, and a small body or the head of a payload) and at most one
//! run of bytes behind it: a message's body, or part of a lease, which is sent from where it lies.
//! The queue's memory is reused, so that a write costs no allocation.

use crate::{Outcome, RemoteRange, Write};
use faro_pool::Lease;
use faro_wire::{crc32c, header::HEADER_BYTES, FrameHeader};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// Slices of one gathered send.
pub(crate) const SLICES: usize = 256;
/// Header and the largest body or head that goes inline.
const INLINE_BYTES: usize = HEADER_BYTES + 40;

/// A file descriptor to send with a frame.
pub(crate) type Descriptor = Arc<dyn AsFd + Send + Sync>;

/// Bytes after the inline head.
pub(crate) enum Tail {
    Nothing,
    Bytes(Vec<u8>),
    Lease {
        source: Arc<Lease>,
        offset: usize,
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

/// Operation that ends when the kernel (or a segment) has taken a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ends {
    /// No operation.
    Nothing,
    /// A message of that many bytes.
    Message { bytes: usize },
    /// A write; `sequence` is what the peer would refuse it by.
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
    tail: Tail,
    pub(crate) ends: Ends,
    descriptor: Option<Descriptor>,
}

impl Frame {
    /// Returns a frame whose whole body is inline.
    pub(crate) fn small(kind: u8, id: u64, body: &[u8]) -> Self {
        Self::assemble(FrameHeader::for_body(kind, id, body), body, Tail::Nothing)
    }

    /// Returns a frame with its own body.
    pub(crate) fn owned(kind: u8, id: u64, body: Vec<u8>, ends: Ends) -> Self {
        let header = FrameHeader::for_body(kind, id, &body);
        let mut frame = Self::assemble(header, &[], Tail::Bytes(body));
        frame.ends = ends;
        frame
    }

    /// Returns a frame of the greeting, whose body is not inline.
    pub(crate) fn owned_greeting(kind: u8, body: &[u8]) -> Self {
        Self::owned(kind, 0, body.to_vec(), Ends::Nothing)
    }

    /// Returns a frame of a head under its CRC and a payload after it.
    pub(crate) fn payload(kind: u8, id: u64, head: &[u8], tail: Tail, ends: Ends) -> Self {
        let length = head.len() + tail.length();
        let header = FrameHeader::sealed(kind, 0, id, length as u32, crc32c(head));
        let mut frame = Self::assemble(header, head, tail);
        frame.ends = ends;
        frame
    }

    /// Returns an operation to be done between frames.
    pub(crate) fn work(work: DeviceOperation, ends: Ends) -> Self {
        Self {
            head: [0; INLINE_BYTES],
            inline: 0,
            tail: Tail::Work(work),
            ends,
            descriptor: None,
        }
    }

    /// Adds a descriptor to the frame.
    pub(crate) fn with_descriptor(mut self, descriptor: Option<Descriptor>) -> Self {
        self.descriptor = descriptor;
        self
    }

    fn assemble(header: FrameHeader, body: &[u8], tail: Tail) -> Self {
        let mut head = [0; INLINE_BYTES];
        let inline = HEADER_BYTES + body.len();
        head[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        head[HEADER_BYTES..inline].copy_from_slice(body);
        Self {
            head,
            inline,
            tail,
            ends: Ends::Nothing,
            descriptor: None,
        }
    }

    fn length(&self) -> usize {
        self.inline + self.tail.length()
    }
}

impl Tail {
    fn length(&self) -> usize {
        match self {
            Self::Nothing | Self::Work(_) => 0,
            Self::Bytes(bytes) => bytes.len(),
            Self::Lease { length, .. } => *length,
        }
    }

    /// Returns the bytes of ordinary memory that it holds.
    fn bytes_held(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Nothing | Self::Work(_) | Self::Lease { .. } => 0,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Nothing | Self::Work(_) => &[],
            Self::Bytes(bytes) => bytes,
            Self::Lease {
                source,
                offset,
                length,
            } => &source.bytes()[*offset..offset + length],
        }
    }
}

/// The queue of one connection.
#[derive(Default)]
pub(crate) struct Outbound {
    frames: VecDeque<Frame>,
    /// Bytes of the first frame that the kernel has.
    sent: usize,
}

impl Outbound {
    pub(crate) fn push(&mut self, frame: Frame) {
        self.frames.push_back(frame);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Frames waiting.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns the bytes of ordinary memory that the queued frames hold; leases are the arena's.
    pub(crate) fn buffered(&self) -> usize {
        let frames = self.frames.capacity() * size_of::<Frame>();
        let tails = self.frames.iter().map(|frame| frame.tail.bytes_held());
        frames + tails.sum::<usize>()
    }

    /// Returns the next bytes, in as many slices as one call takes, as `(slices used, bytes,
    /// descriptor)`. A descriptor belongs to the first byte of a call, so a frame with one starts a
    /// call.
    pub(crate) fn gather<'q>(
        &'q self,
        slices: &mut [IoSlice<'q>; SLICES],
    ) -> (usize, usize, Option<&'q Descriptor>) {
        let (mut used, mut total, mut skip) = (0, 0, self.sent);
        let mut descriptor = None;
        for frame in &self.frames {
            if used + 2 > SLICES {
                break;
            }
            if frame.descriptor.is_some() && skip == 0 {
                if total > 0 {
                    break;
                }
                descriptor = frame.descriptor.as_ref();
            }
            for part in [&frame.head[..frame.inline], frame.tail.bytes()] {
                let cut = skip.min(part.len());
                skip -= cut;
                let part = &part[cut..];
                if !part.is_empty() {
                    slices[used] = IoSlice::new(part);
                    used += 1;
                    total += part.len();
                }
            }
        }
        (used, total, descriptor)
    }

    /// Notes that the kernel (or a segment) took `bytes` bytes. Call [`Self::pop_sent`] until it
    /// returns nothing.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Removes the first frame if all of it was sent; returns what that ends.
    pub(crate) fn pop_sent(&mut self) -> Option<Ends> {
        let front = self.frames.front()?;
        let length = front.length();
        // Operations leave by `take_work`.
        if self.sent < length || matches!(front.tail, Tail::Work(_)) {
            return None;
        }
        self.sent -= length;
        Some(self.frames.pop_front()?.ends)
    }

    /// Returns the operation at the head of the queue, if it is one.
    pub(crate) fn next_work(&self) -> Option<&DeviceOperation> {
        match &self.frames.front()?.tail {
            Tail::Work(work) => Some(work),
            _ => None,
        }
    }

    /// Takes the operation that `next_work` shows, and what it ends.
    pub(crate) fn take_work(&mut self) -> Option<(DeviceOperation, Ends)> {
        self.next_work()?;
        let frame = self.frames.pop_front()?;
        match frame.tail {
            Tail::Work(work) => Some((work, frame.ends)),
            _ => None,
        }
    }

    /// Returns whether the first frame was sent in part.
    pub(crate) fn in_mid_frame(&self) -> bool {
        self.sent > 0
    }

    /// Copies the next bytes, up to an operation; returns how many. They count as sent after
    /// `advance`.
    pub(crate) fn copy_into(&self, buffer: &mut [u8]) -> usize {
        let (mut filled, mut skip) = (0, self.sent);
        for frame in &self.frames {
            if matches!(frame.tail, Tail::Work(_)) || filled == buffer.len() {
                break;
            }
            for part in [&frame.head[..frame.inline], frame.tail.bytes()] {
                let cut = skip.min(part.len());
                skip -= cut;
                let took = (part.len() - cut).min(buffer.len() - filled);
                buffer[filled..filled + took].copy_from_slice(&part[cut..cut + took]);
                filled += took;
            }
        }
        filled
    }

    /// Notes that the peer refused a write. Returns true if the write has not ended, so that it
    /// ends `Refused`.
    pub(crate) fn refuse(&mut self, refused: u64) -> bool {
        // The peer has received its head, so it can only be the first frame.
        match self.frames.front_mut().map(|frame| &mut frame.ends) {
            Some(Ends::Write {
                sequence, outcome, ..
            }) if *sequence == refused => {
                *outcome = Outcome::Refused;
                true
            }
            _ => false,
        }
    }

    /// Empties the queue; returns what had not ended, in order.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = Ends> + use<> {
        self.sent = 0;
        std::mem::take(&mut self.frames)
            .into_iter()
            .map(|frame| frame.ends)
    }
}
