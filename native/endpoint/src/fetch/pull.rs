//! A stream that the client reads by itself: slices of the server's pages, then their versions.
//!
//! ```text
//!  todo      |--slice--|--slice--| ...               as READ_OFFER named them
//!  batch     |=========|=====    |                   being read, up to a window
//!  versions  read when the whole batch has arrived   one read for all of it
//! ```
//! The versions are read after the last byte of the batch has arrived, not merely posted after it:
//! a device may fetch the bytes of two reads in any order (PCI Express does not order reads). What
//! comes before the first slice that changed is right and kept; the rest is asked for again.
//!
//! The one read spans all slots from the lowest of the batch to the highest: at most 8 bytes for each
//! page of the server's arena, so 8 KiB of a batch of 4 MiB with an arena of 256 MiB, and 64 KiB with
//! 2 GiB (1.6 %). A read for each slice would move less and take up to 16 requests more.

use crate::limits::PULL_WINDOW_BYTES;
use faro_fabric::RemoteRange;
use faro_pool::{Lease, PAGE_BYTES};
use faro_wire::message::{OfferedSlice, ReadOffer, VERSION_BYTES};
use faro_wire::{crc32c, WireError};
use std::collections::VecDeque;

/// A slice that is being read.
struct Reading {
    slice: OfferedSlice,
    token: u64,
    /// Its bytes, once they have arrived, and their CRC-32C. The checksum is computed then and not with
    /// the versions: a batch of 4 MiB at once would hold the progress thread up.
    arrived: Option<(Lease, u32)>,
}

/// The reads of one attempt.
pub(super) struct Pull {
    versions: RemoteRange,
    todo: VecDeque<OfferedSlice>,
    batch: Vec<Reading>,
    /// For the versions; leased before the batch, because attempts that each hold a batch and wait for
    /// one more lease could wait for each other.
    pub(super) spare: Option<Lease>,
    /// For the next slices, up to the end of a block.
    pub(super) reserved: VecDeque<Lease>,
    /// Bytes of the slices that are no longer in `todo`.
    position: u64,
    /// Token of the read of the versions, while it is under way.
    versions_token: Option<u64>,
    /// Some read was refused: nothing of this batch can be used.
    refused: bool,
}

/// How a batch ended.
pub(super) enum Verdict {
    /// All of it is what the server read from its file.
    Right,
    /// A slice had changed before it was read.
    Stale,
    /// The version is right and the bytes are not.
    Corrupt { expected: u32, got: u32 },
}

impl Pull {
    /// # Errors
    /// The slices are not `total` bytes; more versions than a page holds.
    pub(super) fn new(offer: ReadOffer, total: u64) -> Result<Self, WireError> {
        let lengths = offer.slices.iter().map(|e| u64::from(e.length.get()));
        let got = lengths.sum::<u64>();
        if got != total {
            let what = "sum of the slices of READ_OFFER";
            return Err(WireError::BadValue { what, got });
        }
        let got = u64::from(offer.versions.length.get());
        if got > PAGE_BYTES as u64 {
            return Err(WireError::TooLarge {
                what: "versions of READ_OFFER",
                got,
                limit: PAGE_BYTES as u64,
            });
        }
        Ok(Self {
            versions: RemoteRange {
                key: offer.versions.key.get(),
                offset: offer.versions.offset.get(),
                length: offer.versions.length.get(),
            },
            todo: offer.slices.into(),
            batch: Vec::new(),
            spare: None,
            reserved: VecDeque::new(),
            position: 0,
            versions_token: None,
            refused: false,
        })
    }

    /// Bytes of a lease that the versions of any batch fit.
    pub(super) fn versions_bytes(&self) -> usize {
        self.versions.length as usize
    }

    /// Nothing is under way.
    pub(super) fn is_between_batches(&self) -> bool {
        self.batch.is_empty()
    }

    /// All slices were accepted.
    pub(super) fn is_done(&self) -> bool {
        self.batch.is_empty() && self.todo.is_empty()
    }

    /// The next slice that belongs to the batch: where it is, and how long.
    pub(super) fn next(&self) -> Option<RemoteRange> {
        let lengths = self.batch.iter().map(|f| u64::from(f.slice.length.get()));
        let slice = self.todo.front()?;
        let with_it = lengths.sum::<u64>() + u64::from(slice.length.get());
        (with_it <= PULL_WINDOW_BYTES || self.batch.is_empty()).then(|| RemoteRange {
            key: slice.key.get(),
            offset: slice.offset.get(),
            length: slice.length.get(),
        })
    }

    /// Bytes of the stream before the next slice.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Lengths of the next slices, as many as reach `end` in the stream.
    pub(super) fn lengths_to(&self, end: u64) -> Vec<usize> {
        let mut position = self.position;
        let mut lengths = Vec::new();
        for slice in &self.todo {
            if position >= end {
                break;
            }
            position += u64::from(slice.length.get());
            lengths.push(slice.length.get() as usize);
        }
        lengths
    }

    /// `next` is being read under that token.
    pub(super) fn posted(&mut self, token: u64) {
        let length = self.todo.front().map_or(0, |slice| slice.length.get());
        self.position += u64::from(length);
        self.batch
            .extend(self.todo.pop_front().map(|slice| Reading {
                slice,
                token,
                arrived: None,
            }));
    }

    /// A read ended. `Some`: it was that of the versions, which are returned.
    pub(super) fn arrived(&mut self, token: u64, lease: Lease, done: bool) -> Option<Lease> {
        self.refused |= !done;
        if self.versions_token == Some(token) {
            self.versions_token = None;
            return Some(lease);
        }
        if let Some(reading) = self.batch.iter_mut().find(|f| f.token == token) {
            let crc = crc32c(&lease.bytes()[..reading.slice.length.get() as usize]);
            reading.arrived = Some((lease, crc));
        }
        None
    }

    /// Where the versions of the batch are, once all of it has arrived and until they are being read.
    pub(super) fn wants_versions(&self) -> Option<RemoteRange> {
        let here = !self.batch.is_empty() && self.batch.iter().all(|f| f.arrived.is_some());
        if !here || self.versions_token.is_some() {
            return None;
        }
        let (first, last) = self.slots();
        Some(RemoteRange {
            key: self.versions.key,
            offset: self.versions.offset + u64::from(first * VERSION_BYTES),
            length: (last - first + 1) * VERSION_BYTES,
        })
    }

    /// They are being read under that token.
    pub(super) fn versions_posted(&mut self, token: u64) {
        self.versions_token = Some(token);
    }

    /// Ends the batch: passes the right slices to `accept`, in order, up to the first that is not.
    pub(super) fn judge(
        &mut self,
        versions: &Lease,
        mut accept: impl FnMut(Lease, u32),
    ) -> Verdict {
        if self.refused {
            return Verdict::Stale;
        }
        let (first, _) = self.slots();
        for reading in std::mem::take(&mut self.batch) {
            let (slice, Some((lease, got))) = (reading.slice, reading.arrived) else {
                return Verdict::Stale;
            };
            let at = ((slice.slot.get() - first) * VERSION_BYTES) as usize;
            let mut word = [0; VERSION_BYTES as usize];
            word.copy_from_slice(&versions.bytes()[at..at + VERSION_BYTES as usize]);
            if u64::from_le_bytes(word) != slice.version.get() {
                return Verdict::Stale;
            }
            let expected = slice.crc.get();
            if expected != got {
                return Verdict::Corrupt { expected, got };
            }
            accept(lease, slice.length.get());
        }
        Verdict::Right
    }

    /// First and last slot of the batch; both lie within the versions, which the decoder has checked.
    fn slots(&self) -> (u32, u32) {
        let slots = || self.batch.iter().map(|f| f.slice.slot.get());
        (slots().min().unwrap_or(0), slots().max().unwrap_or(0))
    }
}
