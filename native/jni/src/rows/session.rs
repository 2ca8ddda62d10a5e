//! One reader: an input and a decoder.

use super::input::{Input, Next};
use crate::memory::{HeldBytes, MemoryUse};
use crate::throw::{Failure, Outcome};
use faro_endpoint::LocalError;
use faro_rows::{Batch, Codec, RowDecoder};

/// Why `next` returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStep {
    /// The batch is full; there may be more.
    Full,
    /// The input is used up.
    Done,
    /// The files of a part are not known: resolve them and call again.
    Unresolved,
    /// A part is corrupt: it and the rest of the input are dropped.
    Corrupt,
    /// A part's file cannot be read: it and the rest of the input are dropped.
    Unreadable,
}

/// Bytes of a batch: with the decoder's other buffers it stays in a core's second cache.
pub const BATCH_BYTES: usize = 64 << 10;

pub struct Session {
    decoder: RowDecoder,
    /// Counts the native memory of this reader.
    held: HeldBytes,
    input: Input,
    /// Of the input: how many parts were decoded.
    part: u64,
    file_bytes: u64,
    /// Rows of the part that failed were in batches that were handed out.
    part_was_handed_out: bool,
    problem: String,
}

impl Session {
    pub fn new(codec: Codec) -> Outcome<Self> {
        let decoder = RowDecoder::new(codec, BATCH_BYTES)
            .map_err(|error| Failure::State(error.to_string()))?;
        Ok(Self {
            held: HeldBytes::new(MemoryUse::RowDecoders, decoder.memory_bytes()),
            decoder,
            input: Input::Empty,
            part: 0,
            file_bytes: 0,
            part_was_handed_out: false,
            problem: String::new(),
        })
    }

    /// Drops the rest of the last input; `next` decodes this one.
    pub fn start(&mut self, input: Input) {
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
            self.input = Input::Empty;
        }
        self.held
            .set(self.decoder.memory_bytes() + self.input.memory_bytes());
        step
    }

    fn decode(&mut self) -> SessionStep {
        loop {
            let full = match self.input.next() {
                Ok(Next::Bytes(bytes)) => match self.decoder.push(bytes) {
                    Ok(pushed) => {
                        self.input.take(pushed.taken);
                        pushed.full
                    }
                    Err(corruption) => {
                        return self.failed(SessionStep::Corrupt, corruption.to_string())
                    }
                },
                Ok(Next::PartEnds) => match self.decoder.end_part() {
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
                Ok(Next::Ends) => return SessionStep::Done,
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

    /// The rows that were decoded since the last call.
    pub fn hand_out(&mut self) -> Batch<'_> {
        self.decoder.turn()
    }

    /// The part under way: its position in the input.
    pub fn part(&self) -> u64 {
        self.part
    }

    /// Bytes that the last `next` read from files.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Whether rows of the part that failed were handed out, so that it cannot be decoded again.
    pub fn part_was_handed_out(&self) -> bool {
        self.part_was_handed_out
    }

    /// What the last failure was.
    pub fn problem(&self) -> String {
        self.problem.clone()
    }
}
