//! Frames to send: a queue whose bytes are gathered into few system calls.
//!
//! The queue's memory is reused, so that a write costs no allocation.

use super::outgoing::{Descriptor, DeviceOperation, Frame, FrameTail, SendCompletion};
use crate::{FilePipe, Outcome, MAX_PARTS};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Number of slices of one gathered send.
pub(crate) const SLICES: usize = 256;

/// The next bytes of a queue, in the slices that they were gathered in.
pub(crate) struct GatheredSlices<'q> {
    /// Slices that are used.
    pub(crate) used: usize,
    pub(crate) bytes: usize,
    pub(crate) descriptor: Option<&'q Descriptor>,
    /// The bytes of a pipe follow.
    pub(crate) before_pipe: bool,
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

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns the bytes of ordinary memory that the queued frames hold; leases are the arena's.
    pub(crate) fn buffered(&self) -> usize {
        let frames = self.frames.capacity() * size_of::<Frame>();
        let tails = self.frames.iter().map(|frame| frame.tail.bytes_held());
        frames + tails.sum::<usize>()
    }

    /// Returns the next bytes up to a pipe, in as many slices as one call takes. A descriptor belongs
    /// to the first byte of a call, so a frame with one starts a call.
    pub(crate) fn gather<'q>(&'q self, slices: &mut [IoSlice<'q>; SLICES]) -> GatheredSlices<'q> {
        let (mut used, mut total, mut skip) = (0, 0, self.sent);
        let (mut descriptor, mut before_pipe) = (None, false);
        for frame in &self.frames {
            if used + 1 + MAX_PARTS > SLICES {
                break;
            }
            if frame.descriptor.is_some() && skip == 0 {
                if total > 0 {
                    break;
                }
                descriptor = frame.descriptor.as_ref();
            }
            for part in frame.slices() {
                let cut = skip.min(part.len());
                skip -= cut;
                let part = &part[cut..];
                if !part.is_empty() {
                    slices[used] = IoSlice::new(part);
                    used += 1;
                    total += part.len();
                }
            }
            if matches!(frame.tail, FrameTail::Pipe { .. }) {
                before_pipe = true;
                break;
            }
        }
        GatheredSlices {
            used,
            bytes: total,
            descriptor,
            before_pipe,
        }
    }

    /// Returns the pipe whose bytes are next.
    pub(crate) fn next_pipe(&mut self) -> Option<&mut FilePipe> {
        let sent = self.sent;
        let frame = self.frames.front_mut()?;
        let inline = frame.inline().len();
        match &mut frame.tail {
            FrameTail::Pipe { pipe, length } if (inline..inline + *length).contains(&sent) => {
                Some(pipe)
            }
            _ => None,
        }
    }

    /// Notes that the kernel (or a segment) took `bytes` bytes. Call [`Self::pop_sent`] until it
    /// returns nothing.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        debug_assert!(
            self.sent <= self.frames.iter().map(Frame::length).sum::<usize>(),
            "more bytes were sent than queued"
        );
    }

    /// Removes the first frame if all of it was sent; returns its completion.
    pub(crate) fn pop_sent(&mut self) -> Option<SendCompletion> {
        let front = self.frames.front()?;
        let length = front.length();
        // Operations leave by `take_work`.
        if self.sent < length || matches!(front.tail, FrameTail::Work(_)) {
            return None;
        }
        self.sent -= length;
        Some(self.frames.pop_front()?.ends)
    }

    pub(crate) fn next_work(&self) -> Option<&DeviceOperation> {
        match &self.frames.front()?.tail {
            FrameTail::Work(work) => Some(work),
            _ => None,
        }
    }

    /// Takes the operation at the head of the queue, and its completion.
    pub(crate) fn take_work(&mut self) -> Option<(DeviceOperation, SendCompletion)> {
        self.next_work()?;
        debug_assert_eq!(self.sent, 0, "an operation has no bytes");
        let frame = self.frames.pop_front()?;
        match frame.tail {
            FrameTail::Work(work) => Some((work, frame.ends)),
            _ => None,
        }
    }

    pub(crate) fn in_mid_frame(&self) -> bool {
        self.sent > 0
    }

    /// Copies the next bytes, up to an operation; returns how many. They count as sent after
    /// `advance`.
    pub(crate) fn copy_into(&self, buffer: &mut [u8]) -> usize {
        let (mut filled, mut skip) = (0, self.sent);
        for frame in &self.frames {
            if matches!(frame.tail, FrameTail::Work(_)) || filled == buffer.len() {
                break;
            }
            for part in frame.slices() {
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
            Some(SendCompletion::Write {
                sequence, outcome, ..
            }) if *sequence == refused => {
                *outcome = Outcome::Refused;
                true
            }
            _ => false,
        }
    }

    /// Empties the queue. Returns the completions of its frames, in order.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = SendCompletion> + use<> {
        self.sent = 0;
        std::mem::take(&mut self.frames)
            .into_iter()
            .map(|frame| frame.ends)
    }
}
