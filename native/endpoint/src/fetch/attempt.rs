//! One attempt at a request, on one connection.
//!
//! ```text
//!            FETCH_RESPONSE            ┌─▶ Writing   the server writes into offered buffers
//!   Asked ── after READ_OFFER? ────────┤
//!                                      └─▶ Pulling   the client reads from the server's pages
//!
//!  offered  |--buffer 0--|--buffer 1--|--buffer 2--|          capacity given to the server
//!  arrived  |============|=======|                            bytes whose CRC agreed, if they have one
//! ```

use super::checksum::{ChecksumMismatch, RunningChecksum};
use super::deliver::{ReadyBlocks, Stream};
use super::pull::Pull;
use super::FetchRequest;
use crate::limits::BUFFER_WINDOW_BYTES;
use crate::memory::Memory;
use faro_fabric::ConnectionId;
use faro_pool::{Lease, Purpose};
use faro_sync::clock;
use faro_wire::message::{FetchResponse, ReadOffer, WrittenBuffer};
use faro_wire::WireError;
use std::collections::VecDeque;
use std::time::Instant;

/// A buffer that the server may write into.
pub(super) struct OfferedBuffer {
    pub(super) key: u64,
    pub(super) capacity: u32,
}

/// The buffers of one attempt that the server has not filled, in the order in which they were
/// offered.
#[derive(Default)]
struct OfferedBuffers {
    queue: VecDeque<OfferedBuffer>,
    /// Sum of the capacities of all buffers that were ever offered, in bytes.
    total: u64,
    /// Number of the first buffer of `queue`, counted over all buffers of the attempt.
    first: u32,
}

/// The phase of an attempt.
enum Phase {
    /// FETCH was sent. The server may offer its pages to be read before it gives the lengths.
    Asked { offer: Option<ReadOffer> },
    /// The lengths are known; the server writes.
    Writing(Stream),
    /// The lengths are known; the client reads.
    Pulling(Stream, Pull),
}

/// One attempt at a request, on one connection. The diagram above shows its phases and its buffers.
pub(super) struct Attempt {
    pub(super) request: FetchRequest,
    pub(super) connection: ConnectionId,
    phase: Phase,
    offered: OfferedBuffers,
    /// The time at which the attempt fails unless something arrives for it first.
    pub(super) deadline: Instant,
    /// The time of its entry among the deadlines of [`Attempts`](super::attempts::Attempts).
    pub(super) look_at: Instant,
    /// The time at which it began to wait for arena memory with no buffer offered and no read
    /// posted. While it waits, it has no deadline.
    pub(super) starved_since: Option<Instant>,
}

impl Attempt {
    pub(super) fn new(request: FetchRequest, connection: ConnectionId, deadline: Instant) -> Self {
        Self {
            deadline,
            look_at: deadline,
            request,
            connection,
            phase: Phase::Asked { offer: None },
            offered: OfferedBuffers::default(),
            starved_since: None,
        }
    }

    /// Restarts the deadline, because something arrived for the attempt.
    pub(super) fn progress(&mut self, now: Instant) {
        self.deadline = now + self.request.idle_timeout;
    }

    /// Returns the time at which something last arrived for the attempt, or at which it began.
    pub(super) fn last_progress(&self) -> Instant {
        self.deadline
            .checked_sub(self.request.idle_timeout)
            .unwrap_or(self.deadline)
    }

    /// Returns whether the server has buffers to write into, or reads are posted.
    pub(super) fn is_under_way(&self) -> bool {
        !self.has_no_buffers() || self.reads_under_way()
    }

    /// Notes that the attempt has the memory it needs. If it waited, its deadline restarts.
    pub(super) fn memory_granted(&mut self) {
        self.request.starved_since = None;
        if self.starved_since.take().is_some() {
            self.progress(clock::now());
        }
    }

    fn unexpected(&self, what: &'static str) -> WireError {
        let got = self.request.id;
        WireError::BadValue { what, got }
    }

    /// Notes that the server offers its pages for the client to read.
    ///
    /// # Errors
    /// Fails if an offer came before, if it comes after the lengths, or if the request excludes
    /// reads.
    pub(super) fn on_read_offer(&mut self, read_offer: ReadOffer) -> Result<(), WireError> {
        match &mut self.phase {
            Phase::Asked { offer } if offer.is_none() && !self.request.writes_only => {
                *offer = Some(read_offer);
                Ok(())
            }
            Phase::Asked { .. } | Phase::Writing(_) | Phase::Pulling(..) => Err(self.unexpected(
                "READ_OFFER, which must come once and before FETCH_RESPONSE, of request",
            )),
        }
    }

    /// Notes the blocks' lengths; from now on bytes may arrive. Returns true if a block is larger
    /// than `room`. Then the attempt must end.
    ///
    /// # Errors
    /// Fails if lengths came before, are for another number of blocks, or do not fit the offer.
    pub(super) fn on_response(
        &mut self,
        response: FetchResponse,
        room: u64,
    ) -> Result<bool, WireError> {
        let Phase::Asked { offer } = &mut self.phase else {
            return Err(self.unexpected("second FETCH_RESPONSE of request"));
        };
        let lengths: Vec<u64> = response.blocks.iter().map(|b| b.length.get()).collect();
        let stream = Stream::new(response, self.request.wanted().len())?;
        self.phase = match offer.take() {
            None => Phase::Writing(stream),
            Some(offer) => {
                let pull = Pull::new(offer, stream.total())?;
                Phase::Pulling(stream, pull)
            }
        };
        Ok(self.request.leave_out(&lengths, room))
    }

    /// Returns the bytes of the reply; 0 until they are known.
    pub(super) fn total(&self) -> u64 {
        match &self.phase {
            Phase::Asked { .. } => 0,
            Phase::Writing(stream) | Phase::Pulling(stream, _) => stream.total(),
        }
    }

    pub(super) fn is_pulling(&self) -> bool {
        matches!(self.phase, Phase::Pulling(..))
    }

    /// Returns the stream and its reads, if the client reads.
    pub(super) fn pull(&mut self) -> Option<(&mut Stream, &mut Pull)> {
        match &mut self.phase {
            Phase::Pulling(stream, pull) => Some((stream, pull)),
            Phase::Asked { .. } | Phase::Writing(_) => None,
        }
    }

    /// Notes that `capacity` bytes of a lease were exposed to the server, which is told next.
    pub(super) fn offered(&mut self, key: u64, capacity: u32) {
        self.offered.total += u64::from(capacity);
        self.offered
            .queue
            .push_back(OfferedBuffer { key, capacity });
    }

    /// Returns whether reads of a batch are posted.
    pub(super) fn reads_under_way(&self) -> bool {
        match &self.phase {
            Phase::Pulling(_, pull) => !pull.is_between_batches(),
            Phase::Asked { .. } | Phase::Writing(_) => false,
        }
    }

    /// Returns whether the server has no buffer to write into.
    pub(super) fn has_no_buffers(&self) -> bool {
        self.offered.queue.is_empty()
    }

    /// Returns the bytes for which buffers should be offered now, up to the end of a block; 0 for
    /// none.
    pub(super) fn next_bytes(&self) -> u64 {
        let Phase::Writing(stream) = &self.phase else {
            return 0;
        };
        let capacities = self.offered.queue.iter().map(|b| u64::from(b.capacity));
        let position = self.offered.total;
        if capacities.sum::<u64>() >= BUFFER_WINDOW_BYTES || position >= stream.total() {
            return 0;
        }
        stream.whole_blocks(position) - position
    }

    /// Returns whether bytes of an incomplete block arrived, which hold memory.
    pub(super) fn holds_part(&self) -> bool {
        match &self.phase {
            Phase::Asked { .. } => false,
            Phase::Writing(stream) | Phase::Pulling(stream, _) => stream.holds_part(),
        }
    }

    /// Takes the buffer that the server says it has written, and checks its number and length.
    ///
    /// # Errors
    /// Fails if the buffer is not the next one, if the length is not what is left, or if there is no checksum and the
    /// reader does not verify.
    pub(super) fn expect(&mut self, written: &WrittenBuffer) -> Result<OfferedBuffer, WireError> {
        let Phase::Writing(stream) = &self.phase else {
            let what = "DATA_WRITTEN before FETCH_RESPONSE or after READ_OFFER of request";
            return Err(self.unexpected(what));
        };
        let got = u64::from(written.buffer.get());
        let not_next = WireError::BadValue {
            what: "number of a written buffer",
            got,
        };
        if written.buffer.get() != self.offered.first {
            return Err(not_next);
        }
        if written.sum().is_none() && !self.request.reader_verifies {
            return Err(WireError::BadValue {
                what: "unsummed of a buffer whose bytes nobody verifies",
                got: 1,
            });
        }
        let next = self.offered.queue.pop_front().ok_or(not_next)?;
        let length = u64::from(written.length.get());
        if length != u64::from(next.capacity).min(stream.missing()) || length == 0 {
            self.offered.queue.push_front(next);
            return Err(WireError::BadValue {
                what: "length of a written buffer",
                got: length,
            });
        }
        self.offered.first = self.offered.first.wrapping_add(1);
        Ok(next)
    }

    /// Takes the bytes of a buffer that `expect` accepted.
    ///
    /// # Errors
    /// Fails if there is a checksum and it differs.
    pub(super) fn take(
        &mut self,
        lease: Lease,
        written: &WrittenBuffer,
    ) -> Result<(), ChecksumMismatch> {
        let length = written.length.get();
        if let Some(sum) = written.sum() {
            RunningChecksum::of(&lease.bytes()[..length as usize]).check(sum)?;
        }
        match &mut self.phase {
            Phase::Writing(stream) | Phase::Pulling(stream, _) => stream.push(lease, length),
            Phase::Asked { .. } => {}
        }
        Ok(())
    }

    /// Checks the server's claim that these were, or were not, its last bytes.
    ///
    /// # Errors
    /// Fails if `last` is true and bytes are missing, or if it is false and all bytes are there.
    pub(super) fn check_last(&self, last: bool) -> Result<(), WireError> {
        let complete = match &self.phase {
            Phase::Asked { .. } => false,
            Phase::Writing(stream) | Phase::Pulling(stream, _) => stream.missing() == 0,
        };
        if last == complete {
            return Ok(());
        }
        Err(WireError::BadValue {
            what: "last of DATA_WRITTEN",
            got: u64::from(last),
        })
    }

    /// Takes the blocks that are complete and were not handed out.
    pub(super) fn ready(&mut self, last: bool, memory: &Memory) -> Option<ReadyBlocks> {
        let delivery = match &mut self.phase {
            Phase::Asked { .. } => None,
            Phase::Writing(stream) | Phase::Pulling(stream, _) => {
                stream.take_complete(last, memory)
            }
        }?;
        let first_block = self.request.handed_out;
        self.request.handed_out += delivery.blocks.len();
        Some(ReadyBlocks {
            first_block,
            delivery,
            scarce: memory.is_half_full(Purpose::Read),
        })
    }

    /// Ends the attempt. Returns its request, and the keys of the buffers that are still offered.
    pub(super) fn end(self) -> (FetchRequest, impl Iterator<Item = u64>) {
        let keys = self.offered.queue.into_iter().map(|buffer| buffer.key);
        (self.request, keys)
    }
}
