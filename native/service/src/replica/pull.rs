//! Bytes of another service, by the application's endpoint: pages and indexes by commands, data as a reader gets it, a few
//! pieces at a time.

use super::throttle::Throttle;
use faro_endpoint::{CommandAnswer, Completion, Endpoint, EndpointError};
use faro_wire::block::PIECE_BYTES;
use faro_wire::message::{CommandReply, CommandStatus, MemberCommand, MAX_CONTENT_BYTES};
use faro_wire::{BlockId, BlockStatus, OutputId};
use std::io;
use std::sync::mpsc;
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
    /// Page `page` of its list, of at most `max` bytes.
    pub(crate) fn page(&self, page: u64, max: u64) -> Result<Vec<u8>, PullError> {
        let bytes = self.ask(MemberCommand::SendPage(page))?;
        match bytes.len() as u64 {
            got if got > max => Err(PullError::Torn { wanted: max, got }),
            _ => Ok(bytes),
        }
    }

    /// The indexes of these outputs, one after the other, `bytes` together.
    pub(crate) fn indexes(
        &self,
        outputs: &[OutputId],
        bytes: u64,
        sink: ByteSink<'_>,
    ) -> Result<(), PullError> {
        let mut got = 0;
        while got < bytes {
            let next = (bytes - got).min(MAX_CONTENT_BYTES.into());
            self.wait(self.throttle.take(next, Instant::now()))?;
            let more = self.ask(MemberCommand::SendIndexes {
                outputs: outputs.to_vec(),
                from: got,
            })?;
            got += more.len() as u64;
            if more.len() as u64 != next {
                return Err(PullError::Torn { wanted: bytes, got });
            }
            sink(&more)?;
        }
        Ok(())
    }

    /// Sends a command, and waits for the content that it asks for.
    fn ask(&self, command: MemberCommand) -> Result<Vec<u8>, PullError> {
        let (sender, answers) = mpsc::channel();
        self.endpoint
            .command(self.peer, command, self.timeout, sender)?;
        // The command ends in time. Without an answer, the endpoint was closed.
        let CommandAnswer { outcome, .. } = answers.recv().map_err(|_| PullError::Closed)?;
        match outcome.map_err(|error| PullError::Peer(error.to_string()))? {
            CommandReply::Content(bytes) => Ok(bytes),
            CommandReply::Status(CommandStatus::Unknown) => Err(PullError::Unknown),
            CommandReply::Status(CommandStatus::Unreadable) => Err(PullError::Status {
                status: BlockStatus::Unreadable as u32,
            }),
            CommandReply::Status(status) => Err(PullError::Peer(format!("it says {status:?}"))),
        }
    }

    /// `bytes` bytes of all partitions of an output together.
    pub(crate) fn whole(
        &self,
        id: OutputId,
        partitions: u32,
        bytes: u64,
        sink: ByteSink<'_>,
    ) -> Result<(), PullError> {
        let mut got = 0;
        while got < bytes {
            let next = (bytes - got).min(WINDOW * PIECE_BYTES);
            let first = got / PIECE_BYTES + 1;
            let pieces = first..first + next.div_ceil(PIECE_BYTES);
            let piece = |at: u64| u32::try_from(at).map(|piece| piece_of(id, partitions, piece));
            let blocks: Result<Vec<BlockId>, _> = pieces.map(piece).collect();
            let blocks = blocks.map_err(|_| PullError::Torn { wanted: bytes, got })?;
            self.blocks(&blocks, next, sink)?;
            got += next;
        }
        Ok(())
    }

    /// Blocks of at most a piece each, `bytes` together, one after the other.
    pub(crate) fn blocks(
        &self,
        blocks: &[BlockId],
        bytes: u64,
        sink: ByteSink<'_>,
    ) -> Result<(), PullError> {
        if blocks.is_empty() {
            return Ok(());
        }
        self.wait(self.throttle.take(bytes, Instant::now()))?;
        let mut got = 0;
        self.each(blocks, &mut |completion| {
            let delivery = completion.outcome.as_ref();
            let delivery = delivery.map_err(|failure| PullError::Peer(failure.detail.clone()))?;
            for block in &delivery.blocks {
                match block.status.get() {
                    OK => {}
                    UNKNOWN => return Err(PullError::Unknown),
                    status => return Err(PullError::Status { status }),
                }
            }
            for slice in &delivery.slices {
                let (from, length) = (slice.offset as usize, slice.length as usize);
                got += length as u64;
                if got > bytes {
                    // Each block may be a whole piece, whatever its list says: all of them would take much memory.
                    return Err(PullError::Torn { wanted: bytes, got });
                }
                sink(&slice.lease.bytes()[from..from + length])?;
            }
            Ok(())
        })?;
        match got == bytes {
            true => Ok(()),
            false => Err(PullError::Torn { wanted: bytes, got }),
        }
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

/// Piece `piece` of all partitions of an output.
pub(crate) fn piece_of(id: OutputId, partitions: u32, piece: u32) -> BlockId {
    BlockId {
        map_id: id.map_id.into(),
        shuffle_id: id.shuffle_id.into(),
        start_reduce: 0.into(),
        end_reduce: partitions.into(),
        piece: piece.into(),
    }
}
