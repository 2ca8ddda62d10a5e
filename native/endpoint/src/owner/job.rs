//! One fetch as its owner works on it.

use super::locate::{locate, Place};
use crate::config::limits::{MAX_CREDITS_HELD, PREPARED_BLOCKS, TURN_CREDITS};
use crate::files::{Answer, Output, Run};
use crate::memory::Memory;
use faro_pool::{Lease, PoolError, Purpose, PAGE_BYTES};
use faro_region::{Sleep, CHUNK_BYTES};
use faro_wire::message::{BlockEntry, Fetch, FetchResponse, RemoteBuffer, WrittenBuffer};
use faro_wire::{crc32c, BlockId, BlockStatus, OutputId, WireError};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// See the module's comment.
pub(crate) struct Job {
    /// The progress thread's name for it.
    pub(crate) serial: u64,
    blocks: Vec<BlockId>,
    /// Filled while the job is parked; taken when the layout is made.
    pub(crate) answers: HashMap<OutputId, Answer>,
    /// Outputs that `runs` point to.
    outputs: Vec<Arc<Output>>,
    /// What is still to be read, adjacent runs merged: (position in `outputs`, bytes).
    runs: VecDeque<(usize, Run)>,
    /// The layout was made.
    laid_out: bool,
    /// The layout's body, until a turn takes it along.
    layout: Option<Vec<u8>>,
    /// Where the bytes lie is not to be told.
    push_only: bool,
    /// Sum of `runs`.
    remaining: u64,
    credits: VecDeque<RemoteBuffer>,
    /// Position of `credits`' first among all credits of the request.
    next_credit: u32,
    /// For the counters, once all is out.
    pub(crate) served: Served,
}

/// What a finished job gave.
#[derive(Default, Clone, Copy)]
pub(crate) struct Served {
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
    pub(crate) refused: u64,
}

/// A frame filled for one credit.
pub(crate) struct Filled {
    pub(crate) lease: Arc<Lease>,
    pub(crate) target: RemoteBuffer,
    pub(crate) chunk: WrittenBuffer,
}

/// What a turn gave.
pub(crate) enum Turn {
    Staged {
        /// The body of `FETCH_RESPONSE`, on the first turn.
        layout: Option<Vec<u8>>,
        filled: Vec<Filled>,
        /// All bytes are staged.
        last: bool,
        /// The arena had no frame: try again when one comes back.
        starved: bool,
    },
    /// All of it is resident: the reader takes it by itself.
    ReadOffer { layout: Vec<u8>, places: Vec<Place> },
    /// The next bytes are not in memory, and the turn may not sleep. It did nothing.
    Cold,
    /// Bytes that were promised cannot be read.
    Broken { detail: String },
}

impl Job {
    /// # Errors
    /// A credit that no reader of this version would give.
    pub(crate) fn new(serial: u64, fetch: Fetch) -> Result<Self, WireError> {
        let mut job = Self {
            serial,
            blocks: fetch.blocks,
            answers: HashMap::new(),
            outputs: Vec::new(),
            runs: VecDeque::new(),
            laid_out: false,
            layout: None,
            push_only: fetch.writes_only,
            remaining: 0,
            credits: VecDeque::new(),
            next_credit: 0,
            served: Served::default(),
        };
        job.add_credits(fetch.buffers)?;
        Ok(job)
    }

    /// # Errors
    /// See `new`; and more credits than are held.
    pub(crate) fn add_credits(&mut self, credits: Vec<RemoteBuffer>) -> Result<(), WireError> {
        check_credits(&credits)?;
        let got = (self.credits.len() + credits.len()) as u64;
        if got > MAX_CREDITS_HELD as u64 {
            let limit = MAX_CREDITS_HELD as u64;
            return Err(WireError::TooLarge {
                what: "credits of a request",
                got,
                limit,
            });
        }
        self.credits.extend(credits);
        Ok(())
    }

    pub(crate) fn needs_layout(&self) -> bool {
        !self.laid_out
    }

    /// There is something a turn could do.
    pub(crate) fn can_turn(&self) -> bool {
        !self.laid_out || (self.remaining > 0 && !self.credits.is_empty())
    }

    /// Blocks that were asked for.
    pub(crate) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// The distinct outputs of the request.
    pub(crate) fn wanted(&self) -> Vec<OutputId> {
        let mut ids: Vec<OutputId> = self.blocks.iter().map(BlockId::output).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Bytes that are not staged yet; all of them once the layout is made.
    pub(crate) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Makes the layout, when all answers are in.
    pub(crate) fn lay_out(&mut self) {
        if !self.laid_out {
            self.laid_out = true;
            self.layout = Some(self.make_layout());
        }
    }

    /// What was located could not be shown to the reader: it is to be pushed.
    pub(crate) fn push_instead(&mut self, layout: Vec<u8>) {
        self.push_only = true;
        self.layout = Some(layout);
    }

    /// The chunks of regions that its first blocks lie in, as far as `find` knows the outputs.
    pub(crate) fn chunks(
        &self,
        find: impl Fn(OutputId) -> Option<Arc<Output>>,
    ) -> Vec<(Arc<Output>, Range<u64>)> {
        let located = self
            .blocks
            .iter()
            .take(PREPARED_BLOCKS)
            .filter_map(|block| {
                let output = find(block.output())?;
                let run = output.locate(block.start_reduce.get(), block.end_reduce.get());
                let run = run.ok().filter(|run| run.length > 0)?;
                let end = (run.offset + run.length).div_ceil(CHUNK_BYTES);
                Some((output, run.offset / CHUNK_BYTES..end))
            });
        located.collect()
    }

    /// One turn: where the bytes lie, if they can be read there, or up to `TURN_CREDITS` filled
    /// frames.
    pub(crate) fn turn(&mut self, memory: &Memory, sleep: Sleep) -> Turn {
        self.lay_out();
        if let Some(layout) = self.layout.take_if(|_| !self.push_only) {
            match locate(memory, &self.outputs, &self.runs, self.remaining, sleep) {
                Some(places) => return Turn::ReadOffer { layout, places },
                None => self.push_instead(layout),
            }
        }
        let mut filled = Vec::with_capacity(TURN_CREDITS.min(self.credits.len()));
        let mut starved = false;
        while self.remaining > 0 && filled.len() < TURN_CREDITS {
            let Some(target) = self.credits.front().copied() else {
                break;
            };
            let length = self.remaining.min(u64::from(target.length.get())) as usize;
            let mut lease = match memory.try_lease(length, Purpose::Serve) {
                Ok(lease) => lease,
                Err(PoolError::Exhausted { .. }) => {
                    starved = true;
                    break;
                }
                Err(error) => {
                    return Turn::Broken {
                        detail: error.to_string(),
                    }
                }
            };
            let bytes = &mut lease.bytes_mut()[..length];
            match self.fill(bytes, memory, sleep) {
                Ok(true) => {}
                Ok(false) if filled.is_empty() => return Turn::Cold,
                Ok(false) => break,
                Err(detail) => return Turn::Broken { detail },
            }
            let chunk = WrittenBuffer {
                buffer: self.next_credit.into(),
                length: (length as u32).into(),
                crc: crc32c(bytes).into(),
                reserved: 0.into(),
            };
            self.credits.pop_front();
            self.next_credit = self.next_credit.wrapping_add(1);
            filled.push(Filled {
                lease: Arc::new(lease),
                target,
                chunk,
            });
        }
        Turn::Staged {
            layout: self.layout.take(),
            filled,
            last: self.remaining == 0,
            starved,
        }
    }

    /// Turns blocks into entries and runs; adjacent blocks of one file become one run.
    fn make_layout(&mut self) -> Vec<u8> {
        let answers = std::mem::take(&mut self.answers);
        let mut positions: HashMap<OutputId, usize> = HashMap::with_capacity(answers.len());
        let mut entries = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let id = block.output();
            let located = match answers.get(&id) {
                Some(Ok(output)) => output
                    .locate(block.start_reduce.get(), block.end_reduce.get())
                    .map(|run| (output, run)),
                Some(Err(status)) => Err(*status),
                None => Err(BlockStatus::UnknownOutput),
            };
            let (output, run) = match located {
                Ok(found) => found,
                Err(status) => {
                    self.served.refused += 1;
                    entries.push(BlockEntry::missing(status));
                    continue;
                }
            };
            self.served.blocks += 1;
            self.served.bytes += run.length;
            entries.push(BlockEntry::found(run.length));
            if run.length == 0 {
                continue;
            }
            let position = *positions.entry(id).or_insert_with(|| {
                self.outputs.push(Arc::clone(output));
                self.outputs.len() - 1
            });
            match self.runs.back_mut() {
                Some((at, last)) if *at == position && last.offset + last.length == run.offset => {
                    last.length += run.length;
                }
                _ => self.runs.push_back((position, run)),
            }
        }
        self.remaining = self.served.bytes;
        FetchResponse { blocks: entries }.encode()
    }

    /// Reads the next `bytes.len()` bytes of the stream; `false`: not all of them are in memory, and
    /// none counts as read.
    fn fill(&mut self, bytes: &mut [u8], memory: &Memory, sleep: Sleep) -> Result<bool, String> {
        let mut done = 0;
        for (position, run) in &self.runs {
            let length = run.length.min((bytes.len() - done) as u64) as usize;
            let piece = &mut bytes[done..done + length];
            let got = self.outputs[*position]
                .read(&memory.cache, run.offset, piece, sleep)
                .map_err(|error| {
                    format!("{length} bytes at {} of a map output: {error}", run.offset)
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
            return Err("the layout is longer than its runs".to_owned());
        }
        self.consume(done as u64);
        Ok(true)
    }

    /// The first `bytes` of the runs are read.
    fn consume(&mut self, mut bytes: u64) {
        self.remaining -= bytes;
        while let Some((_, run)) = self.runs.front_mut().filter(|_| bytes > 0) {
            let length = run.length.min(bytes);
            run.offset += length;
            run.length -= length;
            bytes -= length;
            if run.length == 0 {
                self.runs.pop_front();
            }
        }
    }
}

fn check_credits(credits: &[RemoteBuffer]) -> Result<(), WireError> {
    for credit in credits {
        let got = u64::from(credit.length.get());
        if got == 0 {
            return Err(WireError::BadValue {
                what: "length of a credit",
                got,
            });
        }
        if got > PAGE_BYTES as u64 {
            let limit = PAGE_BYTES as u64;
            return Err(WireError::TooLarge {
                what: "length of a credit",
                got,
                limit,
            });
        }
    }
    Ok(())
}
