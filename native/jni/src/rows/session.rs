//! A session decodes the inputs of one reader.

use super::input::{NextInput, RowInput};
use crate::memory::{HeldBytes, MemoryUse};
use crate::throw::{EntryResult, Failure};
use faro_endpoint::LocalError;
use faro_rows::{Batch, Codec, RowDecoder};

/// The reason that [`RowSession::next`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStep {
    /// The batch is full, and there may be more rows.
    Full,
    /// The input is used up.
    Done,
    /// The files of a part are not known: Java must resolve them and call again.
    Unresolved,
    /// A part is corrupt: the part and the rest of the input were dropped.
    Corrupt,
    /// A part's file cannot be read: the part and the rest of the input were dropped.
    Unreadable,
}

/// Size of a batch in bytes. With the decoder's other buffers it fits in a core's level 2 cache.
pub const BATCH_BYTES: usize = 64 << 10;

pub struct RowSession {
    decoder: RowDecoder,
    /// Counts the native memory of this reader.
    held: HeldBytes,
    input: RowInput,
    /// Number of parts of the input that were decoded.
    part: u64,
    file_bytes: u64,
    /// True if rows of the part that failed were in batches that were handed out.
    part_was_handed_out: bool,
    problem: String,
}

impl RowSession {
    pub fn new(codec: Codec) -> EntryResult<Self> {
        let decoder = RowDecoder::new(codec, BATCH_BYTES)
            .map_err(|error| Failure::State(error.to_string()))?;
        Ok(Self {
            held: HeldBytes::new(MemoryUse::RowDecoders, decoder.memory_bytes()),
            decoder,
            input: RowInput::Empty,
            part: 0,
            file_bytes: 0,
            part_was_handed_out: false,
            problem: String::new(),
        })
    }

    /// Starts a new input, and drops the rest of the last one.
    pub fn start(&mut self, input: RowInput) {
        self.input = input;
        self.part = 0;
    }

    /// Decodes until the batch is full or the input ends.
    pub fn next(&mut self) -> SessionStep {
        let before = self.input.file_bytes();
        let step = self.decode();
        self.file_bytes = self.input.file_bytes() - before;
        if matches!(step, SessionStep::Corrupt | SessionStep::Unreadable) {
            self.part_was_handed_out = self.decoder.rows_handed_out() > 0;
            self.decoder.abandon_part();
            self.input = RowInput::Empty;
        }
        self.held
            .set(self.decoder.memory_bytes() + self.input.memory_bytes());
        step
    }

    fn decode(&mut self) -> SessionStep {
        loop {
            let full = match self.input.next() {
                Ok(NextInput::Bytes(bytes)) => match self.decoder.push(bytes) {
                    Ok(pushed) => {
                        self.input.take(pushed.taken);
                        pushed.full
                    }
                    Err(corruption) => {
                        return self.failed(SessionStep::Corrupt, corruption.to_string())
                    }
                },
                Ok(NextInput::PartEnds) => match self.decoder.end_part() {
                    Ok(ended) if ended.full => true,
                    Ok(_) => {
                        self.input.end_part();
                        self.part += 1;
                        false
                    }
                    Err(corruption) => {
                        return self.failed(SessionStep::Corrupt, corruption.to_string())
                    }
                },
                Ok(NextInput::Ends) => return SessionStep::Done,
                Err(LocalError::Unresolved(_)) => return SessionStep::Unresolved,
                Err(error @ (LocalError::Status { .. } | LocalError::Io { .. })) => {
                    return self.failed(SessionStep::Unreadable, error.to_string());
                }
            };
            if full {
                return SessionStep::Full;
            }
        }
    }

    fn failed(&mut self, step: SessionStep, problem: String) -> SessionStep {
        self.problem = problem;
        step
    }

    /// Hands out the rows that were decoded since the last call.
    pub fn hand_out(&mut self) -> Batch<'_> {
        self.decoder.turn()
    }

    /// Returns the current part's position in the input.
    pub fn part(&self) -> u64 {
        self.part
    }

    /// Returns the number of bytes that the last `next` read from files.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns whether rows of the part that failed were handed out, so that it cannot be decoded
    /// again.
    pub fn part_was_handed_out(&self) -> bool {
        self.part_was_handed_out
    }

    /// Returns the message of the last failure.
    pub fn problem(&self) -> String {
        self.problem.clone()
    }
}
