//! The bytes of a sealed connection: the same frames, in records (see `faro_secure`).
//!
//! ```text
//!   frames ──copied──▶ record ──sealed where it lies──▶ kernel      what it does not take waits in `unsent`
//!   kernel ──▶ records ──opened where they lie──▶ frames            a record whose end is missing waits in `partial`
//! ```
//! Sealing and opening take place in a buffer that all connections share, so a connection holds
//! memory only while its peer or the network is slow: at most one record each way.

use super::outbound::Outbound;
use crate::CloseReason;
use faro_secure::{Keys, Opener, Sealer, HEADER_BYTES, OVERHEAD_BYTES, RECORD_BYTES, TAG_BYTES};

/// Length of the longest record: this many bytes are sealed, or received, at once. More of them
/// leave the caches of a core before the kernel has them, and gain nothing
/// (`benches/throughput.rs`).
pub(crate) const BATCH_BYTES: usize = RECORD_BYTES + OVERHEAD_BYTES;

/// One connection's keys, and the bytes that could not be sent or opened yet.
pub(crate) struct Records {
    sealer: Sealer,
    opener: Opener,
    /// Sealed, and not taken by the kernel: from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
    /// The front of a record.
    partial: Vec<u8>,
}

impl Records {
    pub(crate) fn new(keys: Keys) -> Self {
        Self {
            sealer: keys.sealer,
            opener: keys.opener,
            unsent: Vec::new(),
            sent: 0,
            partial: Vec::new(),
        }
    }

    /// Seals a record in its buffer.
    pub(crate) fn seal(&mut self, record: &mut [u8]) -> Result<(), CloseReason> {
        Ok(self.sealer.seal(record)?)
    }

    /// Opens a whole record where it lies.
    pub(crate) fn open<'r>(&mut self, record: &'r mut [u8]) -> Result<&'r mut [u8], CloseReason> {
        Ok(self.opener.open(record)?)
    }

    /// Opens the whole records in `bytes` and passes the frames of each to `take`; keeps the front
    /// of one whose end is missing.
    pub(crate) fn open_all(
        &mut self,
        mut bytes: &mut [u8],
        mut take: impl FnMut(&[u8]) -> Result<(), CloseReason>,
    ) -> Result<(), CloseReason> {
        while let Some(header) = bytes.first_chunk() {
            let length = Opener::length(*header)?;
            if bytes.len() < length {
                break;
            }
            let (record, after) = bytes.split_at_mut(length);
            take(self.opener.open(record)?)?;
            bytes = after;
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// Seals the next bytes of the queue as one record at the front of `batch`. Returns how many
    /// bytes of the queue are in it; the record is longer by `OVERHEAD_BYTES`. Returns 0 and makes
    /// no record if the queue is empty.
    pub(crate) fn seal_next(
        &mut self,
        queue: &Outbound,
        batch: &mut [u8],
    ) -> Result<usize, CloseReason> {
        let room = &mut batch[HEADER_BYTES..BATCH_BYTES - TAG_BYTES];
        let bytes = queue.copy_into(room);
        if bytes > 0 {
            self.sealer.seal(&mut batch[..bytes + OVERHEAD_BYTES])?;
        }
        Ok(bytes)
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.unsent.is_empty()
    }

    pub(crate) fn unsent(&self) -> &[u8] {
        &self.unsent[self.sent..]
    }

    /// Notes that the kernel took `taken` bytes of `batch`, or of [`Self::unsent`] if `batch` is
    /// empty. The rest waits.
    pub(crate) fn taken(&mut self, batch: &[u8], taken: usize) {
        if !batch.is_empty() {
            self.unsent.extend_from_slice(&batch[taken..]);
            self.sent = 0;
        } else {
            self.sent += taken;
            if self.sent == self.unsent.len() {
                // The buffer's memory is freed too.
                self.unsent = Vec::new();
                self.sent = 0;
            }
        }
    }

    /// Returns the bytes of a record whose end is missing.
    pub(crate) fn held(&self) -> usize {
        self.partial.len()
    }

    /// Moves those bytes to the front of `buffer`.
    pub(crate) fn move_held(&mut self, buffer: &mut [u8]) {
        buffer[..self.partial.len()].copy_from_slice(&self.partial);
        // The buffer's memory is freed too: an idle connection holds none.
        self.partial = Vec::new();
    }

    pub(crate) fn buffered(&self) -> usize {
        self.unsent.capacity() + self.partial.capacity()
    }
}
