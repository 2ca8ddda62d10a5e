//! What a caller wants, and what was handed out of it.

use faro_wire::BlockId;
use std::time::Duration;

/// Faults that a request survives, in all.
const MAX_FAULTS: u8 = 1;

/// See the module's comment.
pub(crate) struct Request {
    /// The caller's name for it.
    pub(crate) id: u64,
    /// Handle of the peer.
    pub(crate) peer: u64,
    pub(crate) blocks: Vec<BlockId>,
    /// The first `handed_out` blocks were handed out.
    pub(crate) handed_out: usize,
    /// How long it may go without progress.
    pub(crate) patience: Duration,
    pub(crate) faults: Faults,
}

/// Counts what went wrong with a request that was on its way.
#[derive(Default)]
pub(crate) struct Faults(u8);

impl Faults {
    /// One more; false: that was one too many.
    pub(crate) fn survive(&mut self) -> bool {
        self.0 += 1;
        self.0 <= MAX_FAULTS
    }
}

impl Request {
    pub(crate) fn missing(&self) -> &[BlockId] {
        &self.blocks[self.handed_out..]
    }
}
