//! One fetch as its server works on it.

use super::offer::{offer, ResidentSlice};
use crate::files::{Answer, FileRange, Output, Unlocated};
use crate::limits::{MAX_BUFFERS_HELD, MAX_LOOKUPS, PREFETCHED_BLOCKS, TURN_BUFFERS};
use crate::memory::{Memory, NoLease};
use crate::net::Encoded;
use crate::payer::Payer;
use faro_pool::{Account, Lease, PoolError, PAGE_BYTES};
use faro_region::{Sleep, CHUNK_BYTES};
use faro_sync::{HashMap, TableKeys};
use faro_wire::message::{BlockEntry, Fetch, FetchResponse, RemoteBuffer, ToClient, WrittenBuffer};
use faro_wire::{crc32c, BlockId, BlockStatus, OutputId, WireError};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The state of a fetch that travels between threads.
pub(crate) struct Job {
    /// Its number on the progress thread.
    pub(crate) serial: u64,
    /// The peer that it is for.
    pub(super) peer: Payer,
    blocks: Vec<BlockId>,
    /// Filled while the job waits for its files; taken when the response is made.
    pub(crate) answers: HashMap<OutputId, Answer>,
    /// Some answers are missing, because too many questions were open.
    pub(super) is_short: bool,
    /// Times that its files were looked up.
    lookups: u8,
    /// Outputs that `runs` point to.
    outputs: Vec<Arc<Output>>,
    /// Ranges that are still to be read, adjacent ones merged: (position in `outputs`, bytes).
    ranges: VecDeque<(usize, FileRange)>,
    /// The response was made.
    prepared: bool,
    /// The response, until a turn takes it along.
    response: Option<Encoded>,
    /// Never send READ_OFFER.
    writes_only: bool,
    /// Sum of `runs`.
    remaining: u64,
    buffers: VecDeque<RemoteBuffer>,
    /// Number of the first one of `buffers` among all of the request.
    next_buffer: u32,
    /// Account of the bytes on their way to the peer.
    account: Arc<Account>,
    /// For the next buffers, in order. A turn that has none takes memory of the arena only if it `may_lease`.
    reserved: VecDeque<Lease>,
    /// A turn may take memory of the arena: none waits for it.
    pub(super) may_lease: bool,
    /// For the counters, once all is posted.
    pub(crate) served: Served,
}

/// Result of a finished job: what it has sent.
#[derive(Default, Clone, Copy)]
pub(crate) struct Served {
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
    pub(crate) refused: u64,
}

/// A lease filled for one buffer of the client.
pub(crate) struct FilledBuffer {
    pub(crate) lease: Arc<Lease>,
    pub(crate) target: RemoteBuffer,
    pub(crate) written: WrittenBuffer,
}

/// Result of a turn.
pub(crate) enum JobTurn {
    Filled {
        /// `FETCH_RESPONSE`, on the first turn.
        response: Option<Encoded>,
        filled: Vec<FilledBuffer>,
        /// These are the last bytes.
        last: bool,
        /// True if it could continue with more memory.
        starved: bool,
    },
    /// All of it is in the chunk cache: the client is to read it.
    Offered {
        response: Encoded,
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

/// Reason why no response can be made now.
enum NotNow {
    Cold,
    Replaced,
}

/// Bytes that were promised cannot be read.
struct Unread {
    /// True if the file of these blocks is another one by now, or gone.
    replaced: bool,
    detail: String,
}

impl Job {
    /// # Errors
    /// A buffer that no client of this version would offer.
    pub(crate) fn new(
        serial: u64,
        peer: Payer,
        account: Arc<Account>,
        fetch: Fetch,
    ) -> Result<Self, WireError> {
        let mut job = Self {
            serial,
            peer,
            blocks: fetch.blocks,
            answers: HashMap::default(),
            is_short: false,
            lookups: 0,
            outputs: Vec::new(),
            ranges: VecDeque::new(),
            prepared: false,
            response: None,
            writes_only: fetch.writes_only,
            remaining: 0,
            buffers: VecDeque::new(),
            next_buffer: 0,
            account,
            reserved: VecDeque::new(),
            may_lease: false,
            served: Served::default(),
        };
        job.add_buffers(fetch.buffers)?;
        Ok(job)
    }

    /// # Errors
    /// See `new`; and more buffers than are kept.
    pub(crate) fn add_buffers(&mut self, buffers: Vec<RemoteBuffer>) -> Result<(), WireError> {
        check_buffers(&buffers)?;
        let got = (self.buffers.len() + buffers.len()) as u64;
        if got > MAX_BUFFERS_HELD as u64 {
            let limit = MAX_BUFFERS_HELD as u64;
            return Err(WireError::TooLarge {
                what: "buffers of a request",
                got,
                limit,
            });
        }
        self.buffers.extend(buffers);
        Ok(())
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
        !self.prepared || (self.remaining > 0 && !self.buffers.is_empty())
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
        let mut remaining = self.remaining;
        let mut lengths = Vec::with_capacity(TURN_BUFFERS);
        for target in self.buffers.iter().take(TURN_BUFFERS) {
            let length = remaining.min(u64::from(target.length.get()));
            remaining -= length;
            if length > 0 {
                lengths.push(length as usize);
            }
        }
        for length in lengths.into_iter().skip(self.reserved.len()) {
            match memory.try_lease_for(length, &self.account) {
                Ok(lease) => self.reserved.push_back(lease),
                Err(_) if !self.reserved.is_empty() => break,
                Err(none) => return Err(none),
            }
        }
        Ok(())
    }

    /// Leases memory for the next buffer.
    fn lease(&mut self, length: usize, memory: &Memory) -> Result<Option<Lease>, PoolError> {
        let reserved = self.reserved.pop_front();
        if let Some(lease) = reserved.filter(|lease| lease.capacity() >= length) {
            return Ok(Some(lease));
        }
        if !self.may_lease {
            return Ok(None);
        }
        match memory.try_lease_for(length, &self.account) {
            Ok(lease) => Ok(Some(lease)),
            Err(NoLease::HasItsShare | NoLease::Arena(PoolError::Exhausted { .. })) => Ok(None),
            Err(NoLease::Arena(error)) => Err(error),
        }
    }

    /// Returns the number of bytes that are not in a lease yet; it is known after the response is
    /// made.
    pub(crate) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Makes the response when all answers are in. Returns the end of the turn if it ends here,
    /// because offsets are not in memory or files were replaced.
    pub(crate) fn prepare(&mut self, sleep: Sleep) -> Option<JobTurn> {
        if self.prepared {
            return None;
        }
        match self.make_response(sleep) {
            Ok(response) => {
                self.prepared = true;
                self.response = Some(response);
                None
            }
            Err(NotNow::Cold) => Some(JobTurn::Cold),
            Err(NotNow::Replaced) => Some(self.look_up_again(Vec::new())),
        }
    }

    /// Makes the job write, because chunks could not be exposed to the client.
    pub(crate) fn write_instead(&mut self, response: Encoded) {
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
    /// filled leases.
    pub(crate) fn turn(&mut self, memory: &Memory, sleep: Sleep) -> JobTurn {
        if let Some(turn) = self.prepare(sleep) {
            return turn;
        }
        if let Some(response) = self.response.take_if(|_| !self.writes_only) {
            match offer(memory, &self.outputs, &self.ranges, self.remaining, sleep) {
                Some(slices) => return JobTurn::Offered { response, slices },
                None => self.write_instead(response),
            }
        }
        let mut filled = Vec::with_capacity(TURN_BUFFERS.min(self.buffers.len()));
        let mut starved = false;
        while self.remaining > 0 && filled.len() < TURN_BUFFERS {
            let Some(target) = self.buffers.front().copied() else {
                break;
            };
            let length = self.remaining.min(u64::from(target.length.get())) as usize;
            let mut lease = match self.lease(length, memory) {
                Ok(Some(lease)) => lease,
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
            let bytes = &mut lease.bytes_mut()[..length];
            match self.fill(bytes, memory, sleep) {
                Ok(true) => {}
                Ok(false) if filled.is_empty() => {
                    self.reserved.push_front(lease);
                    return JobTurn::Cold;
                }
                Ok(false) => break,
                // Nothing was sent yet: restart with the new files.
                Err(Unread { replaced: true, .. }) if self.response.is_some() => {
                    return self.look_up_again(filled);
                }
                Err(Unread { detail, .. }) => return JobTurn::Broken { detail },
            }
            let written = WrittenBuffer {
                buffer: self.next_buffer.into(),
                length: (length as u32).into(),
                crc: crc32c(bytes).into(),
                reserved: 0.into(),
            };
            self.buffers.pop_front();
            self.next_buffer = self.next_buffer.wrapping_add(1);
            filled.push(FilledBuffer {
                lease: Arc::new(lease),
                target,
                written,
            });
        }
        self.reserved.clear();
        JobTurn::Filled {
            response: self.response.take(),
            filled,
            last: self.remaining == 0,
            starved,
        }
    }

    /// Turns blocks into entries and ranges; adjacent blocks of one file become one range. An error
    /// leaves the job as it was.
    fn make_response(&mut self, sleep: Sleep) -> Result<Encoded, NotNow> {
        let mut positions: HashMap<OutputId, usize> =
            HashMap::with_capacity_and_hasher(self.answers.len(), TableKeys::default());
        let mut outputs: Vec<Arc<Output>> = Vec::new();
        let mut ranges: VecDeque<(usize, FileRange)> = VecDeque::new();
        let mut served = Served::default();
        let mut entries = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let id = block.output();
            let located = match self.answers.get(&id) {
                Some(Ok(output)) => output
                    .locate(block.start_reduce.get(), block.end_reduce.get(), sleep)
                    .map(|range| (output, range.of(block))),
                Some(Err(status)) => Err(Unlocated::Status(*status)),
                None => Err(Unlocated::Status(BlockStatus::UnknownOutput)),
            };
            let (output, range) = match located {
                Ok(found) => found,
                Err(Unlocated::Status(status)) => {
                    served.refused += 1;
                    entries.push(BlockEntry::missing(status));
                    continue;
                }
                Err(Unlocated::Cold) => return Err(NotNow::Cold),
                Err(Unlocated::Replaced) => return Err(NotNow::Replaced),
            };
            served.blocks += 1;
            served.bytes += range.length;
            entries.push(BlockEntry::found(range.length));
            if range.length == 0 {
                continue;
            }
            let position = *positions.entry(id).or_insert_with(|| {
                outputs.push(Arc::clone(output));
                outputs.len() - 1
            });
            match ranges.back_mut() {
                Some((at, last))
                    if *at == position && last.offset + last.length == range.offset =>
                {
                    last.length += range.length;
                }
                _ => ranges.push_back((position, range)),
            }
        }
        self.answers.clear();
        self.remaining = served.bytes;
        (self.outputs, self.ranges, self.served) = (outputs, ranges, served);
        Ok(ToClient::FetchResponse(FetchResponse { blocks: entries }).into())
    }

    /// Restarts the job with a look-up, because files were replaced or deleted before anything was
    /// sent. The buffers of `filled` are unused again.
    fn look_up_again(&mut self, filled: Vec<FilledBuffer>) -> JobTurn {
        self.lookups += 1;
        // Java may take long to answer.
        self.reserved.clear();
        if self.lookups >= MAX_LOOKUPS {
            let detail =
                format!("map outputs were replaced {MAX_LOOKUPS} times during one request");
            return JobTurn::Broken { detail };
        }
        self.next_buffer = self.next_buffer.wrapping_sub(filled.len() as u32);
        for buffer in filled.into_iter().rev() {
            self.buffers.push_front(buffer.target);
        }
        // If one output is gone, others may be too: all are checked now, instead of one in each
        // turn.
        let located = self.outputs.drain(..);
        let answered = self.answers.drain().filter_map(|(_, answer)| answer.ok());
        for output in located.chain(answered) {
            let _ = output.check_paths();
        }
        self.ranges.clear();
        self.is_short = false;
        (self.prepared, self.response) = (false, None);
        (self.remaining, self.served) = (0, Served::default());
        JobTurn::Cold
    }

    /// Reads the next `bytes.len()` bytes of the stream. Returns false, and counts none as read, if
    /// not all of them are in memory.
    fn fill(&mut self, bytes: &mut [u8], memory: &Memory, sleep: Sleep) -> Result<bool, Unread> {
        let mut done = 0;
        for (position, range) in &self.ranges {
            let length = range.length.min((bytes.len() - done) as u64) as usize;
            let piece = &mut bytes[done..done + length];
            let output = &self.outputs[*position];
            let read = output.read(&memory.cache, range.offset, piece, sleep);
            let got = read.map_err(|error| Unread {
                replaced: output.is_replaced(),
                detail: format!(
                    "{length} bytes at {} of a map output: {error}",
                    range.offset
                ),
            })?;
            if got < length {
                return Ok(false);
            }
            done += length;
            if done == bytes.len() {
                break;
            }
        }
        if done < bytes.len() {
            return Err(Unread {
                replaced: false,
                detail: "the response is longer than its ranges".to_owned(),
            });
        }
        self.consume(done as u64);
        Ok(true)
    }

    /// Counts the first `bytes` bytes of the ranges as read.
    fn consume(&mut self, mut bytes: u64) {
        self.remaining -= bytes;
        while let Some((_, range)) = self.ranges.front_mut().filter(|_| bytes > 0) {
            let length = range.length.min(bytes);
            range.offset += length;
            range.length -= length;
            bytes -= length;
            if range.length == 0 {
                self.ranges.pop_front();
            }
        }
    }
}

fn check_buffers(buffers: &[RemoteBuffer]) -> Result<(), WireError> {
    for buffer in buffers {
        let got = u64::from(buffer.length.get());
        if got == 0 {
            return Err(WireError::BadValue {
                what: "length of an offered buffer",
                got,
            });
        }
        if got > PAGE_BYTES as u64 {
            let limit = PAGE_BYTES as u64;
            return Err(WireError::TooLarge {
                what: "length of an offered buffer",
                got,
                limit,
            });
        }
    }
    Ok(())
}
