//! Encodes whole rows to a body.

use super::body_writer::BodyWriter;
use super::columns::{Packer, Stop};
use super::dictionary::Tries;
use super::row_reader::RowsIn;
use super::strings::StringEncoder;
use crate::format::body::{BodyHead, HEAD_BYTES, PAD_BYTES};
use crate::kernels::Kernels;
use crate::scratch::Scratch;

/// Compresses a tail to the start of the space and returns its bytes; `None` if they do not fit.
pub(crate) type TailEncoder<'a> = dyn FnMut(&[u8], &mut [u8]) -> Option<usize> + 'a;

/// The column modes that an encoder may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choices {
    pub texts: bool,
    pub dictionaries: bool,
}

/// The result of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub bytes: usize,
    /// True if the body has columns of texts.
    pub texts: bool,
}

/// Encodes blocks, one after the other.
pub(crate) struct BodyEncoder {
    kernels: Kernels,
    rows: RowsIn,
    texts: StringEncoder,
    values: Scratch<u64>,
    packer: Packer,
    tail: Scratch<u8>,
    /// The dictionary tries of each word's column.
    tries: Vec<Tries>,
}

impl Default for BodyEncoder {
    fn default() -> Self {
        Self::new(Kernels::detect())
    }
}

impl BodyEncoder {
    pub fn new(kernels: Kernels) -> Self {
        Self {
            kernels,
            rows: RowsIn::default(),
            texts: StringEncoder::default(),
            values: Scratch::default(),
            packer: Packer::default(),
            tail: Scratch::default(),
            tries: Vec::new(),
        }
    }

    /// Finds the rows of a piece. Returns false if it is not whole rows, or if memory is short.
    pub fn find_rows(&mut self, piece: &[u8]) -> bool {
        self.rows.find(piece).unwrap_or(false)
    }

    /// Returns whether two sampled rows of the piece each equal one of the 32 rows before them. The
    /// piece must be the one given to `find_rows` last.
    pub fn repeats(&self, piece: &[u8]) -> bool {
        const NEAR: usize = 32;
        let count = self.rows.count();
        [count / 3, 2 * count / 3].into_iter().all(|at| {
            let row = self.rows.row(piece, at);
            let mut before = (at.saturating_sub(NEAR)..at).rev();
            before.any(|before| self.rows.row(piece, before) == row)
        })
    }

    /// Encodes the rows that `find_rows` found in this piece, with the first `words` words of each
    /// packed, or fewer if a row is shorter. Returns `None` if the body is longer than `out` or
    /// memory is short.
    pub fn encode(
        &mut self,
        piece: &[u8],
        words: usize,
        choices: Choices,
        compress: &mut TailEncoder,
        out: &mut [u8],
    ) -> Option<Encoded> {
        let mut out = BodyWriter::new(out);
        self.put(piece, words, choices, compress, &mut out).ok()
    }

    fn put(
        &mut self,
        piece: &[u8],
        words: usize,
        choices: Choices,
        compress: &mut TailEncoder,
        out: &mut BodyWriter,
    ) -> Result<Encoded, Stop> {
        let (kernels, count) = (self.kernels, self.rows.count());
        let words = words.min(self.rows.shortest()).min(u16::MAX.into());
        if self.tries.len() < words {
            let more = words - self.tries.len();
            self.tries.try_reserve(more).map_err(|_| Stop::NoMemory)?;
            self.tries.resize(words, Tries::default());
        }
        // The tail needs the piece's length, because `gather` copies the padding of texts too.
        let tail = self.tail.sized(piece.len())?;
        let behind = piece.len() - count * (4 + 8 * words);
        self.texts.forget();
        let mut tail_bytes = None;
        if choices.texts && behind > 0 {
            self.texts.find(piece, &self.rows, words)?;
            if self.texts.any() {
                tail_bytes = self.texts.gather(piece, &self.rows, words, tail)?;
                if tail_bytes.is_none() {
                    self.texts.forget();
                }
            }
        }
        let tail_bytes = match tail_bytes {
            Some(bytes) => bytes,
            None => gather_rests(&self.rows, piece, words, tail),
        };
        out.space(HEAD_BYTES)?;
        self.packer.put(kernels, self.rows.lengths(), None, out)?;
        let values = self.values.sized(count)?;
        for (word, tries) in self.tries[..words].iter_mut().enumerate() {
            let tries = choices.dictionaries.then_some(tries);
            if let Some((mode, lengths)) = self.texts.of_word(word, count) {
                out.put(&[mode.first_byte(0)])?;
                self.packer.put(kernels, lengths, tries, out)?;
            } else {
                self.rows.column(piece, word, values);
                self.packer.put(kernels, values, tries, out)?;
            }
        }
        let stored = put_tail(&self.tail.values()[..tail_bytes], compress, out)?;
        out.patch(0, &BodyHead::bytes(count, words, stored));
        Ok(Encoded {
            bytes: out.at(),
            texts: self.texts.any(),
        })
    }

    pub fn memory_bytes(&self) -> usize {
        self.rows.memory_bytes()
            + self.texts.memory_bytes()
            + self.values.memory_bytes()
            + self.packer.memory_bytes()
            + self.tail.memory_bytes()
            + self.tries.capacity() * size_of::<Tries>()
    }
}

/// Writes the bytes after the packed words of each row to the tail and returns their number.
fn gather_rests(rows: &RowsIn, piece: &[u8], words: usize, tail: &mut [u8]) -> usize {
    const SHORT: usize = 64;
    let mut end = 0;
    for row in 0..rows.count() {
        let rest = &rows.row(piece, row)[8 * words..];
        let space = &mut tail[end..end + rest.len()];
        if rest.len() <= SHORT {
            // This loop avoids a call for each of many short rests.
            for (from, to) in rest.chunks_exact(8).zip(space.chunks_exact_mut(8)) {
                to.copy_from_slice(from);
            }
        } else {
            space.copy_from_slice(rest);
        }
        end += rest.len();
    }
    end
}

/// Appends the tail, compressed if that makes it smaller, and zeros after a short one. Returns its
/// stored bytes.
fn put_tail(tail: &[u8], compress: &mut TailEncoder, out: &mut BodyWriter) -> Result<usize, Stop> {
    let mut stored = tail.len();
    let compressed = match tail {
        [] => None,
        tail => compress(tail, out.rest()).filter(|bytes| *bytes < tail.len()),
    };
    match compressed {
        Some(bytes) => {
            stored = bytes;
            out.space(bytes)?;
        }
        None => out.put(tail)?,
    }
    out.put(&[0; PAD_BYTES][stored.min(PAD_BYTES)..])?;
    Ok(stored)
}
