//! Concatenated zstd frames.

use crate::corruption::Corruption;
use crate::decoded::Decoded;
use crate::progress::Pushed;
use crate::rows::RowWriter;
use zstd_safe::{get_error_name, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

/// The largest window that zstd decodes unless told otherwise: 128 MiB. Level 22 needs it.
const MOST_WINDOW_LOG: u32 = 27;
/// Bytes decompressed at once: small enough to be still in the cache when they are copied.
const STEP_BYTES: usize = 64 << 10;

pub(crate) struct Zstd {
    context: DCtx<'static>,
    decoded: Decoded,
    /// A frame is under way, which started at `frame_offset`.
    in_frame: bool,
    /// The context may hold decompressed bytes that it had no space for.
    more: bool,
    frame_offset: u64,
    /// Bytes of the part that were taken.
    offset: u64,
}

impl Zstd {
    /// `None` without memory for the context.
    pub fn new() -> Option<Self> {
        let mut context = DCtx::try_create()?;
        context
            .set_parameter(DParameter::WindowLogMax(MOST_WINDOW_LOG))
            .ok()?;
        Some(Self {
            context,
            decoded: Decoded::default(),
            in_frame: false,
            more: false,
            frame_offset: 0,
            offset: 0,
        })
    }

    pub fn push(&mut self, input: &[u8], rows: &mut RowWriter) -> Result<Pushed, Corruption> {
        let mut taken = 0;
        loop {
            if !self.decoded.drain(rows)? {
                return Ok(Pushed { taken, full: true });
            }
            if taken == input.len() && !self.more {
                return Ok(Pushed { taken, full: false });
            }
            taken += self.step(&input[taken..])?;
        }
    }

    /// Decompresses until `decoded` is full, the input is used up or a frame is over. Returns the
    /// bytes taken.
    fn step(&mut self, input: &[u8]) -> Result<usize, Corruption> {
        if !self.in_frame {
            self.frame_offset = self.offset;
        }
        // Also after an error, so that `start_part` resets the context.
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
        // At 0 the frame is over and all of it is in `decoded`.
        self.in_frame = missing != 0;
        self.more = self.in_frame && written == STEP_BYTES;
        Ok(taken)
    }

    /// False: the batch is full.
    pub fn end_part(&mut self, rows: &mut RowWriter) -> Result<bool, Corruption> {
        if self.push(&[], rows)?.full {
            return Ok(false);
        }
        if self.in_frame {
            return Err(Corruption::PartialFrame {
                offset: self.frame_offset,
            });
        }
        Ok(true)
    }

    pub fn memory_bytes(&self) -> usize {
        self.context.sizeof() + self.decoded.memory_bytes()
    }

    pub fn start_part(&mut self) {
        if self.in_frame {
            // Cannot fail: it is the session alone that is reset.
            let _ = self.context.reset(ResetDirective::SessionOnly);
        }
        self.decoded.clear(STEP_BYTES);
        (self.in_frame, self.more) = (false, false);
        (self.frame_offset, self.offset) = (0, 0);
    }
}
