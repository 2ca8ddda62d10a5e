//! Decodes lz4-java's block stream: blocks of a 21-byte header and a body, in concatenated streams.
//! Faro's row blocks are blocks of two more methods (docs/design/row-block-format.md).
//!
//! Checks what lz4-java's `LZ4BlockInputStream` checks, and is stricter in two cases. A compressed
//! length that no encoding of the original length can have is refused before the body arrives, and
//! a part must not end inside a header. As in lz4-java's reader of concatenated streams, a part may
//! end after any block, even where a stream has no end block.
//!
//! lz4_flex decompresses with bounds checks on input and output, which make it memory-safe for
//! every input. Its variant without `unsafe` (`safe-decode`) took 8 % longer for blocks of 32 KiB
//! (1.9 against 2.1 GB/s), so that feature is off.

use super::batch::PushResult;
use super::decoded::Decoded;
use super::row_blocks::{RowBlocks, UnpackResult};
use super::row_writer::RowWriter;
use crate::format::block::{Header, Method, HEADER_BYTES};
use crate::format::corruption::Corruption;
use std::mem;

/// Larger buffers shrink to this size at the end of a part.
const KEPT_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Lz4 {
    /// The first bytes of a block whose rest is not pushed yet.
    carry: Vec<u8>,
    decoded: Decoded,
    row_blocks: RowBlocks,
    /// Offset of the next block in the part, in bytes.
    offset: u64,
}

impl Lz4 {
    pub fn push(&mut self, input: &[u8], rows: &mut RowWriter) -> Result<PushResult, Corruption> {
        let mut rest = input;
        let mut drained = self.drain(rows)?;
        while drained && !rest.is_empty() {
            drained = self.take(&mut rest, rows)?;
        }
        Ok(PushResult {
            taken: input.len() - rest.len(),
            full: !drained,
        })
    }

    /// Moves decoded rows to the batch. Returns false if it is full.
    pub fn drain(&mut self, rows: &mut RowWriter) -> Result<bool, Corruption> {
        Ok(self.decoded.drain(rows)? && self.row_blocks.drain(rows)?)
    }

    /// Takes bytes of one block. Call it only when `drain` returned true. Returns false if the
    /// batch is full.
    pub fn take(&mut self, input: &mut &[u8], rows: &mut RowWriter) -> Result<bool, Corruption> {
        if self.carry.is_empty() {
            self.take_block(input, rows)
        } else {
            self.take_piece(input, rows)
        }
    }

    /// Returns whether a block was taken in part.
    pub fn is_in_block(&self) -> bool {
        !self.carry.is_empty()
    }

    /// Sets the next block's offset in the part, for a caller that takes the bytes between blocks
    /// itself.
    pub fn start_at(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Takes the block that `input` starts with, or all of `input` if it is shorter than the block.
    /// Returns false if the batch is full.
    fn take_block(&mut self, input: &mut &[u8], rows: &mut RowWriter) -> Result<bool, Corruption> {
        if let Some((header, rest)) = input.split_first_chunk() {
            let header = Header::parse(header, self.offset)?;
            if let Some((body, rest)) = rest.split_at_checked(header.compressed) {
                let taken = self.decode(&header, body, rows, true)?;
                if taken != UnpackResult::Nothing {
                    *input = rest;
                    self.offset += (HEADER_BYTES + body.len()) as u64;
                }
                return Ok(taken == UnpackResult::All);
            }
        }
        self.carry(input, input.len())?;
        Ok(true)
    }

    /// Takes bytes of the block that earlier pushes began. Returns false if the batch is full.
    fn take_piece(&mut self, input: &mut &[u8], rows: &mut RowWriter) -> Result<bool, Corruption> {
        let Some((header, body)) = self.carry.split_first_chunk() else {
            self.carry(input, HEADER_BYTES - self.carry.len())?;
            // An end block is complete without a body.
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

    /// Moves `bytes` bytes of the input into the carry. Returns false if the input has fewer.
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
            // The block must not wait, so that a push that takes all its bytes leaves nothing to be
            // decoded.
            Some((header, body)) => Header::parse(header, self.offset)
                .and_then(|header| self.decode(&header, body, rows, false)),
            None => Ok(UnpackResult::All),
        };
        self.offset += carry.len() as u64;
        carry.clear();
        self.carry = carry;
        Ok(result? == UnpackResult::All)
    }

    /// Decodes a whole block. Rows that do not fit in the batch wait in `decoded` or `row_blocks`.
    fn decode(
        &mut self,
        header: &Header,
        body: &[u8],
        rows: &mut RowWriter,
        may_wait: bool,
    ) -> Result<UnpackResult, Corruption> {
        if header.original == 0 {
            return Ok(UnpackResult::All);
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
        Ok(if drained {
            UnpackResult::All
        } else {
            UnpackResult::Part
        })
    }

    /// Checks that the part may end. Returns false if the batch is full and rows are left.
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
