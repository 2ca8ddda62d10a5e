//! Gives the rows of row blocks to batches.

use crate::block::{Header, Method};
use crate::corruption::Corruption;
use crate::row_block::{BodyDecoder, Head, RowBlockFault};
use crate::rows::RowWriter;
use crate::tail::TailReader;
use crate::unpacked::Unpacked;

/// What became of a row block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// All its rows are in the batch.
    All,
    /// Some of its rows wait here for the next batch.
    Part,
    /// It waits itself: an empty batch has space for all its rows.
    Nothing,
}

#[derive(Default)]
pub(crate) struct RowBlocks {
    bodies: BodyDecoder,
    tails: TailReader,
    unpacked: Unpacked,
}

impl RowBlocks {
    /// Decodes a row block straight to the batch where its rows fit. `may_wait`: the block can be given once more.
    pub fn take(
        &mut self,
        header: &Header,
        body: &[u8],
        rows: &mut RowWriter,
        may_wait: bool,
    ) -> Result<Taken, Corruption> {
        header.check(body)?;
        let offset = header.offset;
        let wrong = |fault| match fault {
            RowBlockFault::NoMemory { bytes } => Corruption::NoMemory {
                bytes,
                purpose: "row block",
            },
            fault => Corruption::RowBlock { offset, fault },
        };
        let ends_long_row = rows.ends_long_row();
        if !rows.is_between_rows() && !ends_long_row {
            return Err(wrong(RowBlockFault::InsideRow));
        }
        let head = Head::parse(body, header.original).map_err(wrong)?;
        let bytes = head.placed_bytes();
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
                return Ok(Taken::All);
            }
        }
        if may_wait && rows.would_fit(bytes) && rows.has_batch() {
            return Ok(Taken::Nothing);
        }
        let space = self.unpacked.space(bytes)?;
        let decoded = self.bodies.decode(body, &head, &mut decompress, space);
        decoded.map_err(wrong)?;
        self.unpacked.set_end(bytes);
        Ok(match self.drain(rows)? {
            true => Taken::All,
            false => Taken::Part,
        })
    }

    /// Gives the rows that wait to the batch. False: it is full.
    pub fn drain(&mut self, rows: &mut RowWriter) -> Result<bool, Corruption> {
        self.unpacked.drain(rows)
    }

    pub fn memory_bytes(&self) -> usize {
        self.bodies.memory_bytes() + self.tails.memory_bytes() + self.unpacked.memory_bytes()
    }

    /// Forgets what waits, and gives back buffers of more than `keep` bytes.
    pub fn clear(&mut self, keep: usize) {
        self.bodies.clear(keep);
        self.unpacked.clear(keep);
    }
}
