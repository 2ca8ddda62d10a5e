//! Decodes row blocks into batches.

use super::body::BodyDecoder;
use super::placement::placed_bytes;
use super::row_writer::RowWriter;
use super::tail::TailReader;
use super::unpacked::Unpacked;
use crate::format::block::{Header, Method};
use crate::format::body::BodyHead;
use crate::format::corruption::Corruption;
use crate::format::fault::RowBlockFault;

/// The result of taking a row block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnpackResult {
    /// All its rows are in the batch.
    All,
    /// Some of its rows wait in `RowBlocks` for the next batch.
    Part,
    /// The block must be given again: its rows fit in an empty batch, but not in this one.
    Nothing,
}

#[derive(Default)]
pub(crate) struct RowBlocks {
    bodies: BodyDecoder,
    tails: TailReader,
    unpacked: Unpacked,
}

impl RowBlocks {
    /// Decodes a row block directly into the batch if its rows fit. If `may_wait` is true, the
    /// caller can give the block once more.
    pub fn take(
        &mut self,
        header: &Header,
        body: &[u8],
        rows: &mut RowWriter,
        may_wait: bool,
    ) -> Result<UnpackResult, Corruption> {
        header.check(body)?; // docs/design/row-block-format.md, check 2
        let offset = header.offset;
        let wrong = |fault| match fault {
            RowBlockFault::NoMemory { bytes } => Corruption::NoMemory {
                bytes,
                purpose: "row block",
            },
            fault => Corruption::RowBlock { offset, fault },
        };
        let ends_long_row = rows.ends_long_row();
        // docs/design/row-block-format.md, check 3.
        if !rows.is_between_rows() && !ends_long_row {
            return Err(wrong(RowBlockFault::InsideRow));
        }
        let head = BodyHead::parse(body, header.original).map_err(wrong)?;
        let bytes = placed_bytes(head.rows, head.original);
        let tails = &mut self.tails;
        let mut decompress = |tail: &[u8], space: &mut [u8]| match header.method {
            Method::Rows(codec) => tails.decompress(codec, tail, space),
            Method::Raw | Method::Lz4 => Err("its block is not a row block".to_owned()),
        };
        if !ends_long_row {
            if let Some(space) = rows.space(bytes) {
                let decoded = self.bodies.decode(body, &head, &mut decompress, space);
                decoded.map_err(wrong)?;
                rows.add(head.rows, bytes, header.original);
                return Ok(UnpackResult::All);
            }
        }
        if may_wait && rows.would_fit(bytes) && rows.has_batch() {
            return Ok(UnpackResult::Nothing);
        }
        let space = self.unpacked.space(bytes)?;
        let decoded = self.bodies.decode(body, &head, &mut decompress, space);
        decoded.map_err(wrong)?;
        self.unpacked.set_end(bytes);
        Ok(match self.drain(rows)? {
            true => UnpackResult::All,
            false => UnpackResult::Part,
        })
    }

    /// Moves rows to the batch. Returns false if it is full and rows are left.
    pub fn drain(&mut self, rows: &mut RowWriter) -> Result<bool, Corruption> {
        self.unpacked.drain(rows)
    }

    pub fn memory_bytes(&self) -> usize {
        self.bodies.memory_bytes() + self.tails.memory_bytes() + self.unpacked.memory_bytes()
    }

    /// Drops rows that are not in a batch, and frees buffers of more than `keep` bytes.
    pub fn clear(&mut self, keep: usize) {
        self.bodies.clear(keep);
        self.unpacked.clear(keep);
    }
}
