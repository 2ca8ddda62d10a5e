//! Decompresses the tails of row blocks.

use crate::format::block::TailCodec;
use zstd_safe::{find_frame_compressed_size, get_error_name, DCtx};

/// Decompresses tails and keeps the codec's state between blocks.
#[derive(Default)]
pub(crate) struct TailReader {
    /// The context, allocated for the first tail that needs it.
    zstd: Option<DCtx<'static>>,
}

impl TailReader {
    /// Decompresses a tail and returns the bytes written, or the reason that it does not
    /// decompress.
    pub fn decompress(
        &mut self,
        codec: TailCodec,
        tail: &[u8],
        space: &mut [u8],
    ) -> Result<usize, String> {
        match codec {
            TailCodec::Lz4 => {
                lz4_flex::block::decompress_into(tail, space).map_err(|error| error.to_string())
            }
            TailCodec::Zstd => self.frame(tail, space),
        }
    }

    fn frame(&mut self, tail: &[u8], space: &mut [u8]) -> Result<usize, String> {
        let context = match &mut self.zstd {
            Some(context) => context,
            none => none.insert(DCtx::try_create().ok_or("no memory for zstd's context")?),
        };
        // A tail must be exactly one frame.
        let frame = find_frame_compressed_size(tail).map_err(get_error_name)?;
        if frame != tail.len() {
            let bytes = tail.len();
            return Err(format!("a zstd frame of {frame} bytes in {bytes} bytes"));
        }
        Ok(context.decompress(space, tail).map_err(get_error_name)?)
    }

    pub fn memory_bytes(&self) -> usize {
        self.zstd.as_ref().map_or(0, DCtx::sizeof)
    }
}
