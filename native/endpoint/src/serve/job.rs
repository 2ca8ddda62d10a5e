//! One fetch as its server works on it.

use super::content::{Content, Unread};
use super::offer::{offer, ResidentSlice};
use super::remote_buffers::{FilledBuffer, FilledSource, RemoteBuffers};
use super::response::{respond, JobResult, NotNow};
use super::turn_memory::{TurnBuffer, TurnMemory};
use crate::files::{Output, OutputAnswer};
use crate::limits::{MAX_LOOKUPS, PIPED_MEAN_BYTES, PREFETCHED_BLOCKS, TURN_BUFFERS};
use crate::memory::{Memory, NoLease};
use crate::net::EncodedMessage;
use crate::quota_key::QuotaKey;
use faro_pool::{Account, Lease};
use faro_region::{Sleep, CHUNK_BYTES};
use faro_sync::HashMap;
use faro_wire::message::{Fetch, RemoteBuffer};
use faro_wire::{crc32c, BlockId, OutputId, WireError};
use std::ops::Range;
use std::sync::Arc;

/// The state of a fetch that travels between threads.
pub(crate) struct ServeJob {
    /// Its number on the progress thread.
    pub(crate) serial: u64,
    /// The peer that it is for.
    pub(super) peer: QuotaKey,
    blocks: Vec<BlockId>,
    /// Filled while the job waits for its files; taken when the response is made.
    pub(crate) answers: HashMap<OutputId, OutputAnswer>,
    /// Some answers are missing, because too many questions were open.
    pub(super) is_short: bool,
    /// Times that its files were looked up.
    lookups: u8,
    /// The response was made.
    prepared: bool,
    /// The response, until a turn takes it along.
    response: Option<EncodedMessage>,
    /// Never send READ_OFFER.
    writes_only: bool,
    /// The reader verifies the bytes, and they may be sent from the page cache.
    may_pipe: bool,
    content: Content,
    buffers: RemoteBuffers,
    memory: TurnMemory,
    /// What the counters get once all is posted.
    pub(crate) served: JobResult,
}

/// Result of a turn.
pub(crate) enum JobTurn {
    Filled {
        /// `FETCH_RESPONSE`, on the first turn.
        response: Option<EncodedMessage>,
        filled: Vec<FilledBuffer>,
        /// These are the last bytes.
        last: bool,
        /// True if it could continue with more memory.
        starved: bool,
    },
    /// All of it is in the chunk cache: the client is to read it.
    Offered {
        response: EncodedMessage,
        slices: Vec<ResidentSlice>,
    },
    /// It did nothing. The next bytes are not in memory, and the turn may not sleep; or files were
    /// replaced, and the job has to look them up again (`wants_files`).
    Cold,
    /// It did nothing: too many questions for map outputs are open. Nothing was sent; its client is to ask again.
    Busy,
    /// Bytes that were promised cannot be read.
    Broken { detail: String },
}

/// Result of filling a place.
enum FillResult {
    /// With the checksum of a lease's bytes; those of a pipe have none.
    Filled(FilledSource, Option<u32>),
    /// The bytes are not in memory.
    Cold(Lease),
    /// The bytes cannot be sent by a pipe.
    NoPipe,
}

impl ServeJob {
    /// `takes_pipes`: the client's connection takes bytes from the page cache.
    ///
    /// # Errors
    /// A buffer that no client of this version would offer.
    pub(crate) fn new(
        serial: u64,
        peer: QuotaKey,
        account: Arc<Account>,
        fetch: Fetch,
        takes_pipes: bool,
    ) -> Result<Self, WireError> {
        let mut job = Self {
            serial,
            peer,
            blocks: fetch.blocks,
            answers: HashMap::default(),
            is_short: false,
            lookups: 0,
            prepared: false,
            response: None,
            writes_only: fetch.writes_only,
            may_pipe: fetch.reader_verifies && takes_pipes,
            content: Content::default(),
            buffers: RemoteBuffers::default(),
            memory: TurnMemory::new(account),
            served: JobResult::default(),
        };
        job.add_buffers(fetch.buffers)?;
        Ok(job)
    }

    /// # Errors
    /// See `new`; and more buffers than are kept.
    pub(crate) fn add_buffers(&mut self, buffers: Vec<RemoteBuffer>) -> Result<(), WireError> {
        self.buffers.add(buffers)
    }

    /// Allows or forbids a turn to take memory of the arena beyond what is reserved.
    pub(super) fn may_lease(&mut self, may: bool) {
        self.memory.may_lease(may);
    }

    pub(crate) fn is_new(&self) -> bool {
        !self.prepared
    }

    /// Returns whether its files must be looked up before a turn.
    pub(crate) fn wants_files(&self) -> bool {
        !self.prepared && (self.answers.is_empty() || self.is_short)
    }

    /// Returns whether a turn would have something to do.
    pub(crate) fn can_turn(&self) -> bool {
        !self.prepared || (self.remaining() > 0 && !self.buffers.is_empty())
    }

    /// Returns the number of blocks that were asked for.
    pub(crate) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the distinct outputs of the request.
    pub(crate) fn wanted(&self) -> Vec<OutputId> {
        let mut ids: Vec<OutputId> = self.blocks.iter().map(BlockId::output).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Returns the outputs of the request without an answer.
    pub(super) fn missing(&self) -> Vec<OutputId> {
        let mut ids = self.wanted();
        ids.retain(|id| !self.answers.contains_key(id));
        ids
    }

    /// Leases memory for the next turn, as much as there is now.
    ///
    /// # Errors
    /// There is none at all.
    pub(super) fn reserve(&mut self, memory: &Memory) -> Result<(), NoLease> {
        let lengths = self.buffers.lengths(self.remaining());
        self.memory.reserve(lengths, memory)
    }

    /// Returns the number of bytes that are not in a lease yet; it is known after the response is
    /// made.
    pub(crate) fn remaining(&self) -> u64 {
        self.content.remaining()
    }

    /// Makes the response when all answers are in. Returns the end of the turn if it ends here,
    /// because offsets are not in memory or files were replaced.
    pub(crate) fn prepare(&mut self, sleep: Sleep) -> Option<JobTurn> {
        if self.prepared {
            return None;
        }
        match respond(&self.blocks, &self.answers, sleep) {
            Ok(response) => {
                self.answers.clear();
                self.prepared = true;
                self.response = Some(response.encoded);
                (self.content, self.served) = (response.content, response.served);
                let pipes = self.may_pipe && self.content.mean_bytes() >= PIPED_MEAN_BYTES;
                // Cheaper than to let the client read pages.
                self.writes_only |= pipes;
                self.memory.may_pipe(pipes);
                None
            }
            Err(NotNow::Cold) => Some(JobTurn::Cold),
            Err(NotNow::Replaced) => Some(self.look_up_again(Vec::new())),
        }
    }

    /// Makes the job write, because chunks could not be exposed to the client.
    pub(crate) fn write_instead(&mut self, response: EncodedMessage) {
        self.writes_only = true;
        self.response = Some(response);
    }

    /// Returns the chunks of regions that hold its first blocks, for outputs that `find` knows.
    pub(crate) fn chunks(
        &self,
        find: impl Fn(OutputId) -> Option<Arc<Output>>,
    ) -> Vec<(Arc<Output>, Range<u64>)> {
        let located = self
            .blocks
            .iter()
            .take(PREFETCHED_BLOCKS)
            .filter_map(|block| {
                let output = find(block.output())?;
                let (start, end) = (block.start_reduce.get(), block.end_reduce.get());
                let range = output.locate(start, end, Sleep::Never);
                let range = range.map(|range| range.of(block));
                let range = range.ok().filter(|range| range.length > 0)?;
                let end = (range.offset + range.length).div_ceil(CHUNK_BYTES);
                Some((output, range.offset / CHUNK_BYTES..end))
            });
        located.collect()
    }

    /// Runs one turn: an offer to read, if the chunk cache has all of it, or up to `TURN_BUFFERS`
    /// filled buffers.
    pub(crate) fn turn(&mut self, memory: &Memory, sleep: Sleep) -> JobTurn {
        if let Some(turn) = self.prepare(sleep) {
            return turn;
        }
        if let Some(response) = self.response.take_if(|_| !self.writes_only) {
            match offer(memory, &self.content, sleep) {
                Some(slices) => return JobTurn::Offered { response, slices },
                None => self.write_instead(response),
            }
        }
        let mut filled = Vec::with_capacity(TURN_BUFFERS.min(self.buffers.len()));
        let mut starved = false;
        while self.remaining() > 0 && filled.len() < TURN_BUFFERS {
            let Some(length) = self.buffers.next_length() else {
                break;
            };
            let length = self.remaining().min(length) as usize;
            let place = match self.memory.take(length, memory, sleep) {
                Ok(Some(place)) => place,
                Ok(None) => {
                    starved = true;
                    break;
                }
                Err(error) => {
                    return JobTurn::Broken {
                        detail: error.to_string(),
                    }
                }
            };
            let (source, sum) = match self.fill(place, length, memory, sleep) {
                Ok(FillResult::Filled(source, sum)) => (source, sum),
                Ok(FillResult::NoPipe) => {
                    self.memory.may_pipe(false);
                    continue;
                }
                Ok(FillResult::Cold(lease)) if filled.is_empty() => {
                    self.memory.keep(lease);
                    return JobTurn::Cold;
                }
                Ok(FillResult::Cold(_)) => break,
                // Nothing was sent yet: restart with the new files.
                Err(Unread { replaced: true, .. }) if self.response.is_some() => {
                    return self.look_up_again(filled);
                }
                Err(Unread { detail, .. }) => return JobTurn::Broken { detail },
            };
            filled.extend(self.buffers.fill(source, length, sum));
        }
        self.memory.clear();
        JobTurn::Filled {
            response: self.response.take(),
            filled,
            last: self.remaining() == 0,
            starved,
        }
    }

    /// Fills a place with the next `length` bytes.
    fn fill(
        &mut self,
        place: TurnBuffer,
        length: usize,
        memory: &Memory,
        sleep: Sleep,
    ) -> Result<FillResult, Unread> {
        match place {
            TurnBuffer::Pipe(mut pipe) => Ok(match self.content.pipe(&mut pipe, length)? {
                true => FillResult::Filled(FilledSource::Pipe(pipe), None),
                false => FillResult::NoPipe,
            }),
            TurnBuffer::Lease(mut lease) => {
                let bytes = &mut lease.bytes_mut()[..length];
                if !self.content.read(bytes, memory, sleep)? {
                    return Ok(FillResult::Cold(lease));
                }
                let sum = Some(crc32c(bytes));
                let source = FilledSource::Lease(Arc::new(lease));
                Ok(FillResult::Filled(source, sum))
            }
        }
    }

    /// Restarts the job with a look-up, because files were replaced or deleted before anything was
    /// sent. The buffers of `filled` are unused again.
    fn look_up_again(&mut self, filled: Vec<FilledBuffer>) -> JobTurn {
        self.lookups += 1;
        // Java may take long to answer.
        self.memory.clear();
        if self.lookups >= MAX_LOOKUPS {
            let detail =
                format!("map outputs were replaced {MAX_LOOKUPS} times during one request");
            return JobTurn::Broken { detail };
        }
        self.buffers.unfill(filled);
        // If one output is gone, others may be too: all are checked now, instead of one in each
        // turn.
        let located = self.content.take_outputs().into_iter();
        let answered = self.answers.drain().filter_map(|(_, answer)| answer.ok());
        for output in located.chain(answered) {
            let _ = output.check_paths();
        }
        self.is_short = false;
        (self.prepared, self.response) = (false, None);
        self.served = JobResult::default();
        JobTurn::Cold
    }
}

#[cfg(test)]
#[path = "job_test.rs"]
mod tests;
