//! One attempt at a request, on one connection.
//!
//! ```text
//!            FETCH_RESPONSE            ┌─▶ Writing   the server writes into buffers that we offer
//!   Asked ── after READ_OFFER? ────────┤
//!                                      └─▶ Pulling   we read from the server's pages
//!
//!  offered  |--buffer 0--|--buffer 1--|--buffer 2--|          capacity given to the server
//!  arrived  |============|=======|                            bytes whose CRC agreed
//! ```

use super::deliver::{Ready, Stream};
use super::pull::Pull;
use super::Request;
use crate::limits::BUFFER_WINDOW_BYTES;
use crate::memory::Memory;
use faro_fabric::ConnectionId;
use faro_pool::{Lease, Purpose};
use faro_sync::clock;
use faro_wire::message::{FetchResponse, ReadOffer, WrittenBuffer};
use faro_wire::{crc32c, WireError};
use std::collections::VecDeque;
use std::time::Instant;

/// Memory that the server may write.
pub(super) struct OfferedBuffer {
    pub(super) key: u64,
    pub(super) capacity: u32,
}

/// The buffers of one attempt that the server has not filled, in the order they were offered.
#[derive(Default)]
struct OfferedBuffers {
    queue: VecDeque<OfferedBuffer>,
    /// Sum of all capacities ever offered.
    total: u64,
    /// Number of the first one of `queue` among all of the attempt.
    first: u32,
}

/// Where an attempt is.
enum Phase {
    /// FETCH was sent. The server may offer its pages to be read before it gives the lengths.
    Asked { offer: Option<ReadOffer> },
    /// The lengths are known; the server writes.
    Writing(Stream),
    /// The lengths are known; we read.
    Pulling(Stream, Pull),
}

/// An attempt at a request; see the module's diagram.
pub(super) struct Attempt {
    pub(super) request: Request,
    pub(super) connection: ConnectionId,
    phase: Phase,
    offered: OfferedBuffers,
    /// When it fails unless something arrives before.
    pub(super) deadline: Instant,
    /// The time for which it is in `FetchService::deadlines`.
    pub(super) look_at: Instant,
    /// When it began to wait for arena memory, with no buffer offered and no read under way. While it
    /// waits it has no deadline.
    pub(super) starved_since: Option<Instant>,
}

/// Bytes that are not those which the server read from its file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Corrupt {
    pub(super) expected: u32,
    pub(super) got: u32,
}

impl Attempt {
    pub(super) fn new(request: Request, connection: ConnectionId, deadline: Instant) -> Self {
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

    /// Something arrived for it.
    pub(super) fn progress(&mut self, now: Instant) {
        self.deadline = now + self.request.idle_timeout;
    }

    /// When something last arrived for it, or it began.
    pub(super) fn last_progress(&self) -> Instant {
        self.deadline
            .checked_sub(self.request.idle_timeout)
            .unwrap_or(self.deadline)
    }

    /// The server has buffers to write into, or reads are under way.
    pub(super) fn is_under_way(&self) -> bool {
        !self.has_no_buffers() || self.reads_under_way()
    }

    /// It has the memory that it waited for, if it waited; its deadline begins again.
    pub(super) fn memory_granted(&mut self) {
        if self.starved_since.take().is_some() {
            self.progress(clock::now());
        }
    }

    fn unexpected(&self, what: &'static str) -> WireError {
        let got = self.request.id;
        WireError::BadValue { what, got }
    }

    /// The server offers its pages to be read.
    ///
    /// # Errors
    /// It did so before, after the lengths, or although the request excludes it.
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

    /// The lengths have come: from here on the bytes arrive. True: a block is above `room`, so that the
    /// attempt has to end.
    ///
    /// # Errors
    /// They came before, are for another number of blocks, or do not fit the offer.
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

    /// Bytes of the reply; zero until they are known.
    pub(super) fn total(&self) -> u64 {
        match &self.phase {
            Phase::Asked { .. } => 0,
            Phase::Writing(stream) | Phase::Pulling(stream, _) => stream.total(),
        }
    }

    pub(super) fn is_pulling(&self) -> bool {
        matches!(self.phase, Phase::Pulling(..))
    }

    /// The pull, while it reads.
    pub(super) fn pull(&mut self) -> Option<(&mut Stream, &mut Pull)> {
        match &mut self.phase {
            Phase::Pulling(stream, pull) => Some((stream, pull)),
            Phase::Asked { .. } | Phase::Writing(_) => None,
        }
    }

    /// `capacity` bytes of a lease were exposed to the server, which is about to hear of it.
    pub(super) fn offered(&mut self, key: u64, capacity: u32) {
        self.offered.total += u64::from(capacity);
        self.offered
            .queue
            .push_back(OfferedBuffer { key, capacity });
    }

    /// Reads of a batch are under way.
    pub(super) fn reads_under_way(&self) -> bool {
        match &self.phase {
            Phase::Pulling(_, pull) => !pull.is_between_batches(),
            Phase::Asked { .. } | Phase::Writing(_) => false,
        }
    }

    /// No buffer is offered.
    pub(super) fn has_no_buffers(&self) -> bool {
        self.offered.queue.is_empty()
    }

    /// Bytes that should be offered now, which end with a block; zero: none.
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

    /// Bytes that arrived and belong to a block that is not complete: memory that it holds while it
    /// waits for more.
    pub(super) fn holds_part(&self) -> bool {
        match &self.phase {
            Phase::Asked { .. } => false,
            Phase::Writing(stream) | Phase::Pulling(stream, _) => stream.holds_part(),
        }
    }

    /// The buffer that the server says it has written: checked against the order and the stream's
    /// length.
    ///
    /// # Errors
    /// The buffer is not the next one, or the length is not what is left.
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
    /// The checksum disagrees.
    pub(super) fn take(&mut self, lease: Lease, written: &WrittenBuffer) -> Result<(), Corrupt> {
        let length = written.length.get();
        let (expected, got) = (written.crc.get(), crc32c(&lease.bytes()[..length as usize]));
        if expected != got {
            return Err(Corrupt { expected, got });
        }
        match &mut self.phase {
            Phase::Writing(stream) | Phase::Pulling(stream, _) => stream.push(lease, length),
            Phase::Asked { .. } => {}
        }
        Ok(())
    }

    /// # Errors
    /// `last` came with bytes missing, or the bytes are there and `last` did not come.
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

    /// The blocks that are complete and have not been handed out.
    pub(super) fn ready(&mut self, last: bool, memory: &Memory) -> Option<Ready> {
        let delivery = match &mut self.phase {
            Phase::Asked { .. } => None,
            Phase::Writing(stream) | Phase::Pulling(stream, _) => {
                stream.take_complete(last, memory)
            }
        }?;
        let first_block = self.request.handed_out;
        self.request.handed_out += delivery.blocks.len();
        Some(Ready {
            first_block,
            delivery,
            scarce: memory.is_half_full(Purpose::Read),
        })
    }

    /// Ends the attempt: its request, and the keys of the buffers that are still offered.
    pub(super) fn end(self) -> (Request, impl Iterator<Item = u64>) {
        let keys = self.offered.queue.into_iter().map(|buffer| buffer.key);
        (self.request, keys)
    }
}
