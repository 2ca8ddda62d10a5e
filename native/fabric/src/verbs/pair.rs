//! One connection's queue pair, its segments, its credits, and what is posted.

use super::device::{QueuePair, ReceiveRequest, VerbsError};
use super::frames::SEGMENT_HEAD;
use super::grants::{Grants, Slots};
use super::rig::Rig;
use crate::stream::outbound::Outbound;
use faro_pool::{Lease, Pool, Purpose, PAGE_BYTES};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of a segment: one packet at the largest RDMA MTU.
pub(super) const SEGMENT_BYTES: usize = 4 << 10;
/// Receive requests of a connection; their segments fill one frame.
pub(super) const RECEIVES: u32 = (PAGE_BYTES / SEGMENT_BYTES) as u32;
/// Segments of ours on their way to the peer.
const SENDS: u32 = 16;
/// Work requests of ours per connection.
pub(super) const SEND_DEPTH: u32 = 128;
/// Reads of each side under way at the device (more wait there).
pub(super) const READS: u8 = 16;
/// Credits kept for giving credits back, so that two sides without credit cannot wait for each
/// other: the peer of one that has none always has an update of its own to send.
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
    fn new(rig: &mut Rig, pool: &Arc<Pool>, count: u32) -> Result<Self, String> {
        let memory = pool
            .try_lease(count as usize * SEGMENT_BYTES, Purpose::Serve)
            .map_err(|error| format!("no memory for a queue pair: {error}"))?;
        let keys = rig.keys(&memory).map_err(|error| error.to_string())?;
        Ok(Self {
            address: keys.address,
            lkey: keys.lkey,
            memory,
        })
    }

    pub(super) fn address(&self, segment: u32) -> u64 {
        self.address + u64::from(segment) * SEGMENT_BYTES as u64
    }

    /// A segment's bytes; it must not be the device's at the moment.
    pub(super) fn bytes(&self, segment: u32) -> &[u8] {
        &self.memory.bytes()[segment as usize * SEGMENT_BYTES..][..SEGMENT_BYTES]
    }

    pub(super) fn bytes_mut(&mut self, segment: u32) -> &mut [u8] {
        &mut self.memory.bytes_mut()[segment as usize * SEGMENT_BYTES..][..SEGMENT_BYTES]
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

/// See the module's comment.
pub(super) struct Pair {
    /// Dropped first: afterwards the device touches none of the memory below.
    pub(super) queue: QueuePair,
    /// Of `rig`'s completion queues, for the room it takes there.
    pub(super) completions: usize,
    pub(super) psn: u32,
    pub(super) receives: Segments,
    pub(super) sends: Segments,
    /// Segments of `sends` that are free; they are used and come free in turn.
    pub(super) free_sends: u32,
    pub(super) next_send: u32,
    /// Receive requests that the peer has for us.
    pub(super) credits: u32,
    /// Receive requests posted again since the peer was told of it.
    pub(super) owed: u32,
    /// Segments received and read, to be posted again.
    pub(super) spent: Vec<ReceiveRequest>,
    /// In their order.
    pub(super) posted: VecDeque<Posted>,
    /// Number of the first of `posted`.
    pub(super) first: u32,
    /// Frames that go before the session's: what others wait for must not wait itself.
    pub(super) urgent: Outbound,
    /// The operation that waits for an ACCESS_REPLY, and the verdict once it is there.
    pub(super) asked: Option<(u64, Option<u32>)>,
    pub(super) grants: Grants,
    pub(super) slots: Slots,
}

impl Pair {
    /// A queue pair that is ready to be connected, with all its receive requests posted.
    ///
    /// # Errors
    /// In words: no memory in the arena, or what the device refused.
    pub(super) fn new(
        rig: &mut Rig,
        pool: &Arc<Pool>,
        connection: u64,
        psn: u32,
    ) -> Result<Self, String> {
        let receives = Segments::new(rig, pool, RECEIVES)?;
        let sends = Segments::new(rig, pool, SENDS)?;
        let in_words = |error: VerbsError| error.to_string();
        let (queue, completions) = rig.queue_pair().map_err(in_words)?;
        let mut pair = Self {
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
            asked: None,
            grants: Grants::default(),
            slots: Slots::default(),
        };
        for segment in 0..pair.queue.depth().receive.min(RECEIVES) {
            pair.spend(connection, segment);
        }
        pair.post_receives().map_err(|error| error.to_string())?;
        // The peer learns of the first ones by QP_INFO.
        pair.owed = 0;
        Ok(pair)
    }

    /// A receive request was used and its segment read.
    pub(super) fn spend(&mut self, connection: u64, segment: u32) {
        self.spent.push(ReceiveRequest {
            id: receive_id(connection, segment),
            address: self.receives.address(segment),
            length: SEGMENT_BYTES as u32,
            lkey: self.receives.lkey,
        });
    }

    /// Posts what was spent again.
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

    /// Whether the peer is to hear of its credits even if there is nothing else to say.
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

/// Bits of a work request's number in its id; the peer stands above them.
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

/// What an id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    Send { number: u32 },
    Receive { segment: u32 },
}

/// Takes an id apart: `(peer, id)`.
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
