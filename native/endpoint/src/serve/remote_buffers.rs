//! The buffers of a client that a fetch may still write into.

use crate::limits::{MAX_BUFFERS_HELD, TURN_BUFFERS};
use faro_fabric::WriteSource;
use faro_pool::PAGE_BYTES;
use faro_wire::message::{RemoteBuffer, WrittenBuffer};
use faro_wire::WireError;
use std::collections::VecDeque;

/// Buffers in the order in which they are filled.
#[derive(Default)]
pub(super) struct RemoteBuffers {
    waiting: VecDeque<RemoteBuffer>,
    /// Number of the first one of `waiting` among all of the request.
    next: u32,
}

/// What was filled for one buffer of the client.
pub(crate) struct FilledBuffer {
    pub(crate) source: WriteSource,
    pub(crate) target: RemoteBuffer,
    pub(crate) written: WrittenBuffer,
}

impl RemoteBuffers {
    /// # Errors
    /// A buffer that no client of this version would offer, or more than are kept.
    pub(super) fn add(&mut self, buffers: Vec<RemoteBuffer>) -> Result<(), WireError> {
        check(&buffers)?;
        let got = self.waiting.len() + buffers.len();
        WireError::check_limit("buffers of a request", got as u64, MAX_BUFFERS_HELD as u64)?;
        self.waiting.extend(buffers);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns how many of `remaining` bytes go into each buffer of the next turn.
    pub(super) fn lengths(&self, mut remaining: u64) -> Vec<usize> {
        let mut lengths = Vec::with_capacity(TURN_BUFFERS);
        for target in self.waiting.iter().take(TURN_BUFFERS) {
            let length = remaining.min(u64::from(target.length.get()));
            remaining -= length;
            if length > 0 {
                lengths.push(length as usize);
            }
        }
        lengths
    }

    /// Returns the length of the next buffer in bytes, if there is one.
    pub(super) fn next_length(&self) -> Option<u64> {
        let next = self.waiting.front();
        next.map(|target| u64::from(target.length.get()))
    }

    /// Uses the next buffer for the bytes of `source`, whose checksum is `sum` if there is one.
    pub(super) fn fill(&mut self, source: WriteSource, sum: Option<u32>) -> Option<FilledBuffer> {
        let target = self.waiting.pop_front()?;
        let written = WrittenBuffer {
            buffer: self.next.into(),
            length: (source.length() as u32).into(),
            crc: sum.unwrap_or(0).into(),
            unsummed: u32::from(sum.is_none()).into(),
        };
        self.next = self.next.wrapping_add(1);
        Some(FilledBuffer {
            source,
            target,
            written,
        })
    }

    /// The last buffers that were filled are unused again.
    pub(super) fn unfill(&mut self, filled: Vec<FilledBuffer>) {
        self.next = self.next.wrapping_sub(filled.len() as u32);
        for buffer in filled.into_iter().rev() {
            self.waiting.push_front(buffer.target);
        }
    }
}

fn check(buffers: &[RemoteBuffer]) -> Result<(), WireError> {
    let what = "length of an offered buffer";
    for buffer in buffers {
        let got = u64::from(buffer.length.get());
        if got == 0 {
            return Err(WireError::BadValue { what, got });
        }
        WireError::check_limit(what, got, PAGE_BYTES as u64)?;
    }
    Ok(())
}
