//! The bytes of one attempt as they arrive, cut into blocks.
//!
//! ```text
//!  arrived  |============|=======|                            bytes that were checked
//!  blocks   |--b0--|-b1-|----b2----|--b3--| ...               from FETCH_RESPONSE
//!                            ^ handed out up to here
//! ```

use super::completion::{BufferSlice, Delivery};
use crate::memory::Memory;
use faro_pool::{lease_sizes, Lease, Purpose, PAGE_BYTES};
use faro_wire::message::{BlockEntry, FetchResponse};
use faro_wire::WireError;
use std::collections::VecDeque;
use std::sync::Arc;

/// Blocks to be handed out.
pub(super) struct Ready {
    /// Position of the first one in the request.
    pub(super) first_block: usize,
    pub(super) delivery: Delivery,
    /// At least half of the arena is in use.
    pub(super) scarce: bool,
}

/// The stream of all blocks that one attempt asked for.
pub(super) struct Stream {
    blocks: Vec<BlockEntry>,
    /// Where each block ends in the stream.
    ends: Vec<u64>,
    /// Bytes of the whole stream.
    total: u64,
    /// Bytes that arrived and were checked.
    arrived: u64,
    /// Bytes handed out.
    handed_out: u64,
    /// Blocks handed out.
    next_block: usize,
    /// Arrived and not handed out.
    slices: VecDeque<BufferSlice>,
}

impl Stream {
    /// # Errors
    /// The response is not for `wanted` blocks, or its lengths are no stream.
    pub(super) fn new(response: FetchResponse, wanted: usize) -> Result<Self, WireError> {
        let got = response.blocks.len();
        if got != wanted {
            return Err(WireError::BadValue {
                what: "number of blocks in FETCH_RESPONSE",
                got: got as u64,
            });
        }
        let mut total = 0u64;
        let mut ends = Vec::with_capacity(got);
        for block in &response.blocks {
            total = total
                .checked_add(block.length.get())
                .filter(|total| *total <= i64::MAX as u64)
                .ok_or(WireError::BadValue {
                    what: "sum of lengths in FETCH_RESPONSE",
                    got: u64::MAX,
                })?;
            ends.push(total);
        }
        Ok(Self {
            blocks: response.blocks,
            ends,
            total,
            arrived: 0,
            handed_out: 0,
            next_block: 0,
            slices: VecDeque::new(),
        })
    }

    /// Bytes of the whole stream.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that have not arrived.
    pub(super) fn missing(&self) -> u64 {
        self.total - self.arrived
    }

    /// Where the memory ends that is to be leased at once for the bytes from `position` on: at the last
    /// end of a block within a page, or at the end of a block that is longer. So memory is only leased
    /// for whole blocks, which are handed out, and returned, without any more memory.
    pub(super) fn whole_blocks(&self, position: u64) -> u64 {
        let within = position.saturating_add(PAGE_BYTES as u64);
        let fit = self.ends.partition_point(|end| *end <= within);
        match fit.checked_sub(1).map(|last| self.ends[last]) {
            Some(end) if end > position => end,
            _ => self.ends.get(fit).copied().unwrap_or(self.total),
        }
    }

    /// Bytes of an incomplete block have arrived.
    pub(super) fn holds_part(&self) -> bool {
        self.arrived > self.handed_out
    }

    /// The next `length` bytes of the stream are the first ones of `lease`.
    pub(super) fn push(&mut self, lease: Lease, length: u32) {
        self.arrived += u64::from(length);
        self.slices.push_back(BufferSlice {
            lease: Arc::new(lease),
            offset: 0,
            length,
        });
    }

    /// The blocks that are complete: how many and their bytes. Unless `last`, `None` when no bytes
    /// would go with them, so that what waits for the caller stays bounded by the arena.
    fn complete(&self, last: bool) -> Option<(usize, u64)> {
        let (mut end, mut bytes) = (self.next_block, 0);
        while let Some(block) = self.blocks.get(end) {
            let with_it = bytes + block.length.get();
            if self.handed_out + with_it > self.arrived {
                break;
            }
            (end, bytes) = (end + 1, with_it);
        }
        (end > self.next_block && (bytes > 0 || last)).then_some((end, bytes))
    }

    /// Takes the blocks that are complete, if there are some worth handing out.
    pub(super) fn take_complete(&mut self, last: bool, memory: &Memory) -> Option<Delivery> {
        let (end, bytes) = self.complete(last)?;
        let blocks = self.blocks[self.next_block..end].to_vec();
        self.next_block = end;
        self.handed_out += bytes;
        let taken = take_bytes(&mut self.slices, bytes);
        let mut slices = Vec::with_capacity(taken.len());
        for slice in taken {
            compact(slice, memory, &mut slices);
        }
        Some(Delivery { blocks, slices })
    }
}

/// Cuts the first `bytes` off `slices`.
fn take_bytes(slices: &mut VecDeque<BufferSlice>, mut bytes: u64) -> Vec<BufferSlice> {
    let mut taken = Vec::new();
    while bytes > 0 {
        let Some(front) = slices.front_mut() else {
            break;
        };
        let length = bytes.min(u64::from(front.length)) as u32;
        taken.push(BufferSlice {
            length,
            ..front.clone()
        });
        bytes -= u64::from(length);
        front.offset += length;
        front.length -= length;
        if front.length == 0 {
            slices.pop_front();
        }
    }
    taken
}

/// Appends `slice` to `out`: as it is, or moved to smaller leases if no other slice has bytes of its
/// lease and more than a third of it is unused. A request that brought a few bytes into a page would
/// hold all of it until its caller has read them.
fn compact(slice: BufferSlice, memory: &Memory, out: &mut Vec<BufferSlice>) {
    let (from, length) = (slice.offset as usize, slice.length as usize);
    let sizes = match Arc::strong_count(&slice.lease) {
        1 => lease_sizes(length),
        _ => return out.push(slice),
    };
    if sizes.iter().sum::<usize>() >= slice.lease.capacity() {
        return out.push(slice);
    }
    let Ok(leases) = memory.try_lease_each(&sizes, Purpose::Read) else {
        return out.push(slice);
    };
    let mut rest = &slice.lease.bytes()[from..from + length];
    for mut lease in leases {
        let (bytes, after) = rest.split_at(rest.len().min(lease.capacity()));
        lease.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        rest = after;
        out.push(BufferSlice {
            lease: Arc::new(lease),
            offset: 0,
            length: bytes.len() as u32,
        });
    }
}
