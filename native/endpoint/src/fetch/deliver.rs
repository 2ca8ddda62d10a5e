//! Cuts the bytes of one attempt into blocks as they arrive.
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

/// Blocks that are ready to be handed out.
pub(super) struct ReadyBlocks {
    /// Position of the first block in the request.
    pub(super) first_block: usize,
    pub(super) delivery: Delivery,
    /// True if at least half of the arena is in use.
    pub(super) scarce: bool,
}

/// The bytes of all blocks that one attempt asked for.
pub(super) struct Stream {
    blocks: Vec<BlockEntry>,
    /// End of each block in the stream, in bytes.
    ends: Vec<u64>,
    /// Length of the whole stream, in bytes.
    total: u64,
    /// Number of bytes that arrived and were checked.
    arrived: u64,
    /// Number of bytes that were handed out.
    handed_out: u64,
    /// Number of blocks that were handed out.
    next_block: usize,
    /// The bytes that arrived and were not handed out.
    slices: VecDeque<BufferSlice>,
}

impl Stream {
    /// Starts the stream of a response.
    ///
    /// # Errors
    /// Fails if the response is not for `wanted` blocks, or if the sum of its lengths is above
    /// `i64::MAX`.
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

    /// Returns the length of the whole stream, in bytes.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of bytes that have not arrived.
    pub(super) fn missing(&self) -> u64 {
        self.total - self.arrived
    }

    /// Returns the position up to which to lease memory for the bytes from `position` on: the last
    /// end of a block within a page, or the end of a block that is longer. So memory is leased only
    /// for whole blocks, which can be handed out and returned without more memory.
    pub(super) fn whole_blocks(&self, position: u64) -> u64 {
        let within = position.saturating_add(PAGE_BYTES as u64);
        let fit = self.ends.partition_point(|end| *end <= within);
        match fit.checked_sub(1).map(|last| self.ends[last]) {
            Some(end) if end > position => end,
            _ => self.ends.get(fit).copied().unwrap_or(self.total),
        }
    }

    /// Returns whether bytes of an incomplete block have arrived.
    pub(super) fn holds_part(&self) -> bool {
        self.arrived > self.handed_out
    }

    /// Appends the first `length` bytes of `lease` to the stream.
    pub(super) fn push(&mut self, lease: Lease, length: u32) {
        self.arrived += u64::from(length);
        self.slices.push_back(BufferSlice {
            lease: Arc::new(lease),
            offset: 0,
            length,
        });
    }

    /// Returns the complete blocks: the position after the last one, and their bytes. Blocks
    /// without bytes wait for one that has bytes, unless `last` is true: so the arena bounds the
    /// deliveries that the caller has not taken.
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

    /// Takes the complete blocks that should be handed out now; `None` if there are none.
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

/// Cuts the first `bytes` bytes off `slices`.
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

/// Appends `slice` to `out`. Copies it to smaller leases if that saves memory and no other slice
/// uses its lease. Otherwise a few bytes that arrived in a page would hold the page until the
/// caller has read them.
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
