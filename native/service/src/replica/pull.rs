//! Bytes of another service, by the application's endpoint: as a reader gets them, a few pieces at a time.

use super::names::ListId;
use super::throttle::Throttle;
use faro_endpoint::{Completion, Delivery, Endpoint, EndpointError};
use faro_wire::block::PIECE_BYTES;
use faro_wire::{BlockId, BlockStatus};
use std::io;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Pieces that are under way at a time: 8 MiB of the arena.
const WINDOW: u64 = 2;
/// How often a thread that waits looks whether its endpoint is closed.
const LOOK: Duration = Duration::from_millis(200);
/// A block's status that is `Ok`.
const OK: u32 = BlockStatus::Ok as u32;
const UNKNOWN: u32 = BlockStatus::UnknownOutput as u32;

/// Why bytes are not here.
#[derive(Debug, Error)]
pub(crate) enum PullError {
    #[error("it has no such output any more")]
    Unknown,
    #[error("it cannot read the output (status {status})")]
    Status { status: u32 },
    #[error("it gave {got} bytes instead of {wanted}")]
    Torn { wanted: u64, got: u64 },
    #[error("it does not answer: {0}")]
    Peer(String),
    #[error("this service cannot keep it: {0}")]
    Own(#[from] io::Error),
    #[error("this service ends")]
    Closed,
}

impl From<EndpointError> for PullError {
    fn from(error: EndpointError) -> Self {
        Self::Peer(error.to_string())
    }
}

/// Takes bytes in their order.
pub(crate) type ByteSink<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// Reads from one service. All completions of the endpoint are this one's: it has no other caller.
pub(crate) struct ReplicaPull<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) throttle: &'a Throttle,
    pub(crate) peer: u64,
    pub(crate) timeout: Duration,
}

impl ReplicaPull<'_> {
    /// A whole block of at most a piece.
    pub(crate) fn small(&self, asked: ListId, max: u64) -> Result<Vec<u8>, PullError> {
        let mut bytes = Vec::new();
        let mut sink = |more: &[u8]| {
            bytes.extend_from_slice(more);
            Ok(())
        };
        // A piece, as a block of any other length could take all memory.
        let got = self.fetch(&[asked.block(1, 1)], &mut sink)?;
        match got <= max {
            true => Ok(bytes),
            false => Err(PullError::Torn { wanted: max, got }),
        }
    }

    /// Some blocks of at most a piece each, `bytes` together, with one request. For each its bytes, or why there are none.
    pub(crate) fn some(
        &self,
        blocks: &[BlockId],
        bytes: u64,
    ) -> Result<Vec<Result<Vec<u8>, PullError>>, PullError> {
        self.wait(self.throttle.take(bytes, Instant::now()))?;
        let mut all: Vec<Result<Vec<u8>, PullError>> = Vec::new();
        all.resize_with(blocks.len(), || {
            Err(PullError::Peer("it left a block out".into()))
        });
        let mut got = 0;
        self.each(blocks, &mut |completion| {
            let delivery = delivered(completion)?;
            let lengths = delivery.blocks.iter().map(|block| block.length.get());
            got = lengths.fold(got, u64::saturating_add);
            if got > bytes {
                // Each block may be a whole piece, whatever its list says: all of them would take much memory.
                return Err(PullError::Torn { wanted: bytes, got });
            }
            let (mut slices, mut taken) = (delivery.slices.iter(), &[][..]);
            for (entry, of) in delivery
                .blocks
                .iter()
                .zip(completion.first_block as usize..)
            {
                let (mut bytes, length) = (Vec::new(), entry.length.get() as usize);
                while bytes.len() < length {
                    if taken.is_empty() {
                        let slice = slices.next();
                        let slice =
                            slice.ok_or_else(|| PullError::Peer("bytes are missing".into()))?;
                        let from = slice.offset as usize;
                        taken = &slice.lease.bytes()[from..from + slice.length as usize];
                    }
                    let (now, rest) = taken.split_at(taken.len().min(length - bytes.len()));
                    bytes.extend_from_slice(now);
                    taken = rest;
                }
                if let Some(one) = all.get_mut(of) {
                    *one = status(entry.status.get()).map(|()| bytes);
                }
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// `bytes` bytes of all partitions together.
    pub(crate) fn whole(
        &self,
        asked: ListId,
        partitions: u32,
        bytes: u64,
        sink: ByteSink<'_>,
    ) -> Result<(), PullError> {
        let mut got = 0;
        while got < bytes {
            let next = (bytes - got).min(WINDOW * PIECE_BYTES);
            self.wait(self.throttle.take(next, Instant::now()))?;
            let first = got / PIECE_BYTES + 1;
            let pieces = first..first + next.div_ceil(PIECE_BYTES);
            let piece = |at: u64| u32::try_from(at).map(|piece| asked.block(partitions, piece));
            let blocks: Result<Vec<BlockId>, _> = pieces.map(piece).collect();
            let blocks = blocks.map_err(|_| PullError::Torn { wanted: bytes, got })?;
            let more = self.fetch(&blocks, sink)?;
            got += more;
            if more != next {
                return Err(PullError::Torn { wanted: bytes, got });
            }
        }
        Ok(())
    }

    fn wait(&self, time: Duration) -> Result<(), PullError> {
        let end = Instant::now() + time;
        loop {
            if self.endpoint.is_closed() {
                return Err(PullError::Closed);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Gives all bytes of the blocks to the sink, and returns how many that were.
    fn fetch(&self, blocks: &[BlockId], sink: ByteSink<'_>) -> Result<u64, PullError> {
        let mut got = 0;
        self.each(blocks, &mut |completion| {
            got += taken(completion, sink)?;
            Ok(())
        })?;
        Ok(got)
    }

    /// Gives all completions of a request for the blocks to `take`, until it fails. Waits for the request's end also then, so
    /// that the next one finds no completion of it.
    fn each(
        &self,
        blocks: &[BlockId],
        take: &mut dyn FnMut(&Completion) -> Result<(), PullError>,
    ) -> Result<(), PullError> {
        let request = self.endpoint.fetch(self.peer, blocks, self.timeout)?;
        let mut got = Ok(());
        let mut completions = Vec::new();
        loop {
            self.endpoint.completions(1, LOOK, &mut completions);
            for completion in completions.drain(..) {
                if completion.request != request {
                    continue;
                }
                let last = completion.last;
                got = got.and_then(|()| take(&completion));
                if last {
                    return got;
                }
                if got.is_err() {
                    self.endpoint.cancel(request);
                }
            }
            if self.endpoint.is_closed() {
                return Err(PullError::Closed);
            }
        }
    }
}

fn delivered(completion: &Completion) -> Result<&Delivery, PullError> {
    let outcome = completion.outcome.as_ref();
    outcome.map_err(|failure| PullError::Peer(failure.detail.clone()))
}

fn status(status: u32) -> Result<(), PullError> {
    match status {
        OK => Ok(()),
        UNKNOWN => Err(PullError::Unknown),
        status => Err(PullError::Status { status }),
    }
}

fn taken(completion: &Completion, sink: ByteSink<'_>) -> Result<u64, PullError> {
    let delivery = delivered(completion)?;
    let mut all = delivery
        .blocks
        .iter()
        .map(|block| status(block.status.get()));
    all.try_for_each(|one| one)?;
    let mut got = 0;
    for slice in &delivery.slices {
        let (from, length) = (slice.offset as usize, slice.length as usize);
        sink(&slice.lease.bytes()[from..from + length])?;
        got += length as u64;
    }
    Ok(got)
}
