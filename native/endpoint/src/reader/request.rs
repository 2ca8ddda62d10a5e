//! What a caller wants, and what was handed out of it.

use faro_fabric::{EndpointId, FabricKind};
use faro_wire::BlockId;
use std::time::Duration;

/// See the module's comment.
pub(crate) struct Request {
    /// The caller's name for it.
    pub(crate) id: u64,
    /// Handle of the peer.
    pub(crate) peer: u64,
    /// Who that is.
    pub(crate) endpoint: EndpointId,
    pub(crate) blocks: Vec<BlockId>,
    /// The first `handed_out` blocks were handed out.
    pub(crate) handed_out: usize,
    /// How long it may go without progress.
    pub(crate) patience: Duration,
    /// The owner has to write the bytes: what it told to be read was gone.
    pub(crate) push_only: bool,
    pub(crate) faults: Faults,
}

/// Counts what went wrong with a request that was on its way, by fabric.
#[derive(Default)]
pub(crate) struct Faults([u8; 3]);

/// What follows from a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The best fabric that does not rest, which may be the same one.
    Again,
    /// This fabric rests; another one, if there is one.
    OtherFabric,
    /// Enough.
    GiveUp,
}

impl Faults {
    /// One more. Ends after at most three on each fabric.
    pub(crate) fn count(&mut self, fabric: FabricKind) -> Next {
        let of_this = &mut self.0[match fabric {
            FabricKind::Tcp => 0,
            FabricKind::Shm => 1,
            FabricKind::Verbs => 2,
        }];
        *of_this += 1;
        match of_this {
            1 => Next::Again,
            2 => Next::OtherFabric,
            _ => Next::GiveUp,
        }
    }
}

impl Request {
    pub(crate) fn missing(&self) -> &[BlockId] {
        &self.blocks[self.handed_out..]
    }
}
