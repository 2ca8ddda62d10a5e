//! The bytes that a response has promised and that are still to be read, as ranges of files.

use crate::files::{FileRange, Output};
use crate::limits::SENT_FROM_CACHE_BYTES;
use crate::memory::Memory;
use faro_fabric::{FilePipe, NotPiped, SourceMemory, WritePart};
use faro_pool::{Account, Charge, Lease};
use faro_region::{ReadGuard, Sleep, CHUNK_BYTES};
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

/// The longest run of the stream that lies in one range and one chunk.
pub(super) struct StreamPiece<'a> {
    pub(super) output: &'a Output,
    pub(super) offset: u64,
    pub(super) length: usize,
}

/// How the next bytes of the stream are sent.
pub(super) enum PlannedPart {
    /// From a page of the chunk cache.
    Cached(WritePart),
    /// That many bytes through a lease.
    Copied(usize),
}

impl PlannedPart {
    fn length(&self) -> usize {
        match self {
            Self::Cached(part) => part.length,
            Self::Copied(length) => *length,
        }
    }

    /// Returns the bytes of the lease that the part needs.
    pub(super) fn copied(&self) -> usize {
        match self {
            Self::Cached(_) => 0,
            Self::Copied(length) => *length,
        }
    }
}

/// A chunk whose bytes are on their way to a peer.
struct SentChunk {
    // Dropped first, so that a thread that hears of the page finds room on the account as well.
    _charge: Charge,
    chunk: ReadGuard,
}

impl SourceMemory for SentChunk {
    fn lease(&self) -> &Lease {
        self.chunk.page()
    }
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

    /// Returns the pieces of the next `bytes` bytes of the stream.
    pub(super) fn pieces(&self, bytes: u64) -> impl Iterator<Item = StreamPiece<'_>> {
        let (mut ranges, mut left) = (self.ranges(), bytes);
        let mut begun = None;
        std::iter::from_fn(move || {
            let (output, range) = match begun.take() {
                Some(rest) => rest,
                None => ranges.next().map(|(output, range)| (output, *range))?,
            };
            let in_chunk = CHUNK_BYTES - range.offset % CHUNK_BYTES;
            let length = range.length.min(in_chunk).min(left);
            left -= length;
            if length < range.length {
                let rest = FileRange {
                    offset: range.offset + length,
                    length: range.length - length,
                };
                begun = Some((output, rest));
            }
            (length > 0).then_some(StreamPiece {
                output,
                offset: range.offset,
                length: length as usize,
            })
        })
    }

    /// Plans a write of the next `bytes` bytes of the stream in at most `max` parts: what the chunk cache has is not
    /// copied, unless the peer has its share of pages (`Memory::charge_page`).
    pub(super) fn plan(
        &self,
        bytes: usize,
        max: usize,
        memory: &Memory,
        account: &Arc<Account>,
    ) -> Vec<PlannedPart> {
        let (mut parts, mut at) = (Vec::new(), 0);
        for piece in self.pieces(bytes as u64) {
            at += piece.length;
            // One more part has all the rest.
            let fits = parts.len() + 1 + usize::from(at < bytes) <= max;
            let cached = match fits && piece.length >= SENT_FROM_CACHE_BYTES {
                true => cached_part(&piece, memory, account),
                false => None,
            };
            match (cached, parts.last_mut()) {
                (Some(part), _) => parts.push(PlannedPart::Cached(part)),
                (None, Some(PlannedPart::Copied(length))) => *length += piece.length,
                (None, _) => parts.push(PlannedPart::Copied(piece.length)),
            }
        }
        parts
    }

    /// Takes the next bytes of the stream as they were planned, those that are copied through the lease. Returns `None`,
    /// counts none as read and leaves the lease if not all of them are in memory.
    pub(super) fn take(
        &mut self,
        planned: Vec<PlannedPart>,
        lease: &mut Option<Lease>,
        memory: &Memory,
        sleep: Sleep,
    ) -> Result<Option<Vec<WritePart>>, Unread> {
        let mut room = lease.as_mut().map(Lease::bytes_mut).unwrap_or_default();
        let mut at = 0;
        for part in &planned {
            let (bytes, rest) = room.split_at_mut(part.copied());
            if !self.read(at, bytes, memory, sleep)? {
                return Ok(None);
            }
            room = rest;
            at += part.length() as u64;
        }
        self.consume(at);
        let (lease, mut copied) = (lease.take().map(Arc::new), 0);
        let parts = planned.into_iter().filter_map(|part| match part {
            PlannedPart::Cached(part) => Some(part),
            PlannedPart::Copied(length) => {
                copied += length;
                Some(WritePart {
                    memory: Arc::clone(lease.as_ref()?) as Arc<dyn SourceMemory>,
                    offset: copied - length,
                    length,
                })
            }
        });
        Ok(Some(parts.collect()))
    }

    /// Reads the next bytes of the stream behind the first `skip`. Returns false if not all of them are in memory.
    fn read(
        &self,
        mut skip: u64,
        bytes: &mut [u8],
        memory: &Memory,
        sleep: Sleep,
    ) -> Result<bool, Unread> {
        let mut done = 0;
        for (output, range) in self.ranges() {
            let before = skip.min(range.length);
            skip -= before;
            let length = (range.length - before).min((bytes.len() - done) as u64) as usize;
            let (offset, piece) = (range.offset + before, &mut bytes[done..done + length]);
            let read = output.read(&memory.cache, offset, piece, sleep);
            let got = read.map_err(|error| unread(output, offset, length, &error))?;
            if got < length {
                return Ok(false);
            }
            done += length;
            if done == bytes.len() {
                return Ok(true);
            }
        }
        Err(Unread {
            replaced: false,
            detail: "the response is longer than its ranges".to_owned(),
        })
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
                Err(NotPiped::Unread(error)) => {
                    return Err(unread(output, range.offset, length, &error))
                }
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

/// Returns the part of a write that sends the piece from its page; `None` if the cache does not have it, or the peer has
/// its share.
fn cached_part(
    piece: &StreamPiece<'_>,
    memory: &Memory,
    account: &Arc<Account>,
) -> Option<WritePart> {
    let (chunk, within) = (
        piece.offset / CHUNK_BYTES,
        (piece.offset % CHUNK_BYTES) as usize,
    );
    let chunk = memory.cache.get(piece.output.region()?.id(), chunk)?;
    chunk.bytes().get(within..within + piece.length)?;
    let charge = memory.charge_page(piece.length, account)?;
    Some(WritePart {
        memory: Arc::new(SentChunk {
            _charge: charge,
            chunk,
        }),
        offset: within,
        length: piece.length,
    })
}

fn unread(output: &Output, offset: u64, length: usize, error: &io::Error) -> Unread {
    Unread {
        replaced: output.is_replaced(),
        detail: format!("{length} bytes at {offset} of a map output: {error}"),
    }
}
