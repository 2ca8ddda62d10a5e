//! The space that a body is written to.

/// The body would not fit in its space, so it would not be smaller than the rows.
#[derive(Debug)]
pub(crate) struct OutOfSpace;

pub(crate) struct BodyWriter<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> BodyWriter<'a> {
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    /// Drops the bytes from `at` on.
    pub fn truncate(&mut self, at: usize) {
        self.at = self.at.min(at);
    }

    /// Reserves the next `bytes` bytes for the caller to write.
    pub fn space(&mut self, bytes: usize) -> Result<&mut [u8], OutOfSpace> {
        let end = self.at.checked_add(bytes).ok_or(OutOfSpace)?;
        let space = self.bytes.get_mut(self.at..end).ok_or(OutOfSpace)?;
        self.at = end;
        Ok(space)
    }

    pub fn put(&mut self, bytes: &[u8]) -> Result<(), OutOfSpace> {
        self.space(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Returns all space that is left. The caller reserves what it wrote there by
    /// [`space`](Self::space).
    pub fn rest(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..]
    }

    /// Overwrites bytes that were written before.
    pub fn patch(&mut self, at: usize, bytes: &[u8]) {
        debug_assert!(at + bytes.len() <= self.at);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
}
