//! What a caller wants, and what was handed out of it.

use faro_fabric::{EndpointId, FabricKind};
use faro_wire::BlockId;
use std::time::Duration;

/// A caller's request for blocks of one peer.
pub(crate) struct Request {
    /// The caller's name for it.
    pub(crate) id: u64,
    /// The peer that has the blocks.
    pub(crate) endpoint: EndpointId,
    pub(crate) blocks: Vec<BlockId>,
    /// The first `handed_out` blocks were handed out.
    pub(crate) handed_out: usize,
    /// How long it may go without progress.
    pub(crate) idle_timeout: Duration,
    /// The server has to write the bytes: what it offered to be read was gone.
    pub(crate) writes_only: bool,
    pub(crate) faults: Faults,
}

impl Request {
    pub(crate) fn new(
        id: u64,
        endpoint: EndpointId,
        blocks: Vec<BlockId>,
        idle_timeout: Duration,
    ) -> Self {
        Self {
            id,
            endpoint,
            blocks,
            handed_out: 0,
            idle_timeout,
            writes_only: false,
            faults: Faults::default(),
        }
    }

    /// The blocks that were not handed out.
    pub(crate) fn missing(&self) -> &[BlockId] {
        &self.blocks[self.handed_out..]
    }
}

/// Faults of a request that was under way, counted by fabric.
#[derive(Default)]
pub(crate) struct Faults([u8; 3]);

/// What follows from a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The best fabric that is not in back-off, which may be the same one.
    Again,
    /// This route's back-off begins; another fabric, if there is one.
    OtherFabric,
    /// The request fails.
    GiveUp,
}

impl Faults {
    /// Counts one more. The third on one fabric ends the request.
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
