//! One fetch as its server works on it.

use super::content::{Content, PlannedPart, Unread};
use super::offer::{offer, ResidentSlice};
use super::remote_buffers::{FilledBuffer, RemoteBuffers};
use super::response::{respond, JobResult, NotNow};
use super::turn_memory::{TurnBuffer, TurnMemory};
use crate::files::OutputAnswer;
use crate::limits::{MAX_LOOKUPS, PIPED_MEAN_BYTES, TURN_BUFFERS};
use crate::memory::{Memory, NoLease};
use crate::net::EncodedMessage;
use crate::quota_key::QuotaKey;
use faro_fabric::{WritePart, WriteSource, WriteSources};
use faro_pool::Account;
use faro_region::Sleep;
use faro_sync::HashMap;
use faro_wire::message::{Fetch, RemoteBuffer};
use faro_wire::{crc32c_of, BlockId, OutputId, WireError};
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
    /// The reader verifies the bytes.
    reader_verifies: bool,
    /// What writes to the client may send.
    sources: WriteSources,
    /// The last turn found all of its bytes in the chunk cache, so the next one begins without memory.
    needs_no_memory: bool,
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
    /// With the checksum; what the reader verifies and this process need not touch has none.
    Filled(WriteSource, Option<u32>),
    /// There is no memory for them.
    Starved,
    /// The bytes are not in memory.
    Cold,
    /// The bytes cannot be sent by a pipe.
    NoPipe,
}

impl ServeJob {
    /// # Errors
    /// A buffer that no client of this version would offer.
    pub(crate) fn new(
        serial: u64,
        peer: QuotaKey,
        account: Arc<Account>,
        fetch: Fetch,
        sources: WriteSources,
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
            reader_verifies: fetch.reader_verifies,
            sources,
            needs_no_memory: false,
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

    /// Leases memory for the next turn, as much as there is now, if it is likely to need some.
    ///
    /// # Errors
    /// There is none at all.
    pub(super) fn reserve(&mut self, memory: &Memory) -> Result<(), NoLease> {
        if self.needs_no_memory {
            return Ok(());
        }
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
                let may_pipe = self.reader_verifies && self.sources.pipes;
                let pipes = may_pipe && self.content.mean_bytes() >= PIPED_MEAN_BYTES;
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

    /// Runs one turn: an offer to read, if the chunk cache has all of it, or up to `TURN_BUFFERS`
    /// filled buffers.
    pub(crate) fn turn(&mut self, memory: &Memory, sleep: Sleep) -> JobTurn {
        if let Some(turn) = self.prepare(sleep) {
            return turn;
        }
        let offers = memory.regions.offers_reads() && !self.writes_only;
        if let Some(response) = self.response.take_if(|_| offers) {
            match offer(memory, &self.content, sleep) {
                Some(slices) => return JobTurn::Offered { response, slices },
                None => self.write_instead(response),
            }
        }
        self.needs_no_memory = true;
        let mut filled = Vec::with_capacity(TURN_BUFFERS.min(self.buffers.len()));
        let mut starved = false;
        while self.remaining() > 0 && filled.len() < TURN_BUFFERS {
            let Some(length) = self.buffers.next_length() else {
                break;
            };
            let length = self.remaining().min(length) as usize;
            let (source, sum) = match self.fill(length, memory, sleep) {
                Ok(FillResult::Filled(source, sum)) => (source, sum),
                Ok(FillResult::Starved) => {
                    starved = true;
                    break;
                }
                Ok(FillResult::NoPipe) => {
                    self.memory.may_pipe(false);
                    continue;
                }
                Ok(FillResult::Cold) if filled.is_empty() => return JobTurn::Cold,
                Ok(FillResult::Cold) => break,
                // Nothing was sent yet: restart with the new files.
                Err(Unread { replaced: true, .. }) if self.response.is_some() => {
                    return self.look_up_again(filled);
                }
                Err(Unread { detail, .. }) => return JobTurn::Broken { detail },
            };
            filled.extend(self.buffers.fill(source, sum));
        }
        self.memory.clear();
        JobTurn::Filled {
            response: self.response.take(),
            filled,
            last: self.remaining() == 0,
            starved,
        }
    }

    /// Takes the next `length` bytes: from a pipe, or from pages of the chunk cache and, what is not there, through a
    /// lease.
    fn fill(&mut self, length: usize, memory: &Memory, sleep: Sleep) -> Result<FillResult, Unread> {
        let planned = match self.memory.pipes() {
            true => vec![PlannedPart::Copied(length)],
            false => {
                let (max, account) = (self.sources.parts, self.memory.account());
                self.content.plan(length, max, memory, account)
            }
        };
        let mut lease = None;
        let copied = planned.iter().map(PlannedPart::copied).sum();
        if copied > 0 {
            self.needs_no_memory = false;
            match self.memory.take(copied, memory, sleep) {
                Ok(Some(TurnBuffer::Pipe(mut pipe))) => {
                    return Ok(match self.content.pipe(&mut pipe, length)? {
                        true => FillResult::Filled(WriteSource::Pipe(pipe), None),
                        false => FillResult::NoPipe,
                    })
                }
                Ok(Some(TurnBuffer::Lease(found))) => lease = Some(found),
                Ok(None) => return Ok(FillResult::Starved),
                Err(error) => {
                    return Err(Unread {
                        replaced: false,
                        detail: error.to_string(),
                    })
                }
            }
        }
        let taken = self.content.take(planned, &mut lease, memory, sleep)?;
        let Some(parts) = taken else {
            self.memory.keep(lease);
            return Ok(FillResult::Cold);
        };
        let is_verified = self.reader_verifies && self.sources.by_device;
        let sum = (!is_verified).then(|| crc32c_of(parts.iter().map(WritePart::bytes)));
        Ok(FillResult::Filled(WriteSource::Parts(parts), sum))
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
