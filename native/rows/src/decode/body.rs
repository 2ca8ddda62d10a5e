//! Decodes a body into rows.

use super::columns::Columns;
use super::input::Input;
use super::placement::{placed_bytes, Placement};
use super::strings::{Rows, StringDecoder, TAIL_SLACK};
use crate::format::body::{BodyHead, HEAD_BYTES};
use crate::format::fault::RowBlockFault;
use crate::format::mode::ColumnMode;
use crate::kernels::Kernels;
use crate::scratch::Scratch;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

/// Decompresses a tail to the start of the space, which is exactly as long as the tail should
/// become. Returns the bytes written, or the reason that the tail does not decompress.
pub type TailDecoder<'a> = dyn FnMut(&[u8], &mut [u8]) -> Result<usize, String> + 'a;

/// Decodes bodies, one after the other.
pub(crate) struct BodyDecoder {
    kernels: Kernels,
    columns: Columns,
    /// The length of each row, in words.
    lengths: Scratch<u64>,
    values: Scratch<u64>,
    placement: Placement,
    texts: StringDecoder,
    tail: Scratch<u8>,
}

impl Default for BodyDecoder {
    fn default() -> Self {
        Self::new(Kernels::detect())
    }
}

impl BodyDecoder {
    pub fn new(kernels: Kernels) -> Self {
        Self {
            kernels,
            columns: Columns::default(),
            lengths: Scratch::default(),
            values: Scratch::default(),
            placement: Placement::default(),
            texts: StringDecoder::default(),
            tail: Scratch::default(),
        }
    }

    /// Writes the body's rows to `out`, as a batch has them. `head` must come from the same body
    /// and original length; `out` must have [`placed_bytes`]. After a fault the content of
    /// `out` is undefined.
    pub fn decode(
        &mut self,
        body: &[u8],
        head: &BodyHead,
        decompress: &mut TailDecoder,
        out: &mut [u8],
    ) -> Result<(), RowBlockFault> {
        debug_assert_eq!(out.len(), placed_bytes(head.rows, head.original));
        let mut input = Input::new(head.columns(body), HEAD_BYTES, self.kernels);
        let lengths = self.lengths.sized(head.rows)?;
        self.columns
            .take(&mut input, ColumnMode::OF_LENGTHS, lengths)?;
        // docs/design/row-block-format.md, check 5.
        self.placement.set(lengths, head.words, head.original)?;
        let out = <[U64]>::mut_from_bytes(out).map_err(|_| RowBlockFault::Original {
            found: 0,
            original: head.original,
        })?;
        self.placement.write_heads(lengths, out);
        let mut rows = Rows {
            placement: &self.placement,
            lengths,
            words: head.words,
            out,
        };
        let values = self.values.sized(head.rows)?;
        self.texts.start_block();
        // docs/design/row-block-format.md, check 6.
        for word in 0..head.words {
            if let Some(value) = Columns::take_constant(&mut input) {
                self.placement.write_constant(word, value, rows.out);
            } else if !(self.texts).take(&mut input, &mut self.columns, word, &mut rows)? {
                self.columns
                    .take(&mut input, ColumnMode::OF_WORDS, values)?;
                self.placement.write_column(word, values, rows.out);
            }
        }
        // docs/design/row-block-format.md, check 7.
        if input.left() > 0 {
            let bytes = input.left();
            return Err(RowBlockFault::BytesBehindColumns { bytes });
        }
        let expected = match self.texts.any() {
            true => self.texts.tail_bytes(lengths),
            false => head.max_tail(),
        };
        let stored = head.stored_tail(body, expected)?;
        let tail = self.tail.sized(expected + TAIL_SLACK)?;
        if stored.len() == expected {
            tail[..expected].copy_from_slice(stored);
        } else {
            let found = decompress(stored, &mut tail[..expected])
                .map_err(|reason| RowBlockFault::TailCodec { reason })?;
            // docs/design/row-block-format.md, check 9.
            if found != expected {
                return Err(RowBlockFault::TailLength { found, expected });
            }
        }
        if self.texts.any() {
            return self.texts.write(tail, &mut rows);
        }
        write_rests(tail, &mut rows);
        Ok(())
    }

    pub fn memory_bytes(&self) -> usize {
        self.columns.memory_bytes()
            + self.lengths.memory_bytes()
            + self.values.memory_bytes()
            + self.placement.memory_bytes()
            + self.texts.memory_bytes()
            + self.tail.memory_bytes()
    }

    /// Shrinks each part of the scratch memory to at most `keep` bytes.
    pub fn clear(&mut self, keep: usize) {
        self.columns.clear(keep);
        self.lengths.clear(keep);
        self.values.clear(keep);
        self.placement.clear(keep);
        self.texts.clear(keep);
        self.tail.clear(keep);
    }
}

const SHORT_WORDS: usize = 8;

/// Writes the bytes after the packed words of each row.
fn write_rests(mut tail: &[u8], rows: &mut Rows) {
    for (start, length) in rows.placement.starts().iter().zip(rows.lengths) {
        let start = *start as usize;
        let rest = &mut rows.out[start + rows.words..start + *length as usize];
        let (bytes, behind) = tail.split_at(8 * rest.len());
        if rest.len() <= SHORT_WORDS {
            // This loop avoids a call for each of many short rests.
            for (word, piece) in rest.iter_mut().zip(bytes.chunks_exact(8)) {
                word.as_mut_bytes().copy_from_slice(piece);
            }
        } else {
            rest.as_mut_bytes().copy_from_slice(bytes);
        }
        tail = behind;
    }
}
