//! The bytes that a response has promised and that are still to be read, as ranges of files.

use crate::files::{FileRange, Output};
use crate::memory::Memory;
use faro_fabric::{FilePipe, NotPiped};
use faro_region::Sleep;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;

/// Ranges of files, in the order of their blocks.
#[derive(Default)]
pub(super) struct Content {
    /// Outputs that `ranges` point to.
    outputs: Vec<Arc<Output>>,
    /// Adjacent ones merged: (position in `outputs`, bytes).
    ranges: VecDeque<(usize, FileRange)>,
    /// Sum of `ranges`.
    remaining: u64,
}

/// Bytes that were promised cannot be read.
pub(super) struct Unread {
    /// True if the file of these blocks is another one by now, or gone.
    pub(super) replaced: bool,
    pub(super) detail: String,
}

impl Content {
    /// Adds an output, and returns its position.
    pub(super) fn add_output(&mut self, output: &Arc<Output>) -> usize {
        self.outputs.push(Arc::clone(output));
        self.outputs.len() - 1
    }

    /// Adds a block's range in the output at that position.
    pub(super) fn add(&mut self, position: usize, range: FileRange) {
        self.remaining += range.length;
        match self.ranges.back_mut() {
            Some((at, last)) if *at == position && last.offset + last.length == range.offset => {
                last.length += range.length;
            }
            _ => self.ranges.push_back((position, range)),
        }
    }

    /// Returns the number of bytes that are not read yet.
    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Returns the ranges that are not read yet, with their files.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (&Output, &FileRange)> {
        let ranges = self.ranges.iter();
        ranges.map(|(position, range)| (&*self.outputs[*position], range))
    }

    /// Returns the outputs, which are then no longer part of it.
    pub(super) fn take_outputs(&mut self) -> Vec<Arc<Output>> {
        std::mem::take(self).outputs
    }

    /// Reads the next `bytes.len()` bytes of the stream. Returns false, and counts none as read, if
    /// not all of them are in memory.
    pub(super) fn read(
        &mut self,
        bytes: &mut [u8],
        memory: &Memory,
        sleep: Sleep,
    ) -> Result<bool, Unread> {
        let mut done = 0;
        for (output, range) in self.ranges() {
            let length = range.length.min((bytes.len() - done) as u64) as usize;
            let piece = &mut bytes[done..done + length];
            let read = output.read(&memory.cache, range.offset, piece, sleep);
            let got = read.map_err(|error| unread(output, range, length, &error))?;
            if got < length {
                return Ok(false);
            }
            done += length;
            if done == bytes.len() {
                break;
            }
        }
        if done < bytes.len() {
            return Err(Unread {
                replaced: false,
                detail: "the response is longer than its ranges".to_owned(),
            });
        }
        self.consume(done as u64);
        Ok(true)
    }

    /// Returns the mean length of the ranges that are not read yet, in bytes.
    pub(super) fn mean_bytes(&self) -> u64 {
        self.remaining / (self.ranges.len() as u64).max(1)
    }

    /// Fills a pipe with the next `bytes` bytes of the stream; may sleep. Returns false, and counts none as read, if they
    /// cannot be sent that way.
    pub(super) fn pipe(&mut self, pipe: &mut FilePipe, bytes: usize) -> Result<bool, Unread> {
        let mut done = 0;
        for (output, range) in self.ranges() {
            let length = range.length.min((bytes - done) as u64) as usize;
            let filled = match output.region().map(|region| region.open()) {
                Some(Ok(open)) => pipe.fill(open.file().as_fd(), range.offset, length),
                Some(Err(error)) => Err(NotPiped::Unread(error)),
                None => return Ok(false),
            };
            match filled {
                Ok(()) => {}
                Err(NotPiped::Unsupported | NotPiped::Full) => return Ok(false),
                Err(NotPiped::Unread(error)) => return Err(unread(output, range, length, &error)),
            }
            done += length;
            if done == bytes {
                break;
            }
        }
        if done < bytes {
            return Ok(false);
        }
        self.consume(done as u64);
        Ok(true)
    }

    /// Counts the first `bytes` bytes of the ranges as read.
    fn consume(&mut self, mut bytes: u64) {
        self.remaining -= bytes;
        while let Some((_, range)) = self.ranges.front_mut().filter(|_| bytes > 0) {
            let length = range.length.min(bytes);
            range.offset += length;
            range.length -= length;
            bytes -= length;
            if range.length == 0 {
                self.ranges.pop_front();
            }
        }
    }
}

fn unread(output: &Output, range: &FileRange, length: usize, error: &io::Error) -> Unread {
    Unread {
        replaced: output.is_replaced(),
        detail: format!(
            "{length} bytes at {} of a map output: {error}",
            range.offset
        ),
    }
}
