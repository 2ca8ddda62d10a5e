//! Frames of zstd, one after the other.

use super::{invalid, truncated};
use std::io::{self, BufRead, Read};
use zstd_safe::{get_error_name, DCtx, InBuffer, OutBuffer};

pub struct ZstdSource<R> {
    from: R,
    context: DCtx<'static>,
    /// Decompressed data may be left in the context, or the current frame has no end yet.
    open: bool,
}

impl<R: BufRead> ZstdSource<R> {
    pub fn new(from: R) -> Self {
        Self {
            from,
            context: DCtx::create(),
            open: false,
        }
    }
}

impl<R: BufRead> Read for ZstdSource<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            let bytes = self.from.fill_buf()?;
            let at_end = bytes.is_empty();
            if at_end && !self.open {
                return Ok(0);
            }
            let mut input = InBuffer::around(bytes);
            let mut output = OutBuffer::around(&mut *to);
            let hint = self.context.decompress_stream(&mut output, &mut input);
            let (read, written) = (input.pos(), output.pos());
            let hint = hint.map_err(|code| {
                invalid(format!(
                    "damaged zstd, or not zstd: {}",
                    get_error_name(code)
                ))
            })?;
            self.open = hint != 0;
            self.from.consume(read);
            if written > 0 {
                return Ok(written);
            }
            if at_end && self.open {
                return Err(truncated("the zstd stream is cut inside a frame"));
            }
        }
    }
}
