//! The inputs of a reader: its parts' bytes, in memory or in files.

use faro_endpoint::{Endpoint, LocalBlock, LocalError};
use faro_wire::OutputId;
use std::sync::Arc;

/// Maximum number of bytes that one read takes from a file.
const READ_BYTES: usize = 64 << 10;

/// Bytes in memory that Java keeps until the input is used up or replaced.
pub struct Slice {
    address: usize,
    bytes: usize,
    ends_part: bool,
}

impl Slice {
    /// Decodes the two numbers that Java passes. Fails if the size is negative, or if the address
    /// of a non-empty slice is null.
    pub fn new(address: usize, coded: i64) -> Result<Self, String> {
        let bytes = usize::try_from(coded >> 1).map_err(|_| format!("a slice of {coded}"))?;
        if bytes > isize::MAX as usize || (bytes > 0 && address == 0) {
            return Err(format!("a slice of {bytes} bytes at {address:#x}"));
        }
        Ok(Self {
            address,
            bytes,
            ends_part: coded & 1 == 1,
        })
    }

    fn bytes(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: `RowsNative.input` says what Java guarantees: `bytes` bytes from `address` are
        // readable and do not change until the next call of `input`, `inputLocal` or `close`, because
        // Java holds references to the blocks that they belong to. The slice does not outlive `self`,
        // which those calls drop. u8 has no alignment, and the address is not null.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) }
    }
}

/// Consecutive partitions of a map output on this executor.
#[derive(Clone, Copy)]
pub struct LocalPart {
    pub output: OutputId,
    pub start: u32,
    pub end: u32,
}

/// The parts of one input, in order.
pub enum RowInput {
    /// The input is used up, or there was none yet.
    Empty,
    Memory {
        slices: Vec<Slice>,
        at: usize,
        /// Number of bytes of the current slice that were taken.
        taken: usize,
    },
    Local(Local),
}

/// Parts that are read from files.
pub struct Local {
    endpoint: Arc<Endpoint>,
    parts: Vec<LocalPart>,
    at: usize,
    /// The current part, and the number of its bytes that were read.
    open: Option<(LocalBlock, u64)>,
    buffer: Vec<u8>,
    /// Number of bytes of the buffer that were taken.
    taken: usize,
    file_bytes: u64,
}

/// The next item of an input.
pub enum NextInput<'a> {
    /// Bytes of the current part.
    Bytes(&'a [u8]),
    /// The current part has no more bytes.
    PartEnds,
    /// The input is used up.
    Ends,
}

impl RowInput {
    pub fn memory(slices: Vec<Slice>) -> Self {
        Self::Memory {
            slices,
            at: 0,
            taken: 0,
        }
    }

    pub fn local(endpoint: Arc<Endpoint>, parts: Vec<LocalPart>) -> Self {
        Self::Local(Local {
            endpoint,
            parts,
            at: 0,
            open: None,
            buffer: Vec::new(),
            taken: 0,
            file_bytes: 0,
        })
    }

    /// Returns the next item. Returns the same bytes again until `take` or `end_part` is called.
    pub fn next(&mut self) -> Result<NextInput<'_>, LocalError> {
        match self {
            Self::Empty => Ok(NextInput::Ends),
            Self::Memory { slices, at, taken } => {
                let Some(slice) = slices.get(*at) else {
                    return Ok(NextInput::Ends);
                };
                let left = &slice.bytes()[*taken..];
                Ok(match left.is_empty() && slice.ends_part {
                    true => NextInput::PartEnds,
                    false => NextInput::Bytes(left),
                })
            }
            Self::Local(local) => local.next(),
        }
    }

    /// Removes the first `bytes` bytes of those that `next` returned.
    pub fn take(&mut self, bytes: usize) {
        match self {
            Self::Empty => {}
            Self::Memory { slices, at, taken } => {
                *taken += bytes;
                let ended = slices
                    .get(*at)
                    .is_some_and(|s| *taken >= s.bytes && !s.ends_part);
                if ended {
                    *at += 1;
                    *taken = 0;
                }
            }
            Self::Local(local) => local.taken += bytes,
        }
    }

    /// Moves to the next part. Call it only after `next` returned `PartEnds`.
    pub fn end_part(&mut self) {
        match self {
            Self::Empty => {}
            Self::Memory { at, taken, .. } => {
                *at += 1;
                *taken = 0;
            }
            Self::Local(local) => {
                local.at += 1;
                local.open = None;
            }
        }
    }

    /// Returns the native memory of the input, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Memory { slices, .. } => slices.capacity() * size_of::<Slice>(),
            Self::Local(local) => {
                local.buffer.capacity() + local.parts.capacity() * size_of::<LocalPart>()
            }
        }
    }

    /// Returns the number of bytes that were read from files.
    pub fn file_bytes(&self) -> u64 {
        match self {
            Self::Empty | Self::Memory { .. } => 0,
            Self::Local(local) => local.file_bytes,
        }
    }
}

impl Local {
    fn next(&mut self) -> Result<NextInput<'_>, LocalError> {
        if self.taken < self.buffer.len() {
            return Ok(NextInput::Bytes(&self.buffer[self.taken..]));
        }
        let Some(part) = self.parts.get(self.at) else {
            return Ok(NextInput::Ends);
        };
        let (block, read) = match &mut self.open {
            Some(open) => open,
            none => none.insert((self.endpoint.local(part.output, part.start, part.end)?, 0)),
        };
        let left = block.length() - *read;
        if left == 0 {
            return Ok(NextInput::PartEnds);
        }
        let bytes = usize::try_from(left).map_or(READ_BYTES, |left| left.min(READ_BYTES));
        self.buffer.resize(bytes, 0);
        self.taken = bytes;
        block.read_at(*read, &mut self.buffer)?;
        self.taken = 0;
        *read += bytes as u64;
        self.file_bytes += bytes as u64;
        Ok(NextInput::Bytes(&self.buffer))
    }
}
