//! The two buffers that batches are filled in and read from.

use crate::corruption::Corruption;
use zerocopy::IntoBytes;

/// A filled batch: `bytes` bytes from `address`, a multiple of 8, with `rows` rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchView {
    pub address: *const u8,
    pub bytes: usize,
    pub rows: u32,
}

/// Bytes of every buffer behind its last row, so that short rows are copied in pieces of a fixed
/// size.
pub(crate) const SLACK_BYTES: usize = 128;

/// Memory whose address is a multiple of 8.
pub(crate) struct Buffer {
    words: Vec<u64>,
}

impl Buffer {
    /// A buffer for `bytes` bytes of rows; `None` without memory.
    pub fn new(bytes: usize) -> Option<Self> {
        let mut words = Vec::new();
        let length = (bytes + SLACK_BYTES).div_ceil(8);
        words.try_reserve_exact(length).ok()?;
        words.resize(length, 0);
        Some(Self { words })
    }

    pub fn bytes(&self) -> &[u8] {
        self.words.as_bytes()
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.words.as_mut_bytes()
    }

    /// Makes it at least `bytes` long, doubling it up to `most` bytes, so that a row which arrives
    /// in pieces is moved a few times only.
    pub fn grow(&mut self, bytes: usize, most: usize) -> Result<(), Corruption> {
        let now = self.words.len() * 8;
        if bytes <= now {
            return Ok(());
        }
        let length = bytes.max(most.min(2 * now)).div_ceil(8);
        self.words
            .try_reserve_exact(length - self.words.len())
            .map_err(|_| Corruption::NoMemory {
                bytes: length * 8,
                purpose: "row",
            })?;
        self.words.resize(length, 0);
        Ok(())
    }

    /// Gives back what is beyond `bytes` bytes of rows.
    pub fn shrink(&mut self, bytes: usize) {
        let length = (bytes + SLACK_BYTES).div_ceil(8);
        if self.words.len() > length {
            self.words.truncate(length);
            self.words.shrink_to_fit();
        }
    }
}
