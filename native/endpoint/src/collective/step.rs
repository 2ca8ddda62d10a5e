//! One step of a plan as one member works through it: what it waits for, and in which order.
//!
//! ```text
//!  items, by chunk and then rank   |0 r1|0 r4|0 r7|1 r1|1 r4|1 r7|2 r1| ...
//!                                  applied ^         ^ offered      memory in between: the window
//! ```
//! Whatever arrives within the window is kept; it is applied in the order of the items.

use faro_exchange::collective::{Action, Plan};
use faro_pool::{Lease, PAGE_BYTES};
use faro_sync::HashMap;
use faro_wire::message::WrittenBuffer;
use std::ops::Range;

/// A part on its way to or from a partner.
pub(super) struct PartTransfer {
    pub(super) partner: u32,
    /// Range of elements.
    pub(super) range: Range<usize>,
    /// Bytes of an element.
    size: usize,
    /// Chunks sent, of an outgoing one.
    pub(super) done: u32,
}

impl PartTransfer {
    pub(super) fn bytes(&self) -> usize {
        self.range.len() * self.size
    }

    pub(super) fn chunks(&self) -> u32 {
        self.bytes().div_ceil(PAGE_BYTES) as u32
    }

    /// Returns the first element and the bytes of a chunk, if the part has it.
    pub(super) fn chunk(&self, chunk: u32) -> Option<(usize, usize)> {
        let from = chunk as usize * PAGE_BYTES;
        let bytes = self.bytes().checked_sub(from).filter(|left| *left > 0)?;
        Some((self.range.start + from / self.size, bytes.min(PAGE_BYTES)))
    }
}

/// A part that a partner is asked for.
pub(super) struct OutgoingPart {
    pub(super) part: PartTransfer,
    /// It has sent CLEAR_TO_SEND, if only to say that it needs nothing.
    pub(super) is_cleared: bool,
}

/// A part that comes from a partner.
pub(super) struct IncomingPart {
    pub(super) part: PartTransfer,
    pub(super) action: Action,
    /// Chunks that have arrived, applied or not.
    arrived: u32,
}

/// One step as one member works through it.
pub(super) struct MemberStep {
    pub(super) incoming: Vec<IncomingPart>,
    pub(super) outgoing: Vec<OutgoingPart>,
    /// Chunk, position in `incoming`.
    items: Vec<(u32, usize)>,
    offered: usize,
    applied: usize,
    /// Arrived, not applied: by chunk and rank.
    arrived: HashMap<(u32, u32), (Lease, WrittenBuffer)>,
}

impl MemberStep {
    pub(super) fn new(plan: &Plan, step: usize, rank: usize, elements: usize, size: usize) -> Self {
        let part = |partner, part: faro_exchange::collective::Part| PartTransfer {
            partner,
            range: part.range(elements),
            size,
            done: 0,
        };
        let incoming: Vec<IncomingPart> = plan
            .receives(step, rank)
            .map(|transfer| IncomingPart {
                part: part(transfer.from, transfer.part),
                action: transfer.action,
                arrived: 0,
            })
            .collect();
        let outgoing: Vec<OutgoingPart> = plan
            .sends(step, rank)
            .map(|transfer| OutgoingPart {
                part: part(transfer.to, transfer.part),
                is_cleared: false,
            })
            .collect();
        debug_assert!(
            incoming.iter().all(|i| outgoing.iter().all(|o| {
                let (i, o) = (&i.part.range, &o.part.range);
                i.is_empty() || o.is_empty() || i.end <= o.start || o.end <= i.start
            })),
            "what is sent in a step does not change in it"
        );
        let longest = incoming.iter().map(|i| i.part.chunks()).max().unwrap_or(0);
        let items = (0..longest)
            .flat_map(|chunk| {
                let has = move |(_, i): &(usize, &IncomingPart)| chunk < i.part.chunks();
                let of = incoming.iter().enumerate().filter(has);
                of.map(move |(at, _)| (chunk, at)).collect::<Vec<_>>()
            })
            .collect();
        Self {
            incoming,
            outgoing,
            items,
            offered: 0,
            applied: 0,
            arrived: HashMap::default(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.applied == self.items.len()
            && self
                .outgoing
                .iter()
                .all(|o| o.is_cleared && o.part.done == o.part.chunks())
    }

    /// Returns whether all that get a part have come to this step.
    pub(super) fn is_cleared_by_all(&self) -> bool {
        self.outgoing.iter().all(|o| o.is_cleared)
    }

    /// Chunks that memory is out for.
    pub(super) fn outstanding(&self) -> usize {
        self.offered - self.applied
    }

    /// Returns the next chunk to offer memory for: its number, the position of its sender in
    /// `incoming`, and its bytes.
    pub(super) fn next_offer(&self) -> Option<(u32, usize, usize)> {
        let (chunk, at) = *self.items.get(self.offered)?;
        let (_, bytes) = self.incoming[at].part.chunk(chunk)?;
        Some((chunk, at, bytes))
    }

    pub(super) fn offered_one(&mut self) {
        self.offered += 1;
    }

    /// Keeps what arrived until it is its turn.
    pub(super) fn keep(&mut self, rank: u32, chunk: WrittenBuffer, lease: Lease) {
        let mut senders = self.incoming.iter_mut();
        if let Some(incoming) = senders.find(|i| i.part.partner == rank) {
            incoming.arrived += 1;
        }
        self.arrived
            .insert((chunk.buffer.get(), rank), (lease, chunk));
    }

    /// Takes the next part to apply, if it has arrived: its position in `incoming`, its first
    /// element, and its bytes.
    pub(super) fn next_arrived(&mut self) -> Option<(usize, usize, Lease, WrittenBuffer)> {
        let (chunk, at) = *self.items.get(self.applied)?;
        let part = &self.incoming[at].part;
        let (lease, ready) = self.arrived.remove(&(chunk, part.partner))?;
        let (first, _) = part.chunk(chunk)?;
        self.applied += 1;
        Some((at, first, lease, ready))
    }

    /// Returns the ranks that the step still needs, each once. A rank whose last chunk has arrived
    /// is not among them, even if the chunk waits to be applied: that member may leave.
    pub(super) fn needed(&self) -> Vec<u32> {
        let from = self
            .incoming
            .iter()
            .filter(|i| i.arrived < i.part.chunks())
            .map(|i| i.part.partner);
        let to = self
            .outgoing
            .iter()
            .filter(|o| !o.is_cleared || o.part.done < o.part.chunks())
            .map(|o| o.part.partner);
        let mut ranks: Vec<u32> = from.chain(to).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Returns the ranks that take part in the step.
    pub(super) fn partners(&self) -> Vec<u32> {
        let from = self.incoming.iter().map(|i| i.part.partner);
        let to = self.outgoing.iter().map(|o| o.part.partner);
        from.chain(to).collect()
    }
}
