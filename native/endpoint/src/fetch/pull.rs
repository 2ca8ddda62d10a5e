//! A stream that the client reads itself: first slices of the server's pages, then their versions.
//!
//! ```text
//!  todo      |--slice--|--slice--| ...               as READ_OFFER named them
//!  batch     |=========|=====    |                   being read, up to a window
//!  versions  read when the whole batch has arrived   one read for all of it
//! ```
//! The versions are read after the last byte of the batch has arrived, not merely posted after it:
//! a device may fetch the bytes of two reads in any order (PCI Express does not order reads). Bytes
//! before the first slice that changed are valid and kept; the rest is asked for again.
//!
//! One read covers all slots from the lowest of the batch to the highest. That is at most 8 bytes
//! for each page of the server's arena: 8 KiB for a batch of 4 MiB with an arena of 256 MiB, and 64
//! KiB with 2 GiB (1.6 %). One read per slice would move fewer bytes with up to 16 more requests.

use super::checksum::{ChecksumMismatch, RunningChecksum};
use super::deliver::Stream;
use super::pulls::NotPosted;
use crate::limits::PULL_WINDOW_BYTES;
use crate::memory::Memory;
use faro_fabric::RemoteRange;
use faro_pool::{Lease, Purpose, PAGE_BYTES};
use faro_wire::message::{OfferedSlice, ReadOffer, VERSION_BYTES};
use faro_wire::WireError;
use std::collections::VecDeque;

/// A slice whose read is posted or done.
struct SliceRead {
    slice: OfferedSlice,
    token: u64,
    /// The slice's bytes and their CRC-32C, once they have arrived. The checksum is computed on
    /// arrival and not together with the versions, because a batch of 4 MiB at once would delay the
    /// progress thread.
    arrived: Option<(Lease, RunningChecksum)>,
}

/// The reads of one attempt.
pub(super) struct Pull {
    versions: RemoteRange,
    todo: VecDeque<OfferedSlice>,
    batch: Vec<SliceRead>,
    /// The lease for the versions. It is leased before the batch: otherwise attempts that each hold
    /// a batch and need one more lease could wait for each other.
    spare: Option<Lease>,
    /// Leases for the next slices, up to the end of a block.
    reserved: VecDeque<Lease>,
    /// Number of bytes of the slices that are no longer in `todo`.
    position: u64,
    /// Token of the read of the versions, while it is posted.
    versions_token: Option<u64>,
    /// True if a read failed. Then no byte of this batch is used.
    refused: bool,
}

/// The result of a batch.
pub(super) enum BatchResult {
    /// All its bytes are those that the server read from its file.
    Right,
    /// A slice had changed before it was read, or a read failed.
    Stale,
    /// The version is right and the bytes are not.
    Corrupt(ChecksumMismatch),
}

impl Pull {
    /// Starts to read the slices of an offer.
    ///
    /// # Errors
    /// Fails if the slices are not `total` bytes, or if the versions do not fit in a page.
    pub(super) fn new(offer: ReadOffer, total: u64) -> Result<Self, WireError> {
        let lengths = offer.slices.iter().map(|e| u64::from(e.length.get()));
        let got = lengths.sum::<u64>();
        if got != total {
            let what = "sum of the slices of READ_OFFER";
            return Err(WireError::BadValue { what, got });
        }
        let got = u64::from(offer.versions.length.get());
        WireError::check_limit("versions of READ_OFFER", got, PAGE_BYTES as u64)?;
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

    /// Returns whether no read is posted and no batch is incomplete.
    pub(super) fn is_between_batches(&self) -> bool {
        self.batch.is_empty()
    }

    /// Returns whether all slices were accepted.
    pub(super) fn is_done(&self) -> bool {
        self.batch.is_empty() && self.todo.is_empty()
    }

    /// Returns whether the next reads need memory that is not leased yet.
    pub(super) fn needs_memory(&self) -> bool {
        self.is_between_batches() && self.reserved.is_empty()
    }

    /// Leases the memory for the next reads: for the versions, and for slices up to the end of a
    /// block.
    ///
    /// # Errors
    /// Fails if the arena has no memory for all of it, or never will.
    pub(super) fn lease(&mut self, stream: &Stream, memory: &Memory) -> Result<(), NotPosted> {
        if !self.is_between_batches() {
            return Ok(());
        }
        if self.spare.is_none() {
            let versions = memory.try_lease(self.versions.length as usize, Purpose::Read);
            self.spare = Some(versions.map_err(NotPosted::of)?);
        }
        if self.reserved.is_empty() {
            let lengths = self.lengths_to(stream.whole_blocks(self.position));
            let leases = memory.try_lease_each(&lengths, Purpose::Read);
            self.reserved = leases.map_err(NotPosted::of)?.into();
        }
        Ok(())
    }

    /// Returns the memory that the next reads would have used: an attempt holds none while it waits
    /// for its peer. Returns false if reads are posted, which need theirs.
    pub(super) fn give_back(&mut self) -> bool {
        if self.is_between_batches() {
            self.reserved.clear();
            self.spare = None;
        }
        self.is_between_batches()
    }

    /// Posts the reads of the next batch, or of the versions of the batch that has arrived. `post`
    /// returns the token of a read, or the reason that it was not posted and its lease.
    ///
    /// # Errors
    /// The reason that no read was posted.
    pub(super) fn post(
        &mut self,
        mut post: impl FnMut(RemoteRange, Lease) -> Result<u64, (NotPosted, Lease)>,
    ) -> Result<(), NotPosted> {
        if let Some(range) = self.wants_versions() {
            let target = self.spare.take().ok_or(NotPosted::Impossible)?;
            let posted = post(range, target);
            let posted = posted.map_err(|(refused, target)| {
                self.spare = Some(target);
                refused
            });
            self.versions_token = Some(posted?);
            return Ok(());
        }
        if !self.is_between_batches() {
            return Ok(());
        }
        while let Some(range) = self.next() {
            let Some(target) = self.reserved.pop_front() else {
                break;
            };
            match post(range, target) {
                Ok(token) => self.posted(token),
                Err((refused, target)) => {
                    self.reserved.push_front(target);
                    match refused {
                        // The batch becomes smaller, and the next one takes the rest.
                        NotPosted::NoRoom if !self.is_between_batches() => break,
                        _ => return Err(refused),
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the range of the next slice, if it belongs to the current batch.
    fn next(&self) -> Option<RemoteRange> {
        let lengths = self.batch.iter().map(|f| u64::from(f.slice.length.get()));
        let slice = self.todo.front()?;
        let with_it = lengths.sum::<u64>() + u64::from(slice.length.get());
        (with_it <= PULL_WINDOW_BYTES || self.batch.is_empty()).then(|| RemoteRange {
            key: slice.key.get(),
            offset: slice.offset.get(),
            length: slice.length.get(),
        })
    }

    /// Returns the lengths of the next slices, up to the one that reaches `end` in the stream.
    fn lengths_to(&self, end: u64) -> Vec<usize> {
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

    /// Notes that the slice from `next` is being read under this token.
    fn posted(&mut self, token: u64) {
        let length = self.todo.front().map_or(0, |slice| slice.length.get());
        self.position += u64::from(length);
        self.batch
            .extend(self.todo.pop_front().map(|slice| SliceRead {
                slice,
                token,
                arrived: None,
            }));
    }

    /// Notes that a read ended. Returns the lease if it holds the versions.
    pub(super) fn arrived(&mut self, token: u64, lease: Lease, done: bool) -> Option<Lease> {
        self.refused |= !done;
        if self.versions_token == Some(token) {
            self.versions_token = None;
            return Some(lease);
        }
        if let Some(reading) = self.batch.iter_mut().find(|f| f.token == token) {
            let length = reading.slice.length.get() as usize;
            let checksum = RunningChecksum::of(&lease.bytes()[..length]);
            reading.arrived = Some((lease, checksum));
        }
        None
    }

    /// Returns the range of the batch's versions, if the whole batch has arrived and they are not
    /// being read yet.
    fn wants_versions(&self) -> Option<RemoteRange> {
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

    /// Ends the batch. Passes the valid slices to `accept`, in order, up to the first that is not
    /// valid.
    pub(super) fn judge(
        &mut self,
        versions: &Lease,
        mut accept: impl FnMut(Lease, u32),
    ) -> BatchResult {
        if self.refused {
            return BatchResult::Stale;
        }
        let (first, _) = self.slots();
        for reading in std::mem::take(&mut self.batch) {
            let (slice, Some((lease, checksum))) = (reading.slice, reading.arrived) else {
                return BatchResult::Stale;
            };
            let at = ((slice.slot.get() - first) * VERSION_BYTES) as usize;
            let mut word = [0; VERSION_BYTES as usize];
            word.copy_from_slice(&versions.bytes()[at..at + VERSION_BYTES as usize]);
            if u64::from_le_bytes(word) != slice.version.get() {
                return BatchResult::Stale;
            }
            if let Err(corrupt) = checksum.check(slice.crc.get()) {
                return BatchResult::Corrupt(corrupt);
            }
            accept(lease, slice.length.get());
        }
        BatchResult::Right
    }

    /// Returns the first and the last slot of the batch. The decoder has checked that both lie
    /// within the versions.
    fn slots(&self) -> (u32, u32) {
        let slots = || self.batch.iter().map(|f| f.slice.slot.get());
        (slots().min().unwrap_or(0), slots().max().unwrap_or(0))
    }
}
