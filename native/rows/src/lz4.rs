//! lz4-java's block stream: a header of 21 bytes and a body for each block, streams concatenated. Faro's row blocks
//! are blocks of two more methods: docs/row-block-format.md.
//!
//! Checks what lz4-java's `LZ4BlockInputStream` checks. Two things are stricter: a compressed
//! length that no encoding of the original length has is refused before the body is there, and a
//! part must not end inside a header. As in lz4-java, when it reads concatenated streams, a part may
//! end behind any block, also where a stream has no end block.
//!
//! Decompression is lz4_flex's with its bounds checks on input and output, which make it memory-safe
//! for every input. Its variant without `unsafe` (`safe-decode`) took 8 % longer over blocks of
//! 32 KiB (1.9 against 2.1 GB/s), so that feature is off.

use crate::block::{Header, Method, HEADER_BYTES};
use crate::corruption::Corruption;
use crate::decoded::Decoded;
use crate::progress::Pushed;
use crate::row_blocks::{RowBlocks, Taken};
use crate::rows::RowWriter;
use std::mem;

/// Buffers that one part made larger than this become smaller at the part's end.
const KEPT_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Lz4 {
    /// The first bytes of a block that does not lie in one push.
    carry: Vec<u8>,
    decoded: Decoded,
    row_blocks: RowBlocks,
    /// Where the next block starts in the part.
    offset: u64,
}

impl Lz4 {
    pub fn push(&mut self, input: &[u8], rows: &mut RowWriter) -> Result<Pushed, Corruption> {
        let mut rest = input;
        let mut drained = self.drain(rows)?;
        while drained && !rest.is_empty() {
            drained = self.take(&mut rest, rows)?;
        }
        Ok(Pushed {
            taken: input.len() - rest.len(),
            full: !drained,
        })
    }

    /// Gives the rows that wait to the batch. False: it is full.
    pub fn drain(&mut self, rows: &mut RowWriter) -> Result<bool, Corruption> {
        Ok(self.decoded.drain(rows)? && self.row_blocks.drain(rows)?)
    }

    /// Takes bytes of one block; nothing waits to be drained. False: the batch is full.
    pub fn take(&mut self, input: &mut &[u8], rows: &mut RowWriter) -> Result<bool, Corruption> {
        if self.carry.is_empty() {
            self.take_block(input, rows)
        } else {
            self.take_piece(input, rows)
        }
    }

    /// Whether the first bytes of a block were taken, and not all.
    pub fn is_in_block(&self) -> bool {
        !self.carry.is_empty()
    }

    /// Says where in the part the next block starts, which others than this have taken bytes of.
    pub fn start_at(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Takes the block that `input` starts with, or all of `input` where it does not reach to the
    /// block's end. False: the batch is full.
    fn take_block(&mut self, input: &mut &[u8], rows: &mut RowWriter) -> Result<bool, Corruption> {
        if let Some((header, rest)) = input.split_first_chunk() {
            let header = Header::parse(header, self.offset)?;
            if let Some((body, rest)) = rest.split_at_checked(header.compressed) {
                let taken = self.decode(&header, body, rows, true)?;
                if taken != Taken::Nothing {
                    *input = rest;
                    self.offset += (HEADER_BYTES + body.len()) as u64;
                }
                return Ok(taken == Taken::All);
            }
        }
        self.carry(input, input.len())?;
        Ok(true)
    }

    /// Takes a piece of the block that earlier pushes began. False: the batch is full.
    fn take_piece(&mut self, input: &mut &[u8], rows: &mut RowWriter) -> Result<bool, Corruption> {
        let Some((header, body)) = self.carry.split_first_chunk() else {
            self.carry(input, HEADER_BYTES - self.carry.len())?;
            // An end block is whole without a body.
            return match self.carry.first_chunk() {
                Some(header) if Header::parse(header, self.offset)?.compressed == 0 => {
                    self.decode_carry(rows)
                }
                _ => Ok(true),
            };
        };
        let missing = Header::parse(header, self.offset)?.compressed - body.len();
        if self.carry(input, missing)? {
            return self.decode_carry(rows);
        }
        Ok(true)
    }

    /// Moves the first `bytes` bytes of the input into the carry, or all when they are fewer: false.
    fn carry(&mut self, input: &mut &[u8], bytes: usize) -> Result<bool, Corruption> {
        let (piece, rest) = input.split_at(bytes.min(input.len()));
        self.carry
            .try_reserve(piece.len())
            .map_err(|_| Corruption::NoMemory {
                bytes: self.carry.len() + piece.len(),
                purpose: "compressed block",
            })?;
        self.carry.extend_from_slice(piece);
        *input = rest;
        Ok(piece.len() == bytes)
    }

    fn decode_carry(&mut self, rows: &mut RowWriter) -> Result<bool, Corruption> {
        let mut carry = mem::take(&mut self.carry);
        let result = match carry.split_first_chunk() {
            // It does not wait, so that a push that is taken whole leaves nothing to be decoded.
            Some((header, body)) => Header::parse(header, self.offset)
                .and_then(|header| self.decode(&header, body, rows, false)),
            None => Ok(Taken::All),
        };
        self.offset += carry.len() as u64;
        carry.clear();
        self.carry = carry;
        Ok(result? == Taken::All)
    }

    /// Gives a whole block's rows to the batch; those without space there wait in `decoded` or `row_blocks`.
    fn decode(
        &mut self,
        header: &Header,
        body: &[u8],
        rows: &mut RowWriter,
        may_wait: bool,
    ) -> Result<Taken, Corruption> {
        if header.original == 0 {
            return Ok(Taken::All);
        }
        let drained = match header.method {
            Method::Rows(_) => return self.row_blocks.take(header, body, rows, may_wait),
            Method::Raw => {
                header.check(body)?;
                let rest = &body[rows.take(body)?..];
                if !rest.is_empty() {
                    self.decoded.space(rest.len())?[..rest.len()].copy_from_slice(rest);
                    self.decoded.set_end(rest.len());
                }
                rest.is_empty()
            }
            Method::Lz4 => {
                let space = &mut self.decoded.space(header.original)?[..header.original];
                let found = lz4_flex::block::decompress_into(body, space).map_err(|error| {
                    Corruption::Lz4 {
                        offset: header.offset,
                        reason: error.to_string(),
                    }
                })?;
                if found != header.original {
                    return Err(Corruption::DecompressedLength {
                        offset: header.offset,
                        found,
                        expected: header.original,
                    });
                }
                header.check(&space[..found])?;
                self.decoded.set_end(found);
                self.decoded.drain(rows)?
            }
        };
        Ok(if drained { Taken::All } else { Taken::Part })
    }

    /// False: the batch is full.
    pub fn end_part(&mut self, rows: &mut RowWriter) -> Result<bool, Corruption> {
        if !self.drain(rows)? {
            return Ok(false);
        }
        if self.carry.is_empty() {
            return Ok(true);
        }
        let needed = match self.carry.first_chunk() {
            Some(header) => HEADER_BYTES + Header::parse(header, self.offset)?.compressed,
            None => HEADER_BYTES,
        };
        Err(Corruption::PartialBlock {
            offset: self.offset,
            found: self.carry.len(),
            needed,
        })
    }

    pub fn memory_bytes(&self) -> usize {
        self.carry.capacity() + self.decoded.memory_bytes() + self.row_blocks.memory_bytes()
    }

    pub fn start_part(&mut self) {
        self.carry.clear();
        self.carry.shrink_to(KEPT_BYTES);
        self.decoded.clear(KEPT_BYTES);
        self.row_blocks.clear(KEPT_BYTES);
        self.offset = 0;
    }
}
