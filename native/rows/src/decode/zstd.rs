//! Decodes concatenated zstd frames, and row blocks between them (docs/design/row-block-format.md).

use super::batch::PushResult;
use super::decoded::Decoded;
use super::lz4::Lz4;
use super::row_writer::RowWriter;
use crate::format::corruption::Corruption;
use zstd_safe::{get_error_name, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

/// The largest window that zstd decodes by default: 128 MiB. Level 22 needs it.
const MAX_WINDOW_LOG: u32 = 27;
/// Bytes decompressed at once: few enough that they are still in the processor's cache when they
/// are copied.
const STEP_BYTES: usize = 64 << 10;

/// The first byte of a block. No frame begins with it.
const BLOCK: u8 = b'L';

pub(crate) struct Zstd {
    context: DCtx<'static>,
    decoded: Decoded,
    /// The blocks between frames.
    blocks: Lz4,
    /// The frame that starts at `frame_offset` is not complete.
    in_frame: bool,
    /// The context may hold decompressed bytes that did not fit in `decoded`.
    more: bool,
    frame_offset: u64,
    /// Bytes of the part that were taken.
    offset: u64,
}

impl Zstd {
    /// Returns `None` if there is no memory for the context.
    pub fn new() -> Option<Self> {
        let mut context = DCtx::try_create()?;
        context
            .set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG))
            .ok()?;
        Some(Self {
            context,
            decoded: Decoded::default(),
            blocks: Lz4::default(),
            in_frame: false,
            more: false,
            frame_offset: 0,
            offset: 0,
        })
    }

    pub fn push(&mut self, input: &[u8], rows: &mut RowWriter) -> Result<PushResult, Corruption> {
        let mut taken = 0;
        if !self.blocks.drain(rows)? {
            return Ok(PushResult { taken, full: true });
        }
        loop {
            if !self.decoded.drain(rows)? {
                return Ok(PushResult { taken, full: true });
            }
            if taken == input.len() && !self.more {
                return Ok(PushResult { taken, full: false });
            }
            let mut rest = &input[taken..];
            if self.is_block(rest) {
                let whole = self.take_block(&mut rest, rows)?;
                taken = input.len() - rest.len();
                if !whole {
                    return Ok(PushResult { taken, full: true });
                }
            } else {
                taken += self.step(rest)?;
            }
        }
    }

    /// Returns whether the next bytes belong to a block rather than to a frame.
    fn is_block(&self, input: &[u8]) -> bool {
        !self.in_frame && (self.blocks.is_in_block() || input.first() == Some(&BLOCK))
    }

    /// Takes bytes of one block. Returns false if the batch is full.
    fn take_block(&mut self, input: &mut &[u8], rows: &mut RowWriter) -> Result<bool, Corruption> {
        if !self.blocks.is_in_block() {
            self.blocks.start_at(self.offset);
        }
        let before = input.len();
        let taken = self.blocks.take(input, rows)?;
        self.offset += (before - input.len()) as u64;
        Ok(taken)
    }

    /// Decompresses until `decoded` is full, the input is used up or a frame ends. Returns the
    /// bytes taken.
    fn step(&mut self, input: &[u8]) -> Result<usize, Corruption> {
        if !self.in_frame {
            self.frame_offset = self.offset;
        }
        // This is set even if the step fails, so that `start_part` resets the context.
        self.in_frame = true;
        let space = self.decoded.space(STEP_BYTES)?;
        let (mut input, mut output) = (InBuffer::around(input), OutBuffer::around(space));
        let missing = self
            .context
            .decompress_stream(&mut output, &mut input)
            .map_err(|code| Corruption::Zstd {
                offset: self.frame_offset,
                reason: get_error_name(code),
            })?;
        let (taken, written) = (input.pos(), output.pos());
        self.decoded.set_end(written);
        self.offset += taken as u64;
        // 0 means that the frame ended and all of it is in `decoded`.
        self.in_frame = missing != 0;
        self.more = self.in_frame && written == STEP_BYTES;
        Ok(taken)
    }

    /// Checks that the part may end. Returns false if the batch is full and rows are left.
    pub fn end_part(&mut self, rows: &mut RowWriter) -> Result<bool, Corruption> {
        if self.push(&[], rows)?.full {
            return Ok(false);
        }
        if self.in_frame {
            return Err(Corruption::PartialFrame {
                offset: self.frame_offset,
            });
        }
        self.blocks.end_part(rows)
    }

    pub fn memory_bytes(&self) -> usize {
        self.context.sizeof() + self.decoded.memory_bytes() + self.blocks.memory_bytes()
    }

    pub fn start_part(&mut self) {
        if self.in_frame {
            // Resetting only the session cannot fail.
            let _ = self.context.reset(ResetDirective::SessionOnly);
        }
        self.decoded.clear(STEP_BYTES);
        self.blocks.start_part();
        (self.in_frame, self.more) = (false, false);
        (self.frame_offset, self.offset) = (0, 0);
    }
}
