//! One attempt at a request, on one connection: credits out, chunks in, blocks up.
//!
//! ```text
//!  granted  |--credit 0--|--credit 1--|--credit 2--|          capacity given to the owner
//!  arrived  |============|=======|                            bytes whose CRC agreed
//!  blocks   |--b0--|-b1-|----b2----|--b3--| ...               from FETCH_RESPONSE
//!                            ^ handed out up to here
//! ```

use super::pull::Pull;
use super::Request;
use crate::completion::{Delivery, Piece};
use crate::config::limits::{COMPACT_BYTES, CREDIT_WINDOW_BYTES};
use crate::memory::Memory;
use faro_pool::{Lease, Purpose, PAGE_BYTES};
use faro_wire::message::{BlockEntry, FetchResponse, ReadOffer, WrittenBuffer};
use faro_wire::{crc32c, WireError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Memory that the owner may write.
pub(crate) struct OfferedBuffer {
    pub(crate) key: u64,
    pub(crate) capacity: u32,
}

/// See the module's comment.
pub(crate) struct Attempt {
    pub(crate) request: Request,
    pub(crate) connection: faro_fabric::ConnectionId,
    /// Given and not filled, in order.
    pub(crate) grants: VecDeque<OfferedBuffer>,
    /// Sum of all capacities ever given.
    granted: u64,
    /// Position of `grants`' first among all of the attempt.
    first_grant: u32,
    layout: Option<Vec<BlockEntry>>,
    /// Where the bytes lie, if the owner said so; until the layout comes.
    pub(crate) located: Option<ReadOffer>,
    /// Pulling them, from then on.
    pub(crate) pull: Option<Pull>,
    /// Bytes of the whole stream; known with the layout.
    total: u64,
    /// Bytes that arrived and were checked.
    arrived: u64,
    /// Bytes handed out.
    handed_out: u64,
    /// Blocks of `layout` handed out.
    next_block: usize,
    /// Arrived, not handed out.
    pieces: VecDeque<Piece>,
    pub(crate) deadline: Instant,
    /// Since when it has neither credit nor memory.
    pub(crate) dry_since: Option<Instant>,
}

/// Why an attempt cannot go on.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The peer breaks the protocol.
    Protocol(WireError),
    /// The bytes are not those the owner read.
    Corrupt { expected: u32, got: u32 },
}

/// Blocks to be handed out.
pub(crate) struct Ready {
    pub(crate) first_block: usize,
    pub(crate) delivery: Delivery,
}

impl Attempt {
    pub(crate) fn new(
        request: Request,
        connection: faro_fabric::ConnectionId,
        now: Instant,
    ) -> Self {
        let deadline = now + request.patience;
        Self {
            request,
            connection,
            grants: VecDeque::new(),
            granted: 0,
            first_grant: 0,
            layout: None,
            located: None,
            pull: None,
            total: 0,
            arrived: 0,
            handed_out: 0,
            next_block: 0,
            pieces: VecDeque::new(),
            deadline,
            dry_since: None,
        }
    }

    pub(crate) fn granted(&mut self, key: u64, capacity: u32) {
        self.granted += u64::from(capacity);
        self.grants.push_back(OfferedBuffer { key, capacity });
    }

    /// Bytes of the next credit that should be given now; zero: none.
    pub(crate) fn next_credit_bytes(&self) -> usize {
        if self.layout.is_none() || self.pull.is_some() {
            return 0;
        }
        let outstanding: u64 = self
            .grants
            .iter()
            .map(|grant| u64::from(grant.capacity))
            .sum();
        let rest = self.total.saturating_sub(self.granted);
        if outstanding >= CREDIT_WINDOW_BYTES {
            return 0;
        }
        rest.min(PAGE_BYTES as u64) as usize
    }

    /// # Errors
    /// A second layout, or one for another number of blocks.
    pub(crate) fn on_layout(&mut self, layout: FetchResponse) -> Result<(), WireError> {
        let (got, wanted) = (layout.blocks.len(), self.request.missing().len());
        if self.layout.is_some() || got != wanted {
            return Err(WireError::BadValue {
                what: "number of blocks in FETCH_RESPONSE",
                got: got as u64,
            });
        }
        let total = layout
            .blocks
            .iter()
            .try_fold(0u64, |sum, block| sum.checked_add(block.length.get()))
            .filter(|total| *total <= i64::MAX as u64)
            .ok_or(WireError::BadValue {
                what: "sum of lengths in FETCH_RESPONSE",
                got: u64::MAX,
            })?;
        self.total = total;
        self.layout = Some(layout.blocks);
        Ok(())
    }

    /// Bytes of the layout's largest block.
    pub(crate) fn largest_block(&self) -> u64 {
        let blocks = self.layout.iter().flatten();
        blocks.map(|block| block.length.get()).max().unwrap_or(0)
    }

    /// The grant that `chunk` must have filled: checked against the order and the stream's length.
    ///
    /// # Errors
    /// The chunk is not the next one, or too long or too short.
    pub(crate) fn expect(&mut self, chunk: &WrittenBuffer) -> Result<OfferedBuffer, WireError> {
        if self.layout.is_none() || self.pull.is_some() {
            return Err(WireError::BadValue {
                what: "DATA_WRITTEN before FETCH_RESPONSE or after READ_OFFER of request",
                got: self.request.id,
            });
        }
        let got = u64::from(chunk.buffer.get());
        let next = self
            .grants
            .front()
            .filter(|_| chunk.buffer.get() == self.first_grant)
            .ok_or(WireError::BadValue {
                what: "credit of a chunk",
                got,
            })?;
        let length = u64::from(chunk.length.get());
        if length != u64::from(next.capacity).min(self.total - self.arrived) || length == 0 {
            return Err(WireError::BadValue {
                what: "length of a chunk",
                got: length,
            });
        }
        self.first_grant = self.first_grant.wrapping_add(1);
        // There is one: it was looked at above.
        self.grants.pop_front().ok_or(WireError::BadValue {
            what: "credit of a chunk",
            got,
        })
    }

    /// Takes the bytes of a chunk that `expect` accepted.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn take(&mut self, lease: Lease, chunk: &WrittenBuffer) -> Result<(), Trouble> {
        let length = chunk.length.get();
        let (expected, got) = (chunk.crc.get(), crc32c(&lease.bytes()[..length as usize]));
        if expected != got {
            return Err(Trouble::Corrupt { expected, got });
        }
        self.arrived(lease, length);
        Ok(())
    }

    /// The next `length` bytes of the stream are the first ones of `lease`.
    pub(crate) fn arrived(&mut self, lease: Lease, length: u32) {
        self.arrived += u64::from(length);
        self.pieces.push_back(Piece {
            lease: Arc::new(lease),
            offset: 0,
            length,
        });
    }

    /// Bytes of the whole stream, once the layout is known.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// # Errors
    /// It was said before, or is not to be said.
    pub(crate) fn on_located(&mut self, located: ReadOffer) -> Result<(), WireError> {
        if self.request.push_only || self.layout.is_some() || self.located.is_some() {
            return Err(WireError::BadValue {
                what: "READ_OFFER, which must come once and before FETCH_RESPONSE, of request",
                got: self.request.id,
            });
        }
        self.located = Some(located);
        Ok(())
    }

    /// # Errors
    /// `last` came with bytes missing, or the bytes are there and `last` did not come.
    pub(crate) fn check_last(&self, last: bool) -> Result<(), WireError> {
        if last == (self.layout.is_some() && self.arrived == self.total) {
            return Ok(());
        }
        Err(WireError::BadValue {
            what: "last of DATA_WRITTEN",
            got: u64::from(last),
        })
    }

    /// The blocks that are complete. Unless `last`, `None` when no bytes would go with them, so
    /// that what waits for the caller stays bounded by the arena.
    pub(crate) fn ready(&mut self, last: bool, memory: &Memory) -> Option<Ready> {
        let layout = self.layout.as_ref()?;
        let (mut end, mut bytes) = (self.next_block, 0);
        while let Some(block) = layout.get(end) {
            let with_it = bytes + block.length.get();
            if self.handed_out + with_it > self.arrived {
                break;
            }
            (end, bytes) = (end + 1, with_it);
        }
        if end == self.next_block || (bytes == 0 && !last) {
            return None;
        }
        let blocks = layout[self.next_block..end].to_vec();
        let first_block = self.request.handed_out;
        self.next_block = end;
        self.request.handed_out += blocks.len();
        self.handed_out += bytes;
        let mut pieces = take_bytes(&mut self.pieces, bytes);
        if last && self.total <= COMPACT_BYTES as u64 {
            compact(&mut pieces, memory);
        }
        Some(Ready {
            first_block,
            delivery: Delivery { blocks, pieces },
        })
    }
}

/// Cuts the first `bytes` off `pieces`.
fn take_bytes(pieces: &mut VecDeque<Piece>, mut bytes: u64) -> Vec<Piece> {
    let mut taken = Vec::new();
    while bytes > 0 {
        let Some(front) = pieces.front_mut() else {
            break;
        };
        let length = bytes.min(u64::from(front.length)) as u32;
        taken.push(Piece {
            length,
            ..front.clone()
        });
        bytes -= u64::from(length);
        front.offset += length;
        front.length -= length;
        if front.length == 0 {
            pieces.pop_front();
        }
    }
    taken
}

/// Moves a small reply out of its frame, which can then serve somebody else.
fn compact(pieces: &mut Vec<Piece>, memory: &Memory) {
    let [piece] = pieces.as_slice() else { return };
    let length = piece.length as usize;
    if piece.lease.capacity() <= COMPACT_BYTES {
        return;
    }
    let Ok(mut small) = memory.try_lease(length, Purpose::Read) else {
        return;
    };
    let from = piece.offset as usize;
    small.bytes_mut()[..length].copy_from_slice(&piece.lease.bytes()[from..from + length]);
    *pieces = vec![Piece {
        lease: Arc::new(small),
        offset: 0,
        length: length as u32,
    }];
}
