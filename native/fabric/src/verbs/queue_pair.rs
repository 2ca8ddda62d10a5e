//! One connection's queue pair: its segments, its credits, and what is posted on it.

use super::device::{QueuePair, ReceiveRequest, VerbsError};
use super::exposed_buffers::ExposedBuffers;
use super::frames::SEGMENT_HEAD;
use super::rdma_context::RdmaContext;
use super::remote_access::RemoteAccess;
use crate::stream::outbound::Outbound;
use faro_pool::{Lease, Pool, Purpose, PAGE_BYTES};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a segment: one packet at the largest RDMA MTU.
pub(super) const SEGMENT_BYTES: usize = 4 << 10;
/// Receive requests of a connection; their segments fill one page.
pub(super) const RECEIVES: u32 = (PAGE_BYTES / SEGMENT_BYTES) as u32;
/// Segments of ours on their way to the peer.
const SENDS: u32 = 16;
/// Work requests of ours per connection.
pub(super) const SEND_DEPTH: u32 = 128;
/// Reads of each side under way at the device (more wait there).
pub(super) const READS: u8 = 16;
/// Credits kept for giving credits back. Without them two sides that have used up their credits
/// would wait for each other.
pub(super) const RESERVE: u32 = 2;

const _: () = assert!(PAGE_BYTES % SEGMENT_BYTES == 0);
const _: () = assert!(RESERVE < RECEIVES / 2);

/// Registered memory, cut into segments.
pub(super) struct Segments {
    /// All of it; the device reads or writes it, so it outlives the queue pair.
    memory: Lease,
    address: u64,
    pub(super) lkey: u32,
}

impl Segments {
    fn new(context: &mut RdmaContext, pool: &Arc<Pool>, count: u32) -> Result<Self, String> {
        let memory = pool
            .try_lease(count as usize * SEGMENT_BYTES, Purpose::Serve)
            .map_err(|error| format!("no memory for a queue pair: {error}"))?;
        let keys = context.keys(&memory).map_err(|error| error.to_string())?;
        Ok(Self {
            address: keys.address,
            lkey: keys.lkey,
            memory,
        })
    }

    pub(super) fn address(&self, segment: u32) -> u64 {
        self.address + u64::from(segment) * SEGMENT_BYTES as u64
    }

    /// A segment's first byte. Segments are pointers and not slices of the lease, because the device
    /// may be writing or reading the segments beside it.
    fn start(&self, segment: u32) -> NonNull<u8> {
        let offset = segment as usize * SEGMENT_BYTES;
        assert!(offset + SEGMENT_BYTES <= self.memory.capacity());
        // SAFETY: the lease has `capacity` bytes from its start on, so `offset` lies in it.
        unsafe { self.memory.start().add(offset) }
    }

    /// The bytes of a segment that the device has completed, or was not given.
    pub(super) fn bytes(&self, segment: u32) -> &[u8] {
        // SAFETY: SEGMENT_BYTES bytes of a live lease (`start`), initialised by the kernel. The
        // device has this segment no longer: it completed its request, and `&self` keeps it from
        // being posted again. Nothing else writes there, because `memory` is owned by this value.
        unsafe { std::slice::from_raw_parts(self.start(segment).as_ptr(), SEGMENT_BYTES) }
    }

    /// The bytes of a segment that the device has completed, or was not given.
    pub(super) fn bytes_mut(&mut self, segment: u32) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` excludes every other reference.
        unsafe { std::slice::from_raw_parts_mut(self.start(segment).as_ptr(), SEGMENT_BYTES) }
    }
}

/// A work request of ours that has not completed.
pub(super) enum Posted {
    /// A segment.
    Segment,
    /// A write, its source held for the device.
    Write {
        token: u64,
        key: u64,
        bytes: usize,
        _source: Arc<Lease>,
    },
    /// A read; its target is with the session's reads.
    Read { sequence: u64, key: u64 },
}

/// The operation at the head of the queue that no announcement covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessQuestion {
    /// There is none.
    None,
    /// ACCESS_QUERY was sent for the operation with that sequence number.
    Asked { sequence: u64 },
    /// ACCESS_REPLY came.
    Answered { sequence: u64, verdict: u32 },
}

/// A connection's queue pair, with the memory and the bookkeeping that go with it.
pub(crate) struct QueuePairConnection {
    /// Dropped first: afterwards the device touches none of the memory below.
    pub(super) queue: QueuePair,
    /// Which of the context's completion queues it uses.
    pub(super) completions: usize,
    pub(super) psn: u32,
    pub(super) receives: Segments,
    pub(super) sends: Segments,
    /// Free segments of `sends`; they are used, and become free, in turn.
    pub(super) free_sends: u32,
    pub(super) next_send: u32,
    /// Receive requests that the peer has posted for us.
    pub(super) credits: u32,
    /// Receive requests posted again that the peer does not know of.
    pub(super) owed: u32,
    /// Segments that were read and are to be posted again.
    pub(super) spent: Vec<ReceiveRequest>,
    /// Work requests that have not completed, in their order.
    pub(super) posted: VecDeque<Posted>,
    /// Number of the first of `posted`.
    pub(super) first: u32,
    /// Frames that go before the session's queue, because the peer waits for them.
    pub(super) urgent: Outbound,
    pub(super) question: AccessQuestion,
    /// The peer's memory that we may reach.
    pub(super) access: RemoteAccess,
    /// Our exposures to the peer.
    pub(super) exposed: ExposedBuffers,
}

impl QueuePairConnection {
    /// A queue pair that is ready to be connected, with all its receive requests posted.
    ///
    /// # Errors
    /// In words: no memory in the arena, or what the device refused.
    pub(super) fn new(
        context: &mut RdmaContext,
        pool: &Arc<Pool>,
        connection: u64,
        psn: u32,
    ) -> Result<Self, String> {
        let receives = Segments::new(context, pool, RECEIVES)?;
        let sends = Segments::new(context, pool, SENDS)?;
        let in_words = |error: VerbsError| error.to_string();
        let (queue, completions) = context.queue_pair().map_err(in_words)?;
        let mut new = Self {
            queue,
            completions,
            psn,
            receives,
            sends,
            free_sends: SENDS,
            next_send: 0,
            credits: 0,
            owed: 0,
            spent: Vec::new(),
            posted: VecDeque::new(),
            first: 0,
            urgent: Outbound::default(),
            question: AccessQuestion::None,
            access: RemoteAccess::default(),
            exposed: ExposedBuffers::default(),
        };
        for segment in 0..new.queue.depth().receive.min(RECEIVES) {
            new.spend(connection, segment);
        }
        new.post_receives().map_err(|error| error.to_string())?;
        // The peer learns of the first ones by QP_INFO.
        new.owed = 0;
        Ok(new)
    }

    /// A receive request was used and its segment was read: it can be posted again.
    pub(super) fn spend(&mut self, connection: u64, segment: u32) {
        self.spent.push(ReceiveRequest {
            id: receive_id(connection, segment),
            address: self.receives.address(segment),
            length: SEGMENT_BYTES as u32,
            lkey: self.receives.lkey,
        });
    }

    /// Posts the spent receive requests again.
    pub(super) fn post_receives(&mut self) -> std::io::Result<()> {
        if self.spent.is_empty() {
            return Ok(());
        }
        self.queue
            .post_receive(&self.spent)
            .map_err(|error| error.source)?;
        self.owed += self.spent.len() as u32;
        self.spent.clear();
        Ok(())
    }

    /// Work requests that may be posted.
    pub(super) fn room(&self) -> usize {
        (self.queue.depth().send as usize).saturating_sub(self.posted.len())
    }

    /// The number of the work request that is posted next.
    pub(super) fn next_number(&self) -> u32 {
        self.first.wrapping_add(self.posted.len() as u32)
    }

    /// Whether credits are to be sent although nothing else is.
    pub(super) fn owes_much(&self) -> bool {
        self.owed >= RECEIVES / 2
    }

    /// Takes the next free segment to send; its number.
    pub(super) fn take_send(&mut self) -> u32 {
        let segment = self.next_send;
        self.next_send = (segment + 1) % SENDS;
        self.free_sends -= 1;
        segment
    }
}

/// Bytes of the stream that fit a segment.
pub(super) const SEGMENT_ROOM: usize = SEGMENT_BYTES - SEGMENT_HEAD;

/// Bits of a work request's number in its id; the connection is above them.
const NUMBER_BITS: u32 = 24;
const RECEIVE_BIT: u64 = 1 << (NUMBER_BITS - 1);

/// Ids name the connection and not the queue pair, whose number the device may use again while
/// completions of the old one are still in the queue.
pub(super) fn send_id(connection: u64, number: u32) -> u64 {
    connection << NUMBER_BITS | (u64::from(number) & (RECEIVE_BIT - 1))
}

/// See [`send_id`].
pub(super) fn receive_id(connection: u64, segment: u32) -> u64 {
    connection << NUMBER_BITS | RECEIVE_BIT | u64::from(segment)
}

/// What a work request's id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    Send { number: u32 },
    Receive { segment: u32 },
}

/// Splits an id: `(connection, what was posted)`.
pub(super) fn parse_id(id: u64) -> (u64, Id) {
    let number = (id & (RECEIVE_BIT - 1)) as u32;
    let parsed = match id & RECEIVE_BIT {
        0 => Id::Send { number },
        _ => Id::Receive { segment: number },
    };
    (id >> NUMBER_BITS, parsed)
}

/// How many of the posted, from `first` on, are complete with `number`.
pub(super) fn completed_by(first: u32, number: u32) -> usize {
    (number.wrapping_sub(first) & (RECEIVE_BIT as u32 - 1)) as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive() {
        for connection in [1, 77, u64::from(u32::MAX)] {
            for number in [0, 1, (1 << 23) - 1] {
                assert_eq!(
                    parse_id(send_id(connection, number)),
                    (connection, Id::Send { number })
                );
                let segment = number;
                assert_eq!(
                    parse_id(receive_id(connection, segment)),
                    (connection, Id::Receive { segment })
                );
            }
        }
    }

    #[test]
    fn numbers_wrap() {
        assert_eq!(completed_by(5, 5), 1);
        assert_eq!(completed_by(5, 9), 5);
        assert_eq!(completed_by((1 << 23) - 1, 0), 2);
        assert_eq!(completed_by(1 << 23, 3), 4);
    }
}
