//! The room that a body is written to.

/// The body would be longer than its room: it is not smaller than the rows.
#[derive(Debug)]
pub(crate) struct Full;

pub(crate) struct Out<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Out<'a> {
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    /// Forgets the bytes from `at` on.
    pub fn truncate(&mut self, at: usize) {
        self.at = self.at.min(at);
    }

    /// The next `bytes` bytes, to be written by the caller.
    pub fn space(&mut self, bytes: usize) -> Result<&mut [u8], Full> {
        let end = self.at.checked_add(bytes).ok_or(Full)?;
        let space = self.bytes.get_mut(self.at..end).ok_or(Full)?;
        self.at = end;
        Ok(space)
    }

    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.space(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// All room that is left; [`space`](Self::space) takes what was written there.
    pub fn rest(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..]
    }

    /// Overwrites bytes that were written before.
    pub fn patch(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
}
