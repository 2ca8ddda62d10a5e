//! One reader: an input and a decoder.

use super::input::{Input, Next};
use faro_endpoint::LocalError;
use faro_rows::{BatchView, Codec, RowDecoder};

/// Why `next` returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
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

pub struct Session {
    codec: Codec,
    decoder: RowDecoder,
    input: Input,
    /// Of the input: how many parts were decoded.
    part: u64,
    file_bytes: u64,
    /// Rows of the part that failed were in batches that were handed out.
    part_was_handed_out: bool,
    problem: String,
}

impl Session {
    pub fn new(codec: Codec, decoder: RowDecoder) -> Self {
        Self {
            codec,
            decoder,
            input: Input::Empty,
            part: 0,
            file_bytes: 0,
            part_was_handed_out: false,
            problem: String::new(),
        }
    }

    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Ready for another reader.
    pub fn reset(&mut self) {
        self.start(Input::Empty);
        self.decoder.abandon_part();
        // Drops the rows that were not handed out.
        let _ = self.decoder.turn();
    }

    /// Drops the rest of the last input; `next` decodes this one.
    pub fn start(&mut self, input: Input) {
        self.input = input;
        self.part = 0;
    }

    /// Decodes until the batch is full or the input ends.
    pub fn next(&mut self) -> Step {
        let before = self.input.file_bytes();
        let step = self.decode();
        self.file_bytes = self.input.file_bytes() - before;
        if matches!(step, Step::Corrupt | Step::Unreadable) {
            self.part_was_handed_out = self.decoder.rows_handed_out() > 0;
            self.decoder.abandon_part();
            self.input = Input::Empty;
        }
        step
    }

    fn decode(&mut self) -> Step {
        loop {
            let full = match self.input.next() {
                Ok(Next::Bytes(bytes)) => match self.decoder.push(bytes) {
                    Ok(pushed) => {
                        self.input.take(pushed.taken);
                        pushed.full
                    }
                    Err(corruption) => return self.failed(Step::Corrupt, corruption.to_string()),
                },
                Ok(Next::PartEnds) => match self.decoder.end_part() {
                    Ok(ended) if ended.full => true,
                    Ok(_) => {
                        self.input.end_part();
                        self.part += 1;
                        false
                    }
                    Err(corruption) => return self.failed(Step::Corrupt, corruption.to_string()),
                },
                Ok(Next::Ends) => return Step::Done,
                Err(LocalError::Unresolved(_)) => return Step::Unresolved,
                Err(error @ (LocalError::Status { .. } | LocalError::Io { .. })) => {
                    return self.failed(Step::Unreadable, error.to_string());
                }
            };
            if full {
                return Step::Full;
            }
        }
    }

    fn failed(&mut self, step: Step, problem: String) -> Step {
        self.problem = problem;
        step
    }

    /// The rows that were decoded; `None`: none, and the rows of the last batch stay valid.
    pub fn hand_out(&mut self) -> Option<BatchView> {
        (self.decoder.rows_waiting() > 0).then(|| self.decoder.turn())
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
