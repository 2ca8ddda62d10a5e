//! A stream that the reader takes by itself: extents out of the owner's frames, then their versions.
//!
//! ```text
//!  todo      |--extent--|--extent--| ...             as READ_OFFER named them
//!  batch     |==========|=====     |                 being read, up to a window
//!  versions  read when the whole batch is here       one read for all of it
//! ```
//! The versions are read after the last byte of the batch has arrived, not merely posted after it:
//! a device may fetch the bytes of two reads in any order (PCI Express does not order reads). What
//! comes before the first extent that changed is right and kept; the rest is asked for again.

use crate::config::limits::PULL_WINDOW_BYTES;
use faro_fabric::RemoteRange;
use faro_pool::{Lease, PAGE_BYTES};
use faro_wire::message::{OfferedSlice, ReadOffer, VERSION_BYTES};
use faro_wire::{crc32c, WireError};
use std::collections::VecDeque;

/// An extent on its way.
struct Flying {
    extent: OfferedSlice,
    token: u64,
    /// Its bytes, once they are here.
    lease: Option<Lease>,
}

/// See the module's comment.
pub(super) struct Pull {
    versions: RemoteRange,
    todo: VecDeque<OfferedSlice>,
    batch: Vec<Flying>,
    /// For the versions, taken before the batch: with the batch in hand it would be too late to wait
    /// for memory, which others may hold in the same way.
    pub(super) spare: Option<Lease>,
    /// Of the read of the versions, when it is under way.
    versions_token: Option<u64>,
    /// Some read was refused: nothing of this batch can be believed.
    refused: bool,
}

/// What a batch came to.
pub(super) enum Verdict {
    /// All of it is what the owner read from its file.
    Right,
    /// An extent had changed before it was read.
    Stale,
    /// The version is right and the bytes are not.
    Corrupt { expected: u32, got: u32 },
}

impl Pull {
    /// # Errors
    /// The extents are not `total` bytes; more versions than a frame holds.
    pub(super) fn new(located: ReadOffer, total: u64) -> Result<Self, WireError> {
        let lengths = located.slices.iter().map(|e| u64::from(e.length.get()));
        let got = lengths.sum::<u64>();
        if got != total {
            let what = "sum of the extents of READ_OFFER";
            return Err(WireError::BadValue { what, got });
        }
        let got = u64::from(located.versions.length.get());
        if got > PAGE_BYTES as u64 {
            return Err(WireError::TooLarge {
                what: "versions of READ_OFFER",
                got,
                limit: PAGE_BYTES as u64,
            });
        }
        Ok(Self {
            versions: RemoteRange {
                key: located.versions.key.get(),
                offset: located.versions.offset.get(),
                length: located.versions.length.get(),
            },
            todo: located.slices.into(),
            batch: Vec::new(),
            spare: None,
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

    /// All extents were believed.
    pub(super) fn is_done(&self) -> bool {
        self.batch.is_empty() && self.todo.is_empty()
    }

    /// The next extent that belongs to the batch: where it is, and how long.
    pub(super) fn next(&self) -> Option<RemoteRange> {
        let lengths = self.batch.iter().map(|f| u64::from(f.extent.length.get()));
        let extent = self.todo.front()?;
        let with_it = lengths.sum::<u64>() + u64::from(extent.length.get());
        (with_it <= PULL_WINDOW_BYTES || self.batch.is_empty()).then(|| RemoteRange {
            key: extent.key.get(),
            offset: extent.offset.get(),
            length: extent.length.get(),
        })
    }

    /// `next` is being read under that token.
    pub(super) fn posted(&mut self, token: u64) {
        self.batch
            .extend(self.todo.pop_front().map(|extent| Flying {
                extent,
                token,
                lease: None,
            }));
    }

    /// A read ended. `Some`: it was that of the versions, here they are.
    pub(super) fn arrived(&mut self, token: u64, lease: Lease, done: bool) -> Option<Lease> {
        self.refused |= !done;
        if self.versions_token == Some(token) {
            self.versions_token = None;
            return Some(lease);
        }
        if let Some(flying) = self.batch.iter_mut().find(|f| f.token == token) {
            flying.lease = Some(lease);
        }
        None
    }

    /// Where the versions of the batch are, once it is here as a whole and until they are asked for.
    pub(super) fn wants_versions(&self) -> Option<RemoteRange> {
        let here = !self.batch.is_empty() && self.batch.iter().all(|f| f.lease.is_some());
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

    /// Ends the batch: hands what is right to `accept`, in order, up to the first that is not.
    pub(super) fn judge(
        &mut self,
        versions: &Lease,
        mut accept: impl FnMut(Lease, u32),
    ) -> Verdict {
        if self.refused {
            return Verdict::Stale;
        }
        let (first, _) = self.slots();
        for flying in std::mem::take(&mut self.batch) {
            let (extent, Some(lease)) = (flying.extent, flying.lease) else {
                return Verdict::Stale;
            };
            let at = ((extent.slot.get() - first) * VERSION_BYTES) as usize;
            let mut word = [0; VERSION_BYTES as usize];
            word.copy_from_slice(&versions.bytes()[at..at + VERSION_BYTES as usize]);
            if u64::from_le_bytes(word) != extent.version.get() {
                return Verdict::Stale;
            }
            let bytes = &lease.bytes()[..extent.length.get() as usize];
            let (expected, got) = (extent.crc.get(), crc32c(bytes));
            if expected != got {
                return Verdict::Corrupt { expected, got };
            }
            accept(lease, extent.length.get());
        }
        Verdict::Right
    }

    /// First and last slot of the batch; both within the versions, which the decoder saw to.
    fn slots(&self) -> (u32, u32) {
        let slots = || self.batch.iter().map(|f| f.extent.slot.get());
        (slots().min().unwrap_or(0), slots().max().unwrap_or(0))
    }
}
