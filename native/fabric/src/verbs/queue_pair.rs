//! One connection's queue pair: its segments, credits and pending work requests.

use super::device::{MemoryPieces, QueuePair, ReceiveRequest, Remote, VerbsError, VerbsOptions};
use super::exposed_buffers::ExposedBuffers;
use super::frames::SEGMENT_BYTES;
use super::rdma_context::RdmaContext;
use super::remote_access::RemoteAccess;
use super::ring_share::{needed_for_update, RingShare, SegmentUse, SENDS, SMALLEST};
use super::segment::Segment;
use super::work_id::receive_id;
use crate::frame::outbound::Outbound;
use crate::WriteSource;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of receive requests that a peer may say it has posted; a device's queue holds no
/// more.
pub(super) const MAX_CREDITS: u32 = 1 << 16;

/// A posted work request that has not completed.
pub(super) enum PendingWork {
    /// A segment, held for the device.
    Segment(Segment),
    /// A write, its source held for the device.
    Write {
        token: u64,
        key: u64,
        bytes: usize,
        _source: WriteSource,
    },
    /// A read; its target is with the session's reads.
    Read { sequence: u64, key: u64 },
}

/// The operation at the head of the queue that no announcement covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessQuestion {
    /// No query is open.
    None,
    /// ACCESS_QUERY was sent for the operation with that sequence number. `again`: for the
    /// second time.
    Asked { sequence: u64, again: bool },
    /// ACCESS_REPLY came.
    Answered {
        sequence: u64,
        again: bool,
        verdict: u32,
    },
}

/// A connection's queue pair, with the memory and the bookkeeping that go with it.
pub(crate) struct QueuePairConnection {
    /// Dropped first, so that the device no longer uses the memory below.
    pub(super) queue: QueuePair,
    /// Index of its completion queue in the context.
    pub(super) completions: usize,
    pub(super) psn: u32,
    /// The ring: segments of this side's receive requests, by the number in the request's id.
    receives: Vec<Option<Segment>>,
    /// This queue pair's own segment to send, while it is not posted.
    own_send: Option<Segment>,
    /// Further segments to send that this connection has; all of them are posted, but for one if
    /// `own_send` is.
    lent_sends: u32,
    /// Receive requests that the peer has posted for this side.
    pub(super) credits: u32,
    /// Receive requests posted again that the peer does not know of.
    pub(super) credits_to_return: u32,
    /// Numbers of the segments that were read and must be posted again.
    spent: Vec<u32>,
    share: Arc<RingShare>,
    /// Work requests that have not completed, in their order.
    pub(super) posted: VecDeque<PendingWork>,
    /// Number of the first of `posted`.
    pub(super) first: u32,
    /// Frames that go before the session's queue, because the peer waits for them.
    pub(super) urgent: Outbound,
    pub(super) question: AccessQuestion,
    /// The peer's memory that this side may reach.
    pub(super) access: RemoteAccess,
    /// This side's exposures to the peer.
    pub(super) exposed: ExposedBuffers,
}

impl QueuePairConnection {
    /// Returns a queue pair that is ready to be connected, with the receive requests of the smallest
    /// ring posted.
    ///
    /// # Errors
    /// Returns why its segments have no memory, or what the device refused.
    pub(super) fn new(
        context: &mut RdmaContext,
        connection: u64,
        psn: u32,
    ) -> Result<Self, String> {
        let share = Arc::clone(&context.share);
        let take = |context: &mut RdmaContext| {
            Segment::take(context, SegmentUse::Connection).map_err(|error| error.to_string())
        };
        let own_send = take(context)?;
        let in_words = |error: VerbsError| error.to_string();
        let (queue, completions) = context.queue_pair().map_err(in_words)?;
        let mut new = Self {
            queue,
            completions,
            psn,
            receives: Vec::new(),
            own_send: Some(own_send),
            lent_sends: 0,
            credits: 0,
            credits_to_return: 0,
            spent: Vec::new(),
            share,
            posted: VecDeque::new(),
            first: 0,
            urgent: Outbound::default(),
            question: AccessQuestion::None,
            access: RemoteAccess::default(),
            exposed: ExposedBuffers::default(),
        };
        for _ in 0..new.queue.depth().receive.min(SMALLEST) {
            match take(context) {
                Ok(segment) => new.add_receive(segment),
                Err(error) => {
                    context.give_back(completions);
                    return Err(error);
                }
            }
        }
        if let Err(error) = new.post_receives(connection) {
            context.give_back(completions);
            return Err(error.to_string());
        }
        // The peer learns of the first ones by QP_INFO.
        new.credits_to_return = 0;
        Ok(new)
    }

    /// Connects it; may wait until the device has found the peer on the network.
    ///
    /// # Errors
    /// As [`QueuePair::connect`].
    pub(super) fn connect(
        &mut self,
        remote: &Remote,
        options: &VerbsOptions,
    ) -> Result<(), VerbsError> {
        self.queue.connect(self.psn, remote, options)
    }

    /// Returns the number of receive requests that are posted or about to be.
    pub(super) fn ring_size(&self) -> u32 {
        self.receives.iter().flatten().count() as u32
    }

    /// Adds a new segment to the ring, to be posted.
    fn add_receive(&mut self, segment: Segment) {
        let number = match self.receives.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                self.receives.push(None);
                self.receives.len() - 1
            }
        };
        self.receives[number] = Some(segment);
        self.spent.push(number as u32);
    }

    /// Returns the bytes of a segment that the peer has filled.
    pub(super) fn received(&self, number: u32) -> &[u8] {
        let segment = self.receives.get(number as usize);
        segment.and_then(Option::as_ref).map_or(&[], Segment::bytes)
    }

    /// Marks a segment as read, so that its receive request can be posted again.
    pub(super) fn spend(&mut self, number: u32) {
        debug_assert!(
            self.receives
                .get(number as usize)
                .is_some_and(Option::is_some),
            "segment {number} is not in the ring"
        );
        debug_assert!(
            !self.spent.contains(&number),
            "segment {number} was spent twice"
        );
        self.spent.push(number);
    }

    pub(super) fn spent(&self) -> usize {
        self.spent.len()
    }

    /// Lengthens the ring, if the peer has used half of it and the share and the arena have room.
    pub(super) fn grow(&mut self, context: &mut RdmaContext) {
        let (size, depth) = (self.ring_size(), self.queue.depth().receive);
        for _ in 0..self.share.growth(size, self.returned(), depth) {
            match Segment::take(context, SegmentUse::Growth) {
                Ok(segment) => self.add_receive(segment),
                // The shorter ring works too.
                Err(_) => return,
            }
        }
    }

    /// Posts the spent receive requests again. A ring that must become shorter returns segments
    /// instead.
    pub(super) fn post_receives(&mut self, connection: u64) -> std::io::Result<()> {
        if self.spent.is_empty() {
            return Ok(());
        }
        let spent = self.spent.len() as u32;
        for _ in 0..self.share.shrinkage(self.ring_size(), spent) {
            if let Some(number) = self.spent.pop() {
                self.receives[number as usize] = None;
            }
        }
        let request = |number: &u32| {
            let segment = self.receives.get(*number as usize)?.as_ref()?;
            Some(ReceiveRequest {
                id: receive_id(connection, *number),
                memory: MemoryPieces::one(segment.address, SEGMENT_BYTES as u32, segment.lkey),
            })
        };
        let requests: Vec<_> = self.spent.iter().filter_map(request).collect();
        self.queue
            .post_receive(&requests)
            .map_err(|error| error.source)?;
        self.credits_to_return += requests.len() as u32;
        self.spent.clear();
        Ok(())
    }

    pub(super) fn room(&self) -> usize {
        (self.queue.depth().send as usize).saturating_sub(self.posted.len())
    }

    pub(super) fn next_number(&self) -> u32 {
        self.first.wrapping_add(self.posted.len() as u32)
    }

    /// Returns the number of receive requests that the peer has used and does not know to be posted
    /// again.
    fn returned(&self) -> u32 {
        self.credits_to_return + self.spent.len() as u32
    }

    /// Returns whether credits must be sent even without other bytes.
    pub(super) fn owes_much(&self) -> bool {
        self.returned() >= needed_for_update(self.ring_size()).max(1)
    }

    /// Takes a segment to send: this queue pair's own, or one more while the share and the arena
    /// have room. Returns `None` if a posted one must complete first.
    pub(super) fn take_send(&mut self, context: &mut RdmaContext) -> Option<Segment> {
        if let Some(own) = self.own_send.take() {
            return Some(own);
        }
        if self.lent_sends + 1 >= SENDS {
            return None;
        }
        let lent = Segment::take(context, SegmentUse::Send).ok()?;
        self.lent_sends += 1;
        Some(lent)
    }

    /// Returns a segment that was sent.
    pub(super) fn give_send(&mut self, segment: Segment) {
        match &self.own_send {
            None => self.own_send = Some(segment),
            Some(_) => {
                debug_assert!(self.lent_sends > 0, "a segment was returned twice");
                self.lent_sends -= 1;
            }
        }
    }
}
